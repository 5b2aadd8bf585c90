"""Panels, each of which reports in one round of some: sliding means, and whether sizes are even."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from loloha import checks
from loloha.campaign.schedule import RAREST
from loloha.server.estimate_table import NUMBERS, WINDOW
from loloha.server.mean import Mean, pooled
from loloha.server.observations import Observations

__all__ = ["Evenness", "evenness", "panel_population", "panel_windows", "rolling", "window_columns"]

LEAST_EXPECTED = 5.0
"""Mean reports of a round below which chi-square is no approximation."""
UNEVEN = 1e-3
"""p-value below which panels are called uneven."""


def panel_population(n: int, every: int) -> int | None:
    """Users of whom the n of a round are one panel of ``every``; None of a round with all users."""
    return None if every == 1 else n * every


def rolling(source: Any, every: int, *, population: int | None = None) -> dict[int, Mean]:
    """The mean of the last ``every`` rounds at each round, in which each user reports once.

    Parameters
    ----------
    source : Simulation, or sequence or mapping of Tally or Estimate
        By the number of the round, or of consecutive rounds; None where nothing is shown.
    every : int
        In how many rounds a user reports once, as the campaign's schedule says.
    population : int, optional
        As of `loloha.mean`.

    Returns
    -------
    dict of int to Mean
        By the last round of each window, for each round given; windows without a report are left
        out. At the beginning there are fewer rounds in a window.

    Raises
    ------
    ParameterError
        If no round has a report, or a number is out of range.
    MergeError
        If the protocols differ.

    Notes
    -----
    No two rounds of a window share a user, so their memo noise is independent: the variance is
    that of one round with all reports of the window. Windows that lie a multiple of ``every`` apart
    share users and memos. Source: MATH section 18.
    """
    every = checks.integer("every", every, 1, RAREST, "take it from the schedule")
    given = Observations.of(source)
    known = np.isfinite(given.estimates)
    reached = np.where(known, given.eligible, 0)
    seen = np.where(known, given.eligible * given.estimates, 0.0)
    rounds, means, first = np.array(given.rounds), {}, 0
    for last, t in enumerate(given.rounds):
        first += int(np.searchsorted(rounds[first : last + 1], t - every, side="right"))
        window = slice(first, last + 1)
        reports = {
            number: n
            for number, n in zip(given.rounds[window], given.n[window].tolist(), strict=True)
            if n
        }
        if reports:
            eligible = reached[window].sum(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                frequencies = seen[window].sum(axis=0) / eligible
            means[t] = pooled(given.protocol, reports, frequencies, eligible, every, population)
    return means


def panel_windows(source: Any, every: int) -> dict[int, Mean]:
    """The windows of panels as `rolling` has them, if there are panels and any reports."""
    # Each round is taken for a panel of the users, and errors for those of the mean over all of
    # them.
    if every == 1:
        return {}
    given = Observations.of(source)
    most = int(given.n.max(initial=0))
    return rolling(given, every, population=panel_population(most, every)) if most else {}


def window_columns(
    means: Mapping[int, Mean],
    level: float,
    *,
    rounds: Iterable[int],
    bins: Any = slice(None),
    simultaneous: bool = False,
) -> dict[str, list[Any]]:
    """Columns of a table of estimates with the windows that end with these rounds, if any."""
    # Rounds without a window hold NaN.
    if not means:
        return {}
    unknown = np.full(next(iter(means.values())).protocol.bins, np.nan)[bins]
    columns: dict[str, list[Any]] = {name: [] for name in WINDOW}
    for round in rounds:
        mean = means.get(round)
        row = mean and mean.table(level, bins=bins, simultaneous=simultaneous)
        for column, name in zip(WINDOW, NUMBERS, strict=True):
            columns[column].append(getattr(row, name)[0] if row else unknown)
    return columns


class Evenness(NamedTuple):
    """Whether the panels of a window reported in equal numbers, by Pearson's chi-square.

    Attributes
    ----------
    first, last : int
        The rounds of the window.
    chi_square : float
    freedom : int
    p_value : float
        Chance of so large a chi-square if every device drew its round uniformly and reported.
    smallest, largest : int
        Reports of a round.
    """

    first: int
    last: int
    chi_square: float
    freedom: int
    p_value: float
    smallest: int
    largest: int

    @property
    def even(self) -> bool:
        return self.p_value >= UNEVEN

    def __str__(self) -> str:
        sizes = f"{self.smallest}..{self.largest} reports a round"
        test = f"chi-square {self.chi_square:.4g}, {self.freedom} degrees of freedom"
        rounds = f"rounds {self.first}..{self.last}"
        where = f"panels of {rounds}: {sizes}, {test}, p = {self.p_value:.2g}"
        if self.even:
            return f"{where}: as even as uniform draws are"
        return (
            f"{where}: uneven. Devices did not draw their round uniformly, or were off in some "
            "rounds, or someone reports too often; a mean over the window leans to its largest "
            "panels"
        )


def evenness(reports: Mapping[int, int], every: int, last: int | None = None) -> Evenness | None:
    """Compare the sizes of the panels in the last ``every`` rounds.

    Parameters
    ----------
    reports : mapping of int to int
        Of each round; none where it is missing.
    every : int
        In how many rounds a user reports once.
    last : int, optional
        The last round that is over; the last with reports by default.

    Returns
    -------
    Evenness or None
        None without panels, before one window is over, or with fewer than 5 reports a round.

    Notes
    -----
    The server sees residues only as the rounds in which reports come: whether they are uniform, but
    not a device that draws badly from one that is off, nor whether residues depend on values. An
    even window can be biased too.
    """
    last = max(reports, default=-1) if last is None else last
    if every == 1 or last < every - 1:
        return None
    sizes = [reports.get(round, 0) for round in range(last - every + 1, last + 1)]
    expected = sum(sizes) / every
    if expected < LEAST_EXPECTED:
        return None
    chi_square = sum((n - expected) ** 2 for n in sizes) / expected
    tail = _tail(chi_square, every - 1)
    return Evenness(last - every + 1, last, chi_square, every - 1, tail, min(sizes), max(sizes))


def _tail(x: float, freedom: int) -> float:
    """Chance that a chi-square of so much freedom is above x: a finite sum."""
    half = x / 2
    if not half:
        return 1.0
    rest = 0.5 * (freedom % 2)
    total = math.erfc(math.sqrt(half)) if rest else 0.0
    powers = [i + rest for i in range(freedom // 2)]
    logs = [power * math.log(half) - half - math.lgamma(power + 1) for power in powers]
    return min(1.0, total + math.fsum(map(math.exp, logs)))
