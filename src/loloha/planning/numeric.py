"""Users needed for the mean of numbers: by one bit of each, and from a histogram."""

from __future__ import annotations

import math
from typing import NamedTuple

from loloha.protocols import OneBit, Protocol
from loloha.server.frame import normal_quantile
from loloha.server.number import mean_scatter
from loloha.server.variance import Channel, variance

WANTED = 0.01
"""Error of a mean, as a share of the range, for which plans say how many users it takes."""


class MeanPlan(NamedTuple):
    """How well the mean of numbers 0..k-1 is known, in shares of the range.

    Attributes
    ----------
    error : float
        Half-width, at most, of an interval of the mean by `OneBit` with the reports of the plan.
    users : int
        Reports with which it is `WANTED`.
    histogram_users : int or None
        Reports with which the mean of the unbiased frequencies of the recommended protocol has such
        an interval; projected to the simplex they need more. None where nothing is recommended.
    level : float
    """

    error: float
    users: int
    histogram_users: int | None
    level: float


def mean_error(protocol: Protocol, n: int, level: float = 0.95, every: int = 1) -> float:
    """Half-width, at most, of the interval of a mean by `OneBit`, as a share of the range."""
    # Of all users, where those who report are one panel of ``every``.
    scatter = mean_scatter(protocol, Channel.formula(protocol), float(n), n * every)
    return normal_quantile((1 + level) / 2) * math.sqrt(scatter.at(0.5))


def histogram_noise(protocol: Protocol) -> float:
    """n times the variance of the mean of unbiased frequencies, in squared ranges."""
    # Their errors are nearly uncorrelated; values count from the middle, which costs nothing as
    # frequencies sum to 1. So it is V* (k+1) k / (12 (k-1)).
    k = protocol.bins
    return float(variance(protocol, 1)) * k * (k + 1) / (12 * (k - 1))


def plan_mean(
    k: int, n: int, eps_inf: float, eps_1: float, level: float, histogram: Protocol | None
) -> MeanPlan:
    """See `MeanPlan`."""
    one_bit = OneBit(k=k, eps_inf=eps_inf, eps_1=eps_1)
    scale = (normal_quantile((1 + level) / 2) / WANTED) ** 2
    other = None if histogram is None else math.ceil(scale * histogram_noise(histogram))
    error = mean_error(one_bit, n, level)
    return MeanPlan(error, math.ceil(n * (error / WANTED) ** 2), other, level)
