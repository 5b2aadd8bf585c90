"""Deletion in bounded batches, a transaction each: an interrupted one goes on later."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Protocol

from loloha.collector.store import schema, statement
from loloha.collector.store.statement import MOST_BYTES

if TYPE_CHECKING:
    import sqlalchemy as sql

    from loloha.collector.store.database import Database
    from loloha.collector.stored_campaign import StoredCampaign

_MOST_ROUNDS = 100


class Rows(Protocol):
    """The part of a store that deletion needs."""

    database: Database

    def campaigns(self, which: Any) -> list[StoredCampaign]: ...
    def by_id(self, ids: Iterable[int]) -> dict[int, StoredCampaign]: ...
    def writing(self) -> AbstractContextManager[sql.Connection]: ...
    def locked(self, stored: StoredCampaign) -> AbstractContextManager[sql.Connection]: ...
    def note_deleted(self) -> None: ...
    def note_whole_deletion(self, stored: StoredCampaign) -> bool: ...


class Deletion:
    """Deletes from one store: uploads wait for one batch at most.

    Each method stops at the moment ``until``, of the monotonic clock, and returns whether more is
    to go; called again it goes on.
    """

    def __init__(self, store: Rows) -> None:
        self._store = store

    def finish(self, until: float = math.inf) -> bool:
        """Delete the rows of campaigns that are being deleted, and the guards of closed rounds."""
        with self._store.database.read() as connection:
            deleting = connection.execute(statement.DELETING).scalars().all()
            closed = connection.execute(statement.CLOSED_GUARDS).all()
        more = [self.of_campaign(row, until) for row in self._store.by_id(deleting).values()]
        for entry, first in closed:
            place = {"entry": entry, "first": first}
            more.append(self._in_batches(statement.DELETE_CLOSED, place, until))
        return any(more)

    def of_campaign(self, stored: StoredCampaign, until: float = math.inf) -> bool:
        """Delete the rows of a campaign that is being deleted, then note that it is deleted."""
        place = {"entry": stored.id}
        if any(self._in_batches(delete, place, until) for delete in statement.DELETE_ALL):
            return True
        # Another collector may be deleting the rest.
        return not self._store.note_whole_deletion(stored)

    def old_sums(self, now: float, until: float = math.inf) -> bool:
        """Delete rounds past their campaigns' keep_days, each as a whole."""
        keeps = schema.campaign.c.terms.contains('"keep_days"')
        for stored in self._store.campaigns(keeps):
            before = stored.terms.first_stored(stored.campaign.schedule, now)
            while self._some_old_sums(stored, before):
                if monotonic() >= until:
                    return True
        return False

    def _some_old_sums(self, stored: StoredCampaign, before: int) -> bool:
        """Delete the oldest rounds before one; whether there were any."""
        place = {"entry": stored.id, "before": before}
        with self._store.database.read() as connection:
            # Refusals before the first round are deleted with it.
            oldest = connection.scalar(statement.OLDEST_SUMS, place) if before > 0 else None
        if oldest is None:
            return False
        few = max(1, min(_MOST_ROUNDS, MOST_BYTES // (8 * stored.bins)))
        with _Turn(), self._store.locked(stored) as connection:
            place["before"] = min(before, max(0, oldest) + few)
            for delete in statement.DELETE_SUMS:
                connection.execute(delete, place)
        return True

    def _in_batches(self, delete: Any, where: dict[str, Any], until: float) -> bool:
        """Execute a statement until it deletes nothing; whether it was stopped before."""
        while monotonic() < until:
            if not self.one_batch(delete, where):
                return False
        return True

    def one_batch(self, delete: Any, where: dict[str, Any] | None = None) -> int:
        """Execute a statement in a transaction of its own; how many rows it deleted."""
        with _Turn(), self._store.writing() as connection:
            rows: int = connection.execute(delete, where).rowcount
        if rows:
            self._store.note_deleted()
        return rows


class _Turn:
    """Pauses after each batch for as long as it took, so that others get the writing connection."""

    def __enter__(self) -> None:
        self._began = monotonic()

    def __exit__(self, *_: object) -> None:
        sleep(min(1.0, monotonic() - self._began))
