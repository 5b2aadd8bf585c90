"""A store copied into another database, resumable, and compared at the end.

While it lasts, and where it was cut off, the copy has a negative epoch, made of that of the store
that it was begun from: nothing else opens it, and it is gone on with only while that store is the
same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import zip_longest
from typing import Any

import sqlalchemy as sql

from loloha.collector.store import schema
from loloha.collector.store.database import Database, is_missing
from loloha.collector.store.store import Store
from loloha.collector.store.upgrade import upgrade
from loloha.errors import StoreError

_BYTES_AT_ONCE = 8 << 20
_ROWS_AT_ONCE = 1000
_ROWS_READ = 50
_LEFT_OUT = (schema.writer, schema.admin_session)
"""Tables that are not copied: the writer starts anew, and admins log in again."""
_TABLES = [table for table in schema.metadata.sorted_tables if table not in _LEFT_OUT]
"""Tables in an order that satisfies foreign keys."""


def copy(
    source: str,
    target: str,
    *,
    accept_losses: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> dict[str, int]:
    """Copy a store into a database of the same kind or the other; the rows of each table."""
    # The source stays, and collectors no longer write to it. Sessions of the admin page are not
    # copied. The target is new, or an interrupted copy: it can be used only once it is complete and
    # compared.
    if is_missing(source):
        raise StoreError("store must exist, there is no such file; correct its address")
    with closing(Store(source, take_over=False, accept_losses=True)) as opened:
        ago = opened.used(time.time())
        if ago is not None:
            raise StoreError(
                f"store must not be in use, a collector noted the time in it {ago} s ago; stop it "
                "(if it was killed, wait a minute), then copy again"
            )
        with closing(Database(target)) as into:
            into.must_suit(accept_losses=accept_losses)
            upgrade(into)
            return _copy(opened, into, progress)


def _copy(store: Store, into: Database, progress: Callable[[float], None]) -> dict[str, int]:
    epoch = _epoch(store.database)
    if _epoch(into) != _unfinished(epoch):
        _must_be_free(into)
        store.take_over(alone=True)
        epoch = _epoch(store.database)
        _begin(into, _unfinished(epoch))
    with store.database.read() as connection:
        rows = {table.name: connection.scalar(_count(table)) or 0 for table in _TABLES}
    total, done = max(1, sum(rows.values())), 0
    for table in _TABLES:
        for copied in _copy_table(store.database, into, table):
            done += copied
            progress(done / total)
    if any(_differs(store.database, into, table) for table in _TABLES):
        _begin(into, 0)
        raise StoreError(
            "store must stay as it is while it is copied, it has changed (as by `loloha admin`); "
            "the copy was emptied: copy again"
        )
    if _epoch(store.database) != epoch:
        raise StoreError(
            "store must stay as it is while it is copied, a collector has begun to write to it; "
            "stop that one, then copy again"
        )
    with store.database.read() as connection:
        seen = connection.scalar(sql.select(schema.writer.c.seen))
    with into.write() as connection:
        _count_on(connection)
        connection.execute(sql.update(schema.writer).values(epoch=epoch, seen=seen))
    return rows


def _unfinished(epoch: int) -> int:
    return -1 - epoch


def _epoch(database: Database) -> int:
    with database.read() as connection:
        epoch: int = connection.execute(sql.select(schema.writer.c.epoch)).scalar_one()
    return epoch


def _count(table: sql.Table) -> Any:
    return sql.select(sql.func.count()).select_from(table)


def _must_be_free(into: Database) -> None:
    """Refuse a target that is a store of its own."""
    epoch = _epoch(into)
    with into.read() as connection:
        in_use = any(connection.scalar(_count(table)) for table in _TABLES)
    if epoch > 0 or (epoch == 0 and in_use):
        raise StoreError(
            "copy must go into a new store, got one that is in use already; name another, or drop "
            "its tables"
        )


def _begin(into: Database, epoch: int) -> None:
    """Empty a copy that was begun from another state of the source."""
    with into.write() as connection:
        for table in reversed(_TABLES):
            connection.execute(sql.delete(table))
        connection.execute(sql.update(schema.writer).values(epoch=epoch))


def _copy_table(source: Database, into: Database, table: sql.Table) -> Iterator[int]:
    """Add the missing rows, in the order of their keys; yields the number so far."""
    with into.read() as connection:
        order = [key.desc() for key in _keys(into, table)]
        last = connection.execute(sql.select(*_keys(into, table)).order_by(*order).limit(1)).first()
        yield connection.scalar(_count(table)) or 0
    keys = _keys(source, table)
    missing = (
        sql.true() if last is None else sql.tuple_(*keys) > sql.tuple_(*map(sql.literal, last))
    )
    with _rows(source, sql.select(table).where(missing).order_by(*keys)) as rows:
        for batch in _batches(rows):
            with into.write() as connection:
                connection.execute(sql.insert(table), batch)
            yield len(batch)


def _keys(database: Database, table: sql.Table) -> list[Any]:
    """The primary key, by which both kinds of database sort alike: texts by their bytes."""
    by_bytes = "C" if database.dialect == "postgresql" else "BINARY"
    return [
        sql.collate(key, by_bytes) if isinstance(key.type, sql.Text) else key
        for key in table.primary_key
    ]


@contextmanager
def _rows(database: Database, select: Any) -> Iterator[sql.Result[Any]]:
    """Rows as they are read, of one state of the database."""
    streaming = {"yield_per": _ROWS_READ}
    with (
        database.read() as connection,
        connection.execution_options(**streaming).execute(select) as rows,
    ):
        yield rows


def _batches(rows: sql.Result[Any]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        batch.append(row._asdict())
        size += sum(len(cell) for cell in row if isinstance(cell, bytes | str))
        if size >= _BYTES_AT_ONCE or len(batch) >= _ROWS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _differs(source: Database, into: Database, table: sql.Table) -> bool:
    old, other = (sql.select(table).order_by(*_keys(each, table)) for each in (source, into))
    with _rows(source, old) as read, _rows(into, other) as copied:
        return any(row != its_copy for row, its_copy in zip_longest(read, copied))


def _count_on(connection: sql.Connection) -> None:
    """Set the sequence of campaign numbers, which PostgreSQL does not derive from copied rows."""
    if connection.dialect.name == "postgresql":
        number = schema.campaign.c.id
        sequence = sql.func.pg_get_serial_sequence(schema.campaign.name, number.name)
        # Not before the first one where there is none.
        last = sql.func.coalesce(sql.func.max(number), 1)
        connection.execute(sql.select(sql.func.setval(sequence, last, sql.func.count() > 0)))
