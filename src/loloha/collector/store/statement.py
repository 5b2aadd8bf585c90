"""The statements of a commit, built once: building them anew would cost more than running them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite

from loloha.collector.life import ENDED, GONE
from loloha.collector.store.schema import (
    alarm,
    campaign,
    cell,
    estimate,
    estimated_round,
    guard,
    metadata,
    outcome,
    queued,
    waiting_cell,
    writer,
)

_entry: sql.BindParameter[int] = sql.bindparam("entry")
_round: sql.BindParameter[int] = sql.bindparam("at")
_rounds: sql.BindParameter[list[int]] = sql.bindparam("rounds", expanding=True)


def _here(table: sql.Table) -> sql.ColumnElement[bool]:
    """Rows of one round of a campaign."""
    return (table.c.campaign_id == _entry) & (table.c.round == _round)


def _in_rounds(table: sql.Table) -> sql.ColumnElement[bool]:
    """Rows of some rounds of a campaign."""
    return (table.c.campaign_id == _entry) & table.c.round.in_(_rounds)


def _number(name: str, kind: Any = sql.BigInteger) -> sql.BindParameter[int]:
    return sql.bindparam(name, type_=kind)


# Who writes holds it with all others that do; who takes the store over waits for them.
EPOCH = sql.select(writer.c.epoch).with_for_update(read=True, key_share=True)
EPOCH_ALONE = sql.select(writer.c.epoch).with_for_update()

LIVES = sql.select(campaign.c.id, campaign.c.state, campaign.c.first_open)

_entries: sql.BindParameter[list[int]] = sql.bindparam("entries", expanding=True)
# In one order, so that no two wait for each other; rows that refer to them can be written.
LOCK = (
    sql.select(campaign.c.id, campaign.c.first_open, campaign.c.state, campaign.c.last_writer)
    .where(campaign.c.id.in_(_entries))
    .order_by(campaign.c.id)
    .with_for_update(key_share=True)
)
SET_LAST_WRITER = (
    sql.update(campaign)
    .where(campaign.c.id.in_(_entries))
    .values(last_writer=sql.bindparam("number"))
)
SET_FIRST_OPEN = (
    sql.update(campaign).where(campaign.c.id == _entry).values(first_open=sql.bindparam("first"))
)
_minute: sql.BindParameter[int] = sql.bindparam("minute")
SET_NEWEST = (
    sql.update(campaign)
    .where(campaign.c.id == _entry, campaign.c.newest_report < _minute)
    .values(newest_report=_minute)
)
MOST_ROWS, MOST_BYTES = 1000, 8 << 20
"""Rows and bytes of a deletion batch: uploads wait for it, and SQLite overwrites all of it."""


def delete_batch(table: sql.Table, *which: Any) -> Any:
    """Delete the first of these rows by their key, so many of them that a commit is short."""
    names = [column.name for column in table.primary_key]
    contents = [column for column in table.c if isinstance(column.type, sql.LargeBinary)]
    size = sum(map(sql.func.length, contents), sql.literal(0)).label("size")
    keys = [table.c[name] for name in names]
    first = sql.select(*keys, size).where(*which).order_by(*keys).limit(MOST_ROWS).subquery()
    order = [first.c[name] for name in names]
    before = (sql.func.sum(first.c.size).over(order_by=order) - first.c.size).label("before")
    summed = sql.select(*order, before).subquery()
    few = sql.select(*(summed.c[name] for name in names)).where(summed.c.before < MOST_BYTES)
    return sql.delete(table).where(sql.tuple_(*keys).in_(few))


DELETE_CLOSED = delete_batch(
    guard, guard.c.campaign_id == _entry, guard.c.round < sql.bindparam("first")
)
# The rest of a closed round's guard only waits to be deleted.
CLOSED_GUARDS = sql.select(campaign.c.id, campaign.c.first_open).where(
    sql.exists().where(
        guard.c.campaign_id == campaign.c.id,
        guard.c.round >= 0,
        guard.c.round < campaign.c.first_open,
    )
)

_size = sql.func.length(guard.c.rows)
_place = sql.tuple_(guard.c.round, guard.c.segment)
GUARD_SIZES = (
    sql.select(guard.c.round, guard.c.segment, _size.label("size"))
    .where(_in_rounds(guard))
    .order_by(guard.c.round, guard.c.segment)
)
GUARDS = (
    sql.select(guard.c.round, guard.c.segment, guard.c.rows)
    .where(
        _in_rounds(guard),
        _place >= sql.tuple_(_number("first_round"), _number("first_segment")),
        _place <= sql.tuple_(_number("last_round"), _number("last_segment")),
        _size <= _number("largest"),
    )
    .order_by(guard.c.round, guard.c.segment)
)
GUARD_PIECE = sql.select(
    sql.func.substr(
        guard.c.rows,
        _number("start", sql.Integer),
        _number("n", sql.Integer),
        type_=sql.LargeBinary,
    )
).where(_here(guard), guard.c.segment == _number("segment"))
MOST_NEW_SEGMENTS = 32
NEW_SEGMENTS = (
    sql.select(guard.c.segment, guard.c.rows)
    .where(_here(guard), guard.c.segment >= _number("next"))
    .order_by(guard.c.segment)
    .limit(MOST_NEW_SEGMENTS)
)
DELETE_SEGMENTS = sql.delete(guard).where(
    _here(guard), guard.c.segment.in_(sql.bindparam("segments", expanding=True))
)
INSERT_GUARD = sql.insert(guard)
INSERT_QUEUED = sql.insert(queued)

NUMBER_WAITING = sql.select(outcome.c.round, outcome.c.count).where(
    _in_rounds(outcome), outcome.c.kind == "waiting"
)
# No report has a round below 0.
DELETE_PROBE = sql.delete(guard).where(
    guard.c.campaign_id == sql.bindparam("campaign_id"), guard.c.round == -1
)
OUTCOMES = sql.select(outcome.c.kind, outcome.c.count).where(_here(outcome))

_parts: sql.BindParameter[list[int]] = sql.bindparam("parts", expanding=True)
ALL_PARTS = sql.select(cell.c.part, cell.c.counts).where(_here(cell))
PARTS = {
    table: sql.select(table.c.round, table.c.part, table.c.counts).where(
        _in_rounds(table), table.c.part.in_(_parts)
    )
    for table in (cell, waiting_cell)
}
WAITING_PARTS = sql.select(waiting_cell.c.part).where(_here(waiting_cell))
DELETE_WAITING = sql.delete(waiting_cell).where(_here(waiting_cell))
WAITING_ROUNDS = sql.select(outcome.c.round).where(
    outcome.c.campaign_id == _entry,
    outcome.c.kind == "waiting",
    outcome.c.count > 0,
    outcome.c.round < sql.bindparam("first"),
)
# Ended campaigns have no guard.
_first_guarded = (
    sql.select(guard.c.round)
    .where(guard.c.campaign_id == campaign.c.id, guard.c.round >= campaign.c.first_open)
    .order_by(guard.c.round)
    .limit(1)
    .scalar_subquery()
)
FIRST_GUARDED = sql.select(_first_guarded).where(campaign.c.id == _entry)
ALL_FIRST_GUARDED = sql.select(campaign.c.id, _first_guarded).where(campaign.c.state.not_in(ENDED))

# Campaigns of which something can be shown, or sent.
SHOWN = sql.select(campaign.c.id).where(campaign.c.state.not_in(GONE))
IS_SHOWN = SHOWN.where(campaign.c.id == _entry)
DELETING = sql.select(campaign.c.id).where(campaign.c.state == "deleting")

# Those that were marked come first.
MOST_QUEUED = 10_000
QUEUED_SIZES = (
    sql.select(
        queued.c.campaign_id, queued.c.round, queued.c.segment, sql.func.length(queued.c.reports)
    )
    .where(queued.c.campaign_id.in_(SHOWN))
    .order_by(queued.c.campaign_id, queued.c.round, queued.c.segment)
    .limit(MOST_QUEUED)
)
MARK_QUEUED = (
    sql.update(queued)
    .where(_here(queued), queued.c.segment >= 0, queued.c.segment <= _number("last"))
    .values(segment=-1 - queued.c.segment)
)
# Not those that another collector has marked since.
_marked = _here(queued) & (queued.c.segment < 0) & (queued.c.segment >= -1 - _number("last"))
MARKED_QUEUED = (
    sql.select(queued.c.reports)
    .where(_marked, queued.c.campaign_id.in_(SHOWN))
    .order_by(queued.c.segment.desc())
)
DELETE_QUEUED = sql.delete(queued).where(_marked)

# A campaign's counts before a round; and all its rows but the document.
_before = _number("before")
_SUMS = cell, waiting_cell, outcome, alarm, estimate, estimated_round
DELETE_SUMS = [
    sql.delete(table).where(table.c.campaign_id == _entry, table.c.round < _before)
    for table in _SUMS
]
_rounds_before = sql.union_all(
    *(
        sql.select(sql.func.min(table.c.round).label("round")).where(
            table.c.campaign_id == _entry, table.c.round < _before
        )
        for table in _SUMS
    )
).subquery()
OLDEST_SUMS = sql.select(sql.func.min(_rounds_before.c.round))

OF_CAMPAIGN = [table for table in metadata.sorted_tables if "campaign_id" in table.c]
"""Tables of which a campaign that is deleted has no row."""
DELETE_ALL = [delete_batch(table, table.c.campaign_id == _entry) for table in OF_CAMPAIGN]
SET_DELETED = (
    sql.update(campaign)
    .where(campaign.c.id == _entry, campaign.c.state == "deleting")
    .where(*(~sql.exists().where(table.c.campaign_id == _entry) for table in OF_CAMPAIGN))
    .values(state="deleted")
)
DELETE_ANY_QUEUED = delete_batch(queued)


def insert(dialect: str, table: sql.Table) -> Any:
    """An INSERT of this dialect, which can say what to do with rows that are there."""
    return {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[dialect](table)


def put_parts(dialect: str, table: sql.Table) -> Any:
    """Write parts, whether they were there or not."""
    statement = insert(dialect, table)
    return statement.on_conflict_do_update(
        index_elements=["campaign_id", "round", "part"], set_={"counts": statement.excluded.counts}
    )


def add_outcomes(dialect: str) -> Any:
    """Add to the numbers of a round."""
    statement = insert(dialect, outcome)
    return statement.on_conflict_do_update(
        index_elements=["campaign_id", "round", "kind"],
        set_={"count": outcome.c.count + statement.excluded.count},
    )


def by_first(rows: Any) -> dict[Any, Any]:
    """The rows of two columns, the second by the first."""
    return {row[0]: row[1] for row in rows}
