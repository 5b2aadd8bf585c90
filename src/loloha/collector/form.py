"""Estimates of rounds, and series over them, as JSON, CSV and Parquet: the heavy work of reading.

Done for a desk, in this process or in one of its own.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from loloha import privacy
from loloha.campaign.schedule import to_text
from loloha.collector import estimates, shape
from loloha.collector.answer import cut, in_pieces
from loloha.collector.desk import Desk
from loloha.collector.label import matches
from loloha.collector.problem import Problem
from loloha.collector.process import Parts
from loloha.collector.store import Round
from loloha.collector.stored_campaign import StoredCampaign
from loloha.server.frame import SERIES, series_to_frame, write_csv

Form = Literal["json", "csv", "parquet"]
_MOST_NUMBERS = 1_000_000
_COLUMNS = ("frequencies", "standard_errors", "lower", "upper")
MEDIA = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


class Wanted(NamedTuple):
    """Estimates of which round, with n reports as was read before, or why they are withheld."""

    round: int
    n: int
    withheld: str | None
    now: float
    selection: estimates.Selection
    form: Form


class Asked(NamedTuple):
    """Chosen values, or the top ones, or all; and the level of the intervals."""

    value: list[int] | None
    top: int | None
    level: float


def of_round(desk: Desk, fingerprint: str, wanted: Wanted) -> Parts:
    """Of how many reports the estimates are, and the document in pieces.

    Raises
    ------
    Problem
        409 where they are withheld and the form has no words for it.
    """
    stored, round, why = desk.known(fingerprint), wanted.round, wanted.withheld
    estimate = None if why else desk.estimates.of(stored, round, wanted.n)
    n = wanted.n if estimate is None else estimate.n
    level = wanted.selection.level
    frame = estimates.frame(stored, round, n, why, level, wanted.now)
    if estimate is None:
        if wanted.form == "json":
            return Parts(n, in_pieces(frame))
        raise Problem(
            409,
            f"round must have published at least {frame.minimum_cohort} reports, got {frame.n} "
            "reports so far; wait for more",
            kind=frame.withheld,
        )
    columns = estimates.numbers(stored, estimate, wanted.selection)
    if wanted.form == "json":
        told = columns | estimates.all_at_once(stored, estimate, level)
        return Parts(n, in_pieces(msgspec.structs.replace(frame, **told)))
    rows = estimates.tables(stored, round, n, columns, level)
    return Parts(n, _WRITERS[wanted.form](rows))


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
    document = {
        **privacy.explain(protocol, reports=[*range(1, 21), 30, 50, 100], keys=keys).to_dict(),
        "text": str(privacy.explain(protocol, keys=keys)),
        "campaign": fingerprint,
        "terms": stored.terms.to_dict(),
        "keys": keys,
    }
    return Parts(None, [msgspec.json.encode(document)])


def of_series(
    desk: Desk, fingerprint: str, found: Sequence[Round], asked: Asked, form: Form
) -> Parts:
    """The series of the rounds found, in pieces; CSV and Parquet: a row a round and value."""
    series = _series(desk.estimates, desk.known(fingerprint), found, asked)
    if form == "json":
        return Parts(None, in_pieces(series))
    return Parts(None, _WRITERS[form](_tables(series)))


def _series(
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

    def row(one: Round) -> tuple[int, Any]:
        hidden = estimates.withheld(stored, one) is not None
        estimate = None if hidden else cache.of(stored, one.number, one.published)
        if estimate is None:
            return one.n, (None,) * len(_COLUMNS)
        columns = estimate.frequencies, estimate.standard_errors, *estimate.interval(asked.level)
        return estimate.n, [column[value] for column in columns]

    rows = [row(one) for one in found]
    columns = {name: [parts[at] for _, parts in rows] for at, name in enumerate(_COLUMNS)}
    return shape.Series(
        campaign=campaign.fingerprint,
        level=asked.level,
        minimum_cohort=stored.terms.minimum_cohort,
        values=value,
        labels=[campaign.bin_label(v) for v in value],
        rounds=[one.number for one in found],
        begins=[to_text(campaign.schedule.begins(one.number)) for one in found],
        n=[n for n, _ in rows],
        parameters=estimates.parameters(stored),
        **columns,
    )


def _tables(series: shape.Series) -> Iterator[Any]:
    """A table without rows, then a row a round and value, some thousand at a time."""
    yield _frame(series, slice(0), slice(0))
    for place, frequencies in enumerate(series.frequencies):
        for first in range(0, 0 if frequencies is None else len(series.values), estimates.ROWS):
            yield _frame(series, slice(place, place + 1), slice(first, first + estimates.ROWS))


def _frame(series: shape.Series, rounds: slice, values: slice) -> Any:
    import pyarrow as pa

    def cells(rows: Any) -> Any:
        return [None if row is None else row[values] for row in rows[rounds]]

    part = msgspec.structs.replace(
        series,
        values=series.values[values],
        labels=series.labels[values],
        rounds=series.rounds[rounds],
        begins=series.begins[rounds],
        n=series.n[rounds],
        **{name: cells(getattr(series, name)) for name in _COLUMNS},
    )
    kinds = {"round": pa.int64(), "value": pa.int64(), "n": pa.int64()}
    kinds |= dict.fromkeys(("campaign", "start", "label"), pa.string())
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in SERIES])
    return series_to_frame(msgspec.structs.asdict(part)).cast(schema)


def _as_csv(tables: Iterable[Any]) -> Iterator[bytes]:
    """With a header."""
    for place, table in enumerate(tables):
        sink = io.BytesIO()
        write_csv(table, sink, header=not place)
        yield from cut(sink.getvalue())


def _as_parquet(tables: Iterable[Any]) -> Iterator[bytes]:
    from pyarrow import parquet

    sink, writer = io.BytesIO(), None
    for table in tables:
        writer = writer or parquet.ParquetWriter(sink, table.schema)
        if table.num_rows:
            writer.write_table(table)
    if writer is not None:
        writer.close()
    yield from cut(sink.getvalue())


_WRITERS = {"csv": _as_csv, "parquet": _as_parquet}
