"""Mean, quantiles and distribution function of numbers, from one bit of each user."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Floats, Ints
from loloha.encodings import HiddenThreshold, Threshold
from loloha.errors import ParameterError
from loloha.protocols import Protocol
from loloha.server.frame import Tabular
from loloha.server.interval import Inversion, Scatter
from loloha.server.projection import decreasing
from loloha.server.quantile_interval import quantile_ends
from loloha.server.variance import Channel, plain

QUANTILES = (0.1, 0.5, 0.9)
"""Those that summaries show."""
_HALF_WIDTH = 0.9
_MEDIAN = "0.5 is the median"
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
    share : Inversion
        The mean as a share of the range 0..k-1, float64[..., 1], with the test of its interval.
    ones, eligible : float64[..., k-1] or None
        Bits that are 1, and all, at each threshold; None where no threshold is sent.
    """

    k: int
    channel: Channel
    share: Inversion
    ones: Any
    eligible: Any

    @classmethod
    def of(cls, protocol: Protocol, frequencies: Floats, eligible: Ints, users: Any) -> Numbers:
        """Of the estimates of a protocol that asks for numbers; others are refused.

        ``users``, one a round, are those of whom the reporting ones are a sample, or these.
        """
        if not isinstance(protocol.encoding, Threshold):
            raise ParameterError(
                f"protocol must be for numbers, got {protocol.name}; use OneBit (onebit), or take "
                "the mean of its projected frequencies"
            )
        channel, k = Channel.realised(protocol), protocol.k
        n = np.asarray(eligible.sum(axis=-1), dtype=np.float64)[..., None]
        known = np.where(n > 0, n, np.nan)
        scatter = mean_scatter(protocol, channel, known, users)
        unit, skew = 1 / (known * channel.contrast), channel.skew
        if isinstance(protocol.encoding, HiddenThreshold):
            return cls(k, channel, Inversion(frequencies, scatter, unit, skew), None, None)
        reported = np.nan_to_num(frequencies)
        # A low threshold is reached by more users than a high one: (t - k/2) / (k-1) is added.
        added = (np.arange(1, k) - k / 2) / (k - 1)
        share = ((reported + added) * eligible).sum(axis=-1, keepdims=True) / known
        # What was counted, but for rounding.
        ones = np.rint((channel.q + reported * channel.contrast) * eligible)
        return cls(k, channel, Inversion(share, scatter, unit, skew), ones, np.asarray(eligible))

    # -- mean

    @property
    def mean(self) -> Any:
        """Unbiased, float64[...]: (k-1) times the mean of (bit - q) / (p - q), plus t - k/2.

        Of the threshold t of each report, where it is sent: the variance is then the same whatever
        the values are. Source: docs/maths.md, section 20.
        """
        return plain((self.k - 1) * self.share.frequencies[..., 0])

    @property
    def mean_error(self) -> Any:
        """Standard error of the mean, float64[...]: with thresholds the same for all values."""
        share = np.clip(self.share.frequencies, 0, 1)
        return plain((self.k - 1) * np.sqrt(self.share.scatter.at(share))[..., 0])

    def mean_interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Lower and upper end of an interval of the mean, within 0..k-1; float64[...] each."""
        low, high = self.share.interval(level)
        return plain((self.k - 1) * low[..., 0]), plain((self.k - 1) * high[..., 0])

    # -- distribution

    @property
    def shares(self) -> Floats:
        """Unbiased share of users at or above each threshold, float64[..., k-1]."""
        ones, eligible = self._thresholds()
        with np.errstate(invalid="ignore"):
            shares: Floats = (ones / eligible - self.channel.q) / self.channel.contrast
        return shares.reshape(np.shape(self.eligible))

    @cached_property
    def survival(self) -> Floats:
        """Share of users with a value of at least 0, 1, ..., k-1; float64[..., k], decreasing.

        The likeliest one (isotonic regression). Between thresholds that nobody drew it is linear.
        """
        ones, eligible = self._thresholds()
        rows = [_fit(*row, self.channel) for row in zip(ones, eligible, strict=True)]
        fitted: Floats = np.array(rows).reshape(*np.shape(self.eligible)[:-1], self.k)
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
        0.9 n^(-1/5) times the distance of its 10 % and 90 % quantiles, an eighth of it at
        n = 20 000; less than half a step smooths nothing.
        """
        rest = 1 - checks.level(level, usual=_MEDIAN)
        return plain(_reached(self._smoothed, rest))

    @cached_property
    def _smoothed(self) -> Floats:
        """`survival`, smoothed over neighbours: fewer, the more reports and the nearer values."""
        rounds = self.survival.reshape(-1, self.k)
        low, high = (_reached(rounds, rest) for rest in (0.9, 0.1))
        n = np.maximum(self.eligible.sum(axis=-1).ravel(), 1)
        steps = np.rint(np.nan_to_num(high - low) * _HALF_WIDTH / n**0.2).astype(int).tolist()
        rows = [_smooth(row, most) for row, most in zip(rounds, steps, strict=True)]
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
        and S(j) <= 1 - level beyond, is not far below the largest of any decreasing S. How far, is
        that of the distribution that makes it largest, flat at the quantile: so coverage
        is at least ``confidence`` for every distribution, and more where it falls there.
        docs/maths.md, section 20; docs/numbers.md has coverage and widths.
        """
        rest = 1 - checks.level(level, usual=_MEDIAN)
        checks.level(confidence, "confidence")
        ones, eligible = self._thresholds()
        ends = np.array(
            [
                quantile_ends(*row, self.channel, rest, confidence)
                for row in zip(ones, eligible, strict=True)
            ]
        ).reshape(*np.shape(self.eligible)[:-1], 2)
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
        for share in QUANTILES if known else ():
            name = f"quantile_{100 * share:.0f}"
            low, high = self.quantile_interval(share, level)
            columns[name] = start + step * self.quantile(share)
            columns[f"{name}_lower"] = start + step * low - half
            columns[f"{name}_upper"] = start + step * high + half
        return columns

    def _thresholds(self) -> tuple[Floats, Floats]:
        """Ones and eligible, a row a round."""
        if self.ones is None or self.eligible is None:
            raise ParameterError(
                "protocol must have target='distribution' for quantiles and distribution function, "
                "got 'mean': devices keep their thresholds; ask for the distribution in a new "
                "campaign"
            )
        return self.ones.reshape(-1, self.k - 1), self.eligible.reshape(-1, self.k - 1)


class Numeric(Tabular):
    """Estimates of numbers, where the protocol is `loloha.OneBit`; in steps 0..k-1 of the domain.

    `Numbers.summary` turns them into numbers of a campaign's range.
    """

    @cached_property
    def numbers(self) -> Numbers:
        """Mean, quantiles and distribution function; refused for other protocols."""
        owner: Any = self
        frequencies = owner.frequencies if hasattr(owner, "frequencies") else owner.estimates
        return Numbers.of(owner.protocol, frequencies, owner.eligible, owner.users)

    def summaries(self, level: float = 0.95, scale: Any = None) -> dict[str, dict[str, Any]]:
        """`Numbers.summary` by the prefix of its columns in tables; none of other protocols."""
        owner: Any = self
        return {"": self.numbers.summary(level, scale)} if not owner.protocol.histogram else {}

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


def mean_scatter(protocol: Protocol, channel: Channel, n: Any, users: Any) -> Scatter:
    """Variance of the mean, as a share of the range, of n reports through this channel.

    Parameters
    ----------
    n : float64[..., 1]
    users : int or int64[..., 1]
        Of whom they are drawn: what their values' own variance f (1 - f), at most, adds.
    """
    p, q, contrast = channel
    noise = np.array([q * (1 - q), p * (1 - p)]) / contrast**2
    if isinstance(protocol.encoding, HiddenThreshold):
        bits, bend = 0.0, 1.0
    else:
        # Of 1{v >= t} + t / (k-1): uniform about the value, whatever it is.
        bits = (1 - 1 / (protocol.k - 1) ** 2) / 12
        bend = np.maximum(users - n, 0) / np.maximum(users - 1, 1)
    return Scatter((noise[0] + bits) / n, (noise[1] - noise[0]) / n, bend / n)


def _reached(survival: Floats, rest: float) -> Any:
    """The last value that more than ``rest`` of the users reach; NaN where nothing is known."""
    above = (survival[..., 1:] > rest).sum(axis=-1)
    return np.where(np.isnan(survival[..., 0]), np.nan, above.astype(np.float64))


def _fit(ones: Floats, eligible: Floats, channel: Channel) -> Floats:
    """The likeliest decreasing shares S(0) = 1, S(1), ..., S(k-1) of one round."""
    k = len(ones) + 1
    if not eligible.any():
        return np.full(k, np.nan)
    drawn = np.flatnonzero(eligible)
    reports = eligible[drawn]
    shares = decreasing((ones[drawn] / reports - channel.q) / channel.contrast, reports)
    fitted: Floats = np.interp(np.arange(k), [0, *(drawn + 1), k], [1.0, *shares, 0.0])
    return fitted


def _smooth(survival: Floats, steps: int) -> Floats:
    """Weighted mean of neighbours: beyond the domain all values are reached, or none."""
    if not steps:
        return survival
    weights = 1 - (np.arange(-steps, steps + 1) / (steps + 0.5)) ** 2
    padded = np.concatenate([np.ones(steps), survival, np.zeros(steps)])
    smoothed: Floats = np.convolve(padded, weights / weights.sum(), "valid")
    return smoothed
