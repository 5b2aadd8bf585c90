"""Clopper-Pearson bounds, without SciPy: what runs beside a device should need little."""

from __future__ import annotations

import math

import numpy as np


def clopper_pearson(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """Bounds on a probability, each wrong with a chance of at most ``alpha``."""
    if not trials:
        return 0.0, 1.0
    low = 0.0 if not successes else _where(successes, trials, alpha)
    high = 1.0 if successes == trials else 1 - _where(trials - successes, trials, alpha)
    return low, high


def _where(successes: int, trials: int, alpha: float) -> float:
    """Largest p found at which so many successes or more have a chance of at most alpha."""
    # Below the mean the terms fall at least as those of a normal law: 15 deviations are e^-112.
    m = np.arange(successes, min(trials, successes + 100 + 15 * math.isqrt(successes)) + 1)
    # ln C(trials, m), from its value at ``successes`` upwards.
    first = math.lgamma(trials + 1) - math.lgamma(successes + 1)
    first -= math.lgamma(trials - successes + 1)
    ways = first + np.append(0.0, np.cumsum(np.log((trials - m[:-1]) / m[1:])))
    low, high = 0.0, successes / trials
    for _ in range(45):
        p = (low + high) / 2
        # Past the mean the terms only fall: the sum starts at its largest.
        terms = ways + m * math.log(p) + (trials - m) * math.log1p(-p)
        if math.log(max(np.exp(terms - terms[0]).sum(), 1.0)) + terms[0] > math.log(alpha):
            high = p
        else:
            low = p
    return low
