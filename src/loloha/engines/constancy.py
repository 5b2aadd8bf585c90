"""A test of whether users keep their values, from their linked reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from loloha.arrays import Floats

FALSE_ALARM = 0.02
"""Bound on the probability that one value alone rejects unchanging users."""
DEVIATIONS = 3.0
"""Excess of the squared error over that of unchanging users, for rejection."""
# Bisections, and between which tilts: what is left of the difference makes the bound no less valid.
_STEPS, _TILT = 60, 256.0
# A second rate for each factor of two between the least and the largest standard deviation.
_RATIO = 2.0


class Length(NamedTuple):
    """Users who sent T reports, and the evidence about a value from s = 0..T supporting ones.

    Attributes
    ----------
    users : int
    pmfs : float64[T + 1], float64[T + 1]
        Distribution of s where the user holds the value, and where another one.
    plain, likely : float64[T + 1]
        Their parts of the estimate by the mean, and by likelihood.
    weight : float
        Mean of either part where the user holds the value; 0 where not.
    """

    users: int
    pmfs: tuple[Floats, Floats]
    plain: Floats
    likely: Floats
    weight: float

    @property
    def apart(self) -> Floats:
        """The shift of the estimate by decoding by likelihood: of mean 0 for every value."""
        return self.likely - self.plain


def variances(lengths: Sequence[Length], part: Callable[[Length], Floats]) -> tuple[float, float]:
    """Variances of a sum over users, if all hold the value, and if none does."""
    own, other = (
        math.fsum(
            length.users
            * float(length.pmfs[i] @ part(length) ** 2 - (length.pmfs[i] @ part(length)) ** 2)
            for length in lengths
        )
        for i in range(2)
    )
    return own, other


def at_share(ends: tuple[float, float], f: Floats) -> Floats:
    """A variance between those of all and of none."""
    return f * ends[0] + (1 - f) * ends[1]


def exponents(lengths: Sequence[Length], k: int) -> Floats:
    """Functions of s of every length, [functions, sum of T + 1], whose sums are `evidence`."""
    # The exponential of each has a mean of at most 1 over a user who keeps a value, the one looked
    # at or another one: `rate` times `apart`, less a tilt of `likely` at which both means are the
    # same, less their logarithm. So has the product over users, whoever holds what and reports how
    # often.
    level = 2 * math.log(2 * k / FALSE_ALARM)
    low, high = sorted(
        math.sqrt(variance) for variance in variances(lengths, lambda score: score.apart)
    )
    # At higher rates a single user would decide.
    low = max(low, max(float(np.abs(length.apart).max()) for length in lengths) / math.sqrt(level))
    if not low:
        return np.zeros((1, sum(len(length.plain) for length in lengths)))
    high = max(low, high)
    many = 1 + math.ceil(math.log(high / low, _RATIO))
    rates = math.sqrt(level) / np.geomspace(low, high, many)
    both = np.concatenate([rates, -rates])
    return np.concatenate([_of_mean_one(length, both) for length in lengths], axis=1)


def evidence(sums: Floats) -> float:
    """Logarithm of a number whose mean is at most 1 if users keep their values."""
    # The mean of the exponentials of all sums over users, [functions, k]: by Markov's inequality it
    # reaches 1/FALSE_ALARM with at most that probability.
    largest = float(sums.max())
    return largest + math.log(float(np.exp(sums - largest).mean()))


def spread(lengths: Sequence[Length], k: int, g: int, f: Floats) -> float:
    """Standard deviation of the estimated difference of squared errors, if nobody changes."""
    # Of pairs of users: 2 sum of the squared variances of what moves each value. Of users by
    # themselves: the square of `likely` less that of `plain`, over all values. Those of one of g
    # cells go together, and those of two cells in part; for g = 2 twice k/g is as if they all did.
    moved = at_share(variances(lengths, lambda score: score.apart), f)
    own, other = variances(lengths, lambda score: score.likely**2 - score.plain**2)
    alone = 2 * max(1.0, k / g) * (own + (k - 1) * other)
    return math.sqrt(2 * float((moved**2).sum()) + alone)


def _of_mean_one(length: Length, rates: Floats) -> Floats:
    moved = rates[:, None] * length.apart
    tilts = length.likely / length.weight

    def means(tilt: Floats) -> tuple[Floats, Floats]:
        tilted = moved - tilt[:, None] * tilts
        own, other = (_log_mean(pmf, tilted) for pmf in length.pmfs)
        return own, other

    # A held value supports more often, so its mean falls faster with the tilt: they cross once.
    low, high = np.full(len(rates), -_TILT), np.full(len(rates), _TILT)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        own, other = means(middle)
        low, high = np.where(own > other, middle, low), np.where(own > other, high, middle)
    constant = np.maximum(*means(high))
    return moved - high[:, None] * tilts - constant[:, None]


def _log_mean(pmf: Floats, exponent: Floats) -> Floats:
    # Where the probability underflows to 0, the exponent does not count.
    exponent = np.where(pmf > 0, exponent, -np.inf)
    largest = exponent.max(axis=1)
    mean: Floats = largest + np.log(np.exp(exponent - largest[:, None]) @ pmf)
    return mean
