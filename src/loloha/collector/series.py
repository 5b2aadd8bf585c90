"""Estimates over rounds: one round after the other, and only what was asked for is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from loloha.collector import estimates, shape
from loloha.collector.store import Round
from loloha.collector.stored_campaign import StoredCampaign
from loloha.rules.campaign.schedule import to_text

_MOST_NUMBERS = 1_000_000


class Asked(NamedTuple):
    """Chosen values, or the top ones, or all; and the level of the intervals."""

    value: list[int] | None
    top: int | None
    level: float


def series_of(
    cache: estimates.Estimates, stored: StoredCampaign, found: Sequence[Round], asked: Asked
) -> shape.Series:
    """The series of the rounds found."""
    campaign = stored.campaign
    shown = [one for one in found if estimates.withheld(stored, one) is None]
    present = (
        estimate
        for one in shown
        if (estimate := cache.of(stored, one.number, one.published)) is not None
    )
    value = asked.value
    if value is None:
        most = min(asked.top or stored.bins, max(1, _MOST_NUMBERS // max(1, len(shown))))
        whole = most >= stored.bins
        value = list(range(stored.bins)) if whole else estimates.most_frequent(present, most)

    def row(one: Round) -> tuple[int, Any, Any]:
        hidden = estimates.withheld(stored, one) is not None
        estimate = None if hidden else cache.of(stored, one.number, one.published)
        if estimate is None:
            return one.n, None, None
        columns = estimate.frequencies, estimate.standard_errors
        frequencies, errors = (column[value] for column in columns)
        return estimate.n, frequencies, errors

    rows = [row(one) for one in found]
    return shape.Series(
        campaign=campaign.fingerprint,
        level=asked.level,
        minimum_cohort=stored.terms.minimum_cohort,
        values=value,
        labels=[campaign.bin_label(v) for v in value],
        rounds=[one.number for one in found],
        begins=[to_text(campaign.schedule.begins(one.number)) for one in found],
        n=[n for n, _, _ in rows],
        frequencies=[frequencies for _, frequencies, _ in rows],
        standard_errors=[errors for _, _, errors in rows],
        parameters=estimates.parameters(stored),
    )
