"""Memo cells that a population visits, and the symbols of its hashes."""

from __future__ import annotations

import numpy as np

from loloha.arrays import Array, Ints
from loloha.counting.compiled.jit import njit, reciprocal


@njit
def number_visits(
    values: Array,
    size: int,
    slots: Array,
    users: Array,
    visited: Array,
    rounds: Array,
    visits: Array,
) -> int:
    """Number the distinct (user, value) pairs in the order of their first visit."""
    # ``slots`` gets the number of the pair of each report, -1 where there is none; the next four
    # arrays get the user, value, first round and number of reports of each pair. Returns how many.
    newest = np.full(size, -1, dtype=np.int32)
    count = 0
    for u in range(values.shape[0]):
        first = count
        for t in range(values.shape[1]):
            v = values[u, t]
            if v < 0:
                slots[t, u] = -1
                continue
            pair = newest[v]
            if pair < first:
                pair = count
                newest[v] = pair
                users[pair], visited[pair], rounds[pair], visits[pair] = u, v, t, 0
                count += 1
            slots[t, u] = pair
            visits[pair] += 1
    return count


@njit
def merge(users: Array, symbols: Array, size: int, merged: Array, firsts: Array) -> int:
    """Number the distinct (user, symbol) pairs in order; ``users`` ascends."""
    # ``merged`` gets the number of each pair, ``firsts`` where each was met first. Returns how
    # many.
    newest = np.full(size, -1, dtype=np.int32)
    count = first = 0
    for i in range(len(users)):
        if i and users[i] != users[i - 1]:
            first = count
        cell = newest[symbols[i]]
        if cell < first:
            cell = count
            newest[symbols[i]] = cell
            firsts[cell] = i
            count += 1
        merged[i] = cell
    return count


@njit
def spread(answers: Array, slots: Array, memos: Array) -> None:
    """memos[t, u] = answers[slots[t, u]], -1 where there is no report."""
    for t in range(slots.shape[0]):
        for u in range(slots.shape[1]):
            cell = slots[t, u]
            memos[t, u] = answers[cell] if cell >= 0 else -1


@njit
def hash_linear(
    keys: Ints,
    users: Array,
    values: Array,
    g: int,
    low: int,
    high_of: Array,
    low_of: Array,
    symbols: Array,
) -> None:
    """<s, v> mod g of each user's values; ``users`` ascends."""
    # Values are cut in two, v = high_of[v] * low + low_of[v]: a user needs two small tables of
    # partial sums only.
    lows, highs = np.zeros(low, dtype=np.int32), np.zeros(high_of[-1] + 1, dtype=np.int32)
    for i in range(len(users)):
        if i == 0 or users[i] != users[i - 1]:
            _sums(lows, keys[users[i]] % low, g)
            _sums(highs, keys[users[i]] // low, g)
        total = lows[low_of[values[i]]] + highs[high_of[values[i]]]
        symbols[i] = total - g if total >= g else total


@njit
def _sums(sums: Array, seed: int, g: int) -> None:
    """sums[v] = <seed, v> mod g."""
    sums[0] = 0
    done = 1
    while done < len(sums):
        digit = np.int32(seed % g)
        seed //= g
        for v in range(done, min(done * g, len(sums))):
            total = sums[v - done] + digit
            sums[v] = total - g if total >= g else total
        done *= g


@njit
def hash_modular(
    a: Ints, b: Ints, users: Array, values: Array, modulus: int, g: int, symbols: Array
) -> None:
    """((a v + b) mod P) mod g of each user's values."""
    shift, factor = reciprocal(g)
    inverse = 1.0 / modulus
    for i in range(len(users)):
        user = users[i]
        whole = a[user] * np.int64(values[i]) + b[user]
        # The quotient in floating point is at most one off: cheaper than a division of integers.
        residue = whole - np.int64(whole * inverse) * modulus
        residue += modulus if residue < 0 else 0
        residue -= modulus if residue >= modulus else 0
        symbols[i] = residue - (residue * factor >> shift) * g
