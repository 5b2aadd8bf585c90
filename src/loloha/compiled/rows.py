"""Sums of packed rows of bits, and the rows that a user's hash makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.compiled.jit import njit, reciprocal

_PRIME = np.int64((1 << 31) - 1)
_ONE, _NONE = np.uint64(1), np.uint64(0)
_DIGITS = 32


@njit
def add_rows(sums: Any, rows: Any, row_of: Any, slots: Any) -> None:
    """sums[t, v] += bit v of rows[row_of[slots[t, u]]], over all users; -1 means none in both.

    Carry-save adders: 16 rows go into a binary number a lane, held as one word a digit, by some
    five operations a word of 64 bits (R. Harley, W. Seal).
    """
    bins, width = sums.shape[1], rows.shape[1]
    words = rows.reshape(-1)
    # Unsigned positions: NumPy's rule for negative ones costs a test each.
    starts = np.empty(slots.shape[1], dtype=np.uint64)
    digits = np.empty(_DIGITS, dtype=np.uint64)
    for t in range(slots.shape[0]):
        count = 0
        for u in range(slots.shape[1]):
            row = row_of[slots[t, u]] if slots[t, u] >= 0 else -1
            starts[count] = np.uint64(row) * np.uint64(width)
            count += row >= 0
        for w in range(width):
            _add_column(digits, words, starts[:count], np.uint64(w))
            lanes = sums[t, w << 6 : min(bins, (w + 1) << 6)]
            digit = 0
            while count >> digit:
                _spread(lanes, digits[digit], digit)
                digit += 1


@njit
def _add_column(digits: Any, words: Any, starts: Any, w: Any) -> None:
    """Binary digits, a word each, of how many of the rows that start at ``starts`` set each bit."""
    digits[:] = _NONE
    ones = twos = fours = eights = _NONE
    for block in range(len(starts) // 16):
        at = starts[16 * block : 16 * block + 16]
        ones, a = _add(ones, words[at[0] + w], words[at[1] + w])
        ones, b = _add(ones, words[at[2] + w], words[at[3] + w])
        twos, c = _add(twos, a, b)
        ones, a = _add(ones, words[at[4] + w], words[at[5] + w])
        ones, b = _add(ones, words[at[6] + w], words[at[7] + w])
        twos, d = _add(twos, a, b)
        fours, e = _add(fours, c, d)
        ones, a = _add(ones, words[at[8] + w], words[at[9] + w])
        ones, b = _add(ones, words[at[10] + w], words[at[11] + w])
        twos, c = _add(twos, a, b)
        ones, a = _add(ones, words[at[12] + w], words[at[13] + w])
        ones, b = _add(ones, words[at[14] + w], words[at[15] + w])
        twos, d = _add(twos, a, b)
        fours, f = _add(fours, c, d)
        eights, sixteens = _add(eights, e, f)
        _ripple(digits, 4, sixteens)
    digits[0], digits[1], digits[2], digits[3] = ones, twos, fours, eights
    for i in range(len(starts) // 16 * 16, len(starts)):
        _ripple(digits, 0, words[starts[i] + w])


@njit
def _add(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Sum and carry of three bits, in each of 64 lanes."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@njit
def _ripple(digits: Any, digit: int, carry: Any) -> None:
    """Add ``carry`` at ``digit`` of the number in each lane."""
    while carry:
        held = digits[digit]
        digits[digit] = held ^ carry
        carry &= held
        digit += 1


@njit
def _spread(lanes: Any, word: Any, digit: int) -> None:
    """lanes[v] += 2^digit where bit v of the word is set."""
    for v in range(len(lanes)):
        lanes[v] += np.int64(word >> np.uint64(v) & _ONE) << digit


@njit
def add_scattered(sums: Any, buckets: Any, words: Any, cell_of: Any, slots: Any) -> None:
    """sums[t, buckets[u, l]] += bit l of words[cell_of[slots[t, u]]], where slots[t, u] >= 0."""
    for t in range(slots.shape[0]):
        for u in range(slots.shape[1]):
            if slots[t, u] >= 0:
                cell = cell_of[slots[t, u]]
                for position in range(buckets.shape[1]):
                    word = words[cell, position >> 6]
                    sums[t, buckets[u, position]] += word >> np.uint64(position & 63) & _ONE


@njit
def count_single(single: Any, values: Any, visits: Any, slots: Any) -> None:
    """single[t, value] += 1 for each report that is the only one of its pair of user and value."""
    for t in range(slots.shape[0]):
        for u in range(slots.shape[1]):
            pair = slots[t, u]
            if pair >= 0 and visits[pair] == 1:
                single[t, values[pair]] += 1


@njit
def affine_preimages(rows: Any, keys: Any, users: Any, symbols: Any, k: int, g: int) -> None:
    """Bit v of rows[i]: whether the affine hash of user ``users[i]`` maps v to ``symbols[i]``.

    ``users`` ascends, so each (user, value) is hashed once.
    """
    row_of = np.full(g, -1, dtype=np.int64)
    shift, factor = reciprocal(g)
    start = 0
    while start < len(users):
        end = start
        while end < len(users) and users[end] == users[start]:
            row_of[symbols[end]] = end
            end += 1
        a, residue = keys[users[start]] >> 31, keys[users[start]] & _PRIME
        for v in range(k):
            row = row_of[residue - (residue * factor >> shift) * g]
            if row >= 0:
                rows[row, v >> 6] |= _ONE << np.uint64(v & 63)
            residue += a
            if residue >= _PRIME:
                residue -= _PRIME
        for i in range(start, end):
            row_of[symbols[i]] = -1
        start = end
