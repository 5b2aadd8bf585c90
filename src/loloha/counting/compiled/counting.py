"""Counting reports into cells, and refusing all of them if one is out of range."""

from __future__ import annotations

import numpy as np

from loloha.arrays import Array, Bytes, Ints
from loloha.counting.compiled.jit import njit, reciprocal


@njit
def count_symbols(counts: Ints, ys: Ints) -> bool:
    """counts[y] += 1 for each y, or nothing and False if one is outside the counts."""
    size = len(counts)
    for i in range(len(ys)):
        y = ys[i]
        if y < 0 or y >= size:
            for j in range(i):
                counts[ys[j]] -= 1
            return False
        counts[y] += 1
    return True


@njit
def count_pairs(counts: Ints, keys: Ints, ys: Ints, g: int, least: int) -> bool:
    """counts[key * g + y] += 1 for each report, or nothing and False if one is out of range."""
    # As unsigned integers, negative ones are too large: one comparison each.
    rows, symbols = np.uint64(len(counts) // g - least), np.uint64(g)
    for i in range(len(ys)):
        key, y = keys[i], ys[i]
        if np.uint64(key - least) >= rows or np.uint64(y) >= symbols:
            for j in range(i):
                counts[keys[j] * g + ys[j]] -= 1
            return False
        counts[key * g + y] += 1
    return True


@njit
def count_rounds(counts: Ints, keys: Ints, ys: Array, g: int) -> None:
    """counts[t, keys[u] * g + ys[t, u]] += 1 where ys[t, u] >= 0; without keys, ys alone."""
    keyed = len(keys) > 0
    for t in range(ys.shape[0]):
        for u in range(ys.shape[1]):
            y = np.int64(ys[t, u])
            if y >= 0:
                counts[t, keys[u] * g + y if keyed else y] += 1


@njit
def count_lines(counts: Ints, lines: Ints, factors: Ints, ys: Array) -> None:
    """counts[t, lines[u], factors[u] * ys[t, u] mod g] += 1 where ys[t, u] >= 0."""
    g = counts.shape[2]
    shift, inverse = reciprocal(g)
    for t in range(ys.shape[0]):
        for u in range(ys.shape[1]):
            if ys[t, u] >= 0:
                product = factors[u] * np.int64(ys[t, u])
                counts[t, lines[u], product - (product * inverse >> shift) * g] += 1


@njit
def count_modular(counts: Ints, a: Ints, b: Ints, ys: Ints, modulus: int, g: int) -> None:
    """counts[v] += 1 for each report and each v that its modular hash maps to its symbol."""
    shift, factor = reciprocal(g)
    for i in range(len(ys)):
        step, residue, y = a[i], b[i], ys[i]
        for v in range(len(counts)):
            counts[v] += residue - (residue * factor >> shift) * g == y
            residue += step
            if residue >= modulus:
                residue -= modulus


@njit
def count_buckets(ones: Ints, buckets: Ints, ys: Bytes) -> None:
    """ones[buckets[i, l]] += bit l of the packed ys[i]."""
    for i in range(buckets.shape[0]):
        for position in range(buckets.shape[1]):
            ones[buckets[i, position]] += ys[i, position >> 3] >> (position & 7) & 1
