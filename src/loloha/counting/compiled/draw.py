"""Random words: many small generators side by side, and exact Bernoulli bits out of them.

Every lane is one SFC64 generator (C. Doty-Humphrey), the one that NumPy ships; side by side they
fill the vector registers of the processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.arrays import Array, Words
from loloha.counting.compiled.jit import njit

# A literal, so that the loop over levels unrolls and the loop over lanes becomes vector code.
_LEVELS = 10
_ONE, _THREE, _ELEVEN = np.uint64(1), np.uint64(3), np.uint64(11)
_LEFT, _RIGHT = np.uint64(24), np.uint64(40)
_HALF, _SHIFT = np.uint64((1 << 32) - 1), np.uint64(32)
_NONE, _ALL = np.uint64(0), np.uint64((1 << 64) - 1)


@njit
def compare(state: Words, levels: Words, below: Words, equal: Words) -> None:
    """Compare 64 random numbers a word with a threshold, as far as its first bits tell."""
    # ``below`` gets the lanes that are below the threshold already, ``equal`` those still
    # undecided.
    for start in range(0, len(below), state.shape[1]):
        # Slices, because an index that might be negative keeps a loop from becoming vector code.
        less, same = below[start : start + state.shape[1]], equal[start : start + state.shape[1]]
        _compare(state, levels, less, same)


@njit
def _compare(state: Words, levels: Words, below: Words, equal: Words) -> None:
    """`compare` for as many words as there are lanes, or fewer."""
    for lane in range(len(below)):
        a, b, c, n = state[0, lane], state[1, lane], state[2, lane], state[3, lane]
        less, same = _NONE, _ALL
        for level in range(_LEVELS):
            word = a + b + n
            n += _ONE
            a = b ^ (b >> _ELEVEN)
            b = c + (c << _THREE)
            c = ((c << _LEFT) | (c >> _RIGHT)) + word
            bit = levels[level]
            less |= same & bit & ~word
            same &= ~(word ^ bit)
        state[0, lane], state[1, lane], state[2, lane], state[3, lane] = a, b, c, n
        below[lane], equal[lane] = less, same


@njit
def scale(state: Words, n: Any, limit: Any, numbers: Array) -> None:
    """Halves of random words times n / 2^32, -1 where the fraction is below the limit."""
    for start in range(0, len(numbers), 2 * state.shape[1]):
        _scale(state, n, limit, numbers[start : start + 2 * state.shape[1]])


@njit
def _scale(state: Words, n: Any, limit: Any, numbers: Array) -> None:
    """`scale` for as many words as there are lanes, or fewer."""
    for lane in range(len(numbers) // 2):
        a, b, c = state[0, lane], state[1, lane], state[2, lane]
        word = a + b + state[3, lane]
        state[3, lane] += _ONE
        state[0, lane] = b ^ (b >> _ELEVEN)
        state[1, lane] = c + (c << _THREE)
        state[2, lane] = ((c << _LEFT) | (c >> _RIGHT)) + word
        low, high = (word & _HALF) * n, (word >> _SHIFT) * n
        numbers[2 * lane] = -1 if low & _HALF < limit else np.int32(low >> _SHIFT)
        numbers[2 * lane + 1] = -1 if high & _HALF < limit else np.int32(high >> _SHIFT)


@njit
def settle(words: Array, undecided: Any, tails: Any, rest: Any) -> None:
    """Set those undecided bits, in order, whose tail is below the rest of the threshold."""
    used = 0
    for i in range(len(words)):
        left = undecided[i]
        while left:
            bit = left & (~left + _ONE)
            if tails[used] < rest:
                words[i] |= bit
            left ^= bit
            used += 1


@njit
def lie(truths: Array, truthful: Array, others: Any, answers: Array) -> None:
    """Where the bit in ``truthful`` is 0, send the next of the other symbols; -1 stays -1."""
    used = 0
    for i in range(len(truths)):
        x = truths[i]
        honest = truthful[i >> 6] >> np.uint64(i & 63) & _ONE
        other = others[used]
        other += other >= x
        answers[i] = x if honest or x < 0 else other
        used += 0 if honest else 1
