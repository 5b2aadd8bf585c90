"""Published estimates in the store: the rows of the view `loloha_estimates`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sql

from loloha.collector.life import GONE
from loloha.collector.store.schema import campaign, estimate, estimated_round
from loloha.collector.store.store import Store

_TABLES = (estimate, estimated_round)


class EstimateRows:
    """The tables under the view, written by the collector that leads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def rounds(self, campaign_id: int) -> dict[int, int]:
        """The number of reports behind the estimates of each round."""
        table = estimated_round
        mine = sql.select(table.c.round, table.c.n).where(table.c.campaign_id == campaign_id)
        with self._store.database.read() as connection:
            return {row.round: row.n for row in connection.execute(mine)}

    def put(self, campaign_id: int, rows: Sequence[dict[str, Any]]) -> None:
        """Replace the rows of one round; none for a deleted campaign."""
        state = sql.select(campaign.c.state).where(campaign.c.id == campaign_id)
        with self._store.writing() as connection:
            if connection.scalar(state.with_for_update(key_share=True)) in GONE:
                # It was deleted meanwhile.
                return
            _delete(connection, campaign_id, [rows[0]["round"]])
            for table, few in ((estimated_round, rows[:1]), (estimate, rows)):
                names = table.c.keys()
                own = [
                    {name: {**row, "campaign_id": campaign_id}[name] for name in names}
                    for row in few
                ]
                connection.execute(sql.insert(table), own)

    def drop(self, campaign_id: int, rounds: Iterable[int]) -> None:
        """Delete the estimates of rounds."""
        with self._store.writing() as connection:
            _delete(connection, campaign_id, list(rounds))

    def clear(self) -> None:
        """Delete all estimates."""
        with self._store.writing() as connection:
            for table in _TABLES:
                connection.execute(sql.delete(table))


def _delete(connection: sql.Connection, campaign_id: int, rounds: list[int]) -> None:
    for table in _TABLES:
        here = (table.c.campaign_id == campaign_id) & table.c.round.in_(rounds)
        connection.execute(sql.delete(table).where(here))
