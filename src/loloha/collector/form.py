"""Estimates of rounds, and series over them, as JSON, CSV and Parquet: the heavy work of reading.

Done for a desk, in this process or in one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from loloha import privacy
from loloha.campaign.schedule import to_text
from loloha.collector import estimates, result_shape
from loloha.collector.answer import InPieces, cut, in_pieces
from loloha.collector.desk import Desk
from loloha.collector.problem import Problem
from loloha.collector.process import Parts
from loloha.collector.share import Shares
from loloha.collector.store import Round
from loloha.collector.stored_campaign import StoredCampaign, matches
from loloha.server.estimate import Estimate
from loloha.server.estimate_table import COLUMNS, NUMBERS, EstimateTable
from loloha.server.frame import written
from loloha.server.panel import panel_windows, window_columns

Form = Literal["json", "csv", "parquet"]
_MOST_NUMBERS = 1_000_000
MEDIA = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


class Wanted(NamedTuple):
    """Estimates of which round, with n reports as was read before, or why they are suppressed."""

    round: int
    n: int
    suppressed_because: str | None
    state: estimates.RoundState
    selection: estimates.Selection
    form: Form


class Asked(NamedTuple):
    """Chosen values, or the top ones, or all; the level of the intervals.

    Rounds before ``first`` are asked for the windows of later ones, if windows are wanted.
    """

    value: list[int] | None
    top: int | None
    level: float
    first: int = 0
    windows: bool = False


def of_round(desk: Desk, fingerprint: str, wanted: Wanted) -> Parts:
    """Of how many reports the estimates are, and the document in pieces."""
    stored, round, why = desk.known(fingerprint), wanted.round, wanted.suppressed_because
    estimate = None if why else desk.estimates.of(stored, round, wanted.n)
    n = wanted.n if estimate is None else estimate.n
    level = wanted.selection.level
    frame = estimates.frame(stored, round, n, why, level, wanted.state)
    if estimate is None:
        if wanted.form == "json":
            return Parts(n, in_pieces(frame))
        raise Problem(
            409,
            f"round must have published at least {frame.minimum_cohort} reports, got {frame.n} "
            "reports so far; wait for more",
            kind=frame.suppressed_because,
        )
    table = estimates.table(stored, round, estimate, wanted.selection)
    if wanted.form != "json":
        return Parts(n, tables_in_pieces(table, wanted.form))
    rows = {name: getattr(table, name) for name in NUMBERS} | table.more
    extra = {name: cells[0] for name, cells in rows.items()}
    extra |= {"value": table.value, "label": table.label}
    extra |= estimates.all_at_once(stored, estimate, level)
    extra["numbers"] = estimates.numbers(stored, [estimate], level)
    return Parts(n, in_pieces(msgspec.structs.replace(frame, **extra)))


def of_labels(desk: Desk, fingerprint: str, text: str) -> Parts:
    """The labels of a campaign that hold ``text``; see `matches`."""
    stored = desk.known(fingerprint)
    if stored.keeps_labels:
        return Parts(stored.index.matches(text), ())
    return Parts(matches(stored.labels, text), ())


def of_privacy(desk: Desk, fingerprint: str) -> Parts:
    """The privacy statement of a campaign."""
    stored = desk.known(fingerprint)
    protocol, keys = stored.campaign.protocol, stored.campaign.keys
    every = stored.campaign.schedule.every
    document = {
        **privacy.explain(
            protocol, reports=[*range(1, 21), 30, 50, 100], keys=keys, every=every
        ).to_dict(),
        "text": str(privacy.explain(protocol, keys=keys, every=every)),
        "campaign": fingerprint,
        "terms": stored.terms.to_dict(),
        "keys": keys,
    }
    return Parts(None, [msgspec.json.encode(document)])


def of_series(
    desk: Desk, fingerprint: str, rounds: Sequence[Round], asked: Asked, form: Form
) -> Parts:
    """The series of the rounds found, in pieces; CSV and Parquet: a row a round and value."""
    stored = desk.known(fingerprint)
    table, shown = _series(desk.estimates, stored, rounds, asked)
    if form != "json":
        return Parts(None, tables_in_pieces(table, form))
    series = result_shape.SeriesDocument(
        minimum_cohort=stored.terms.minimum_cohort,
        parameters=estimates.parameters(stored),
        numbers=estimates.numbers(stored, shown, asked.level),
        **{name: getattr(table, name) for name in COLUMNS},
        **table.more,
    )
    return Parts(None, in_pieces(series))


def _series(
    cache: estimates.EstimateCache, stored: StoredCampaign, rounds: Sequence[Round], asked: Asked
) -> tuple[EstimateTable, list[Estimate | None]]:
    """The estimates of the rounds found, as a table and one by one; None for suppressed rounds."""
    campaign = stored.campaign
    before = [round for round in rounds if round.number < asked.first]
    rounds = rounds[len(before) :]
    shown = [round for round in rounds if estimates.suppressed_because(stored, round) is None]
    present = (
        estimate
        for field in shown
        if (estimate := cache.of(stored, field.number, field.published)) is not None
    )
    most = min(asked.top or stored.bins, max(1, _MOST_NUMBERS // max(1, len(shown))))
    bins: Any = slice(None)
    picked = asked.value is None and most < stored.bins
    if asked.value is not None:
        bins = np.array(asked.value)
    elif picked:
        bins = np.array(estimates.most_frequent(present, most), dtype=np.int64)
    value = np.arange(stored.bins)[bins]
    numbers: dict[str, Any] = {name: [] for name in NUMBERS}
    n, single = [], []
    for round in rounds:
        hidden = estimates.suppressed_because(stored, round) is not None
        estimate = None if hidden else cache.of(stored, round.number, round.published)
        n.append(round.n if estimate is None else estimate.n)
        single.append(estimate)
        # Of values that are picked by their estimates the intervals hold for all at once.
        row = (
            None
            if estimate is None
            else estimate.table(asked.level, bins=bins, simultaneous=picked)
        )
        for name, rows in numbers.items():
            rows.append(None if row is None else getattr(row, name)[0])
    windows: dict[str, Any] = {}
    if asked.windows and shown:
        known = {
            field.number: cache.of(stored, field.number, field.published)
            for field in (*before, *shown)
            if estimates.suppressed_because(stored, field) is None
        }
        windows = window_columns(
            panel_windows(known, campaign.schedule.every), asked.level, bins=bins,
            simultaneous=picked, rounds=[round.number for round in rounds],
        )  # fmt: skip
    table = EstimateTable(
        more=windows,
        campaign=campaign.fingerprint,
        round=[round.number for round in rounds],
        start=[to_text(campaign.schedule.begins(round.number)) for round in rounds],
        value=value,
        label=[campaign.bin_label(v) for v in value.tolist()],
        level=asked.level,
        n=n,
        about=estimates.about(stored),
        **numbers,
    )
    return table, single


def answer(answers: Shares, pieces: list[bytes], name: str, form: Form) -> InPieces:
    """The pieces of an answer; CSV and Parquet as files of a name."""
    file = None if form == "json" else f"{name}.{form}"
    return InPieces(answers, pieces, MEDIA[form], file)


def tables_in_pieces(table: EstimateTable, form: Form) -> Iterator[bytes]:
    """The rows as bytes of a file."""
    for part in written(table.pieces(), form):
        yield from cut(part)
