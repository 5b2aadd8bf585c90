"""Theory of each measurement, and how far a measurement lies from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loloha.arrays import Floats
from loloha.protocols import Protocol
from loloha.server.variance import harmonic_eligible, variance


def expected_mse(protocol: Protocol, n: int, truth: Floats) -> float:
    """Expectation of MSE_avg of the unbiased estimates, at true frequencies float64[tau, bins].

    The mean of Eq. (1) of MATH over values and rounds.
    """
    return float(np.mean(variance(protocol, n, truth, eligible=harmonic_eligible(protocol, n))))


@dataclass(frozen=True)
class Deviation:
    """Measured against expected at one point of the grid."""

    measured: float
    expected: float
    runs: int
    z: float

    @property
    def ratio(self) -> float:
        """Measured over expected."""
        return self.measured / self.expected


def deviation_of(measurements: Floats, expected: float) -> Deviation:
    """Hold the independent runs of one point, float64[runs], against what theory expects of each.

    Rounds share memoised answers and values share users, so a run's own scatter says nothing:
    the standard error is that of the runs, which are independent. With it the distance follows
    Student's t with runs - 1 degrees of freedom; z is the normal deviate of the same tail, so that
    |z| > 3 has the chance 0.27 % at any number of runs.
    """
    runs = len(measurements)
    mean = float(np.mean(measurements))
    if runs < 2:
        return Deviation(mean, expected, runs, math.nan)
    from scipy.stats import norm, t

    error = float(np.std(measurements, ddof=1)) / math.sqrt(runs)
    if error == 0:
        return Deviation(mean, expected, runs, 0.0 if mean == expected else math.inf)
    tail = t.logsf(abs(mean - expected) / error, runs - 1)
    # logsf and isf keep far tails apart that a plain probability rounds to 0.
    z = math.copysign(float(norm.isf(math.exp(max(tail, -700.0)))), mean - expected)
    return Deviation(mean, expected, runs, z)


def chance_beyond(count: int, points: int, limit: float = 3.0) -> float:
    """Probability that ``count`` or more of ``points`` independent deviates exceed ``limit``."""
    from scipy.stats import binom, norm

    return float(binom.sf(count - 1, points, 2 * norm.sf(limit)))
