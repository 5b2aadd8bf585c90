"""Unbiased frequencies of one round, with variance, intervals, bounds and temporal covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha import checks
from loloha.encodings import SampledBuckets
from loloha.errors import ParameterError
from loloha.protocols import Protocol

if TYPE_CHECKING:
    from loloha.arrays import Floats, Ints
    from loloha.tally import Tally

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
        Of a fixed population, with f replaced by the estimate clipped to [0, 1].
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
            If n < 1.
        """
        n = checks.integer("n", n, 1, MOST_REPORTS, "wait for at least one report of the round")
        realised = protocol.realised
        q_star, contrast = float(realised.q_star), float(realised.contrast)
        with np.errstate(invalid="ignore", divide="ignore"):
            frequencies = (support / reach - q_star) / contrast
            spread = _variance(
                float(realised.p_star), q_star, contrast, reach, np.clip(frequencies, 0, 1)
            )
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
        width = normal_quantile((1 + _inside("level", level)) / 2) * self.standard_errors
        return self.frequencies - width, self.frequencies + width

    def simultaneous(self, level: float = 0.95, bound: str = "hoeffding") -> Floats:
        """Largest error over all bins at once, with probability at least ``level``; float64[bins].

        Parameters
        ----------
        level : float
            In (0, 1).
        bound : {"hoeffding", "chebyshev"}
            MATH section 9; the first is the tighter one in practice.
        """
        error: Floats = simultaneous_error(self.protocol, self.reach, level=level, bound=bound)
        return error


def variance(protocol: Protocol, n: Any, f: Any = 0.0) -> Any:
    """Variance of one frequency estimate in one round.

    Parameters
    ----------
    protocol : Protocol
    n : int
        Reports in the round, n >= 1; of these, a share d/b reaches a sampled bucket.
    f : float or float64[bins]
        True frequency in [0, 1]; 0 gives the approximate variance V*.

    Returns
    -------
    float or float64[bins]
        In squared frequency.

    Raises
    ------
    ParameterError
        If n < 1 or f lies outside [0, 1].

    Notes
    -----
    The population is fixed: no f(1-f)/n term. Source: MATH section 1, Eq. (1), (2).
    """
    n = checks.integer("n", n, 1, MOST_REPORTS, "give the number of reports in the round")
    frequency: Any = np.asarray(f, dtype=np.float64)
    if not bool(np.all((frequency >= 0) & (frequency <= 1))):
        raise ParameterError("f must lie in [0, 1], got a value outside; give true frequencies")
    spread = _variance(
        protocol.p_star, protocol.q_star, protocol.contrast, expected_reach(protocol, n), frequency
    )
    return spread if spread.ndim else float(spread)


def expected_reach(protocol: Protocol, n: int) -> float:
    """Expected number of the n reports that can support one given bin."""
    encoding = protocol.encoding
    return n * encoding.d / encoding.b if isinstance(encoding, SampledBuckets) else float(n)


def _variance(p_star: float, q_star: float, contrast: float, reach: Any, f: Any) -> Any:
    scatter = f * (p_star * (1 - p_star)) + (1 - f) * (q_star * (1 - q_star))
    return scatter / (reach * contrast**2)


def simultaneous_error(
    protocol: Protocol,
    n: Any,
    *,
    level: float = 0.95,
    bound: str = "hoeffding",
) -> Any:
    """Bound on max_v |f_hat(v) - f(v)| that holds with probability at least ``level``.

    Parameters
    ----------
    protocol : Protocol
    n : int or int64[bins]
        Reports that reach a bin.
    level : float
        1 - beta, in (0, 1).
    bound : {"hoeffding", "chebyshev"}

    Returns
    -------
    float or float64[bins]
        Source: MATH section 9.
    """
    beta = 1 - _inside("level", level)
    checks.choice("bound", bound, ("hoeffding", "chebyshev"))
    reach = np.asarray(n, dtype=np.float64)
    bins = protocol.bins
    with np.errstate(divide="ignore"):
        if bound == "hoeffding":
            error = np.sqrt(math.log(2 * bins / beta) / (2 * reach)) / protocol.contrast
        else:
            error = np.sqrt(bins / (4 * reach * beta)) / protocol.contrast
    return error if error.ndim else float(error)


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
        True frequency in [0, 1].

    Returns
    -------
    float or float64[bins]
        In squared frequency. Source: MATH section 9.
    """
    n = checks.integer("n", n, 1, MOST_REPORTS, "give the number of reports in the round")
    frequency: Any = np.asarray(f, dtype=np.float64)
    if not protocol.longitudinal:
        floor = np.zeros_like(frequency)
    else:
        p, q = protocol.encoding.supporting(protocol.p1, protocol.q1)
        floor = _variance(p, q, p - q, expected_reach(protocol, n), frequency)
    return floor if floor.ndim else float(floor)


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal law."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def _inside(name: str, value: float) -> float:
    number = checks.real(name, value, 0.0, 1.0, "0.95 is usual")
    if number in (0.0, 1.0):
        raise ParameterError(f"{name} must be inside (0, 1), got {value!r}; 0.95 is usual")
    return number
