"""Limits of all protocols: least variance of a first report, least loss of one round."""

from __future__ import annotations

import math

from loloha import checks
from loloha.errors import ParameterError
from loloha.protocols.parameter_check import LARGEST_K

__all__ = ["eps_2", "variance"]

_NEIGHBOURS = 2


def variance(k: int, eps_1: float) -> float:
    """n V* of subset selection: the least that any eps_1-private report allows."""
    # A report is a set of d values that holds the own value with probability
    # p = d b / (d b + k - d), b = e^eps_1; q = (d - p) / (k - 1) is the chance of holding another
    # one. Source: MATH section 14, with the exact integer d.
    return _noise(checked_k(k), checks.eps("eps_1", eps_1))


def checked_k(k: int) -> int:
    return checks.integer("k", k, 2, LARGEST_K, "count the labels of the domain")


def _noise(k: int, eps: float) -> float:
    w = math.exp(-eps)
    # Least near d = k / (e^eps + 1), where n V* is that of all real d.
    near = round(k * w / (1 + w))
    sizes = range(max(1, near - _NEIGHBOURS), min(k - 1, near + _NEIGHBOURS) + 1)

    def noise(d: int) -> float:
        # Over the common denominator of p, q and p - q = (p k - d)/(k - 1): nothing cancels.
        total = (d + (k - d) * w) * (k - 1)
        q = d * (d - 1 + (k - d) * w) / total
        contrast = d * (k - d) * -math.expm1(-eps) / total
        return q * (1 - q) / contrast**2

    return min(map(noise, sizes))


def eps_2(eps_inf: float, eps_1: float) -> float:
    """The least loss of one round, all others known, at full accuracy for these two budgets."""
    # ln((ab - 1)/(a - b)), a = e^eps_inf, b = e^eps_1: an a-private step followed by a c-private
    # one is at most (ac + 1)/(a + c)-private. Two symbols attain it (BiLOLOHA). Source: MATH
    # section 16.
    eps_inf, eps_1 = checks.eps("eps_inf", eps_inf), checks.eps("eps_1", eps_1)
    if eps_1 >= eps_inf:
        raise ParameterError(f"eps_1 must be below eps_inf = {eps_inf!r}, got {eps_1!r}; lower it")
    gap = -math.exp(-eps_1) * math.expm1(eps_1 - eps_inf)
    return math.log(-math.expm1(-(eps_inf + eps_1))) - math.log(gap)
