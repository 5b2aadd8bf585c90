"""Connections to SQLite or PostgreSQL, set up so that a commit is durable."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    SQLAlchemyError,
)

from loloha.collector.store import disk, server, sqlite_file
from loloha.errors import ParameterError, StoreError

DIALECTS = ("sqlite", "postgresql")
_UNFIT = ("22", "23", "54")
"""Classes of PostgreSQL's codes for writes that can never succeed."""
_CAUSES = (
    ("unable to open database file", "a file that cannot be opened (see its folder's permissions)"),
    ("readonly database", "a file that is read-only (see its permissions)"),
    ("file is not a database", "a file that is no SQLite database"),
    ("disk is full", "a full disk"),
    ("no space left", "a full disk"),
    ("disk quota exceeded", "a full quota of the disk"),
    ("disk i/o error", "a disk that fails (see the system's log)"),
    ("input/output error", "a disk that fails (see the system's log)"),
    ("read-only file system", "a file system that is read-only"),
    ("too big", "a value larger than the database takes"),
    ("disk image is malformed", "a damaged file (restore a backup)"),
    ("database is locked", "a lock that another process holds"),
    ("due to statement timeout", "a statement that took too long (see statement_timeout, locks)"),
    ("due to lock timeout", "a lock that another session holds"),
    ("connection refused", "connection refused (does the server run at that host and port?)"),
    ("timeout expired", "no connection in time (see host, port and firewall)"),
    (
        server.NO_SESSION,
        f"no session in time (a pool has none free, a collector needs up to {server.SESSIONS})",
    ),
    ("could not translate host", "an unknown host"),
    ("failed to resolve host", "an unknown host"),
    ("no password supplied", "no password where one is needed"),
    ("password authentication failed", "a wrong user or password"),
    ("no pg_hba.conf entry", "a server that does not let this user in (see pg_hba.conf)"),
    ("fatal:  database", "no database of that name"),
    ("fatal:  role", "no user of that name"),
    ("read-only transaction", "a server or user that only reads"),
    ("permission denied", "permission denied (grant this user the tables)"),
)
"""Parts of drivers' messages, and the cause in our words."""
_SECONDS_TO_RUN = 60
# A collector cut off in a commit must not lock its campaigns for longer.
_SECONDS_BETWEEN_WRITES = 10
_CONNECTION: dict[str, Any] = {
    "connect_timeout": server.SECONDS_TO_WAIT,
    # A silent network is a failure, too.
    "keepalives_idle": server.SECONDS_TO_WAIT,
    "tcp_user_timeout": 1000 * 2 * server.SECONDS_TO_WAIT,
    # Overrides the user's environment.
    "client_encoding": "utf8",
}
# More than reading threads, so none waits for a connection.
_READERS = 8


def is_missing(url: str) -> bool:
    """Whether an address names an SQLite file that is not there: opening it would make one."""
    address = parsed(url)
    return address.get_backend_name() == "sqlite" and not Path(str(address.database)).exists()


class UnfitError(StoreError):
    """The data are at fault, not the store: other writes can succeed."""


class Database:
    """One writing connection, and several that only read."""

    def __init__(self, url: str, *, is_ready: bool = False) -> None:
        self.url = parsed(url)
        self.dialect = self.url.get_backend_name()
        self._identity: os.stat_result | None = None
        if self.dialect == "sqlite":
            path = Path(self.url.database or "")
            if not path.parent.is_dir():
                raise StoreError(
                    "store must be in an existing folder; make the folder, or correct the path"
                )
            if not is_ready:
                sqlite_file.must_suit(path)
                # Make a file that only the owner can read, where there is none.
                with suppress(OSError):
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            self._file = path.resolve()
            with suppress(OSError):
                self._identity = self._file.stat()
        self.writer = _engine(self.url, writes=True)
        self.reader = _engine(self.url, writes=False)

    def must_suit(self, *, accept_losses: bool) -> None:
        """Refuse a server's database in which no store can live; see `server.must_suit`."""
        if self.dialect == "postgresql":
            with translated():
                server.must_suit(self.url, _CONNECTION, accept_losses=accept_losses)

    def make_private(self) -> None:
        """See that only the owner can read the file, and SQLite's files beside it."""
        for side in ("", "-wal", "-shm") if self.dialect == "sqlite" else ():
            with suppress(OSError):
                self._file.with_name(self._file.name + side).chmod(0o600)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that commits at the end, or leaves nothing behind."""
        with translated(), self.writer.begin() as connection:
            yield connection
        self.must_be_in_place()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one state of the database."""
        with translated(), self.reader.begin() as connection:
            yield connection

    def must_be_in_place(self) -> None:
        """Refuse to go on if the open file was deleted or replaced."""
        # Writes to a deleted or replaced file would be lost.
        if self._identity is None:
            return
        try:
            same = os.path.samestat(self._identity, self._file.stat())
        except OSError:
            same = False
        if not same:
            raise StoreError(
                "store must stay where it is, its file was deleted or replaced under this "
                "collector; stop this one, put the file in its place, and start again"
            )

    def probe_disk(self) -> None:
        """See that the disk of an SQLite file takes more."""
        try:
            disk.probe(self._file.parent)
        except OSError as error:
            raise StoreError(_advice(_cause(error))) from None

    def erase(self, tables: Iterable[sql.Table]) -> bool:
        """Erase deleted rows from the files; False if a long reader delays it."""
        if self.dialect == "sqlite":
            return self._truncate_log()
        names = ", ".join(table.name for table in tables)
        # On a connection beside the writing one, without a time limit.
        with translated(), self.reader.connect() as connection:
            direct = connection.execution_options(isolation_level="AUTOCOMMIT")
            direct.detach()
            direct.execute(sql.text("SET statement_timeout = 0"))
            # Another collector may be doing the same.
            direct.execute(sql.text(f"VACUUM (SKIP_LOCKED) {names}"))
        return True

    def _truncate_log(self) -> bool:
        connection = self.writer.raw_connection()
        try:
            cursor = connection.cursor()
            # Uploads must not wait for a reader.
            cursor.execute("PRAGMA busy_timeout = 0")
            busy = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            cursor.execute(f"PRAGMA busy_timeout = {1000 * server.SECONDS_TO_WAIT}")
            cursor.close()
        except sqlite3.Error as error:
            raise StoreError(
                f"store must be writable, got {type(error).__name__}; try again"
            ) from None
        finally:
            connection.close()
        return not busy

    def close(self) -> None:
        """Close all connections."""
        self.reader.dispose()
        self.writer.dispose()

    def __repr__(self) -> str:
        return f"Database({self.url.render_as_string(hide_password=True)!r})"


@contextmanager
def translated() -> Iterator[None]:
    """Turns drivers' errors into `StoreError`, in our words."""
    try:
        yield
    except DBAPIError as error:
        # The statement's parameters stay out: they are reporters and digests.
        state = getattr(error.orig, "sqlstate", None) or ""
        unfit = isinstance(error, DataError | IntegrityError) or state[:2] in _UNFIT
        kind = UnfitError if unfit else StoreError
        raise kind(_advice(_cause(error.orig))) from None
    except SQLAlchemyError as error:
        raise StoreError(_advice(type(error).__name__)) from None
    except Exception as error:
        # The driver's own errors, at the beginning of a transaction or before there is an engine.
        if type(error).__module__.partition(".")[0] not in ("psycopg", "sqlite3"):
            raise
        raise StoreError(_advice(_cause(error))) from None


def _advice(cause: str) -> str:
    return f"store must be reachable and writable, got {cause}; mend that, or try again"


def _cause(error: BaseException | None) -> str:
    """A driver's error in our words: its text may hold names and values."""
    message = str(error).lower()
    for part, words in _CAUSES:
        if part in message:
            return words
    # Codes of the database, which hold no value: SQLITE_TOOBIG, or 54000.
    code = getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None)
    return " ".join(filter(None, (type(error).__name__, code)))


def parsed(url: str) -> URL:
    """The address of a store, with its driver; refuses what is none."""
    try:
        address = make_url(url)
    except ArgumentError:
        address = None
    if address is None or address.get_backend_name() not in DIALECTS:
        raise ParameterError(
            "store must be 'sqlite:///PATH' or 'postgresql://USER@HOST/DATABASE', got another "
            "address (not shown: it may hold a password); correct it"
        )
    if address.get_backend_name() == "postgresql":
        return address.set(drivername="postgresql+psycopg")
    if address.database in (None, "", ":memory:"):
        raise ParameterError(
            "store must be a file that outlives the process, got an SQLite address without a path; "
            "write sqlite:///loloha.db"
        )
    return address


def _engine(url: URL, *, writes: bool) -> Engine:
    options: dict[str, Any] = {
        "hide_parameters": True,
        "pool_size": 1 if writes else _READERS,
        "max_overflow": 0,
        "pool_timeout": server.SECONDS_TO_WAIT,
    }
    is_sqlite = url.get_backend_name() == "sqlite"
    if is_sqlite:
        options["poolclass"] = sql.QueuePool
        options["connect_args"] = {"timeout": server.SECONDS_TO_WAIT, "check_same_thread": False}
    else:
        options["pool_pre_ping"] = True
        options["isolation_level"] = "READ COMMITTED" if writes else "REPEATABLE READ"
        options["connect_args"] = _CONNECTION
    try:
        engine = sql.create_engine(url, **options)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise ParameterError(
            "store must have its driver installed; pip install 'loloha[collector]'"
        ) from error
    if is_sqlite:
        sql.event.listen(engine, "connect", _set_up_writer if writes else _set_up_reader)
        sql.event.listen(engine, "begin", _begin_writing if writes else _begin_reading)
    else:
        idle = _SECONDS_BETWEEN_WRITES if writes else _SECONDS_TO_RUN
        sql.event.listen(engine, "do_connect", _connect)
        sql.event.listen(engine, "connect", partial(_set_up_postgresql, idle=idle))
    return engine


def _connect(_: Any, __: Any, arguments: Any, options: Any) -> Any:
    return server.connect(*arguments, **options)


def _set_up_writer(connection: sqlite3.Connection, _: Any) -> None:
    # The driver would begin transactions too late: they are begun below.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    # Every commit is on the disk before it returns.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # What is deleted is overwritten, wherever SQLite's own default is another.
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA cache_size = -65536")


def _set_up_reader(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None
    # One connection alone writes and checkpoints: SQLite below 3.51.3 has a race between several.
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0")


def _set_up_postgresql(connection: Any, _: Any, *, idle: int) -> None:
    """Commits are durable before they return; locks and statements have time-outs."""
    # An upload that waits is sent again.
    with connection.cursor() as cursor:
        # Whatever the server, the database or the user has.
        for setting in server.DURABILITY:
            if setting.of_session:
                cursor.execute(
                    "SELECT set_config(%(name)s, %(safe)s, false) "
                    "WHERE current_setting(%(name)s) = %(losing)s",
                    {"name": setting.name, "safe": setting.safe, "losing": setting.losing},
                )
        for name, seconds in (
            ("lock_timeout", server.SECONDS_TO_WAIT),
            ("statement_timeout", _SECONDS_TO_RUN),
            ("idle_in_transaction_session_timeout", idle),
        ):
            cursor.execute(f"SET {name} = '{int(1000 * seconds)}ms'")
    connection.commit()


def _begin_writing(connection: Connection) -> None:
    # Bypasses SQLAlchemy's result layer: each commit begins so.
    driver: Any = connection.connection.dbapi_connection
    driver.execute("BEGIN IMMEDIATE")
    # By this number a write-ahead log is matched to the file: see `sqlite_file`.
    (number,) = driver.execute("PRAGMA user_version").fetchone()
    number = sqlite_file.following(number)
    driver.execute(f"PRAGMA user_version = {number}")


def _begin_reading(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
