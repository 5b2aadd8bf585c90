"""A folder of results that is there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from loloha.errors import LolohaError

FILES = (
    "estimates.parquet",
    "estimates.csv",
    "metrics.json",
    "frequencies.png",
    "frequencies.svg",
)
"""What a run leaves in its folder."""


@contextmanager
def new_folder(out: Path, names: Collection[str], *, force: bool = False) -> Iterator[Path]:
    """A draft folder beside ``out`` that takes its place if all goes well, and else vanishes."""
    out = out.resolve()
    _check(out, names, force)
    token = secrets.token_hex(4)
    draft, earlier = (out.with_name(f".{out.name}.{token}.{kind}") for kind in ("part", "old"))
    try:
        draft.mkdir(parents=True)
    except OSError as error:
        raise unwritable(out, error) from error
    try:
        yield draft
        _swap(draft, out, earlier)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(earlier, ignore_errors=True)


def _check(out: Path, names: Collection[str], force: bool) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise LolohaError(f"--out must be a folder, got the file {str(out)!r}; name another")
    present = {path.name for path in out.iterdir()}
    if present and not force:
        raise LolohaError(
            f"--out must be a new or empty folder, got {str(out)!r} with {len(present)} files; "
            "name another, or replace them with --force"
        )
    if foreign := sorted(present - set(names)):
        raise LolohaError(
            f"--out must hold nothing but results of an earlier run, got {str(out)!r} with "
            f"{len(foreign)} other files such as {foreign[0]!r}; name another"
        )


def _swap(draft: Path, out: Path, earlier: Path) -> None:
    """Put the draft in place; an earlier folder steps aside and comes back if that fails."""
    if not out.exists():
        draft.rename(out)
        return
    out.rename(earlier)
    try:
        draft.rename(out)
    except BaseException:
        earlier.rename(out)
        raise


def unwritable(out: Path, error: OSError) -> LolohaError:
    """That results cannot go there."""
    # A library's own text may name the draft.
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return LolohaError(f"--out must be writable, got {str(out)!r}: {reason}; name another place")
