"""Estimates of rounds, computed once for each state, suppressed where few users reported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from msgspec import UNSET, UnsetType

from loloha import postprocess
from loloha.campaign.schedule import to_text
from loloha.collector import result_shape
from loloha.collector.life import ENDED, Life
from loloha.collector.prepared import Recent
from loloha.collector.store import Round, Store
from loloha.collector.stored_campaign import StoredCampaign
from loloha.encodings import Threshold
from loloha.server.estimate import Estimate
from loloha.server.estimate_table import EstimateTable
from loloha.server.panel import panel_population

if TYPE_CHECKING:
    from loloha.arrays import Floats

NO_REPORTS, TOO_FEW, NOT_YET = "no_reports", "minimum_cohort", "not_published"
_MOST_NUMBERS = 1 << 21


RoundState = Literal["future", "open", "closed"]


class EstimateCache:
    """A cache of estimates, valid while a round's n stays the same."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._recent: Recent[Estimate] = Recent(
            _MOST_NUMBERS, lambda estimate: estimate.frequencies.size
        )

    def of(self, stored: StoredCampaign, round: int, n: int) -> Estimate | None:
        """The estimate of a round that has published ``n`` reports or more, None without any."""
        place = (stored.id, round)
        recent = self._recent.get(place)
        if recent is not None and recent.n == n:
            return recent
        store: Store = self._store()
        tally = store.tally(stored, round)
        if not tally.n:
            return None
        users = panel_population(tally.n, stored.campaign.schedule.every)
        estimate = suppressed(tally.estimate(users), stored.terms.minimum_cohort)
        return self._recent.put(place, estimate)


def suppressed(estimate: Estimate, least: int) -> Estimate:
    """The estimate without values that fewer than ``least`` reports can support."""
    few = estimate.eligible < least
    if not few.any():
        return estimate
    columns = estimate.frequencies, estimate.standard_errors
    frequencies, errors = (np.where(few, np.nan, column) for column in columns)
    shown = replace(estimate, frequencies=frequencies, standard_errors=errors)
    if isinstance(estimate.protocol.encoding, Threshold):
        # Mean and quantiles are of all reports together.
        vars(shown)["numbers"] = estimate.numbers
    return shown


def suppressed_because(stored: StoredCampaign, round: Round) -> str | None:
    """Why estimates of a round are not shown, None if they are."""
    if round.n == 0:
        return NO_REPORTS
    least = stored.terms.minimum_cohort
    if round.n < least:
        return TOO_FEW
    return NOT_YET if round.published < least else None


def parameters(stored: StoredCampaign) -> dict[str, Any]:
    """The realised protocol: g, probabilities and losses."""
    protocol = stored.campaign.protocol
    return {"protocol": protocol.to_dict(), **protocol.numbers}


def frame(
    stored: StoredCampaign, round: int, n: int, why: str | None, level: float, state: RoundState
) -> result_shape.EstimatesDocument:
    """All of a round's estimates but the numbers, which are suppressed for the reason ``why``."""
    schedule = stored.campaign.schedule
    return result_shape.EstimatesDocument(
        campaign=stored.campaign.fingerprint,
        round=round,
        start=to_text(schedule.begins(round)),
        end=to_text(schedule.ends(round)),
        state=state,
        n=n,
        minimum_cohort=stored.terms.minimum_cohort,
        level=level,
        suppressed_because=why,
        withheld=why,
        parameters=parameters(stored),
    )


def round_state(stored: StoredCampaign, life: Life, round: int, now: float) -> RoundState:
    """The state of a round: open, future or closed; rounds of a paused campaign can be open."""
    first, last = life.open_rounds(stored, now)
    if life.state in ENDED or round < first:
        return "closed"
    return "open" if round <= last else "future"


class Selection(NamedTuple):
    """A request for an estimate: level of intervals, projection, top values."""

    level: float
    projected: bool
    top: int | None


def table(
    stored: StoredCampaign, round: int, estimate: Estimate, selection: Selection
) -> EstimateTable:
    """The columns of an estimate, in ascending order of values."""
    bins: Any = slice(None)
    top = selection.top or stored.bins
    picked = top < stored.bins
    if picked:
        bins = np.array(most_frequent([estimate], top))
    rows = estimate.table(
        selection.level,
        labels=stored.labels,
        bins=bins,
        # Of values that are picked by their estimates.
        simultaneous=picked,
        round=round,
        start=to_text(stored.campaign.schedule.begins(round)),
        campaign=stored.campaign.fingerprint,
    )
    more = {"projected": [_projected(estimate.frequencies)[bins]]} if selection.projected else {}
    return replace(rows, more=more, about=about(stored))


def about(stored: StoredCampaign) -> dict[str, Any]:
    """The table's members beside its rows."""
    return {"name": stored.campaign.name, "parameters": parameters(stored)}


def numbers(
    stored: StoredCampaign, shown: Sequence[Estimate | None], level: float
) -> dict[str, list[float | None]] | UnsetType:
    """Mean and quantiles, a number a round, where numbers are asked for: as the domain has them."""
    if not isinstance(stored.campaign.protocol.encoding, Threshold):
        return UNSET
    scale = stored.campaign.domain.scale
    rows = [
        None if estimate is None else estimate.numbers.summary(level, scale) for estimate in shown
    ]
    names = next((list(row) for row in rows if row is not None), [])
    return {name: [None if row is None else float(row[name]) for row in rows] for name in names}


def all_at_once(stored: StoredCampaign, estimate: Estimate, level: float) -> dict[str, Any]:
    """Simultaneous statements: number of values above 0, the largest one, and the error bound."""
    frequencies = estimate.frequencies
    known = np.isfinite(frequencies)
    numbers: dict[str, Any] = {
        "bins": len(frequencies),
        "suppressed": int(np.count_nonzero(~known)),
        "clear": int(np.count_nonzero(estimate.significant(level))),
    }
    if not known.any():
        return numbers
    lower, upper = estimate.interval(level, simultaneous=True)
    value = int(np.nanargmax(frequencies))
    largest = result_shape.Largest(
        value=value,
        label=stored.campaign.bin_label(value),
        estimate=float(frequencies[value]),
        lower=float(lower[value]),
        upper=float(upper[value]),
    )
    error = float(np.nanmax(np.maximum(upper - frequencies, frequencies - lower)))
    return {**numbers, "simultaneous_error": error, "largest": largest}


def most_frequent(shown: Iterable[Estimate], top: int) -> list[int]:
    """The ``top`` values that are most frequent over the rounds shown, in ascending order."""
    # Only a running sum is in memory, and one round.
    rounds: Any = 0
    total: Any = 0.0
    for estimate in shown:
        known = np.isfinite(estimate.frequencies)
        rounds = rounds + known
        total = total + np.where(known, estimate.frequencies, 0.0)
    if np.ndim(total) == 0:
        return []
    # A value that nobody reported on in any round comes last.
    mean = np.where(rounds > 0, total / np.maximum(rounds, 1), -np.inf)
    order = np.argsort(-mean, kind="stable")
    return sorted(int(value) for value in order[:top])


def _projected(frequencies: Floats) -> Any:
    """Projected on the simplex; all NaN if one is NaN, whose share the others would get."""
    if not np.isfinite(frequencies).all():
        return np.full(len(frequencies), np.nan)
    return postprocess.project_simplex(frequencies)
