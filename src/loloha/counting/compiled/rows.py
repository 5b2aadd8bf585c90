"""Sums of packed rows of bits, and the rows that a user's hash makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.arrays import Array, Ints, Words
from loloha.counting.compiled.jit import njit, reciprocal

_ONE, _NONE = np.uint64(1), np.uint64(0)
_WORD, _LANES = np.uint64(6), np.uint64(63)
_DIGITS = 32


@njit
def add_rows(sums: Ints, rows: Words, row_of: Array, slots: Array) -> None:
    """sums[t, v] += bit v of rows[row_of[slots[t, u]]], over all users; -1 means none in both."""
    # Carry-save adders: 16 rows go into a binary number a lane, held as one word a digit, by some
    # five operations a word of 64 bits (R. Harley, W. Seal).
    bins, width = sums.shape[1], rows.shape[1]
    words = rows.reshape(-1)
    # Unsigned positions: NumPy's rule for negative ones costs a test each.
    starts = np.empty(slots.shape[1], dtype=np.uint64)
    digits = np.empty((_DIGITS, width), dtype=np.uint64)
    for t in range(slots.shape[0]):
        count = 0
        for u in range(slots.shape[1]):
            row = row_of[slots[t, u]] if slots[t, u] >= 0 else -1
            starts[count] = np.uint64(row) * np.uint64(width)
            count += row >= 0
        digits[:] = _NONE
        for block in range(count // 16):
            _add_sixteen(digits, words, starts[16 * block : 16 * block + 16])
        for i in range(count // 16 * 16, count):
            for w in range(width):
                _ripple(digits, w, 0, words[starts[i] + np.uint64(w)])
        for w in range(width):
            lanes = sums[t, w << 6 : min(bins, (w + 1) << 6)]
            digit = 0
            while count >> digit:
                _spread(lanes, digits[digit, w], digit)
                digit += 1


@njit
def _add_sixteen(digits: Words, words: Words, at: Words) -> None:
    """Add the rows that start at the 16 positions, word by word."""
    a0, a1, a2, a3, a4, a5, a6, a7 = at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]
    b0, b1, b2, b3, b4, b5, b6, b7 = at[8], at[9], at[10], at[11], at[12], at[13], at[14], at[15]
    for column in range(digits.shape[1]):
        w = np.uint64(column)
        ones, twos = digits[0, column], digits[1, column]
        fours, eights = digits[2, column], digits[3, column]
        ones, a = _add(ones, words[a0 + w], words[a1 + w])
        ones, b = _add(ones, words[a2 + w], words[a3 + w])
        twos, c = _add(twos, a, b)
        ones, a = _add(ones, words[a4 + w], words[a5 + w])
        ones, b = _add(ones, words[a6 + w], words[a7 + w])
        twos, d = _add(twos, a, b)
        fours, e = _add(fours, c, d)
        ones, a = _add(ones, words[b0 + w], words[b1 + w])
        ones, b = _add(ones, words[b2 + w], words[b3 + w])
        twos, c = _add(twos, a, b)
        ones, a = _add(ones, words[b4 + w], words[b5 + w])
        ones, b = _add(ones, words[b6 + w], words[b7 + w])
        twos, d = _add(twos, a, b)
        fours, f = _add(fours, c, d)
        eights, sixteens = _add(eights, e, f)
        digits[0, column], digits[1, column] = ones, twos
        digits[2, column], digits[3, column] = fours, eights
        _ripple(digits, column, 4, sixteens)


@njit
def _add(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Sum and carry of three bits, in each of 64 lanes."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@njit
def _ripple(digits: Words, column: int, digit: int, carry: Any) -> None:
    """Add ``carry`` at ``digit`` of the number in each lane of a column."""
    while carry:
        before = digits[digit, column]
        digits[digit, column] = before ^ carry
        carry &= before
        digit += 1


@njit
def _spread(lanes: Ints, word: Any, digit: int) -> None:
    """lanes[v] += 2^digit where bit v of the word is set."""
    for v in range(len(lanes)):
        lanes[v] += np.int64(word >> np.uint64(v) & _ONE) << digit


@njit
def add_scattered(sums: Array, buckets: Array, words: Array, cell_of: Array, slots: Array) -> None:
    """sums[t, buckets[u, l]] += bit l of words[cell_of[slots[t, u]]], where slots[t, u] >= 0."""
    for t in range(slots.shape[0]):
        for u in range(slots.shape[1]):
            if slots[t, u] >= 0:
                cell = cell_of[slots[t, u]]
                for position in range(buckets.shape[1]):
                    word = words[cell, position >> 6]
                    sums[t, buckets[u, position]] += word >> np.uint64(position & 63) & _ONE


@njit
def place(rows: Array, symbols: Array, width: int, bits: Array) -> None:
    """Set bit ``symbols[i]`` of row i to the next one of ``bits``; rows without such a bit stay."""
    used = 0
    for i in range(len(symbols)):
        symbol = np.uint64(symbols[i])
        if symbols[i] >= width:
            continue
        lane = symbol & _LANES
        bit = bits[used >> 6] >> np.uint64(used & 63) & _ONE
        word = rows[i, symbol >> _WORD]
        rows[i, symbol >> _WORD] = word & ~(_ONE << lane) | bit << lane
        used += 1


@njit
def modular_preimages(
    rows: Array, a: Any, b: Any, users: Array, symbols: Array, k: int, modulus: int, g: int
) -> None:
    """Bit v of rows[i]: whether the modular hash of user ``users[i]`` maps v to ``symbols[i]``."""
    # ``users`` ascends, so each (user, value) is hashed once.
    row_of = np.full(g, -1, dtype=np.int64)
    shift, factor = reciprocal(g)
    start = 0
    while start < len(users):
        user = users[start]
        end = start
        while end < len(users) and users[end] == user:
            row_of[symbols[end]] = end
            end += 1
        step, residue = a[user], b[user]
        for v in range(k):
            row = row_of[residue - (residue * factor >> shift) * g]
            if row >= 0:
                rows[row, v >> 6] |= _ONE << np.uint64(v & 63)
            residue += step
            if residue >= modulus:
                residue -= modulus
        for i in range(start, end):
            row_of[symbols[i]] = -1
        start = end
