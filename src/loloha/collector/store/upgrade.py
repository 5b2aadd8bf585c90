"""Brings a database to the newest version of the tables, by ordered migrations."""

from __future__ import annotations

import alembic.command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.util import CommandError

from loloha.collector.store.database import Database
from loloha.errors import StoreError

MIGRATIONS = "loloha.collector:migrations"
_OF_0_1 = "0001"


def upgrade(database: Database) -> None:
    """Run the migrations that the database has not seen, in one transaction."""
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    with database.write() as connection:
        if MigrationContext.configure(connection).get_current_revision() == _OF_0_1:
            raise StoreError(
                "store must be of loloha 0.2 or newer, this one is of 0.1; start `loloha serve` of "
                "0.2 on it once, which brings it up to date, or begin with a new store"
            )
        config.attributes["connection"] = connection
        try:
            alembic.command.upgrade(config, "head")
        except CommandError:
            raise StoreError(
                "store must be of a version that this release knows, a newer one has changed it; "
                "use that release of loloha"
            ) from None
