"""Upgrade of a database to the newest version of the tables, by ordered migrations."""

from __future__ import annotations

from functools import cache

import alembic.command
import sqlalchemy as sql
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from loloha.collector.store.database import Database
from loloha.errors import StoreError

MIGRATIONS = "loloha.collector:migrations"
_OF_0_1 = "0001"
_ALONE = sql.text("SELECT pg_advisory_xact_lock(current_schema()::regnamespace::oid::bigint)")


def upgrade(database: Database) -> None:
    """Run the migrations that the database has not seen, in one transaction."""
    # A database that is refused, or up to date, is only read.
    with database.read() as connection:
        revision = MigrationContext.configure(connection).get_current_revision()
    if revision == _OF_0_1:
        raise StoreError(
            "store must be of loloha 0.2 or newer, this one is of 0.1; start `loloha serve` of "
            "0.2 on it once, which brings it up to date, or begin with a new store"
        )
    try:
        if revision != _scripts().get_current_head():
            _scripts().get_revision(revision or "base")
            _migrate(database)
    except CommandError:
        raise StoreError(
            "store must be of a version that this release knows, a newer one has changed it; "
            "use that release of loloha"
        ) from None
    # Not before it is known to be ours.
    database.make_private()


def _migrate(database: Database) -> None:
    config = _config()
    with database.write() as connection:
        if database.dialect == "postgresql":
            # Collectors that start at the same time migrate one after the other.
            connection.execute(_ALONE)
        config.attributes["connection"] = connection
        alembic.command.upgrade(config, "head")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    return config


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())
