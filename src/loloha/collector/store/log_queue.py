"""The queue of reports for the log: deleted from the store once they are in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loloha.collector.store import statement
from loloha.collector.store.deletion import Deletion
from loloha.collector.store.leader import DELIVER
from loloha.collector.store.store import Store
from loloha.collector.stored_campaign import StoredCampaign

MOST_DELIVERED = 8 << 20
"""Bytes of reports that go to their log at a time."""


class LogQueue:
    """The table of reports that wait, written by the collector that writes the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def drop(self) -> int:
        """Delete the reports of a log that was switched off; the number of their commits."""
        deletion, dropped = Deletion(self._store), 0
        while rows := deletion.one_batch(statement.DELETE_ANY_QUEUED):
            dropped += rows
        return dropped

    def take(self, deliver: Callable[[StoredCampaign, int, list[bytes]], None]) -> bool:
        """Hand over reports that wait for the log, round by round, then forget them."""
        # Segments get negative numbers before delivery. After a crash in between, the next delivery
        # takes exactly the same ones.
        database = self._store.database
        with database.read() as connection:
            if connection.execute(statement.QUEUED_SIZES.limit(1)).first() is None:
                return False
        with self._store.writing() as connection:
            if database.dialect == "postgresql":
                # One collector at a time selects segments, and sees earlier marks.
                connection.execute(DELIVER)
            waiting = connection.execute(statement.QUEUED_SIZES).all()
            going, more = _bounded(waiting)
            more = more or len(waiting) == statement.MOST_QUEUED
            places = [{"entry": i, "at": round, "last": last} for (i, round), last in going.items()]
            if not places:
                return False
            connection.execute(statement.MARK_QUEUED, places)
        entries = self._store.by_id(place["entry"] for place in places)
        for place in places:
            with database.read() as connection:
                reports = list(connection.execute(statement.MARKED_QUEUED, place).scalars())
            if reports:
                # None where the campaign was deleted meanwhile.
                deliver(entries[place["entry"]], place["at"], reports)
        with self._store.writing() as connection:
            connection.execute(statement.DELETE_QUEUED, places)
        return more


def _bounded(waiting: Sequence[Any]) -> tuple[dict[tuple[int, int], int], bool]:
    """Rounds whose reports go to the log together, each with its last segment; if more wait."""
    # Marked segments go alone: they may be in a file already.
    going: dict[tuple[int, int], int] = {}
    marked: set[tuple[int, int]] = set()
    total = 0
    for campaign_id, round, segment, size in waiting:
        place = campaign_id, round
        if segment < 0:
            marked.add(place)
        elif place in marked:
            continue
        if total > MOST_DELIVERED and (segment >= 0 or place not in going):
            return going, True
        total += size
        # Marked ones begin with what was marked last.
        going.setdefault(place, -1 - segment)
        going[place] = max(going[place], segment)
    return going, False
