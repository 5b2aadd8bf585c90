"""Whether a PostgreSQL database can hold a store, asked before anything is written to it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from loloha.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_log = logging.getLogger(__name__)

OLDEST = 12
_FACTS = """
SELECT current_setting('server_encoding'), pg_is_in_recovery(),
    current_setting('transaction_read_only') = 'on', current_schema() IS NULL,
    current_setting('fsync') = 'off',
    to_regclass('alembic_version') IS NULL
        AND NOT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
"""


def must_suit(url: URL, options: dict[str, Any]) -> None:
    """Refuse a database in which a store cannot live."""
    import psycopg

    keywords = url.translate_connect_args(username="user", database="dbname")
    asked = {**url.query, **keywords, **options}
    with psycopg.connect(**asked, autocommit=True) as one:
        cause = _cause(one)
        if cause is None and one.info.backend_pid != _backend(one):
            # Not the server itself has answered. Whoever keeps sessions apart is as good.
            with psycopg.connect(**asked, autocommit=True) as other:
                first, between, second = _backend(one), _backend(other), _backend(one)
                if first == between or first != second:
                    cause = (
                        "a connection pool in transaction mode; connect to the server, or to a "
                        "pool in session mode"
                    )
    if cause is not None:
        raise StoreError(f"store must be a PostgreSQL database to write to, got {cause}")


def _cause(connection: Any) -> str | None:
    """What is in the way, and what to do about it."""
    version = connection.info.server_version // 10_000
    if version < OLDEST:
        return f"a server of version {version}; upgrade it to {OLDEST} or later"
    # A user's own could be too short for any start.
    connection.execute("SET statement_timeout = '60s'")
    with connection.cursor(binary=True) as cursor:
        row = cursor.execute(_FACTS).fetchone()
    encoding, is_standby, is_read_only, has_no_schema, loses, cannot_create = row
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
    if loses:
        _log.warning(
            "the server's fsync is off: a crash of its machine loses reports that were "
            "acknowledged, and can damage the store; turn it on"
        )
    if has_no_schema:
        return (
            "a search_path of which no schema exists or may be used; make the schema, or set "
            "search_path"
        )
    if cannot_create:
        return "a user that may not create tables; GRANT CREATE, USAGE ON SCHEMA to it"
    return None


def _backend(connection: Any) -> int:
    pid: int = connection.execute("SELECT pg_backend_pid()").fetchone()[0]
    return pid
