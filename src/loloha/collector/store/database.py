"""Connections to SQLite or PostgreSQL, set up so that a commit is durable."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from loloha.errors import ParameterError, StoreError

DIALECTS = ("sqlite", "postgresql")
_SECONDS_TO_WAIT = 5


class Database:
    """One writing connection, and several that only read.

    Parameters
    ----------
    url : str
        ``sqlite:///PATH`` or ``postgresql://USER@HOST/DATABASE``.

    Raises
    ------
    ParameterError
        If the URL names neither.
    """

    def __init__(self, url: str) -> None:
        self.url = _parsed(url)
        self.dialect = self.url.get_backend_name()
        if self.dialect == "sqlite":
            _make_private(Path(self.url.database or ""))
        self.writer = _engine(self.url, writes=True)
        self.reader = _engine(self.url, writes=False)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that commits at the end, or leaves nothing behind.

        Raises
        ------
        StoreError
            If the database fails; whether a failing commit took place is then unknown.
        """
        with _translated(), self.writer.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one state of the database.

        Raises
        ------
        StoreError
            If the database fails.
        """
        with _translated(), self.reader.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self.reader.dispose()
        self.writer.dispose()

    def __repr__(self) -> str:
        return f"Database({self.url.render_as_string(hide_password=True)!r})"


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        # The statement's parameters stay out: they are reporters and digests.
        cause = type(error.orig).__name__
        raise StoreError(f"store must be reachable and writable, got {cause}; try again") from None
    except SQLAlchemyError as error:
        raise StoreError(
            f"store must be reachable and writable, got {type(error).__name__}; try again"
        ) from None


def _make_private(path: Path) -> None:
    """Create the file so that only its owner can read it; SQLite's side files follow suit."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = None
    if parsed is None or parsed.get_backend_name() not in DIALECTS:
        raise ParameterError(
            "store must be 'sqlite:///PATH' or 'postgresql://USER@HOST/DATABASE', got another "
            "address (not shown: it may hold a password); correct it"
        )
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.database in (None, "", ":memory:"):
        raise ParameterError(
            "store must be a file that outlives the process, got an SQLite address without a path; "
            "write sqlite:///loloha.db"
        )
    return parsed


def _engine(url: URL, *, writes: bool) -> Engine:
    options: dict[str, Any] = {"hide_parameters": True}
    try:
        if url.get_backend_name() == "postgresql":
            return sql.create_engine(
                url,
                pool_size=1 if writes else 4,
                max_overflow=0,
                pool_pre_ping=True,
                pool_timeout=_SECONDS_TO_WAIT,
                isolation_level="READ COMMITTED" if writes else "REPEATABLE READ",
                connect_args={"connect_timeout": _SECONDS_TO_WAIT},
                **options,
            )
        engine = sql.create_engine(
            url,
            poolclass=sql.QueuePool,
            pool_size=1 if writes else 4,
            max_overflow=0,
            pool_timeout=_SECONDS_TO_WAIT,
            connect_args={"timeout": _SECONDS_TO_WAIT, "check_same_thread": False},
            **options,
        )
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise ParameterError(
            "store must have its driver installed; pip install 'loloha[collector]'"
        ) from error
    sql.event.listen(engine, "connect", _set_up_writer if writes else _set_up_reader)
    sql.event.listen(engine, "begin", _begin_writing if writes else _begin_reading)
    return engine


def _set_up_writer(connection: sqlite3.Connection, _: Any) -> None:
    # The driver's own transactions begin too late: ours are begun below.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    # Every commit is on the disk before it returns.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = -65536")


def _set_up_reader(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None
    # One connection alone writes and checkpoints: SQLite below 3.51.3 has a race between several.
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0")


def _begin_writing(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begin_reading(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def sqlite_path(url: str) -> Path | None:
    """The file of an SQLite address, None for PostgreSQL."""
    parsed = _parsed(url)
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None
