"""One collector on a PostgreSQL database leads: it does the work that must be done once."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock

import sqlalchemy as sql

from loloha.collector.store.database import Database, translated
from loloha.errors import StoreError

# Locks by schema: another schema of the database may have a store, too.
_LEADS, _RUNS, _DELIVERS = (
    f"'writer'::regclass::oid::bigint + ({kind}::bigint << 32)" for kind in (1, 2, 3)
)
_TRY_TO_LEAD = sql.text(f"SELECT pg_try_advisory_lock({_LEADS})")
_RUN = sql.text(f"SELECT pg_advisory_lock_shared({_RUNS})")
_RUN_ALONE = sql.text(f"SELECT pg_try_advisory_lock({_RUNS})")
DELIVER = sql.text(f"SELECT pg_advisory_xact_lock({_DELIVERS})")
"""A lock for the rest of a transaction."""


class Leader:
    """Whether this collector leads, which lasts as long as a session with the server.

    Nothing is counted twice where two of them lead for a moment: what the leader does is checked
    where it is written. On SQLite there is one collector, which leads.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._session: sql.Connection | None = None
        self._asking = Lock()

    def leads(self) -> bool:
        """Whether this one leads; it does from now on where no other does."""
        if self._database.dialect == "sqlite":
            return True
        with self._asking:
            try:
                return self._ask(_TRY_TO_LEAD)
            except StoreError:
                # The session has ended, and with it the lock.
                self._end()
                return self._ask(_TRY_TO_LEAD)

    def leave(self) -> bool:
        """Give up the lead; whether no other collector is left."""
        if self._database.dialect == "sqlite":
            return True
        with self._asking:
            try:
                return self._ask(_RUN_ALONE)
            finally:
                self._end()

    def close(self) -> None:
        """End the session."""
        with self._asking:
            self._end()

    def _ask(self, question: sql.TextClause) -> bool:
        with translated():
            if self._session is None:
                # Outside the pools and without transactions: its locks last as long as the session.
                session = self._database.reader.connect()
                self._session = session.execution_options(isolation_level="AUTOCOMMIT")
                session.detach()
                session.execute(_RUN)
            return bool(self._session.scalar(question))

    def _end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(sql.exc.SQLAlchemyError):
                session.close()
