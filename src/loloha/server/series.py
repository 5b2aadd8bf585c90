"""Frequencies over rounds, each estimated from all: filtered or smoothed, with their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha import checks
from loloha.arrays import Bools, Floats
from loloha.encodings import HiddenThreshold
from loloha.errors import ParameterError
from loloha.server import number_series, smoother
from loloha.server.alarm_rule import AlarmRule, deviate
from loloha.server.estimate_table import EstimateTable
from loloha.server.number import Numbers, Numeric
from loloha.server.observations import Observations
from loloha.server.smoother import States
from loloha.server.statespace import Parameters, Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from loloha.campaign.domain import Scale

__all__ = ["EstimatedChange", "EstimatedSeries", "series"]


@dataclass(frozen=True, eq=False)
class EstimatedChange:
    """How much each value grew between two rounds.

    Attributes
    ----------
    estimates, standard_errors : float64[bins]
        Of the difference, given all rounds; of the mean of numbers float64[1].
    most : float
        Size of the largest change that there can be: 1 of a frequency, k - 1 of the mean.
    """

    estimates: Floats
    standard_errors: Floats
    most: float = 1.0

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends for each value, float64[bins] each, in [-most, most]."""
        margin = deviate(1 - checks.level(level)) * self.standard_errors
        ends = (self.estimates - margin, self.estimates + margin)
        low, high = (np.clip(end, -self.most, self.most) for end in ends)
        return low, high


@dataclass(frozen=True, eq=False, repr=False)
class EstimatedSeries(Numeric):
    """Frequencies over rounds, each estimated from the rounds before it, or from all.

    Attributes
    ----------
    observations : Observations
        Single rounds: their unbiased estimates, and the numbers of reports.
    parameters : Parameters
        How fast the truth and the memo noise move, as fitted: s, s_0, rho.
    states : States
        Filter and smoother: means and variances, before projection.
    smooth : bool
        Whether `estimates` are those of the smoother.
    level : float
        Of intervals, unless another is asked for.
    """

    observations: Observations
    parameters: Parameters
    states: States
    smooth: bool
    level: float

    @property
    def posterior(self) -> Posterior:
        """Mean and variance of each frequency, before projection: float64[tau, bins] each."""
        return self.states.smoothed if self.smooth else self.states.filtered

    @cached_property
    def estimates(self) -> Floats:
        """Shares, float64[tau, bins]: >= 0, of sum 1 in each round where bins are values.

        Of numbers (`loloha.OneBit`) the shares that reach each value, which never rise.
        """
        return self.observations.plausible(*self.posterior)

    @cached_property
    def numbers(self) -> Numbers:
        """Mean, quantiles and distribution function of each round, where numbers are asked for."""
        mean = self.mean_states.smoothed if self.smooth else self.mean_states.filtered
        return number_series.of_series(self.observations, self.posterior, mean)

    def summaries(self, level: float | None = None, scale: Any = None) -> Any:
        """Mean and quantiles of numbers: rounds together, and (``single_``) by themselves."""
        if self.observations.protocol.histogram:
            return {}
        each = {"": self.numbers, "single_": self.observations.numbers}
        level = self.level if level is None else level
        return {prefix: numbers.summary(level, scale) for prefix, numbers in each.items()}

    @cached_property
    def mean_states(self) -> States:
        """Filter and smoother of the mean as a share of the range, where numbers are asked for.

        It has a filter of its own: at single thresholds there are too few reports for it.
        """
        # Refuses protocols that do not ask for numbers.
        shares = self.observations.numbers.share.frequencies
        if isinstance(self.observations.protocol.encoding, HiddenThreshold):
            return self.states
        return number_series.mean_states(self.observations, shares)

    @cached_property
    def standard_errors(self) -> Floats:
        """Of `posterior`, that is before projection: float64[tau, bins]."""
        errors: Floats = np.sqrt(self.posterior.variance)
        return errors

    @cached_property
    def innovations(self) -> Floats:
        """Standardised error of each one-step prediction, float64[tau, bins].

        Near standard normal where the model holds. NaN where nothing was seen, or nothing before.
        """
        return _later(self.states.innovations)

    @property
    def mean_innovations(self) -> Floats:
        """The same of the mean, float64[tau, 1], where numbers are asked for."""
        return _later(self.mean_states.innovations)

    @property
    def rounds(self) -> list[int]:
        """Number of each round."""
        return self.observations.rounds

    def interval(self, level: float | None = None) -> tuple[Floats, Floats]:
        """Lower and upper end for each round and value, in [0, 1]; float64[tau, bins] each.

        Parameters
        ----------
        level : float, optional
            Chance, in (0, 1), that the interval of one given round and value holds the truth.

        Notes
        -----
        Normal ones about the unprojected mean; docs/series.md has how often they hold the truth.
        """
        level = self.level if level is None else checks.level(level)
        margin, mean = deviate(1 - level) * self.standard_errors, self.posterior.mean
        return np.clip(mean - margin, 0, 1), np.clip(mean + margin, 0, 1)

    def change(self, t: int, s: int, *, mean: bool = False) -> EstimatedChange:
        """How much each value grew from round ``s`` to round ``t``, given all rounds.

        Parameters
        ----------
        t, s : int
            Numbers of two rounds, in either order.
        mean : bool
            Whether the mean of numbers is asked for, in place of bins: in steps of the domain.

        Returns
        -------
        EstimatedChange
            Its variance is that of the joint distribution of both rounds, which share noise, and
            more where moves are hardly told from memo noise that fades (MATH section 19).

        Raises
        ------
        ParameterError
            If one is no round of the series.
        """
        late, early = self._row("t", t), self._row("s", s)
        states = self.mean_states if mean else self.states
        most = self.observations.protocol.k - 1.0 if mean else 1.0
        grown, variance = states.change(early, late)
        return EstimatedChange(most * grown, most * np.sqrt(variance), most)

    def _row(self, name: str, number: int) -> int:
        if checks.round_number(number) not in self.rounds:
            raise ParameterError(
                f"{name} must be a round of the series, got {number}; see its rounds"
            )
        return self.rounds.index(number)

    def alarms(
        self,
        *,
        expected: float | None = None,
        fdr: float | None = None,
        values: Sequence[int | str] | None = None,
        mean: bool = False,
    ) -> Bools:
        """Which estimates the rounds before did not lead one to expect: bool[tau, bins].

        Parameters
        ----------
        expected : float
            False alarms expected a round, over all its values, > 0; or
        fdr : float
            Share, in (0, 1], of false ones among the alarms of a round (Benjamini and Hochberg).
        values : sequence of int or str, optional
            What is watched: bins, or labels of the series; all by default.
        mean : bool
            Whether the mean of numbers is watched, in place of bins.

        Returns
        -------
        bool[tau, bins], or bool[tau, 1] of the mean
            Never true of a value's first round.

        Raises
        ------
        ParameterError
            If not exactly one of the first two is given, or one is out of range.
        """
        places = self.observations.places(values)
        rule = AlarmRule(expected=expected, fdr=fdr, values=places, mean=mean)
        return rule.alarmed(self.mean_innovations if mean else self.innovations)

    def table(self, level: float | None = None) -> EstimateTable:
        """The estimates of all rounds in the columns of every table of estimates.

        Parameters
        ----------
        level : float, optional
            Of the intervals.

        Returns
        -------
        EstimateTable
            With a further column ``unbiased``: what each round says by itself.
        """
        level = self.level if level is None else level
        lower, upper = self.interval(level)
        seen = self.observations
        return EstimateTable(
            round=self.rounds,
            start=seen.start,
            value=range(self.estimates.shape[1]),
            label=seen.labels,
            estimate=self.estimates,
            standard_error=self.standard_errors,
            lower=lower,
            upper=upper,
            level=level,
            n=seen.n,
            more={"unbiased": seen.estimates},
        )

    def to_frame(
        self, level: float | None = None, *, scale: Scale | None = None, backend: str | None = None
    ) -> Any:
        """A row for each round and value: `EstimateTable.to_frame` of `table`, with `summaries`."""
        return self.table(level).with_numbers(self.summaries(level, scale)).to_frame(backend)

    def plot(self, top: int = 6, *, level: float | None = None, ax: Axes | None = None) -> Axes:
        """Draw the most frequent values over the rounds, with intervals: as `Simulation.plot`."""
        from loloha.figure.lines import plot_lines
        from loloha.figure.series import Series

        seen = self.observations
        labels = range(seen.protocol.bins) if seen.labels is None else seen.labels
        rounds = self.rounds if seen.start is None else seen.start
        return plot_lines(Series(labels, rounds, self.estimates, *self.interval(level)), top, ax)

    def __repr__(self) -> str:
        kind = "smoothed" if self.smooth else "filtered"
        return f"EstimatedSeries({self.observations.protocol!r}, {len(self.rounds)} rounds, {kind})"


def _later(innovations: Floats) -> Floats:
    """Without those of which nothing was known before."""
    later: Floats = np.where(np.isfinite(innovations).cumsum(axis=0) > 1, innovations, np.nan)
    return later


def series(
    source: Any,
    *,
    smooth: bool = True,
    level: float = 0.95,
    labels: Sequence[Any] | None = None,
    every: int | None = None,
    population: int | None = None,
) -> EstimatedSeries:
    """Frequencies over rounds, with what the rounds share taken into account.

    Parameters
    ----------
    source : Simulation, EstimateTable, or sequence or mapping of Tally or Estimate
        Result of `loloha.simulate`, or the tallies or estimates of rounds under one protocol: a
        list from round 0 on, or by number of round. None, an empty tally and a number left out
        are rounds without reports; of the first two the result has estimates too. It goes from the
        first to the last round with estimates. Or a table of them (`EstimateTable.read`).
    smooth : bool
        Whether each round is estimated from all (smoother), or from those up to it (filter): what
        could be known at its time.
    level : float
        Of intervals, in (0, 1).
    labels : sequence, optional
        What each bin stands for; by default as simulated.
    every : int, optional
        In how many rounds a user reports once, as the campaign's schedule says; 1 by default, of
        a simulation as simulated.
        Frequencies are then those among all users, of whom each round has one panel.
    population : int, optional
        Users of whom the reports of each round are a random sample; frequencies are those among
        them. By default nobody is missing; a simulation knows its users.

    Returns
    -------
    EstimatedSeries

    Raises
    ------
    ParameterError
        If no round has a report, something is no round, there is not one label a bin, or the
        population is smaller than a round.
    MergeError
        If the protocols differ.

    Notes
    -----
    A linear Gaussian model of each value: the truth walks, memo noise stays or fades, fresh noise
    is new in every round. Variances are the protocol's own; three numbers are fitted to all values
    by maximum likelihood. A burst in one round is smoothed like noise: see `alarms`.
    Source: MATH section 19.
    """
    checks.level(level)
    observations = Observations.of(source).labelled(labels).of_panels(every).of_users(population)
    observations = observations.seen()
    states = smoother.averaged(observations.observed())
    return EstimatedSeries(observations, states.parameters, states, bool(smooth), level)
