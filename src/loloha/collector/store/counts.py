"""The counts of rounds: published ones, and those waiting to be published."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.collector.commit_cost import CELLS
from loloha.collector.store import statement
from loloha.collector.store.schema import cell, waiting_cell

if TYPE_CHECKING:
    import sqlalchemy as sql

    from loloha.arrays import Ints
    from loloha.collector.stored_campaign import StoredCampaign

Place = tuple[int, int]
"""A round, and the number of a part of its counts."""
_PARTS_AT_ONCE = 500
News = tuple[int, Any, Any]
"""A round, and the keys and ys of its new reports."""


def split(cells: Ints, added: Ints) -> list[tuple[int, Ints, Ints]]:
    """Cells and what is added to them, as `Encoding.increments` gives them, part by part."""
    if not cells.size:
        # For example a report with no bit set: it counts, but adds to no cell.
        return []
    numbers = cells // CELLS
    edges = np.flatnonzero(np.diff(numbers)) + 1
    places = zip(np.split(cells, edges), np.split(added, edges), strict=True)
    return [(int(few[0] // CELLS), few, more) for few, more in places]


def add_to_part(packed: bytes | None, number: int, cells: Ints, added: Ints, total: int) -> bytes:
    """One part after adding."""
    first = number * CELLS
    size = min(CELLS, total - first)
    counts = np.zeros(size, dtype=np.int64) if packed is None else unpack_part(packed, size)
    counts[cells - first] += added
    return pack_part(counts)


def add_parts(
    parts: dict[Place, bytes], more: dict[Place, bytes], total: int
) -> dict[Place, bytes]:
    """The parts that ``more`` has, by round and number, after adding those of ``parts``."""
    added = {}
    for place, packed in more.items():
        size = min(CELLS, total - place[1] * CELLS)
        counts = unpack_part(packed, size)
        if place in parts:
            counts += unpack_part(parts[place], size)
        added[place] = pack_part(counts)
    return added


def pack_part(counts: Ints) -> bytes:
    """Counts >= 0 in the narrowest integers that hold them, little-endian."""
    width = np.min_scalar_type(int(counts.max())).newbyteorder("<")
    return counts.astype(width).tobytes()


def unpack_part(packed: bytes, size: int) -> Ints:
    """What `pack_part` packed; ``size`` tells how many counts it holds."""
    return np.frombuffer(packed, dtype=f"<u{len(packed) // size}").astype(np.int64)


def whole(parts: Iterable[Any], total: int) -> Ints:
    """All counts of a table, int64[total]."""
    counts = np.zeros(total, dtype=np.int64)
    for number, packed in parts:
        place = counts[number * CELLS :][:CELLS]
        place[:] = unpack_part(packed, len(place))
    return counts


class Counts:
    """Adds to the counts of rounds, in an open transaction."""

    def __init__(self, dialect: str) -> None:
        self._put = {table: statement.put_parts(dialect, table) for table in statement.PARTS}

    def add(
        self, connection: sql.Connection, stored: StoredCampaign, table: sql.Table, news: list[News]
    ) -> None:
        """Add valid reports of several rounds to the published or the waiting counts."""
        # Only parts with a changed cell are read and written.
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
        """Add waiting counts to published ones."""
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
        # Rounds that touch the same parts are read together; untouched parts are not read.
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
