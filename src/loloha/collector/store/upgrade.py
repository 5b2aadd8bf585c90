"""Brings a database to the newest version of the tables, by ordered migrations."""

from __future__ import annotations

import alembic.command
from alembic.config import Config

from loloha.collector.store.database import Database

MIGRATIONS = "loloha.collector:migrations"


def upgrade(database: Database) -> None:
    """Run the migrations that the database has not seen, in one transaction.

    Raises
    ------
    StoreError
        If the database fails; it is as it was then.
    """
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    with database.write() as connection:
        config.attributes["connection"] = connection
        alembic.command.upgrade(config, "head")
