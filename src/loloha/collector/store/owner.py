"""Whether a database is loloha's, or free to become so, seen before anything is written to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from loloha.collector.store import schema
from loloha.errors import StoreError

_MAGIC = b"SQLite format 3\0"
VERSIONS = "alembic_version"
"""Table of the version of the others; programs that use the same library have one, too."""
_MARKS = {VERSIONS, "writer", "admin_key", "campaign"}
"""A store of any release has these."""
NAMES = sorted({VERSIONS, *schema.metadata.tables})
"""What a new store must find free."""
FOREIGN = "one that belongs to another program; give loloha a database (or schema) of its own"


def is_foreign(taken: Iterable[str]) -> bool:
    """Whether names that are taken, of those that matter, are not those of a store."""
    names = set(taken)
    return bool(names) and not names >= _MARKS


def must_be_database(path: Path) -> None:
    """Refuse what is no SQLite file, before SQLite or anybody else opens it: it may be a pipe."""
    if not path.exists():
        return
    if not path.is_file():
        raise _other("something that is no file")
    # Opening it tells why it cannot be read.
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(_MAGIC)) not in (b"", _MAGIC):
            raise _other("a file that is no SQLite database")


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
        raise _other("one that belongs to another program")


def _other(what: str) -> StoreError:
    return StoreError(
        f"store must be a file of loloha's own, got {what}; nothing was touched: name another file"
    )
