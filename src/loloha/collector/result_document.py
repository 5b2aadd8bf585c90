"""Estimates of rounds, and series over them, as JSON, CSV and Parquet.

Done with what a `ReadCache` holds, in this process or in one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from loloha import privacy
from loloha.campaign.schedule import to_text
from loloha.checks import counted
from loloha.collector import estimates, result_shape
from loloha.collector.answer import InPieces, cut, in_pieces
from loloha.collector.label_search import matches
from loloha.collector.problem import Problem
from loloha.collector.process import Parts
from loloha.collector.quota import Quota
from loloha.collector.read_cache import ReadCache
from loloha.collector.store import Round
from loloha.collector.stored_campaign import StoredCampaign
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


def of_round(cache: ReadCache, fingerprint: str, wanted: Wanted) -> Parts:
    """Of how many reports the estimates are, and the document in pieces."""
    stored, round, why = cache.known(fingerprint), wanted.round, wanted.suppressed_because
    estimate = None if why else cache.estimates.of(stored, round, wanted.n)
    n = wanted.n if estimate is None else estimate.n
    level = wanted.selection.level
    frame = estimates.frame(stored, round, n, why, level, wanted.state)
    if estimate is None:
        if wanted.form == "json":
            return Parts(n, in_pieces(frame))
        raise Problem(
            409,
            f"round must have published at least {frame.minimum_cohort} reports, got "
            f"{counted(frame.n, 'report')} so far; wait for more",
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


def of_labels(cache: ReadCache, fingerprint: str, text: str) -> Parts:
    """The labels of a campaign that hold ``text``; see `matches`."""
    stored = cache.known(fingerprint)
    if stored.keeps_labels:
        return Parts(stored.index.matches(text), ())
    return Parts(matches(stored.labels, text), ())


def of_privacy(cache: ReadCache, fingerprint: str) -> Parts:
    """The privacy statement of a campaign."""
    stored = cache.known(fingerprint)
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
    cache: ReadCache, fingerprint: str, rounds: Sequence[Round], asked: Asked, form: Form
) -> Parts:
    """The series of existing rounds, in pieces; CSV and Parquet: one row per round and value."""
    stored = cache.known(fingerprint)

    def estimate_of(round: Round) -> Estimate | None:
        hidden = estimates.suppressed_because(stored, round) is not None
        return None if hidden else cache.estimates.of(stored, round.number, round.published)

    before = [round for round in rounds if round.number < asked.first]
    rounds = rounds[len(before) :]
    single = [estimate_of(round) for round in rounds]
    present = [estimate for estimate in single if estimate is not None]
    most = min(asked.top or stored.bins, max(1, _MOST_NUMBERS // max(1, len(present))))
    bins: Any = slice(None)
    picked = asked.value is None and most < stored.bins
    if asked.value is not None:
        bins = np.array(asked.value)
    elif picked:
        bins = np.array(estimates.most_frequent(present, most), dtype=np.int64)
    # Of values that are picked by their estimates the intervals hold for all at once.
    tables = [
        estimate and estimate.table(asked.level, bins=bins, simultaneous=picked)
        for estimate in single
    ]
    windows: dict[str, Any] = {}
    if asked.windows and present:
        known = {
            round.number: estimate
            for round, estimate in zip(
                (*before, *rounds), (*map(estimate_of, before), *single), strict=True
            )
            if estimate is not None
        }
        windows = window_columns(
            panel_windows(known, stored.campaign.schedule.every), asked.level, bins=bins,
            simultaneous=picked, rounds=[round.number for round in rounds],
        )  # fmt: skip
    table = over_rounds(
        stored,
        rounds,
        asked.level,
        value=np.arange(stored.bins)[bins],
        n=[(estimate or round).n for round, estimate in zip(rounds, single, strict=True)],
        more=windows,
        **{name: [row and getattr(row, name)[0] for row in tables] for name in NUMBERS},
    )
    numbers = estimates.numbers(stored, single, asked.level)
    return in_form(result_shape.SeriesDocument, stored, table, numbers, form)


def over_rounds(
    stored: StoredCampaign, rounds: Sequence[Round], level: float, *, value: Any, **columns: Any
) -> EstimateTable:
    """A table of values of a campaign over rounds."""
    campaign = stored.campaign
    return EstimateTable(
        campaign=campaign.fingerprint,
        round=[round.number for round in rounds],
        start=[to_text(campaign.schedule.begins(round.number)) for round in rounds],
        value=value,
        label=[campaign.bin_label(v) for v in value.tolist()],
        level=level,
        about=estimates.about(stored),
        **columns,
    )


def in_form(
    document: type[result_shape.OverRounds],
    stored: StoredCampaign,
    table: EstimateTable,
    numbers: Any,
    form: Form,
) -> Parts:
    """A table over rounds in pieces: its rows as a file, or all of it as a document."""
    if form != "json":
        return Parts(None, tables_in_pieces(table, form))
    columns = {name: getattr(table, name) for name in COLUMNS} | table.more
    terms: dict[str, Any] = {
        "minimum_cohort": stored.terms.minimum_cohort,
        "parameters": estimates.parameters(stored),
        "numbers": numbers,
    }
    return Parts(None, in_pieces(document(**terms, **columns)))


def answer(answers: Quota, pieces: list[bytes], name: str, form: Form) -> InPieces:
    """The pieces of an answer; CSV and Parquet as files of a name."""
    file = None if form == "json" else f"{name}.{form}"
    return InPieces(answers, pieces, MEDIA[form], file)


def tables_in_pieces(table: EstimateTable, form: Form) -> Iterator[bytes]:
    """The rows as bytes of a file."""
    for part in written(table.pieces(), form):
        yield from cut(part)
