"""Results as one file, such as a table, written atomically."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loloha import checks
from loloha.address import Address, Location
from loloha.cli import console
from loloha.cli.results_folder import FULL, unwritable
from loloha.errors import LolohaError, ParameterError


def check(out: Location, force: bool, formats: Sequence[str] = (".csv", ".parquet")) -> None:
    """Refuse an unusable output file before the work."""
    if out.suffix not in formats:
        raise ParameterError(
            f"--out must end in {' or '.join(formats)}, got {out.name!r}; rename it"
        )
    check_new(out, force)


def check_shown(top: int | None, level: float, out: Location | None, force: bool) -> None:
    """Refuse early what would fail at the end of a command that shows estimates."""
    if top is not None:
        checks.integer("top", top, 1, 1 << 24, "10 are easy to read")
    checks.level(level)
    if out is not None:
        check(out, force)


def check_new(out: Location, force: bool) -> None:
    """Refuse an existing file without --force."""
    if out.exists() and not force:
        raise LolohaError(f"--out must be new, got {str(out)!r}; replace it with --force")


def write(tables: Iterable[Any], out: Location, *, announce: bool = False) -> int:
    """Write Arrow tables of one schema in the format of the file's suffix; the number of rows."""
    from loloha.server.frame import written

    rows = 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        for table in tables:
            rows += table.num_rows
            yield table

    with new_file(out) as draft, draft.open("wb") as file:
        file.writelines(written(counted(), out.suffix[1:]))
    if announce:
        console.show(f"Estimates: {out} ({checks.counted(rows, 'row')})")
    return rows


@contextmanager
def new_file(out: Location, name: str = "--out") -> Iterator[Path]:
    """A draft file that replaces ``out`` on success; parent folders are made."""
    if isinstance(out, Address):
        with TemporaryDirectory(prefix="loloha-") as near:
            draft = Path(near, out.name)
            yield draft
            out.put(draft)
        return
    draft = out.with_name(f".{out.name}.{secrets.token_hex(4)}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        draft.touch()
    except OSError as error:
        raise unwritable(out, error, name) from error
    try:
        yield draft
        draft.replace(out)
    except OSError as error:
        # Other errors are about input.
        if error.errno in FULL or error.filename in (draft, str(draft)):
            raise unwritable(out, error, name) from error
        raise
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
