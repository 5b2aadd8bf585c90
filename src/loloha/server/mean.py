"""The mean of several rounds, and its error: rounds share what is memoised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Floats, Ints
from loloha.campaign.schedule import RAREST
from loloha.errors import MergeError, ParameterError
from loloha.protocols import Protocol
from loloha.protocols.base import speakable
from loloha.report import MOST_REPORTS
from loloha.server.estimate import Estimate
from loloha.server.interval import Inversion, Scatter
from loloha.server.tally import Tally
from loloha.server.unbiased import inversion, unbiased
from loloha.server.variance import Channel, drawn_from, expected_eligible, numbers, plain, spread

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
        return inversion(self.protocol, self.n, self.frequencies, self.eligible, self.scatter)


def mean(
    tallies: Sequence[Tally] | Mapping[int, Tally], *, every: int = 1, population: int | None = None
) -> Mean:
    """The frequencies among all reports of some rounds.

    Parameters
    ----------
    tallies : sequence of Tally, or mapping of int to Tally
        Of different rounds, under one protocol; by the number of the round, or of consecutive
        rounds. Every report counts once, so rounds of one size count alike; a round without
        reports counts as none.
    every : int
        In how many rounds a user reports once, as the campaign's schedule says.
    population : int, optional
        Users of whom those who report in a round are a random sample. Errors are then those of the
        frequencies among all of them, and else among those who reported.

    Returns
    -------
    Mean
        An `Estimate`: unbiased, whoever reports when and whatever changes. The standard errors and
        intervals are those of users who stay and keep their values, and upper bounds where users
        change, come or go; see `mean_variance`. ``n`` and ``eligible`` are those of the independent
        reports: of a mean round, rounded down, times the panels. So `Estimate.simultaneous` holds
        too.

    Raises
    ------
    ParameterError
        If no round has a report, something is no tally, or the population is smaller than a round.
    MergeError
        If the protocols differ, or one tally comes twice.
    """
    if isinstance(tallies, Mapping):
        given = dict(tallies)
    else:
        given = dict(enumerate(tallies if isinstance(tallies, Iterable) else [None]))
    if not all(isinstance(tally, Tally) for tally in given.values()):
        raise ParameterError(
            "tallies must be a list of loloha.Tally, got something else; give one for each round"
        )
    if len({id(tally) for tally in given.values()}) < len(given):
        raise MergeError("tallies must be of different rounds, got one twice; give each once")
    counted = {round: tally for round, tally in given.items() if tally.n}
    if not counted:
        raise ParameterError("tallies must hold reports, got none; give at least one round")
    protocol = next(iter(counted.values())).protocol
    if any(tally.protocol != protocol for tally in counted.values()):
        raise MergeError(
            "tallies must follow one protocol, got several; take the mean of each separately"
        )
    eligible = np.sum([tally.eligible() for tally in counted.values()], axis=0)
    supports = np.sum([tally.support() for tally in counted.values()], axis=0)
    reports = {round: tally.n for round, tally in counted.items()}
    return pooled(
        protocol, reports, unbiased(protocol, supports, eligible), eligible, every, population
    )


def pooled(
    protocol: Protocol,
    reports: Mapping[int, int],
    frequencies: Floats,
    eligible: Ints,
    every: int,
    population: int | None,
) -> Mean:
    """The mean with these frequencies: ``eligible`` of all rounds together, ``reports`` of each."""
    total = sum(reports.values())
    # As users of sampled buckets came, not as they are expected to.
    came = expected_eligible(protocol, total) / np.where(eligible, eligible, np.nan)

    ends = np.array([0.0, 0.5, 1.0])
    variances = mean_variance(protocol, reports, ends, every=every, population=population)
    scatter = Scatter.through(lambda f: variances[ends == f] * came)
    errors = np.sqrt(scatter.at(np.clip(frequencies, 0, 1)))
    # The sum of m dependent rounds is as concentrated as m times one of them (Hoelder).
    rounds = max(np.unique([round % every for round in reports], return_counts=True)[1].tolist())
    return Mean(
        protocol, total // rounds, frequencies, errors, eligible // rounds, scatter,
        population=population,
    )  # fmt: skip


def mean_variance(
    protocol: Protocol,
    reports: Sequence[int] | Mapping[int, int],
    f: Any = 0.0,
    *,
    every: int = 1,
    population: int | None = None,
) -> Any:
    """Variance of the mean of all reports of some rounds, by the same users if possible.

    Parameters
    ----------
    protocol : Protocol
    reports : sequence of int, or mapping of int to int
        Reports of each round, >= 1; by the number of the round, or of consecutive rounds.
    f : float or float64[bins]
        True frequency in [0, 1], in all rounds.
    every, population : int
        As of `mean`.

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
    who change their values share less of it (Cauchy-Schwarz). Of panels only rounds that lie a
    multiple of ``every`` apart share users. Of a population each panel is a sample, which adds
    f(1-f) (N - n) / ((N - 1) n) to a round; the samples of panels are taken as independent. That
    is exact for values that change from round to round as if drawn anew, and more than it is for
    users who keep them: no user is in two panels. Source: MATH sections 9, 13 and 18.
    """
    by_round = reports if isinstance(reports, Mapping) else dict(enumerate(reports))
    every = checks.integer("every", every, 1, RAREST, "take it from the schedule")
    sizes = sorted(
        (checks.integer("reports", n, 1, MOST_REPORTS, "leave out rounds without any"), t % every)
        for t, n in by_round.items()
    )
    if not sizes:
        raise ParameterError("reports must hold at least one round, got none; give one")
    users = None if population is None else drawn_from(population, sizes[-1][0])
    frequency = numbers("f", f, 0.0, 1.0, "give true frequencies")
    channel = Channel.formula(speakable(protocol))
    # Without a memo users who return share nothing but that they were drawn.
    memoised = Channel.memoised(protocol) if protocol.longitudinal else Channel.noiseless()
    total: Any = np.zeros_like(frequency)
    all_reports = sum(n for n, _ in sizes)
    before: dict[int, float] = {}
    for n, panel in sizes:
        share, earlier = n / all_reports, before.get(panel, 0.0)
        drawn = users or n, expected_eligible(protocol, n), frequency
        total = total + share**2 * spread(channel, *drawn)
        if earlier:
            total = total + 2 * share * earlier * spread(memoised, *drawn)
        before[panel] = earlier + share
    return plain(total)
