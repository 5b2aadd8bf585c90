"""The mean of several rounds, and its error: rounds share what is memoised."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from loloha import checks
from loloha.errors import MergeError, ParameterError
from loloha.protocols import Protocol
from loloha.report import MOST_REPORTS
from loloha.server.estimate import Estimate, inversion, unbiased
from loloha.server.interval import Inversion, Scatter
from loloha.server.tally import Tally
from loloha.server.variance import (
    expected_reach,
    plain,
    temporal_covariance,
    variance,
)

__all__ = ["Mean", "mean", "mean_variance"]


@dataclass(frozen=True, eq=False, repr=False)
class Mean(Estimate):
    """Frequencies among all reports of some rounds.

    Attributes
    ----------
    scatter : Scatter
        Variance at any frequency.
    """

    scatter: Scatter

    @cached_property
    def inversion(self) -> Inversion:
        """As of a round: a user's reports may all be alike, and then count as a round's one."""
        return inversion(self.protocol, self.n, self.frequencies, self.reach, self.scatter)


def mean(tallies: Sequence[Tally]) -> Mean:
    """The frequencies among all reports of some rounds.

    Parameters
    ----------
    tallies : sequence of Tally
        Of different rounds, under one protocol. Every report counts once, so rounds of one size
        count alike; a round without reports is left out.

    Returns
    -------
    Mean
        An `Estimate`: unbiased, whoever reports when and whatever changes. The standard errors and
        intervals are those of users who stay and keep their values, and upper bounds where users
        change, come or go; see `mean_variance`. ``n`` and ``reach`` are those of a mean round,
        rounded down, so that `Estimate.simultaneous` holds too.

    Raises
    ------
    ParameterError
        If no round has a report, or something is no tally.
    MergeError
        If the protocols differ, or one tally comes twice.
    """
    given = list(tallies) if isinstance(tallies, Iterable) else [None]
    if not all(isinstance(tally, Tally) for tally in given):
        raise ParameterError(
            "tallies must be a list of loloha.Tally, got something else; give one for each round"
        )
    if len({id(tally) for tally in given}) < len(given):
        raise MergeError("tallies must be of different rounds, got one twice; give each once")
    counted = [tally for tally in given if tally.n]
    if not counted:
        raise ParameterError("tallies must hold reports, got none; give at least one round")
    protocol = counted[0].protocol
    if any(tally.protocol != protocol for tally in counted):
        raise MergeError(
            "tallies must follow one protocol, got several; take the mean of each by itself"
        )
    reach = np.sum([tally.reach() for tally in counted], axis=0)
    frequencies = unbiased(protocol, np.sum([tally.support() for tally in counted], axis=0), reach)
    reports = [tally.n for tally in counted]
    # As users of sampled buckets came, not as they are expected to.
    came = expected_reach(protocol, sum(reports)) / np.where(reach, reach, np.nan)
    scatter = Scatter.through(lambda f: mean_variance(protocol, reports, f) * came)
    errors = np.sqrt(scatter.at(np.clip(frequencies, 0, 1)))
    # The sum of m dependent rounds is as concentrated as m times one of them (Hoelder).
    n = sum(reports) // len(counted)
    return Mean(protocol, n, frequencies, errors, reach // len(counted), scatter)


def mean_variance(protocol: Protocol, reports: Sequence[int], f: Any = 0.0) -> Any:
    """Variance of the mean of all reports of some rounds, by the same users if possible.

    Parameters
    ----------
    protocol : Protocol
    reports : sequence of int
        Reports of each round, >= 1.
    f : float or float64[bins]
        True frequency in [0, 1], in all rounds.

    Returns
    -------
    float or float64[bins]
        In squared frequency. For T rounds of n users who keep their values C + (V - C)/T, with V
        the `variance` of one round and C the `temporal_covariance` of two.

    Raises
    ------
    ParameterError
        If there is no round, or a number is out of range.

    Notes
    -----
    Two rounds of n <= m reports share n users at most, which gives a covariance of C at m; users
    who change their values share less of it (Cauchy-Schwarz). Source: MATH sections 9 and 13.
    """
    sizes = sorted(
        checks.integer("reports", n, 1, MOST_REPORTS, "leave out rounds without any")
        for n in reports
    )
    if not sizes:
        raise ParameterError("reports must hold at least one round, got none; give one")
    total: Any = 0.0
    before = 0.0
    for n in sizes:
        share = n / sum(sizes)
        total = total + share**2 * variance(protocol, n, f)
        total = total + 2 * share * before * temporal_covariance(protocol, n, f)
        before += share
    return plain(np.asarray(total))
