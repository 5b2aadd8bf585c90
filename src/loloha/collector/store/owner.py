"""Whether a database is loloha's, or free to become so, seen before anything is written to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from loloha.collector.store import schema
from loloha.errors import StoreError

VERSIONS = "alembic_version"
"""Table of the version of the others; programs that use the same library have one, too."""
_MARKS = {VERSIONS, "writer", "admin_key", "campaign"}
"""A store of any release has these."""
NAMES = sorted({VERSIONS, *schema.metadata.tables})
"""What a new store must find free."""
FOREIGN = "one that belongs to another program; give loloha a database (or schema) of its own"


def is_foreign(taken: Iterable[str]) -> bool:
    """Whether names that are taken, of those that matter, are not those of a store."""
    found = set(taken)
    return bool(found) and not found >= _MARKS


def must_be_ours(path: Path) -> None:
    """Refuse an SQLite file of another program, whatever its tables are called."""
    if not path.exists() or not path.stat().st_size:
        return
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            taken = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    except sqlite3.DatabaseError:
        # Opening it tells why.
        return
    if is_foreign(taken):
        raise StoreError(
            "store must be a file of loloha's own, got one that belongs to another program; "
            "nothing was touched: name another file"
        )
