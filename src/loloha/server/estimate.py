"""Unbiased frequencies of one round, with variance, intervals, bounds and temporal covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha.errors import ParameterError
from loloha.rules import checks
from loloha.rules.encodings import SampledBuckets
from loloha.rules.protocols import Protocol
from loloha.server.frame import HTML_ROWS, to_frame, to_html

if TYPE_CHECKING:
    from loloha.rules.counting.arrays import Floats, Ints
    from loloha.server.tally import Tally

MOST_REPORTS = 1 << 62


@dataclass(frozen=True, eq=False)
class Estimate:
    """Frequencies of one round.

    Attributes
    ----------
    protocol : Protocol
        The rules that the reports followed.
    n : int
        Reports of the round: the denominator.
    frequencies : float64[bins]
        Unbiased, so possibly negative; see `loloha.postprocess` to project them. NaN where no
        user sampled the bucket.
    standard_errors : float64[bins]
        Of a fixed population, with f replaced by the estimate clipped to [0, 1]; see `variance`.
    reach : int64[bins]
        Reports that could support the bin: n, but for sampled buckets.
    """

    protocol: Protocol
    n: int
    frequencies: Floats
    standard_errors: Floats
    reach: Ints

    @classmethod
    def from_tally(cls, tally: Tally) -> Estimate:
        """The estimate of a tally.

        Raises
        ------
        ParameterError
            If no report was counted.
        """
        return cls.from_support(tally.protocol, tally.n, tally.support(), tally.reach())

    @classmethod
    def from_support(cls, protocol: Protocol, n: int, support: Ints, reach: Ints) -> Estimate:
        """The estimate from support counts, int64[bins], and reach, int64[bins].

        Raises
        ------
        ParameterError
            If n < 1, or there is not one count a bin.
        """
        n = checks.integer("n", n, 1, MOST_REPORTS, "wait for at least one report of the round")
        shapes = np.shape(support), np.shape(reach)
        if shapes != ((protocol.bins,),) * 2:
            raise ParameterError(
                f"support and reach must have one count for each of {protocol.bins} bins, got "
                f"shapes {shapes[0]} and {shapes[1]}; use Tally.support() and Tally.reach()"
            )
        frequencies = unbiased(protocol, support, reach)
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = _variance(_Channel.realised(protocol), n, reach, np.clip(frequencies, 0, 1))
        return cls(protocol, n, frequencies, np.sqrt(spread), reach)

    @property
    def parameters(self) -> dict[str, Any]:
        """What the clients really did: protocol, g, realised p1..q_star and losses, to publish."""
        return {"protocol": self.protocol.to_dict(), "g": self.protocol.g} | (
            self.protocol.realised.to_dict()
        )

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper end of a normal interval for each bin on its own, float64[bins] each.

        Parameters
        ----------
        level : float
            Chance, in (0, 1), that the interval of one given bin holds its true frequency.
        """
        width = normal_quantile((1 + check_level(level)) / 2) * self.standard_errors
        return self.frequencies - width, self.frequencies + width

    def to_frame(
        self,
        level: float = 0.95,
        *,
        labels: Sequence[Any] | None = None,
        backend: str | None = None,
    ) -> Any:
        """A row for each value.

        Parameters
        ----------
        level : float
            Of the intervals ``low..high``.
        labels : sequence, optional
            What each bin stands for.
        backend : {"pandas", "polars", "pyarrow"}, optional
            Kind of the frame; pyarrow by default.

        Returns
        -------
        frame
            With columns value (number), label (where given), estimate, error (standard error),
            low, high and n.

        Raises
        ------
        ParameterError
            If there is not one label a bin, or the backend is unknown.
        """
        if labels is not None and len(labels) != len(self.frequencies):
            raise ParameterError(
                f"labels must be {len(self.frequencies)}, one a bin, got {len(labels)}; "
                "give them in the order of the domain"
            )
        low, high = self.interval(level)
        columns: dict[str, Any] = {"value": np.arange(len(self.frequencies))}
        if labels is not None:
            columns["label"] = list(labels)
        columns |= {
            "estimate": self.frequencies,
            "error": self.standard_errors,
            "low": low,
            "high": high,
            "n": np.full(len(self.frequencies), self.n),
        }
        return to_frame(columns, backend)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_frame(backend="pyarrow").__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        low, high = self.interval()
        known = np.nan_to_num(self.frequencies, nan=-np.inf)
        rows = [
            (int(v), self.frequencies[v], low[v], high[v])
            for v in np.argsort(-known, kind="stable")[:HTML_ROWS]
        ]
        return to_html(
            f"{self.protocol!r}: {self.n} reports",
            ("value", "estimate", "low", "high"),
            rows,
            f"The most frequent of {len(known)} values, with 95 % intervals; all: to_frame().",
        )

    def simultaneous(self, level: float = 0.95, bound: str = "hoeffding") -> Floats:
        """Largest error over all bins at once, with probability at least ``level``; float64[bins].

        Parameters
        ----------
        level : float
            In (0, 1).
        bound : {"hoeffding", "chebyshev", "bernstein"}
            MATH section 9. The second is the loosest; the third is tighter than the first where
            few reports support a bin (q_star well below 1/2).
        """
        if bound != "bernstein":
            error: Floats = simultaneous_error(self.protocol, self.reach, level=level, bound=bound)
            return error
        channel = _Channel.realised(self.protocol)
        # The share of supporting reports, but for rounding.
        share = np.clip(channel.q + self.frequencies * channel.contrast, 0, 1)
        exponent = _exponent(self.protocol, level)
        above, below = (_farthest(exponent, self.reach, seen) for seen in (share, 1 - share))
        farthest: Floats = np.where(self.reach, np.maximum(above, below), np.inf)
        return farthest / channel.contrast


class _Channel(NamedTuple):
    """Pr[support] of users who do (p) and who do not (q) hold the value, and p - q."""

    p: float
    q: float
    contrast: float

    @classmethod
    def formula(cls, protocol: Protocol) -> _Channel:
        return cls(protocol.p_star, protocol.q_star, protocol.contrast)

    @classmethod
    def realised(cls, protocol: Protocol) -> _Channel:
        exact = protocol.realised
        return cls(float(exact.p_star), float(exact.q_star), float(exact.contrast))

    @classmethod
    def memoised(cls, protocol: Protocol) -> _Channel:
        """Of the permanent round alone."""
        p, q = protocol.encoding.supporting(protocol.p1, protocol.q1)
        return cls(p, q, p - q)


def unbiased(protocol: Protocol, support: Ints, reach: Ints) -> Floats:
    """Unbiased frequencies of one round, or of many at once.

    Parameters
    ----------
    protocol : Protocol
    support, reach : int64[..., bins]
        Reports that support each bin, and that could support it.

    Returns
    -------
    float64[..., bins]
        Possibly negative; NaN where no report reaches the bin. Source: MATH section 1.
    """
    channel = _Channel.realised(protocol)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Floats = support / reach
    return (shares - channel.q) / channel.contrast


def variance(protocol: Protocol, n: Any, f: Any = 0.0, *, reach: Any = None) -> Any:
    """Variance of one frequency estimate in one round.

    Parameters
    ----------
    protocol : Protocol
    n : int
        Reports in the round, n >= 1.
    f : float or float64[bins]
        True frequency in [0, 1] among the n; 0 gives the approximate variance V*.
    reach : float or float64[bins], optional
        Reports that could support the bin, in (0, n]: n, but for sampled buckets, where by
        default their expected number n d/b is taken.

    Returns
    -------
    float or float64[bins]
        In squared frequency.

    Raises
    ------
    ParameterError
        If n < 1, f lies outside [0, 1] or reach outside (0, n].

    Notes
    -----
    The population is fixed: no f(1-f)/n term. But users who sample a bucket are a sample of it,
    drawn without replacement, which adds f(1-f) (n - reach) / ((n - 1) reach).
    Source: MATH section 1, Eq. (1), (2).
    """
    n = checks.integer("n", n, 1, MOST_REPORTS, "give the number of reports in the round")
    frequency = _numbers("f", f, 0.0, 1.0, "give true frequencies")
    reached = _numbers(
        "reach", expected_reach(protocol, n) if reach is None else reach, 0.0, n, "see Estimate"
    )
    if not reached.all():
        raise ParameterError("reach must be above 0, got 0; nothing is known of such a bin")
    return _plain(_variance(_Channel.formula(protocol), n, reached, frequency))


def expected_reach(protocol: Protocol, n: int) -> float:
    """Expected number of the n reports that can support one given bin."""
    encoding = protocol.encoding
    return n * encoding.d / encoding.b if isinstance(encoding, SampledBuckets) else float(n)


def _variance(channel: _Channel, n: int, reach: Any, f: Any) -> Any:
    """See the notes of `variance`; frequencies of NaN stay NaN."""
    p, q, contrast = channel
    scatter = (f * (p * (1 - p)) + (1 - f) * (q * (1 - q))) / contrast**2
    sampled = f * (1 - f) * (n - reach) / max(n - 1, 1)
    return (scatter + sampled) / reach


def simultaneous_error(
    protocol: Protocol,
    n: Any,
    *,
    level: float = 0.95,
    bound: str = "hoeffding",
    f: Any = 0.0,
) -> Any:
    """Bound on ``max_v |f_hat(v) - f(v)|`` that holds with probability at least ``level``.

    Parameters
    ----------
    protocol : Protocol
    n : int or int64[bins]
        Reports that reach a bin, >= 0; see `expected_reach`.
    level : float
        1 - beta, in (0, 1).
    bound : {"hoeffding", "chebyshev", "bernstein"}
    f : float or float64[bins]
        True frequencies in [0, 1], for "bernstein" only: the rarer, the tighter. Where they are
        not known use `Estimate.simultaneous`.

    Returns
    -------
    float or float64[bins]
        ``inf`` where no report reaches the bin. Source: MATH section 9.

    Raises
    ------
    ParameterError
        If a parameter lies outside its range.
    """
    checks.choice("bound", bound, ("hoeffding", "chebyshev", "bernstein"))
    reach = _numbers("n", n, 0, MOST_REPORTS, "give the number of reports that reach a bin")
    channel = _Channel.formula(protocol)
    exponent = _exponent(protocol, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        if bound == "hoeffding":
            error = np.sqrt(exponent / (2 * reach))
        elif bound == "chebyshev":
            error = np.sqrt(protocol.bins / (4 * reach * _beta(level)))
        else:
            share = channel.q + _numbers("f", f, 0.0, 1.0, "give frequencies") * channel.contrast
            # Bernstein: n e^2 = 2 L (s (1-s) + e/3). The variance of users drawn at random, which
            # bounds that of fixed ones and of sampled buckets.
            third = exponent / 3
            spread = 2 * exponent * share * (1 - share)
            error = np.where(reach, (third + np.sqrt(third**2 + reach * spread)) / reach, np.inf)
    return _plain(error / channel.contrast)


def _exponent(protocol: Protocol, level: float) -> float:
    """L = ln(2 bins / beta): two tails for each bin."""
    return math.log(2 * protocol.bins / _beta(level))


def _beta(level: float) -> float:
    return 1 - check_level(level)


def _farthest(exponent: float, reach: Any, share: Any) -> Any:
    """How far above the observed ``share`` its expectation s can lie by Bernstein's bound.

    The largest x with n x^2 <= 2 L (s (1-s) + x/3), s = share + x: a quadratic in x.
    """
    half = exponent * (4 / 3 - 2 * share)
    total = reach + 2 * exponent
    return (half + np.sqrt(half**2 + 2 * exponent * total * share * (1 - share))) / total


def temporal_covariance(protocol: Protocol, n: int, f: Any = 0.0) -> Any:
    """Covariance of the estimates of two rounds in which every user holds the same value.

    The memoised answers are shared, so averaging rounds stops at this floor; an alert that takes
    rounds for independent cries wolf.

    Parameters
    ----------
    protocol : Protocol
        One-round rules give 0: nothing is memoised.
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
    frequency = _numbers("f", f, 0.0, 1.0, "give true frequencies")
    if not protocol.longitudinal:
        return _plain(np.zeros_like(frequency))
    return _plain(_variance(_Channel.memoised(protocol), n, expected_reach(protocol, n), frequency))


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal law."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def _numbers(name: str, values: Any, low: float, high: float, advice: str) -> Any:
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


def _plain(numbers: Any) -> Any:
    """A float for a single number."""
    return numbers if numbers.ndim else float(numbers)


def check_level(level: Any) -> float:
    """``level`` as a float strictly between 0 and 1."""
    number = checks.real("level", level, 0.0, 1.0, "0.95 is usual")
    if number in (0.0, 1.0):
        raise ParameterError(f"level must be inside (0, 1), got {level!r}; 0.95 is usual")
    return number
