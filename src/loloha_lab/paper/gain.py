"""Gains of one point of the grid over another: ratios of measurements, and their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loloha.arrays import Floats
from loloha_lab.paper.grid import CurvePoint
from loloha_lab.paper.grid_results import Results
from loloha_lab.paper.method import METHODS, TIGHT, Method

USUAL = "ololoha"
"""Under the tight calibration: what 0.1.0 makes of OLOLOHA, linear hashing (where g is prime) and
independent memos."""


@dataclass(frozen=True)
class Ratio:
    """A ratio of two means."""

    measured: float
    error: float
    expected: float = math.nan

    @property
    def z(self) -> float:
        """Distance from theory in standard errors, of the logarithms."""
        return math.log(self.measured / self.expected) / (self.error / self.measured)


def ratio_of(above: Floats, below: Floats, expected: float = math.nan) -> Ratio:
    """The ratio of the means of independent runs, float64[runs] each and positive.

    The error is that of the delta method: relative variances of the two means add up.
    """
    measured = float(np.mean(above) / np.mean(below))
    return Ratio(measured, measured * math.hypot(_relative(above), _relative(below)), expected)


def mean_ratio(ratios: Sequence[Ratio]) -> Ratio:
    """The geometric mean of independent ratios."""
    logs = np.log([[ratio.measured, ratio.expected] for ratio in ratios]).mean(axis=0)
    measured, expected = map(float, np.exp(logs))
    relative = [ratio.error / ratio.measured for ratio in ratios]
    return Ratio(measured, measured * math.hypot(*relative) / len(ratios), expected)


def accuracy_gain(results: Results, worse: CurvePoint, better: CurvePoint) -> Ratio:
    """MSE_avg (unbiased) of one point over that of another."""
    above, below = (results.measured(point, "mse") for point in (worse, better))
    return ratio_of(above, below, results.expected(worse) / results.expected(better))


def budget_gain(results: Results, worse: CurvePoint, better: CurvePoint) -> Ratio:
    """eps_avg of one point over that of another."""
    above, below = (results.measured(point, "eps_avg") for point in (worse, better))
    return ratio_of(above, below)


def against_usual(
    results: Results, workload: str, method: Method, alpha: float
) -> list[tuple[CurvePoint, CurvePoint]]:
    """OLOLOHA as 0.1.0 makes it and one of ours, at each eps_inf."""
    usual = results.along(workload, METHODS[USUAL], TIGHT, alpha)
    return list(zip(usual, results.along(workload, method, TIGHT, alpha), strict=True))


def _relative(runs: Floats) -> float:
    """Relative standard error of the mean."""
    if len(runs) < 2:
        return math.nan
    return float(np.std(runs, ddof=1) / math.sqrt(len(runs)) / np.mean(runs))
