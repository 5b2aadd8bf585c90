"""The least or the largest number that is good enough, where more of it is better or worse."""

from __future__ import annotations

import math
from collections.abc import Callable

from loloha.protocols.parameter_check import LARGEST_K

SMALLEST_EPS, LARGEST_EPS = 1 / 64, 32.0
"""Budgets that are looked through: beyond them nothing is private, or nothing is learned."""
MOST_TRIED = 1 << 40
"""Reports a round: more are not looked for."""
_STEP = 1.25
_DIGITS = 3


def least_eps(good: Callable[[float], bool]) -> float | None:
    """The least budget that is good, to three digits and rounded up; None if none is."""
    eps = SMALLEST_EPS
    while not good(eps):
        eps *= _STEP
        if eps > LARGEST_EPS:
            return None
    low, high = eps / _STEP, eps
    while high - low > high * 10**-_DIGITS / 4:
        middle = (low + high) / 2
        low, high = (low, middle) if good(middle) else (middle, high)
    unit = 10.0 ** (math.floor(math.log10(high)) - _DIGITS + 1)
    rounded = round(math.ceil(high / unit) * unit, 12)
    return rounded if good(rounded) else high


def least_n(good: Callable[[float], bool]) -> int | None:
    """The fewest reports that are good; None if none are."""
    if not good(MOST_TRIED):
        return None
    return _first(good, 0, MOST_TRIED)


def largest_k(good: Callable[[float], bool]) -> int | None:
    """The largest domain that is good; None if not even two values are."""
    if not good(2):
        return None
    k = 2
    while k < LARGEST_K and good(2 * k):
        k *= 2
    return k if k >= LARGEST_K else _first(lambda one: not good(one), k, 2 * k) - 1


def _first(good: Callable[[int], bool], low: int, high: int) -> int:
    """The least integer in low+1..high that is good, as ``high`` is."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high
