"""Variance of an estimate: of one round, and what two rounds share through the memo."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from loloha import _moved, checks
from loloha.errors import ParameterError
from loloha.protocols import Protocol
from loloha.protocols.base import speakable
from loloha.report import MOST_REPORTS

_SURELY_REACHED = 20_000


class Channel(NamedTuple):
    """Pr[support] of users who do (p) and who do not (q) hold the value, and p - q."""

    p: float
    q: float
    contrast: float

    @property
    def skew(self) -> tuple[float, float]:
        """Skewness of one answer over its variance, 1 - 2 p, to either side: at f = 0 and f = 1."""
        return max(0.0, 1 - 2 * self.q), max(0.0, 2 * self.p - 1)

    @classmethod
    def formula(cls, protocol: Protocol) -> Channel:
        return _kind(protocol)(protocol.p_star, protocol.q_star, protocol.contrast)

    @classmethod
    def realised(cls, protocol: Protocol) -> Channel:
        exact = protocol.realised
        chances = float(exact.p_star), float(exact.q_star), float(exact.contrast)
        return _kind(protocol)(*chances)

    @classmethod
    def noiseless(cls) -> Channel:
        return cls(1.0, 0.0, 1.0)

    @classmethod
    def memoised(cls, protocol: Protocol) -> Channel:
        """Of the permanent round alone."""
        p, q = protocol.encoding.supporting(protocol.p1, protocol.q1)
        return _kind(protocol)(p, q, p - q)


class Fractional(Channel):
    """Where each user counts in a bin by a share: they hold it with a chance of their own."""


def _kind(protocol: Protocol) -> type[Channel]:
    return Fractional if protocol.encoding.fractional else Channel


@_moved.keywords(reach="eligible")
def variance(protocol: Protocol, n: Any, f: Any = 0.0, *, eligible: Any = None) -> Any:
    """Variance of one frequency estimate in one round.

    Parameters
    ----------
    protocol : Protocol
    n : int
        Reports in the round, n >= 1.
    f : float or float64[bins]
        True frequency in [0, 1] among the n; 0 gives the approximate variance V*.
    eligible : float or float64[bins], optional
        Reports that could support the bin, in (0, n]: n, but for sampled buckets, where by
        default their expected number n d/b is taken, as in V*. At `harmonic_eligible` the variance
        is that over all that it can be.

    Returns
    -------
    float or float64[bins]
        In squared frequency.

    Raises
    ------
    ParameterError
        If n < 1, f lies outside [0, 1] or eligible outside (0, n].

    Notes
    -----
    The population is fixed: no f(1-f)/n term. But users who sample a bucket are a sample of it,
    drawn without replacement, which adds f(1-f) (n - eligible) / ((n - 1) eligible). Of a mean by
    hidden thresholds it is the most that it can be: that of users who all hold one value.
    Source: MATH section 1, Eq. (1), (2).
    """
    speakable(protocol)
    n = checks.integer("n", n, 1, MOST_REPORTS, "give the number of reports in the round")
    frequency = numbers("f", f, 0.0, 1.0, "give true frequencies")
    reached = numbers(
        "eligible",
        expected_eligible(protocol, n) if eligible is None else eligible,
        0.0,
        n,
        "see Estimate",
    )
    if not reached.all():
        raise ParameterError("eligible must be above 0, got 0; nothing is known of such a bin")
    return plain(spread(Channel.formula(protocol), n, reached, frequency))


def expected_eligible(protocol: Protocol, n: int) -> float:
    """Expected number of the n reports that can support one given bin."""
    return protocol.encoding.expected_eligible(n)


def harmonic_eligible(protocol: Protocol, n: int) -> float:
    """The number of eligible users at which `variance` is its mean over their number m > 0."""
    # 1 / E[1/m | m > 0], since the variance is linear in 1/m. Each user samples a bucket with
    # chance d/b, so m is binomial. A bucket that nobody samples, of chance (1 - d/b)^n, has no
    # estimate (NaN) and no error: measured and expected errors are those of the others.
    mean = expected_eligible(protocol, n)
    if mean == n:
        return mean
    share = mean / n
    if mean > _SURELY_REACHED:
        # Of E[1/m], the Taylor series at the mean; what follows is of order 1/mean^3.
        rest = 1 - share
        return mean / (1 + rest / mean + rest * (1 + rest) / mean**2)
    # Beyond lie less than 1e-30 of the chances.
    sizes = np.arange(1, min(n, int(mean + 15 * math.sqrt(mean)) + 60) + 1)
    # Each chance over the one before; the first is the chance of no user at all.
    logs = np.cumsum(np.log((n + 1 - sizes) / sizes) + math.log(share) - math.log1p(-share))
    chances = np.exp(logs - logs.max())
    return float(chances.sum() / (chances / sizes).sum())


def drawn_from(population: Any, n: int) -> int:
    """The users of whom n report: these n, where no population is given."""
    if population is None:
        return n
    return checks.integer(
        "population", population, n, MOST_REPORTS, "it holds at least those who report"
    )


def spread(channel: Channel, n: Any, eligible: Any, f: Any) -> Any:
    """See the notes of `variance`; frequencies of NaN stay NaN."""
    # Where only some of n users report at all, drawn at random, it is the variance for all n.
    p, q, contrast = channel
    scatter = (f * (p * (1 - p)) + (1 - f) * (q * (1 - q))) / contrast**2
    everyone = isinstance(channel, Fractional)
    sampled = f * (1 - f) * (1 if everyone else (n - eligible) / np.maximum(n - 1, 1))
    return (scatter + sampled) / eligible


def eligible_of(protocol: Protocol, n: Any, frequencies: Any, errors: Any) -> Any:
    """Eligible users, int64[..., bins], of estimates with these errors: `spread` turned round."""
    # All n where every report can support every bin; 0 where nothing is known.
    if expected_eligible(protocol, 1) == 1:
        return np.broadcast_to(n, np.shape(frequencies)).astype(np.int64)
    f = np.clip(frequencies, 0, 1)
    sampled = f * (1 - f) / np.maximum(n - 1, 1)
    single = spread(Channel.realised(protocol), 1, 1, f)
    eligible = np.rint((single + sampled * n) / (np.square(errors) + sampled))
    return np.where(np.isfinite(eligible), eligible, 0).astype(np.int64)


def temporal_covariance(protocol: Protocol, n: int, f: Any = 0.0) -> Any:
    """Covariance of the estimates of two rounds in which every user holds the same value.

    The memoised answers are shared, so averaging rounds stops at this floor; an alert that takes
    rounds for independent gives false alarms.

    Parameters
    ----------
    protocol : Protocol
        One-round protocols give 0: nothing is memoised.
    n : int
        Reports in each round, by the same users, n >= 1.
    f : float or float64[bins]
        True frequency in [0, 1], in both rounds.

    Returns
    -------
    float or float64[bins]
        In squared frequency. Source: MATH section 9.

    Raises
    ------
    ParameterError
        If n < 1 or f lies outside [0, 1].

    Notes
    -----
    It is the variance that the memos alone leave in the estimate. So where users change their
    values, come or go, the covariance is at most the geometric mean of this at the two rounds'
    frequencies and numbers of reports (Cauchy-Schwarz). Where memo cells are the values (L-GRR,
    bits), a share s of the users who hold the same value in both rounds gives exactly s times
    this at the frequency among them. Without a second round it is the whole variance.
    """
    n = checks.integer("n", n, 1, MOST_REPORTS, "give the number of reports in the round")
    frequency = numbers("f", f, 0.0, 1.0, "give true frequencies")
    if not protocol.longitudinal:
        return plain(np.zeros_like(frequency))
    return plain(spread(Channel.memoised(protocol), n, expected_eligible(protocol, n), frequency))


def numbers(name: str, values: Any, low: float, high: float, advice: str) -> Any:
    """``values`` as float64[...] in [low, high]."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(math.nan)
    outside = ~((array >= low) & (array <= high))
    if outside.any():
        raise ParameterError(
            f"{name} must lie in [{low:g}, {high:g}], got {np.count_nonzero(outside)} outside; "
            f"{advice}"
        )
    return array


def plain(numbers: Any) -> Any:
    """A float for a single number."""
    return numbers if numbers.ndim else float(numbers)
