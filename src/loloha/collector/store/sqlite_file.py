"""Checks of an SQLite file before a store is opened there, and of the files beside it.

A write-ahead log does not name its database: beside a restored backup SQLite would write its pages
over others. So each transaction of ours counts up a number on the first page: that of the file must
be one of those in its log, or the one before them.
"""

from __future__ import annotations

import secrets
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import quote

from loloha.collector.store import schema
from loloha.errors import StoreError

MODULUS = 1 << 31
"""Numbers go from 1 to below it, and on at 1; 0 is a store of 0.2.0, of which nothing is known."""
_FILE_MAGIC = b"SQLite format 3\0"
_LOG_MAGIC = (0x377F0682, 0x377F0683)
_LOG_HEADER, _FRAME_HEADER, _PAGE_HEADER = 32, 24, 100
_TRIES = 3


def following(number: int) -> int:
    """The number of the next transaction; any after 0."""
    return number % (MODULUS - 1) + 1 if number else 1 + secrets.randbelow(MODULUS - 1)


def must_suit(path: Path) -> None:
    """Refuse a file that is no store, or not a whole one, or beside which others' logs lie."""
    _must_be_database(path)
    _must_belong(path)
    _must_be_ours(path)
    _must_be_whole(path)


def _must_be_database(path: Path) -> None:
    """Refuse what is no SQLite file, before SQLite or anybody else opens it: it may be a pipe."""
    if not path.exists():
        return
    if not path.is_file():
        raise _other("something other than a file")
    # Opening it tells why it cannot be read.
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(_FILE_MAGIC)) not in (b"", _FILE_MAGIC):
            raise _other("a file that is not an SQLite database")


def _must_be_ours(path: Path) -> None:
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
    if schema.is_foreign(taken):
        raise _other("one that belongs to another program")


def _other(what: str) -> StoreError:
    return StoreError(
        f"store must be a file of loloha's own, got {what}; nothing was touched: name another file"
    )


def _must_belong(path: Path) -> None:
    """Refuse a store with files beside it that were left by another state of it."""
    for attempt in range(_TRIES):
        error = _error(path)
        if error is None:
            return
        if attempt < _TRIES - 1:
            # A collector that still runs may have written between two looks.
            sleep(0.05)
    raise StoreError(error)


def _must_be_whole(path: Path) -> None:
    """Refuse a damaged store: looks at its newest state for 2 s at most, and writes nothing."""
    if not path.exists() or not path.stat().st_size:
        return
    end = monotonic() + 2.0
    with suppress(sqlite3.OperationalError):
        address = f"file:{quote(str(path.resolve()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.set_progress_handler(lambda: monotonic() > end, 10_000)
            try:
                damaged = connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError) or "malformed" not in str(error):
                    # Time is over, or opening it tells why.
                    return
                damaged = True
        if damaged:
            raise StoreError(
                "store must be whole, got a damaged file, as of a copy made while a collector ran, "
                "or beside a -wal that is not its own; restore a backup, with no -wal beside it"
            )


def _error(path: Path) -> str | None:
    try:
        # The log first: the file can only be ahead of what is read of it.
        numbers = list(_numbers(path.with_name(path.name + "-wal")))
        with path.open("rb") as file:
            header = file.read(_PAGE_HEADER)
    except OSError:
        # Opening it tells why.
        return None
    if len(header) < _PAGE_HEADER:
        return _advice("-wal") if numbers else None
    journal = path.with_name(path.name + "-journal")
    with suppress(OSError):
        if header[18:20] == b"\2\2" and journal.stat().st_size:
            # One that keeps a log has no journal.
            return _advice("-journal")
    mine = _number(header)
    if not (mine and numbers and all(numbers)):
        return None
    first, last = numbers[0], numbers[-1]
    ahead = (last - first) % (MODULUS - 1)
    return None if (mine - first + 1) % (MODULUS - 1) <= ahead + 1 else _advice("-wal")


def _numbers(log: Path) -> Iterator[int]:
    """The transaction numbers of a write-ahead log, in order."""
    try:
        file = log.open("rb")
    except FileNotFoundError:
        return
    with file:
        header = file.read(_LOG_HEADER)
        if len(header) < _LOG_HEADER or struct.unpack(">I", header[:4])[0] not in _LOG_MAGIC:
            return
        size = struct.unpack(">I", header[8:12])[0]
        while len(frame := file.read(_FRAME_HEADER + _PAGE_HEADER)) == _FRAME_HEADER + _PAGE_HEADER:
            # Frames with another salt are left over.
            if frame[8:16] != header[16:24]:
                return
            if frame[:4] == b"\0\0\0\1":
                yield _number(frame[_FRAME_HEADER:])
            file.seek(size - _PAGE_HEADER, 1)


def _number(page: bytes) -> int:
    return int(struct.unpack(">i", page[60:64])[0])


def _advice(suffix: str) -> str:
    return (
        f"store must be alone or with its own side files, got a file {suffix} of another state of "
        "it, as beside a restored backup; nothing was touched: move the files that end in -wal, "
        "-shm and -journal away, and start again"
    )
