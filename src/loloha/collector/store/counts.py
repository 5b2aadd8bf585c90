"""The counts of rounds: those that are published, and those of reports that wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loloha.collector.store import statement
from loloha.collector.store.count_part import Place, add_parts, add_to_part, split
from loloha.collector.store.schema import cell, waiting_cell

if TYPE_CHECKING:
    import sqlalchemy as sql

    from loloha.collector.stored_campaign import StoredCampaign

_PARTS_AT_ONCE = 500
News = tuple[int, Any, Any]
"""A round, and the keys and ys of its new reports."""


class Counts:
    """Adds to the counts of rounds, in an open transaction."""

    def __init__(self, dialect: str) -> None:
        self._put = {table: statement.put_parts(dialect, table) for table in statement.PARTS}

    def add(
        self, connection: sql.Connection, stored: StoredCampaign, table: sql.Table, news: list[News]
    ) -> None:
        """Add valid reports of several rounds to what is published, or to what waits.

        Only the parts that hold a cell they add to are read and written.
        """
        encoding = stored.campaign.protocol.encoding
        pieces = [
            ((round, number), cells, added)
            for round, keys, ys in news
            for number, cells, added in split(*encoding.increments(keys, ys))
        ]
        for start in range(0, len(pieces), _PARTS_AT_ONCE):
            few = pieces[start : start + _PARTS_AT_ONCE]
            there = self._read(connection, table, stored, [place for place, _, _ in few])
            changed = {
                place: add_to_part(there.get(place), place[1], cells, added, encoding.cells)
                for place, cells, added in few
            }
            self._write(connection, table, stored, changed)

    def publish(self, connection: sql.Connection, stored: StoredCampaign, round: int) -> None:
        """Add what waits to what is published."""
        place = {"entry": stored.id, "at": round}
        numbers = connection.execute(statement.WAITING_PARTS, place).scalars().all()
        total = stored.campaign.protocol.encoding.cells
        for start in range(0, len(numbers), _PARTS_AT_ONCE):
            few = [(round, number) for number in numbers[start : start + _PARTS_AT_ONCE]]
            shown = self._read(connection, cell, stored, few)
            more = self._read(connection, waiting_cell, stored, few)
            self._write(connection, cell, stored, add_parts(shown, more, total))
        connection.execute(statement.DELETE_WAITING, place)

    @staticmethod
    def _read(
        connection: sql.Connection, table: sql.Table, stored: StoredCampaign, places: list[Place]
    ) -> dict[Place, bytes]:
        # Rounds that touch the same parts are read together: nothing is read that is not touched.
        parts: dict[int, list[int]] = {}
        for round, number in places:
            parts.setdefault(round, []).append(number)
        rounds: dict[tuple[int, ...], list[int]] = {}
        for round, numbers in parts.items():
            rounds.setdefault(tuple(numbers), []).append(round)
        counts: dict[Place, bytes] = {}
        for alike, those in rounds.items():
            asked = {"entry": stored.id, "rounds": those, "parts": list(alike)}
            rows = connection.execute(statement.PARTS[table], asked)
            counts |= {(row.round, row.part): row.counts for row in rows}
        return counts

    def _write(
        self,
        connection: sql.Connection,
        table: sql.Table,
        stored: StoredCampaign,
        parts: dict[Place, bytes],
    ) -> None:
        rows = [
            {"campaign_id": stored.id, "round": round, "part": part, "counts": counts}
            for (round, part), counts in parts.items()
        ]
        if rows:
            connection.execute(self._put[table], rows)
