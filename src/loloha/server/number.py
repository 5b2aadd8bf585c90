"""Mean, quantiles and distribution function of numbers, from one bit of each user."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Floats, Ints
from loloha.encodings import HiddenThreshold, Threshold
from loloha.errors import ParameterError
from loloha.protocols import Protocol
from loloha.server.interval import Inversion, Scatter
from loloha.server.variance import Channel, plain

QUANTILES = (0.1, 0.5, 0.9)
"""Those that summaries show."""
_HALF_WIDTH = 0.22
MOST_VALUES = 1 << 14
"""Of a larger domain summaries leave them out: they take seconds."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """What the bits of one round, or of many, say of values 0..k-1; in steps of the domain.

    Parameters
    ----------
    k : int
    channel : Channel
        Chances that the bit is 1: of users at or above their threshold, and below it.
    n : int64[...]
        Reports.
    ones, eligible : int64[..., k-1] or None
        Bits that are 1, and all, at each threshold; None where no threshold is sent.
    total : int64[...]
        Bits that are 1.
    """

    k: int
    channel: Channel
    n: Any
    ones: Ints | None
    eligible: Ints | None
    total: Any

    @classmethod
    def of(cls, protocol: Protocol, frequencies: Floats, eligible: Ints, n: Any) -> Numbers:
        """Of the estimates of a protocol that asks for numbers; others are refused."""
        if not isinstance(protocol.encoding, Threshold):
            raise ParameterError(
                f"protocol must ask for numbers, got {protocol.name}; use OneBit (onebit), or take "
                "the mean of its projected frequencies"
            )
        channel = Channel.realised(protocol)
        shares = channel.q + np.nan_to_num(frequencies) * channel.contrast
        # What was counted, but for rounding.
        ones = np.rint(shares * eligible).astype(np.int64)
        total = ones.sum(axis=-1)
        if isinstance(protocol.encoding, HiddenThreshold):
            return cls(protocol.k, channel, n, None, None, total)
        return cls(protocol.k, channel, n, ones, np.asarray(eligible), total)

    # -- mean

    @property
    def mean(self) -> Any:
        """Unbiased, float64[...]: (k-1) times the mean of (bit - q) / (p - q)."""
        return plain((self.k - 1) * self._mean_test.frequencies[..., 0])

    @property
    def mean_error(self) -> Any:
        """Standard error of the mean, float64[...]: at most (k-1) / (2 (p-q) sqrt(n))."""
        share = np.clip(self._mean_test.frequencies, 0, 1)
        return plain((self.k - 1) * np.sqrt(self._mean_test.scatter.at(share))[..., 0])

    def mean_interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Lower and upper end of an interval of the mean, within 0..k-1; float64[...] each."""
        low, high = self._mean_test.interval(level)
        return plain((self.k - 1) * low[..., 0]), plain((self.k - 1) * high[..., 0])

    @cached_property
    def _mean_test(self) -> Inversion:
        """Of the mean as a share of the range: all bits are those of one threshold drawn anew."""
        p, q, contrast = self.channel
        n = np.asarray(self.n, dtype=np.float64)[..., None]
        with np.errstate(invalid="ignore", divide="ignore"):
            known = np.where(n > 0, n, np.nan)
            shares = (np.asarray(self.total)[..., None] / known - q) / contrast

        def variance(f: float) -> Any:
            chance = q + f * contrast
            return chance * (1 - chance) / contrast**2 / known

        skew = max(0.0, 1 - 2 * q), max(0.0, 2 * p - 1)
        return Inversion(shares, Scatter.through(variance), 1 / (known * contrast), skew)

    # -- distribution

    @cached_property
    def survival(self) -> Floats:
        """Share of users with a value of at least 0, 1, ..., k-1; float64[..., k], decreasing.

        The likeliest one (isotonic regression). Between thresholds that nobody drew it is linear.
        """
        ones, eligible = self._thresholds()
        rows = [_fit(*row, self.channel) for row in zip(ones, eligible, strict=True)]
        fitted: Floats = np.array(rows).reshape(*np.shape(self.n), self.k)
        return fitted

    def quantile(self, level: Any) -> Any:
        """The least value that a share of at least ``level`` of the users do not exceed; float.

        Parameters
        ----------
        level : float
            In (0, 1): 0.5 for the median.

        Returns
        -------
        float or float64[...]
            NaN in a round without reports.

        Notes
        -----
        Of `survival` smoothed by the kernel 1 - x^2 (Epanechnikov) with a half-width of
        0.22 n^(-1/5) of the range, 3 % at n = 20 000; less than half a step smooths nothing.
        """
        rest = 1 - checks.level(level)
        above = (self._smoothed[..., 1:] > rest).sum(axis=-1).astype(np.float64)
        return plain(np.where(np.isnan(self.survival[..., 0]), np.nan, above))

    @cached_property
    def _smoothed(self) -> Floats:
        """`survival`, smoothed over neighbours, fewer the more reports there are."""
        rounds = self.survival.reshape(-1, self.k)
        sizes = np.broadcast_to(self.n, np.shape(self.survival)[:-1]).ravel()
        rows = [_smooth(row, _steps(self.k, int(n))) for row, n in zip(rounds, sizes, strict=True)]
        smoothed: Floats = np.array(rows).reshape(self.survival.shape)
        return smoothed

    @property
    def median(self) -> Any:
        """`quantile` of 1/2."""
        return self.quantile(0.5)

    def quantile_interval(self, level: float, confidence: float = 0.95) -> tuple[Any, Any]:
        """Lower and upper end of an interval of `quantile`; float64[...] each.

        Parameters
        ----------
        level : float
            Of the quantile, in (0, 1).
        confidence : float
            Chance, in (0, 1), that the interval holds the quantile.

        Notes
        -----
        All values v are in it for which the likelihood, largest under S(j) >= 1 - level up to j = v
        and S(j) <= 1 - level beyond, is within z^2 / 2 of the largest of any decreasing S (its
        logarithm), z the one-sided normal deviate. docs/numbers.md has the coverage.
        """
        rest = 1 - checks.level(level)
        most = NormalDist().inv_cdf(checks.level(confidence)) ** 2 / 2
        ones, eligible = self._thresholds()
        ends = np.array(
            [_ends(*row, self.channel, rest, most) for row in zip(ones, eligible, strict=True)]
        ).reshape(*np.shape(self.n), 2)
        return plain(ends[..., 0]), plain(ends[..., 1])

    def summary(self, level: float = 0.95, scale: Any = None) -> dict[str, Any]:
        """Mean and quantiles with intervals, as columns: a number of each for each round.

        Parameters
        ----------
        level : float
            Of the intervals.
        scale : Scale, optional
            Of a campaign's domain: the numbers that values stand for; steps 0..k-1 by default. The
            ends of a quantile's interval are then those of the first and the last part.

        Returns
        -------
        dict
            ``mean``, ``mean_standard_error``, ``mean_lower``, ``mean_upper``; for each of
            `QUANTILES`, where thresholds are sent and k <= 2^14, ``quantile_10`` and so on, with
            ``_lower`` and ``_upper``.
        """
        start, step, half = (0.0, 1.0, 0.0) if scale is None else scale
        low, high = self.mean_interval(level)
        columns = {
            "mean": start + step * self.mean,
            "mean_standard_error": step * self.mean_error,
            "mean_lower": start + step * low,
            "mean_upper": start + step * high,
        }
        known = self.ones is not None and self.k <= MOST_VALUES
        for one in QUANTILES if known else ():
            name = f"quantile_{100 * one:.0f}"
            low, high = self.quantile_interval(one, level)
            columns[name] = start + step * self.quantile(one)
            columns[f"{name}_lower"] = start + step * low - half
            columns[f"{name}_upper"] = start + step * high + half
        return columns

    def _thresholds(self) -> tuple[Ints, Ints]:
        """Ones and eligible, a row a round."""
        if self.ones is None or self.eligible is None:
            raise ParameterError(
                "protocol must have target='distribution' for quantiles and distribution function, "
                "got 'mean': devices keep their thresholds; ask for the distribution in a new "
                "campaign"
            )
        return self.ones.reshape(-1, self.k - 1), self.eligible.reshape(-1, self.k - 1)


class Numeric:
    """Estimates of numbers, where the protocol is `loloha.OneBit`; in steps 0..k-1 of the domain.

    `Numbers.summary` turns them into numbers of a campaign's range.
    """

    @cached_property
    def numbers(self) -> Numbers:
        """Mean, quantiles and distribution function; refused for other protocols."""
        one: Any = self
        frequencies = one.frequencies if hasattr(one, "frequencies") else one.estimates
        return Numbers.of(one.protocol, frequencies, one.eligible, one.n)

    @property
    def mean(self) -> Any:
        """`Numbers.mean`."""
        return self.numbers.mean

    @property
    def mean_error(self) -> Any:
        """`Numbers.mean_error`."""
        return self.numbers.mean_error

    def mean_interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """`Numbers.mean_interval`."""
        return self.numbers.mean_interval(level)

    @property
    def survival(self) -> Floats:
        """`Numbers.survival`."""
        return self.numbers.survival

    def quantile(self, level: float) -> Any:
        """`Numbers.quantile`."""
        return self.numbers.quantile(level)

    @property
    def median(self) -> Any:
        """`Numbers.median`."""
        return self.numbers.median

    def quantile_interval(self, level: float, confidence: float = 0.95) -> tuple[Any, Any]:
        """`Numbers.quantile_interval`."""
        return self.numbers.quantile_interval(level, confidence)


def _fit(ones: Ints, eligible: Ints, channel: Channel) -> Floats:
    """The likeliest decreasing shares S(0) = 1, S(1), ..., S(k-1) of one round."""
    k = len(ones) + 1
    if not eligible.any():
        return np.full(k, np.nan)
    drawn = np.flatnonzero(eligible)
    blocks = Blocks(channel, 0.0, 1.0)
    for j in drawn:
        blocks.add(int(ones[j]), int(eligible[j]))
    places, shares = [0, *(drawn + 1), k], [1.0, *blocks.shares(), 0.0]
    fitted: Floats = np.interp(np.arange(k), places, shares)
    return fitted


def _steps(k: int, n: int) -> int:
    """Half-width of the kernel that smooths the distribution function."""
    return round((k - 1) * _HALF_WIDTH / math.pow(max(n, 1), 0.2))


def _smooth(survival: Floats, steps: int) -> Floats:
    """Weighted mean of neighbours: beyond the domain all values are reached, or none."""
    if not steps:
        return survival
    weights = 1 - (np.arange(-steps, steps + 1) / (steps + 0.5)) ** 2
    padded = np.concatenate([np.ones(steps), survival, np.zeros(steps)])
    smoothed: Floats = np.convolve(padded, weights / weights.sum(), "valid")
    return smoothed


def _ends(
    ones: Ints, eligible: Ints, channel: Channel, rest: float, most: float
) -> tuple[float, float]:
    """The least and the greatest value that the quantile may be."""
    if not eligible.any():
        return math.nan, math.nan
    drawn = [(int(y), int(m)) for y, m in zip(ones, eligible, strict=True)]
    free = _likelihoods(drawn, Blocks(channel, 0.0, 1.0))[-1]
    left = np.array(_likelihoods(drawn, Blocks(channel, rest, 1.0)))
    # From the other end shares rise: those of bits that are 0 fall.
    turned = [(m - y, m) for y, m in reversed(drawn)]
    mirrored = Channel(1 - channel.q, 1 - channel.p, channel.contrast)
    right = np.array(_likelihoods(turned, Blocks(mirrored, 1 - rest, 1.0)))[::-1]
    held = np.flatnonzero(free - left - right <= most)
    return float(held[0]), float(held[-1])


def _likelihoods(rows: list[tuple[int, int]], blocks: Blocks) -> list[float]:
    """Of none, the first, the first two, ... of these thresholds."""
    values = [0.0]
    for y, m in rows:
        if m:
            blocks.add(y, m)
        values.append(blocks.likelihood)
    return values


class Blocks:
    """The likeliest decreasing shares within bounds, as thresholds are added: pooled neighbours.

    Where shares must lie within bounds, the likeliest ones are those without bounds, clipped.
    """

    def __init__(self, channel: Channel, least: float, most: float) -> None:
        self.channel, self.least, self.most = channel, least, most
        # Ones, reports, thresholds, and the likelihood of all blocks up to this one.
        self._stack: list[tuple[int, int, int, float]] = []

    def add(self, ones: int, reports: int) -> None:
        """One more threshold, above all others."""
        stack, count = self._stack, 1
        while stack and stack[-1][0] * reports <= ones * stack[-1][1]:
            earlier = stack.pop()
            ones, reports, count = ones + earlier[0], reports + earlier[1], count + earlier[2]
        before = stack[-1][3] if stack else 0.0
        stack.append((ones, reports, count, before + self._of(ones, reports)))

    @property
    def likelihood(self) -> float:
        """Its logarithm, of all that was added."""
        return self._stack[-1][3] if self._stack else 0.0

    def shares(self) -> list[float]:
        """Of each threshold that was added."""
        return [
            self._share(ones, reports)
            for ones, reports, count, _ in self._stack
            for _ in range(count)
        ]

    def _share(self, ones: int, reports: int) -> float:
        share = (ones / reports - self.channel.q) / self.channel.contrast
        return min(self.most, max(self.least, share))

    def _of(self, ones: int, reports: int) -> float:
        chance = self.channel.q + self.channel.contrast * self._share(ones, reports)
        return ones * math.log(chance) + (reports - ones) * math.log1p(-chance)
