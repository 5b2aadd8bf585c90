"""The counts of rounds: those that are published, and those of reports that wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loloha.collector.store import statement
from loloha.collector.store.cell import CELLS, add_parts, add_to_parts
from loloha.collector.store.schema import cell, waiting_cell

if TYPE_CHECKING:
    import sqlalchemy as sql

    from loloha.collector.stored_campaign import StoredCampaign
    from loloha.rules.counting.arrays import Array

_PARTS_AT_ONCE = 500


class Counts:
    """Adds to the counts of rounds, in an open transaction.

    Parameters
    ----------
    dialect : {"sqlite", "postgresql"}
    """

    def __init__(self, dialect: str) -> None:
        self._put = {table: statement.put_parts(dialect, table) for table in statement.PARTS}

    def add(
        self,
        connection: sql.Connection,
        stored: StoredCampaign,
        round: int,
        keys: Array | None,
        ys: Array,
        *,
        publish: bool,
    ) -> None:
        """Add n valid reports to what is published, or to what waits."""
        table = cell if publish else waiting_cell
        encoding = stored.campaign.protocol.encoding
        cells, added = encoding.increments(keys, ys)
        touched = np.unique(cells // CELLS).tolist()
        parts: dict[int, bytes] = {}
        for start in range(0, len(touched), _PARTS_AT_ONCE):
            few = touched[start : start + _PARTS_AT_ONCE]
            parts |= self._read(connection, table, stored, round, few)
        changed = add_to_parts(parts, cells, added, encoding.cells)
        self._write(connection, table, stored, round, changed)

    def publish(self, connection: sql.Connection, stored: StoredCampaign, round: int) -> None:
        """Add what waits to what is published."""
        place = {"entry": stored.id, "at": round}
        numbers = connection.execute(statement.WAITING_PARTS, place).scalars().all()
        total = stored.campaign.protocol.encoding.cells
        for start in range(0, len(numbers), _PARTS_AT_ONCE):
            few = list(numbers[start : start + _PARTS_AT_ONCE])
            shown = self._read(connection, cell, stored, round, few)
            more = self._read(connection, waiting_cell, stored, round, few)
            self._write(connection, cell, stored, round, add_parts(shown, more, total))
        connection.execute(statement.DELETE_WAITING, place)

    @staticmethod
    def _read(
        connection: sql.Connection,
        table: sql.Table,
        stored: StoredCampaign,
        round: int,
        numbers: list[int],
    ) -> dict[int, bytes]:
        asked = {"entry": stored.id, "at": round, "parts": numbers}
        return statement.by_first(connection.execute(statement.PARTS[table], asked))

    def _write(
        self,
        connection: sql.Connection,
        table: sql.Table,
        stored: StoredCampaign,
        round: int,
        parts: dict[int, bytes],
    ) -> None:
        rows = [
            {"campaign_id": stored.id, "round": round, "part": part, "counts": counts}
            for part, counts in parts.items()
        ]
        # A report of bits alone can add to no cell at all.
        if rows:
            connection.execute(self._put[table], rows)
