"""Admin keys: stored as hashes, with a label and times of creation, last use and expiry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sql

from loloha import checks
from loloha.campaign.domain import check_text
from loloha.campaign.schedule import to_text
from loloha.collector.secret import hashed, new_secret
from loloha.collector.store import schema
from loloha.collector.store.statement import insert
from loloha.collector.store.store import Store
from loloha.errors import ParameterError

DAY = 86_400
MOST_DAYS = 3660
SECONDS_BETWEEN_USES = 3600
"""Seconds between notes of a key's use."""
_LONGEST_LABEL = 100
_DIGITS = 12
_table = schema.admin_key
_SEEN = sql.select(schema.writer.c.seen).scalar_subquery()
LAST = (
    "without a valid admin key of the store nobody creates, pauses or ends campaigns, while "
    "devices, counting and estimates go on. `loloha admin add` beside the store draws another at "
    "any time; so does the next start of `loloha serve`, unless it gets LOLOHA_ADMIN_KEY"
)


class LastKeyError(ParameterError):
    """The last valid key would be revoked without confirmation."""


@dataclass(frozen=True)
class AdminKey:
    """What is known of one key; moments in Unix seconds."""

    sha256: bytes
    label: str  # For people; may be empty.
    created: int | None  # None for one of release 0.2.
    used: int | None  # To the hour; None if never, as far as it is known.
    expires: int | None  # Expiry; None for never.
    # The newest time that a collector saw: a clock that is set back makes no key valid again.
    seen: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        """The first digits of its hash: who has the key can find it, and nobody the key by it."""
        return self.sha256.hex()[:_DIGITS]

    def is_valid(self, now: float) -> bool:
        """Whether it is accepted."""
        return self.expires is None or max(now, self.seen) < self.expires

    def to_dict(self) -> dict[str, Any]:
        """As JSON data, without the hash."""
        moments = {"created": self.created, "used": self.used, "expires": self.expires}
        shown = {what: None if at is None else to_text(at) for what, at in moments.items()}
        return {"name": self.name, "label": self.label, **shown}


class AdminKeys:
    """The table of keys, which other processes may change beside the collector."""

    def __init__(self, store: Store) -> None:
        self._database = store.database

    def all(self) -> list[AdminKey]:
        """All keys, those of release 0.2 first, then in the order in which they were made."""
        with self._database.read() as connection:
            keys = _keys(connection)
        return sorted(keys, key=lambda key: (key.created or 0, key.sha256))

    def draw(self, label: str = "", *, now: float, days: int | None = None) -> tuple[str, AdminKey]:
        """Draw a key and accept it, for so many days or for ever; only its hash is stored."""
        if label:
            check_text("label", label, _LONGEST_LABEL)
        if days is not None:
            days = checks.integer("days", days, 1, MOST_DAYS, "leave it out for a key that stays")
        with self._database.write() as connection:
            now = max(now, connection.execute(sql.select(_SEEN)).scalar_one())
            secret, key = _drawn(label, now, None if days is None else days * DAY)
            self._accept(connection, key)
        return secret, key

    def rotate(self, name: str, *, now: float) -> tuple[str, AdminKey]:
        """Draw a key in place of another, which is revoked at once: same label, as long a life."""
        with self._database.write() as connection:
            old = _delete(connection, name, _keys(connection, alone=True))[0]
            life = None if old.expires is None or old.created is None else old.expires - old.created
            secret, key = _drawn(old.label, max(now, old.seen), life)
            self._accept(connection, key)
        return secret, key

    def revoke(self, name: str, *, now: float, even_last: bool = False) -> None:
        """Accept a key no longer, at once; the last valid one only if ``even_last``."""
        with self._database.write() as connection:
            keys = _keys(connection, alone=True)
            _delete(connection, name, keys)
            left = [key for key in keys if key.name != name and key.is_valid(now)]
            if not left and not even_last:
                raise LastKeyError(f"key must not be the last: {LAST}")

    def note_use(self, key: AdminKey, now: float) -> None:
        """Remember that a key was used; it is written seldom."""
        if key.used is not None and 0 <= now - key.used < SECONDS_BETWEEN_USES:
            return
        with self._database.write() as connection:
            mine = sql.update(_table).where(_table.c.sha256 == key.sha256)
            connection.execute(mine.values(used=int(now)))

    def _accept(self, connection: sql.Connection, key: AdminKey) -> None:
        statement = insert(self._database.dialect, _table).on_conflict_do_nothing()
        row = vars(key)
        connection.execute(statement, {column.name: row[column.name] for column in _table.columns})


def _keys(connection: sql.Connection, *, alone: bool = False) -> list[AdminKey]:
    """All keys; ``alone`` locks them until the transaction ends."""
    rows = sql.select(_table, _SEEN).order_by(_table.c.sha256)
    return [AdminKey(*row) for row in connection.execute(rows.with_for_update() if alone else rows)]


def _delete(connection: sql.Connection, name: str, keys: Sequence[AdminKey]) -> list[AdminKey]:
    """Delete those of a name, which are returned."""
    named = [key for key in keys if key.name == name]
    if not named:
        raise ParameterError(
            "key must be one of the list, got another (not shown); see `loloha admin list`"
        )
    connection.execute(sql.delete(_table).where(_table.c.sha256.in_([key.sha256 for key in named])))
    return named


def _drawn(label: str, now: float, life: int | None) -> tuple[str, AdminKey]:
    secret = new_secret()
    expires = None if life is None else int(now) + life
    return secret, AdminKey(hashed(secret), label, int(now), None, expires)


def name_of(secret: str) -> str:
    """The name of a key that somebody has."""
    return hashed(secret).hex()[:_DIGITS]
