"""The collector that writes to a store, since when, and whether it can be written."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sql

from loloha.collector.store import schema, statement
from loloha.collector.store.database import Database
from loloha.collector.store.disk import PROBE_BYTES
from loloha.collector.store.leader import Leader
from loloha.collector.store.round import NO_ROUND
from loloha.collector.store.statement import EPOCH
from loloha.errors import StoreError

RECENTLY = 60
"""Seconds: a running collector notes the time in its store twice as often."""


class TakenOverError(StoreError):
    """Another collector writes to the store now."""


class Tenure:
    """On SQLite one process writes at a time, the newest; on PostgreSQL any number do."""

    def __init__(self, database: Database, begin: Callable[[sql.Connection], None]) -> None:
        self.database = database
        # In the transaction that takes the store over.
        self._begin = begin
        self._epoch = -1
        self._leader = Leader(database)

    @property
    def is_shared(self) -> bool:
        """Whether several collectors can write to it."""
        return self.database.dialect == "postgresql"

    def take_over(self, *, alone: bool = False) -> None:
        """Become the one that writes, by a new epoch; on PostgreSQL one of those, or ``alone``."""
        writer = schema.writer
        renewed = sql.true() if alone or not self.is_shared else writer.c.epoch == 0
        with self.database.write() as connection:
            connection.execute(statement.EPOCH_ALONE)
            connection.execute(sql.update(writer).where(renewed).values(epoch=writer.c.epoch + 1))
            self._epoch = connection.execute(sql.select(writer.c.epoch)).scalar_one()
            self._begin(connection)

    def give_back(self) -> None:
        """Return the store to the previous writer; only before anything was counted."""
        if self.is_shared:
            return
        writer = schema.writer
        mine = sql.update(writer).where(writer.c.epoch == self._epoch)
        with self.database.write() as connection:
            connection.execute(mine.values(epoch=self._epoch - 1))

    def close(self) -> None:
        """Close all connections."""
        self._leader.close()
        self.database.close()

    def leads(self) -> bool:
        """Whether this collector does what is to be done once, of those that write."""
        return self._leader.leads()

    def leave(self) -> None:
        """Stop writing, and mark the store as left in order if no other writes."""
        if not self._leader.leave():
            return
        writer = schema.writer
        seen = writer.c.seen
        mine = (writer.c.epoch == self._epoch) & (seen > 0) & (seen % 2 == 0)
        with self.database.write() as connection:
            connection.execute(sql.update(writer).where(mine).values(seen=seen + 1))

    def see(self, now: float, *, even_earlier: bool = False) -> None:
        """Remember the newest time, by a clock that is believed; an earlier one on demand."""
        # It is an even second while the store is in use, an odd one once it was left in order.
        seen, moment = schema.writer.c.seen, int(now) // 2 * 2
        is_later = sql.true() if even_earlier else seen < moment
        newest = sql.case((is_later, moment), else_=seen - seen % 2)
        with self.writing() as connection:
            changes = sql.update(schema.writer).where(seen != newest)
            connection.execute(changes.values(seen=newest))

    def seen(self) -> int:
        """The time that a collector saw last, 0 if none did; odd if it has left the store."""
        with self.database.read() as connection:
            moment: int = connection.execute(sql.select(schema.writer.c.seen)).scalar_one()
        return moment

    def used(self, now: float) -> int | None:
        """Seconds since a collector noted the time, where it may run still, else None."""
        seen = self.seen()
        ago = int(now) - seen
        return ago if seen % 2 == 0 and 0 <= ago <= RECENTLY else None

    def probe(self) -> None:
        """Write as much as an upload might, and delete it again."""
        if self.database.dialect == "sqlite":
            # SQLite's own files may have free pages, which would hide a full disk.
            self.database.probe_disk()
            return
        first = sql.select(schema.campaign.c.id).order_by(schema.campaign.c.id).limit(1)
        with self.writing() as connection:
            campaign = connection.scalar(first)
            if campaign is None:
                return
            # Beside those of other collectors.
            place = {"campaign_id": campaign, "round": NO_ROUND, "segment": secrets.randbits(31)}
            connection.execute(statement.DELETE_PROBE, place)
            row = {**place, "rows": secrets.token_bytes(PROBE_BYTES)}
            connection.execute(statement.INSERT_GUARD, row)
        with self.database.write() as connection:
            connection.execute(statement.DELETE_PROBE, place)

    @contextmanager
    def writing(self) -> Iterator[sql.Connection]:
        """A transaction of the collector that writes."""
        with self.database.write() as connection:
            self._must_be_newest(connection)
            yield connection

    def _must_be_newest(self, connection: sql.Connection, epoch: Any = EPOCH) -> None:
        if connection.execute(epoch).scalar_one() != self._epoch:
            raise TakenOverError(
                "store must be written by one collector, another has taken it over since; "
                "stop this one"
            )

    def must_be_newest(self) -> None:
        """Raise `StoreError` unless the database is ours to write."""
        with self.database.read() as connection:
            self._must_be_newest(connection, sql.select(schema.writer.c.epoch))

    def ping(self) -> None:
        """Raise `StoreError` unless the database answers, and is ours to write."""
        self.must_be_newest()
        self.database.must_be_in_place()
