"""The result of a simulated population: estimates and truth as a frame, a picture and a page."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha import _moved, checks
from loloha.arrays import Floats, Ints
from loloha.datasets import Dataset
from loloha.datasets.layout import round_names
from loloha.figure import Series, plot_lines
from loloha.population.evaluation import bin_labels, binned
from loloha.protocols import Protocol
from loloha.server.estimate_table import EstimateTable
from loloha.server.frame import HTML_ROWS, to_html
from loloha.server.number import Numeric
from loloha.server.observations import Observations
from loloha.server.panel import panel_windows, window_columns
from loloha.server.tally import Tally
from loloha.server.unbiased import inversion, standard_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from loloha.campaign.domain import Scale


@dataclass(frozen=True, eq=False)
class Simulation(Numeric):
    """Estimates of a simulated population, round by round, and the users' losses.

    Attributes
    ----------
    protocol : Protocol
        The rules that the users followed.
    estimates : float64[tau, bins]
        Unbiased frequencies; NaN in a round with nobody.
    supports : int64[tau, bins] or None
        Reports that support each bin; None where only estimates are known.
    eligible : int64[tau, bins]
        Reports that could support it.
    n : int64[tau]
        Reports of each round.
    loss : float64[n]
        What each user has spent over all rounds.
    tallies : list of Tally
        Of each round, empty unless ``keep_tallies``.
    dataset : Dataset or None
        The values' labels, rounds and truth, where a `loloha.datasets.Dataset` was simulated.
    every : int
        Rounds of which each user reports in one. If it is above 1, the reports of a round are taken
        for a sample of ``every`` times as many users: errors are those of the frequencies of all.
    """

    protocol: Protocol
    estimates: Floats
    supports: Ints | None
    eligible: Ints
    n: Ints
    loss: Floats
    tallies: list[Tally] = field(default_factory=list, repr=False)
    dataset: Dataset | None = field(default=None, repr=False)
    every: int = 1

    reach = _moved.renamed("reach", "eligible")

    @property
    def users(self) -> Ints:
        """Of whom those of each round are drawn, int64[tau, 1]."""
        users: Ints = self.n[:, None] * self.every
        return users

    @cached_property
    def standard_errors(self) -> Floats:
        """Of each estimate, float64[tau, bins]; NaN where there is none."""
        return standard_errors(self.protocol, self.users, self.estimates, self.eligible)

    @cached_property
    def labels(self) -> list[Any]:
        """What each bin stands for: a label, "first … last" of a bucket; its number by default."""
        bins = self.protocol.bins
        return (
            list(range(bins))
            if self.dataset is None
            else bin_labels(self.protocol, self.dataset.labels)
        )

    @property
    def rounds(self) -> list[Any]:
        """What each round is called: as in the data set; its number by default."""
        return list(range(len(self.n)) if self.dataset is None else self.dataset.rounds)

    @cached_property
    def truth(self) -> Floats | None:
        """True frequencies, float64[tau, bins]; None where no data set was simulated."""
        if self.dataset is None:
            return None
        return binned(self.protocol, self.dataset.frequencies())

    def interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Lower and upper ends of `Estimate.interval` of each estimate, float64[tau, bins] each.

        Parameters
        ----------
        level : float
            Chance, in (0, 1), that an interval holds the true frequency.
        simultaneous : bool
            Whether those of all bins of a round hold at once: for bins picked by their estimates.
        """
        test = inversion(self.protocol, self.users, self.estimates, self.eligible)
        return test.interval(level, simultaneous=simultaneous)

    def coverage(self, level: float = 0.95) -> float:
        """Share of the intervals that hold the truth; NaN where that is not known."""
        if self.truth is None:
            return math.nan
        low, high = self.interval(level)
        known = ~np.isnan(low)
        return float(((low <= self.truth) & (self.truth <= high))[known].mean())

    def table(self, level: float = 0.95) -> EstimateTable:
        """The estimates of all rounds, with a further column truth where it is known.

        With panels, columns window_estimate, window_standard_error, window_lower and window_upper
        hold `loloha.rolling`.

        Parameters
        ----------
        level : float
            Of the intervals.
        """
        lower, upper = self.interval(level)
        tau, bins = self.estimates.shape
        return EstimateTable(
            round=range(tau),
            start=None if self.dataset is None else self._starts,
            value=range(bins),
            label=None if self.dataset is None else list(map(str, self.labels)),
            estimate=self.estimates,
            standard_error=self.standard_errors,
            lower=lower,
            upper=upper,
            level=level,
            n=self.n,
            more=({} if self.truth is None else {"truth": self.truth})
            | window_columns(panel_windows(self, self.every), level, rounds=range(tau)),
        )

    def to_frame(
        self, level: float = 0.95, *, scale: Scale | None = None, backend: str | None = None
    ) -> Any:
        """A row for each round and value: `EstimateTable.to_frame` of `table`.

        Of numbers (`loloha.OneBit`) with mean and quantiles as columns.

        Parameters
        ----------
        level : float
            Of the intervals.
        scale : Scale, optional
            As for `loloha.server.number.Numbers.summary`: what mean and quantiles are counted in.
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the kind of frame that the data came in, else pyarrow.
        """
        if backend is None and self.dataset is not None:
            backend = self.dataset.backend
        return self.table(level).with_numbers(self.summaries(level, scale)).to_frame(backend)

    def observations(self) -> Observations:
        """The estimates of all rounds, as `loloha.series` takes them."""
        known = self.dataset is not None
        return Observations(
            self.protocol,
            list(range(len(self.n))),
            self.estimates,
            self.eligible,
            self.n,
            list(map(str, self.labels)) if known else None,
            self._starts if known else None,
            every=self.every,
            population=len(self.loss) if self.every == 1 else None,
        )

    def series(self, level: float = 0.95) -> Series:
        """The estimates, intervals and truth as pictures take them."""
        return Series(self.labels, self._starts, self.estimates, *self.interval(level), self.truth)

    @property
    def _starts(self) -> list[str]:
        """What each round is called, as text: midnights are days."""
        return round_names([str(round) for round in self.rounds])

    def plot(self, top: int = 6, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """Draw the most frequent values over the rounds, with intervals and truth.

        Parameters
        ----------
        top : int
            How many values, 1..8.
        level : float
            Of the intervals.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return plot_lines(self.series(level), top, ax)

    def _repr_html_(self) -> str:
        series = self.series()
        at = series.last_round()
        columns = ["label", "estimate", "lower", "upper"]
        # Without the truth the rows are picked by their estimates.
        ends = self.interval(simultaneous=series.truth is None)
        shown = [series.labels, series.frequencies[at], *(end[at] for end in ends)]
        meaning = "95 % intervals, of all values at once"
        if series.truth is not None:
            columns.insert(1, "truth")
            shown.insert(1, series.truth[at])
            meaning = "95 % intervals"
        return to_html(
            f"{self.protocol!r}: {self._size}",
            columns,
            [[column[value] for column in shown] for value in series.top(HTML_ROWS)],
            f"The most frequent of {self.protocol.bins} values in round {series.rounds[at]}, with "
            f"{meaning}. All of it: to_frame(), plot().",
        )

    def __repr__(self) -> str:
        return f"Simulation({self.protocol!r}, {self._size})"

    @property
    def _size(self) -> str:
        return f"{checks.counted(len(self.loss), 'user')}, {checks.counted(len(self.n), 'round')}"
