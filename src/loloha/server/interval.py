"""Intervals of frequencies by the inversion of a test: all that are shown are made here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from loloha import checks
from loloha.arrays import Bools, Floats

# What is taken off z^2 where each tail must keep its chance, and where both must together.
EACH_TAIL, BOTH_TAILS = 1.0, 3.0


class Scatter(NamedTuple):
    """Variance of an estimate at any true frequency: at_0 + slope f + bend f (1 - f)."""

    at_0: Any
    slope: Any
    bend: Any

    @classmethod
    def through(cls, variance: Callable[[float], Any]) -> Scatter:
        """The parabola through a variance at 0, 1/2 and 1."""
        none, half, all_ = (variance(f) for f in (0.0, 0.5, 1.0))
        return cls(none, all_ - none, 4 * half - 2 * (none + all_))

    def at(self, f: Any) -> Any:
        return self.at_0 + self.slope * f + self.bend * f * (1 - f)


@dataclass(frozen=True)
class Inversion:
    """Unbiased estimates with all that a test of their true frequencies needs.

    Parameters
    ----------
    frequencies : float64[..., bins]
        NaN where nothing is known.
    scatter : Scatter
        Variance of each estimate at any frequency.
    unit : float64[..., bins] or float
        By how much one more report that supports a bin moves its estimate.
    skew : tuple of float
        Bounds >= 0 on the third central moment of a count over its variance: as it is, and
        negated.

    Notes
    -----
    A frequency f is accepted where the count lies within z standard deviations *at f* of its
    expectation, and 1/2 + (z^2 - 1)/6 skew counts more: the continuity correction, and the third
    order of Cornish and Fisher. So each tail keeps its chance, which tests of many bins at once
    need. Of an interval for one bin the two tails together must: a third of a skew less does, as
    enumeration shows (docs/intervals.md). Both ends are roots of a quadratic.
    """

    frequencies: Floats
    scatter: Scatter
    unit: Any
    skew: tuple[float, float]

    def interval(
        self, level: float, *, simultaneous: bool = False, bins: Any = slice(None)
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends in [0, 1], of these bins; of all of them at once by Bonferroni."""
        tail = (1 - checks.level(level)) / 2
        z = upper_deviate(tail / self._tested if simultaneous else tail)
        margins = self._margins(z, EACH_TAIL if simultaneous else BOTH_TAILS)
        some = self._of(bins)
        above, below = (some.unit * margin for margin in margins)
        low, high = some.frequencies - above, some.frequencies + below
        # At z = 0 the ends are these: they bound the roots, also where a second one lies in [0, 1].
        return (
            np.clip(np.minimum(some._root(low, -z), low), 0, 1),
            np.clip(np.maximum(some._root(high, z), high), 0, 1),
        )

    def _of(self, bins: Any) -> Inversion:
        """The same of some bins."""

        def some(numbers: Any) -> Any:
            # One number may stand for all bins.
            return numbers[..., bins] if np.shape(numbers)[-1:] > (1,) else numbers

        scatter = Scatter(*map(some, self.scatter))
        return Inversion(self.frequencies[..., bins], scatter, some(self.unit), self.skew)

    def significant(self, level: float) -> Bools:
        """Which frequencies are above 0: each tested on its own, Holm's method over the bins."""
        known = np.isfinite(self.frequencies)
        positive: Bools = np.zeros(self.frequencies.shape, dtype=bool)
        while True:
            least = self.threshold(level, max(1, self._tested - int(positive.sum())))
            with np.errstate(invalid="ignore"):
                more: Bools = known & (self.frequencies > least)
            if (more == positive).all():
                return more
            positive = more

    def threshold(self, level: float, tested: int | None = None) -> Any:
        """Estimates above it have intervals above 0, or are `significant` of so many ``tested``."""
        tail = 1 - checks.level(level)
        z, tails = (
            (upper_deviate(tail / 2), BOTH_TAILS)
            if tested is None
            else (upper_deviate(tail / tested), EACH_TAIL)
        )
        return z * np.sqrt(self.scatter.at_0) + self.unit * self._margins(z, tails)[0]

    @property
    def _tested(self) -> int:
        """How many bins of a row anything is known of."""
        return max(1, int(np.isfinite(self.frequencies).sum(axis=-1).max()))

    def _margins(self, z: float, tails: float) -> tuple[float, float]:
        """Counts, beside z standard deviations, that the test allows for: above and below."""
        above, below = (0.5 + max(0.0, z * z - tails) / 6 * skew for skew in self.skew)
        return above, below

    def _root(self, t: Floats, z: float) -> Floats:
        """The f on the side of the sign of z with (f - t)^2 = z^2 variance(f); t if there is none.

        There is none where t lies so far outside of [0, 1] that every frequency is rejected.
        """
        at_0, slope, bend = self.scatter
        rise, square = slope + bend, z * z
        with np.errstate(invalid="ignore"):
            inside = at_0 + t * (rise - bend * t) + square * (bend * at_0 + rise**2 / 4)
            shifted = t + square * rise / 2 + z * np.sqrt(np.maximum(inside, 0))
            root: Floats = np.where(inside < 0, t, shifted / (1 + square * bend))
        return root


def upper_deviate(tail: float) -> float:
    """The standard normal deviate that is exceeded with this probability."""
    return -NormalDist().inv_cdf(tail)
