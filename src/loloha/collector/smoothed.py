"""Rounds estimated together, and what alarms in them: work of a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET

from loloha.collector import estimates, result_shape
from loloha.collector.process import Parts
from loloha.collector.result_document import Asked, Form, in_form, over_rounds
from loloha.collector.store import Round
from loloha.server.alarm_rule import MEAN, AlarmRule
from loloha.server.estimate_table import NUMBERS

if TYPE_CHECKING:
    from loloha.collector.read_cache import ReadCache


def of_smoothed(
    cache: ReadCache, fingerprint: str, rounds: Sequence[Round], asked: Asked, form: Form
) -> Parts:
    """The smoothed series of existing rounds, in pieces; None for suppressed rounds."""
    stored = cache.known(fingerprint)
    shown = [round for round in rounds if estimates.suppressed_because(stored, round) is None]
    smoothed = cache.smoothed.of(cache.estimates, stored, shown) if shown else None
    place = {number: row for row, number in enumerate(smoothed.rounds)} if smoothed else {}
    value = np.arange(stored.bins)
    picked = asked.value is None and (asked.top or stored.bins) < stored.bins
    if asked.value is not None:
        value = np.array(asked.value, dtype=np.int64)
    elif picked and smoothed is not None:
        mean = np.nan_to_num(np.nan_to_num(smoothed.mean, nan=0.0).mean(axis=0))
        value = np.sort(np.argsort(-mean, kind="stable")[: asked.top])
    columns: tuple[Any, ...] = (None,) * 6
    if smoothed is not None:
        ends = smoothed.ends(asked.level, stored.bins if picked else 1)
        columns = smoothed.estimates, smoothed.standard_errors, *ends
        columns += smoothed.unbiased, smoothed.innovations
    rows: dict[str, Any] = {
        name: [
            column[place[round.number]][value] if round.number in place else None
            for round in rounds
        ]
        for name, column in zip((*NUMBERS, "unbiased", "innovation"), columns, strict=True)
    }
    more: dict[str, Any] = {name: rows.pop(name) for name in ("unbiased", "innovation")}
    table = over_rounds(
        stored,
        rounds,
        asked.level,
        value=value,
        n=[
            smoothed.n[place[round.number]] if smoothed and round.number in place else round.n
            for round in rounds
        ],
        more=more,
        **rows,
    )
    numbers: Any = UNSET
    if smoothed is not None and smoothed.numbers is not None:
        summary = smoothed.numbers.summary(asked.level, stored.campaign.domain.scale)
        numbers = {
            name: [
                float(of_rounds[place[round.number]]) if round.number in place else None
                for round in rounds
            ]
            for name, of_rounds in summary.items()
        }
    return in_form(result_shape.SmoothedDocument, stored, table, numbers, form)


def of_alarms(
    cache: ReadCache, fingerprint: str, rounds: Sequence[Round], rules: Sequence[AlarmRule]
) -> list[dict[int, list[dict[str, Any]]]]:
    """For each rule, by round, the values that alarm."""
    stored = cache.known(fingerprint)
    shown = [round for round in rounds if estimates.suppressed_because(stored, round) is None]
    smoothed = cache.smoothed.of(cache.estimates, stored, shown) if shown else None
    if smoothed is None:
        return [{} for _ in rules]
    by_rule = []
    campaign = stored.campaign
    for rule in rules:
        unbiased, innovations = smoothed.watched(rule)
        by_round: dict[int, list[dict[str, Any]]] = {}
        for row, value in np.argwhere(rule.alarmed(innovations)).tolist():
            by_round.setdefault(smoothed.rounds[row], []).append(
                {
                    "value": None if rule.mean else value,
                    "label": MEAN if rule.mean else campaign.bin_label(value),
                    "unbiased": float(unbiased[row, value]),
                    "innovation": round(float(innovations[row, value]), 4),
                }
            )
        by_rule.append(by_round)
    return by_rule
