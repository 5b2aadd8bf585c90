"""Sessions of the admin page: the browser has a secret, the store only its hash."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sql

from loloha.collector.secret import hashed, new_secret
from loloha.collector.store import schema
from loloha.collector.store.admin_key import AdminKey
from loloha.collector.store.store import Store
from loloha.errors import StoreError

IDLE_SECONDS = 1_800
LONGEST_SECONDS = 28_800
AHEAD_SECONDS = 60
"""Seconds by which the clocks of two collectors may differ."""
SECONDS_BETWEEN_USES = 60
"""Seconds between notes of a session's use."""
MOST = 100
"""Sessions at a time: one more ends the least recently used."""
_table = schema.admin_session


@dataclass(frozen=True)
class AdminSession:
    """A session: its admin key, and the browser's secret."""

    key: AdminKey
    secret: str = field(repr=False)

    @property
    def form_token(self) -> str:
        """The token in each form of its pages, against forged requests."""
        return _derived(self.secret, b"form").hex()


class AdminSessions:
    """The table of them: every collector of a store knows them, before and after a restart."""

    def __init__(self, store: Store) -> None:
        self._database = store.database

    def begin(self, key: AdminKey, now: float) -> AdminSession:
        """Begin one, and delete those that have ended."""
        session = AdminSession(key, new_secret())
        row = {"sha256": hashed(session.secret), "key": _proof(session.secret, key)}
        newest = sql.select(_table.c.sha256).order_by(_table.c.seen.desc()).limit(MOST - 1)
        with self._database.write() as connection:
            for stays in (_lasts(now), _table.c.sha256.in_(newest)):
                connection.execute(sql.delete(_table).where(sql.not_(stays)))
            moments = {"began": int(now), "seen": int(now)}
            connection.execute(sql.insert(_table), row | moments)
        return session

    def find(self, secret: str, keys: Iterable[AdminKey], now: float) -> AdminSession | None:
        """The session of a cookie, marked as used; None if it has ended or its key is invalid."""
        # If its use cannot be noted it ends earlier.
        mine = _table.c.sha256 == hashed(secret)
        with self._database.read() as connection:
            lasting = sql.select(_table.c.key, _table.c.seen).where(mine, _lasts(now))
            row = connection.execute(lasting).first()
        proof, seen = row or (b"", 0)
        for key in keys:
            if hmac.compare_digest(proof, _proof(secret, key)):
                if now - seen >= SECONDS_BETWEEN_USES:
                    with suppress(StoreError), self._database.write() as connection:
                        connection.execute(sql.update(_table).where(mine).values(seen=int(now)))
                return AdminSession(key, secret)
        return None

    def end(self, secret: str) -> None:
        """End the session of a cookie, for all its copies."""
        with self._database.write() as connection:
            connection.execute(sql.delete(_table).where(_table.c.sha256 == hashed(secret)))


def _lasts(now: float) -> Any:
    """Whether a row is of a session that is neither idle nor old."""
    newest, moment = int(now) + AHEAD_SECONDS, int(now)
    return _table.c.seen.between(moment - IDLE_SECONDS + 1, newest) & _table.c.began.between(
        moment - LONGEST_SECONDS + 1, newest
    )


def _proof(secret: str, key: AdminKey) -> bytes:
    # Ends the session with its key; only the key's hash is stored.
    return _derived(secret, b"key" + key.sha256)


def _derived(secret: str, what: bytes) -> bytes:
    return hmac.digest(secret.encode(), b"loloha admin " + what, "sha256")
