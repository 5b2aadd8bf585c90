"""A folder of results, written atomically."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from loloha.address import Address, Location
from loloha.checks import counted
from loloha.errors import LolohaError

FILES = ("estimates.parquet", "estimates.csv", "metrics.json", "frequencies.png", "frequencies.svg")
"""Files of a run in its folder."""
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors of a full disk, for which a message gives advice."""


@contextmanager
def new_folder(
    out: Location, names: Collection[str], *, force: bool = False, last: str = ""
) -> Iterator[Path]:
    """A draft folder that replaces ``out`` on success and is deleted on failure."""
    # Object stores cannot rename folders: readers wait for the file ``last``.
    if isinstance(out, Address):
        check_folder(out, names, force)
        with TemporaryDirectory(prefix="loloha-") as near:
            yield Path(near)
            _send(Path(near), out, last)
        return
    out = out.resolve()
    check_folder(out, names, force)
    token = secrets.token_hex(4)
    draft, earlier = (out.with_name(f".{out.name}.{token}.{kind}") for kind in ("part", "old"))
    try:
        draft.mkdir(parents=True)
    except OSError as error:
        raise unwritable(out, error) from error
    try:
        with writing_to(out):
            yield draft
            _swap(draft, out, earlier)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(earlier, ignore_errors=True)


def check_folder(out: Location, names: Collection[str], force: bool) -> None:
    """Refuse a folder that is not new or empty, or to be replaced, with results alone in it."""
    if not out.exists():
        return
    if not out.is_dir():
        raise LolohaError(f"--out must be a folder, got the file {str(out)!r}; name another")
    present = {path.name for path in out.iterdir()}
    if present and not force:
        raise LolohaError(
            f"--out must be a new or empty folder, got {str(out)!r} with "
            f"{counted(len(present), 'file')}; "
            "name another, or replace them with --force"
        )
    if foreign := sorted(present - set(names)):
        raise LolohaError(
            f"--out must hold nothing but results of an earlier run, got {str(out)!r} with "
            f"{counted(len(foreign), 'other file')} such as {foreign[0]!r}; name another"
        )


def _send(draft: Path, out: Address, last: str) -> None:
    """Upload the files of a draft; an incomplete folder lacks its last file."""
    (out / last).unlink(missing_ok=True)
    files = sorted(draft.iterdir(), key=lambda file: (file.name == last, file.name))
    for earlier in {path.name for path in out.iterdir()} - {file.name for file in files}:
        (out / earlier).unlink(missing_ok=True)
    for file in files:
        (out / file.name).put(file)


def _swap(draft: Path, out: Path, earlier: Path) -> None:
    """Move the draft into place; an earlier folder is moved aside and restored on failure."""
    if not out.exists():
        draft.rename(out)
        return
    out.rename(earlier)
    try:
        draft.rename(out)
    except BaseException:
        earlier.rename(out)
        raise


def unwritable(out: Location, error: OSError, name: str = "--out") -> LolohaError:
    """The error that results cannot be written there."""
    # The library's message may name the draft.
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    advice = "free some, or name another place" if error.errno in FULL else "name another place"
    return LolohaError(f"{name} must be writable, got {str(out)!r}: {reason}; {advice}")


@contextmanager
def writing_to(out: Location) -> Iterator[None]:
    """Name the place whose disk is full; other errors may be about input."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise unwritable(out, error) from error
        raise
