"""When the newest report of each campaign came: noted at most once a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loloha.collector.store import statement

if TYPE_CHECKING:
    import sqlalchemy as sql


class NewestReport:
    """What a writer has noted since its last fault, so that few commits write it."""

    def __init__(self) -> None:
        self._noted: dict[int, int] = {}

    def forget(self) -> None:
        """A transaction failed: what it noted may not be there."""
        self._noted.clear()

    def note(self, connection: sql.Connection, entry: int, now: float) -> None:
        """A report of the campaign with this id is being counted."""
        minute = int(now) // 60 * 60
        if self._noted.get(entry, 0) < minute:
            connection.execute(statement.SET_NEWEST, {"entry": entry, "minute": minute})
            self._noted[entry] = minute
