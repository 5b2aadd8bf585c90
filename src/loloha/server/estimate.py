"""Unbiased frequencies of one round, and how far they can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha import _moved, checks
from loloha.arrays import Bools, Floats, Ints
from loloha.errors import ParameterError
from loloha.protocols import Protocol
from loloha.report import MOST_REPORTS
from loloha.server.bound import exponent, farthest, simultaneous_error
from loloha.server.estimate_table import EstimateTable
from loloha.server.frame import HTML_ROWS, normal_quantile, to_html
from loloha.server.interval import Inversion
from loloha.server.number import Numeric
from loloha.server.unbiased import inversion, standard_errors, unbiased
from loloha.server.variance import Channel, drawn_from, temporal_covariance, variance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from loloha.campaign.domain import Scale
    from loloha.server.total import EstimatedRanks, EstimatedSum

__all__ = [
    "Estimate",
    "normal_quantile",
    "simultaneous_error",
    "standard_errors",
    "temporal_covariance",
    "unbiased",
    "variance",
]


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Numeric):
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
    eligible : int64[bins]
        Reports that could support the bin: n, but for sampled buckets.
    population : int or None
        Users of whom the n were drawn at random, where the frequencies are those of all of them.
    """

    protocol: Protocol
    n: int
    frequencies: Floats
    standard_errors: Floats
    eligible: Ints
    population: int | None = field(default=None, kw_only=True)

    reach = _moved.renamed("reach", "eligible")

    @classmethod
    def from_support(
        cls,
        protocol: Protocol,
        n: int,
        support: Ints,
        eligible: Ints,
        population: int | None = None,
    ) -> Estimate:
        """The estimate from support counts, int64[bins], and eligible users, int64[bins].

        Raises
        ------
        ParameterError
            If n < 1, the population is smaller, or there is not one count a bin.
        """
        n = checks.integer("n", n, 1, MOST_REPORTS, "wait for at least one report of the round")
        shapes = np.shape(support), np.shape(eligible)
        if shapes != ((protocol.bins,),) * 2:
            raise ParameterError(
                f"support and eligible must have one count for each of {protocol.bins} bins, got "
                f"shapes {shapes[0]} and {shapes[1]}; use Tally.support() and Tally.eligible()"
            )
        frequencies = unbiased(protocol, support, eligible)
        users = drawn_from(population, n)
        errors = standard_errors(protocol, users, frequencies, eligible)
        return cls(protocol, n, frequencies, errors, eligible, population=population)

    @property
    def parameters(self) -> dict[str, Any]:
        """What the clients really did: protocol, g, realised p1..q_star and losses, to publish."""
        return {"protocol": self.protocol.to_dict(), **self.protocol.numbers}

    def interval(
        self, level: float = 0.95, *, simultaneous: bool = False, bins: Any = slice(None)
    ) -> tuple[Floats, Floats]:
        """Lower and upper end of an interval for each bin, in [0, 1]; float64[bins] each.

        Parameters
        ----------
        level : float
            Chance, in (0, 1), that the interval of one given bin holds its true frequency.
        simultaneous : bool
            Whether the intervals of all bins hold at once, with at least that chance: needed for
            bins that were chosen by their estimates, such as the most frequent one.
        bins : slice or int64[m]
            Of these alone, in this order; all by default.

        Notes
        -----
        By inversion of a test, as the number of supporting reports can be small: see
        docs/intervals.md for the exact coverage. NaN where no user is eligible. An estimate
        below 0 or above 1 lies outside its own interval.
        """
        return self.inversion.interval(level, simultaneous=simultaneous, bins=bins)

    def significant(self, level: float = 0.95) -> Bools:
        """Which bins are more frequent than 0, bool[bins]: each tested with its own eligible users.

        Parameters
        ----------
        level : float
            Chance, in (0, 1), that no bin of frequency 0 is among them, all bins together (Holm).
        """
        return self.inversion.significant(level)

    def sum(self, values: Sequence[Any], *, labels: Sequence[Any] | None = None) -> EstimatedSum:
        """The frequency of a group of values, given by bins or, with ``labels``, by some of these.

        Its error has the covariances of their estimates.
        """
        from loloha.server.total import total

        return total(self, values, labels)

    def ranks(self, count: int = 10, level: float = 0.95) -> EstimatedRanks:
        """The ``count`` most frequent values, and the ranks of each that noise could exchange."""
        from loloha.server.total import ranks

        return ranks(self, count, level)

    @property
    def users(self) -> int:
        """Of whom the n were drawn: the population, or these."""
        return drawn_from(self.population, self.n)

    @cached_property
    def inversion(self) -> Inversion:
        """What the test behind the intervals needs."""
        return inversion(self.protocol, self.users, self.frequencies, self.eligible)

    def table(
        self,
        level: float = 0.95,
        *,
        labels: Sequence[Any] | None = None,
        bins: Any = slice(None),
        simultaneous: bool = False,
        round: int | None = None,
        start: str | None = None,
        campaign: str | None = None,
    ) -> EstimateTable:
        """The table of these estimates, as `loloha run`, a collector and exports have it.

        Parameters
        ----------
        level : float
            Of the intervals.
        labels : sequence, optional
            What each bin stands for.
        bins : slice or int64[m]
            Of these alone, in this order; all by default.
        simultaneous : bool
            Whether the intervals hold for all bins at once; see `interval`.
        round, start, campaign : optional
            Number and start of the round, and the fingerprint of its campaign.

        Raises
        ------
        ParameterError
            If there is not one label a bin.
        """
        lower, upper = self.interval(level, simultaneous=simultaneous, bins=bins)
        value = np.arange(len(self.frequencies))[bins]
        named = None if labels is None else self._named(labels)
        if named is not None and not isinstance(bins, slice):
            named = [named[at] for at in value.tolist()]
        return EstimateTable(
            campaign=campaign,
            round=[round],
            start=None if start is None else [start],
            value=value,
            label=named,
            estimate=[self.frequencies[bins]],
            standard_error=[self.standard_errors[bins]],
            lower=[lower],
            upper=[upper],
            level=level,
            n=[self.n],
        )

    def to_frame(
        self,
        level: float = 0.95,
        *,
        labels: Sequence[Any] | None = None,
        scale: Scale | None = None,
        backend: str | None = None,
    ) -> Any:
        """A row for each value: `EstimateTable.to_frame` of `table`, with `summaries`."""
        table = self.table(level, labels=labels).with_numbers(self.summaries(level, scale))
        return table.to_frame(backend)

    def plot(
        self, level: float = 0.95, *, labels: Sequence[Any] | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw all values with their intervals.

        Parameters
        ----------
        level : float
            Of the intervals.
        labels : sequence, optional
            What each bin stands for.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ParameterError
            If there is not one label a bin.
        """
        from loloha.figure.lines import plot_round
        from loloha.figure.series import Series

        names = range(len(self.frequencies)) if labels is None else self._named(labels)
        rows = (end[None] for end in (self.frequencies, *self.interval(level)))
        title = f"{checks.counted(self.n, 'report')}, {100 * level:.4g} % intervals"
        return plot_round(Series(names, [0], *rows), title, ax)

    def _named(self, labels: Sequence[Any]) -> Sequence[Any]:
        """The labels, one per bin."""
        if len(labels) != len(self.frequencies):
            raise ParameterError(
                f"labels must be {len(self.frequencies)}, one per bin, got {len(labels)}; "
                "give them in the order of the domain"
            )
        return labels

    def __repr__(self) -> str:
        return f"Estimate({self.protocol!r}, n={self.n})"

    def _repr_html_(self) -> str:
        lower, upper = self.interval(simultaneous=True)
        known = np.nan_to_num(self.frequencies, nan=-np.inf)
        rows = [
            (int(v), self.frequencies[v], lower[v], upper[v])
            for v in np.argsort(-known, kind="stable")[:HTML_ROWS]
        ]
        return to_html(
            f"{self.protocol!r}: {checks.counted(self.n, 'report')}",
            ("value", "estimate", "lower", "upper"),
            rows,
            f"The most frequent of {len(known)} values, with intervals that hold for all values at "
            "once (95 %); all: to_frame().",
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
            error: Floats = simultaneous_error(
                self.protocol, self.eligible, level=level, bound=bound
            )
            return error
        channel = Channel.realised(self.protocol)
        # The share of supporting reports, but for rounding.
        share = np.clip(channel.q + self.frequencies * channel.contrast, 0, 1)
        log_tails = exponent(self.protocol, level)
        above, below = (farthest(log_tails, self.eligible, seen) for seen in (share, 1 - share))
        worst: Floats = np.where(self.eligible, np.maximum(above, below), np.inf)
        return worst / channel.contrast
