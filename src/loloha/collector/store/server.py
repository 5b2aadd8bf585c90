"""Checks of a PostgreSQL server before a store is written to it."""

from __future__ import annotations

import logging
from selectors import EVENT_READ, DefaultSelector
from typing import TYPE_CHECKING, Any, NamedTuple

from loloha.collector.store import schema
from loloha.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

FOREIGN = "one that belongs to another program; give loloha a database (or schema) of its own"
_log = logging.getLogger(__name__)

OLDEST = 12
SECONDS_TO_WAIT = 5
NO_SESSION = "no session in time"
SESSIONS = 15
"""The most that a collector has: readers, the one that writes, the one that leads, those of four
processes, and one that erases."""


class Setting(NamedTuple):
    """One of the server's, by which a crash could lose reports that were acknowledged."""

    name: str
    safe: str
    loses: str
    of_session: bool = False
    """Settings that each connection sets itself; those of the server are refused, or accepted."""

    @property
    def losing(self) -> str:
        """The other value."""
        return "off" if self.safe == "on" else "on"


DURABILITY = (
    Setting("synchronous_commit", "on", "the last reports that were acknowledged", of_session=True),
    Setting("fsync", "on", "reports that were acknowledged, and can damage the store"),
    Setting("full_page_writes", "on", "pages of the store, unless its disk writes them whole"),
    Setting("data_sync_retry", "off", "what the disk failed to write before"),
)
_OF_SERVER = tuple(setting for setting in DURABILITY if not setting.of_session)

_FACTS = """
SELECT current_setting('server_encoding'), pg_is_in_recovery(),
    current_setting('transaction_read_only') = 'on', current_schema() IS NULL,
    to_regclass('alembic_version') IS NULL
        AND NOT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
    ARRAY(
        SELECT name FROM (
            SELECT relname::text, relnamespace FROM pg_class
            UNION SELECT typname::text, typnamespace FROM pg_type
        ) AS taken (name, place) JOIN pg_namespace ON place = pg_namespace.oid
        WHERE nspname = current_schema() AND name = ANY (%(names)s)
    ),
    ARRAY(
        SELECT name::text FROM pg_settings
        WHERE name || '=' || setting = ANY (%(losing)s) ORDER BY name
    )
"""


def connect(*arguments: Any, **options: Any) -> Any:
    """Connect, and have a session within `SECONDS_TO_WAIT`."""
    # A pool may accept a connection and let its first query wait for minutes.
    import psycopg

    connection = psycopg.connect(*arguments, **options)
    connection.pgconn.send_query(b"")
    with DefaultSelector() as selector:
        selector.register(connection.pgconn.socket, EVENT_READ)
        if not selector.select(SECONDS_TO_WAIT):
            connection.close()
            raise psycopg.OperationalError(NO_SESSION)
    while connection.pgconn.get_result() is not None:
        pass
    return connection


def must_suit(url: URL, options: dict[str, Any], *, accept_losses: bool) -> None:
    """Refuse a database in which a store cannot live, or could lose what was acknowledged."""
    keywords = url.translate_connect_args(username="user", database="dbname")
    asked = {**url.query, **keywords, **options}
    with connect(**asked, autocommit=True) as connection:
        cause = _cause(connection, accept_losses)
        if cause is None and connection.info.backend_pid != _backend(connection):
            # A pool has answered, not the server. One in session mode will do.
            with connect(**asked, autocommit=True) as other:
                first, between, second = _backend(connection), _backend(other), _backend(connection)
                if first == between or first != second:
                    cause = (
                        "a connection pool in transaction mode; connect to the server, or to a "
                        "pool in session mode"
                    )
    if cause is not None:
        raise StoreError(f"store must be a PostgreSQL database to write to, got {cause}")


def _cause(connection: Any, accept_losses: bool) -> str | None:
    """The obstacle, and advice."""
    version = connection.info.server_version // 10_000
    if version < OLDEST:
        return f"a server of version {version}; upgrade it to {OLDEST} or later"
    # A user's own time-out could be too short for any start.
    connection.execute("SET statement_timeout = '60s'")
    with connection.cursor(binary=True) as cursor:
        losing = [f"{setting.name}={setting.losing}" for setting in _OF_SERVER]
        row = cursor.execute(_FACTS, {"names": schema.NAMES, "losing": losing}).fetchone()
    encoding, is_standby, is_read_only, has_no_schema, cannot_create, taken, loses = row
    if isinstance(encoding, bytes):
        encoding = encoding.decode("ascii", "replace")
    if encoding != "UTF8":
        return (
            f"one with encoding {encoding}; make another, as by: createdb --template=template0 "
            "--encoding=UTF8 NAME"
        )
    if is_standby:
        return "a standby, which is read-only; name the primary server"
    if is_read_only:
        return (
            "one whose transactions are read-only; set default_transaction_read_only to off for "
            "this user and database"
        )
    if has_no_schema:
        return (
            "a search_path of which no schema exists or may be used; make the schema, or set "
            "search_path"
        )
    if cannot_create:
        return "a user that may not create tables; GRANT CREATE, USAGE ON SCHEMA to it"
    if schema.is_foreign(taken):
        return FOREIGN
    return _loss(loses, accept_losses)


def _loss(names: list[str], accepted: bool) -> str | None:
    """Refuse settings that risk reports; if accepted, log them."""
    for setting in _OF_SERVER:
        if setting.name in names:
            what = f"{setting.name} {setting.losing}: a crash of its machine loses {setting.loses}"
            if not accepted:
                return (
                    f"one whose server has {what}; turn it {setting.safe}, or start with "
                    "accept_losses=True"
                )
            _log.warning("the server has %s; turn it %s", what, setting.safe)
    return None


def _backend(connection: Any) -> int:
    pid: int = connection.execute("SELECT pg_backend_pid()").fetchone()[0]
    return pid
