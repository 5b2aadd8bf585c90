"""An overview of campaigns and their rounds, for monitoring."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sql

from loloha.campaign import Schedule
from loloha.collector.life import GONE, Life, State
from loloha.collector.store import schema
from loloha.collector.store.store import Store


class Glance(NamedTuple):
    """A campaign, and the Unix time of its newest report in whole minutes, 0 before the first."""

    fingerprint: str
    name: str
    state: State
    newest_report: int

    @property
    def labels(self) -> tuple[str, str, str]:
        """What tells it from others."""
        return self.fingerprint, self.name, self.state


class _Document(msgspec.Struct, rename={"schedule": "round"}):
    """Of a million labels nothing is built."""

    name: str
    schedule: dict[str, Any]


class Overview:
    """The newest campaigns of a store; their documents are read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[str, Schedule]] = {}

    def newest(self, most: int, now: float) -> list[Glance]:
        """The newest campaigns but those that are deleted, the newest first."""
        table = schema.campaign
        select = (
            sql.select(table.c.fingerprint, table.c.state, table.c.newest_report)
            .where(table.c.state.not_in(GONE))
            .order_by(table.c.id.desc())
            .limit(most)
        )
        with self._store.database.read() as connection:
            rows = connection.execute(select).all()
            before = self._known
            known = {
                row.fingerprint: before.get(row.fingerprint) or _read(connection, row.fingerprint)
                for row in rows
            }
        self._known = known
        return [
            Glance(
                row.fingerprint,
                known[row.fingerprint][0],
                Life(row.state).at(known[row.fingerprint][1], now).state,
                row.newest_report,
            )
            for row in rows
        ]


def _read(connection: sql.Connection, fingerprint: str) -> tuple[str, Schedule]:
    table = schema.campaign
    select = sql.select(table.c.document).where(table.c.fingerprint == fingerprint)
    document = msgspec.json.decode(connection.execute(select).scalar_one(), type=_Document)
    return document.name, Schedule.from_dict(document.schedule)
