"""A table of results as one file, .csv or .parquet, that is there as a whole or not at all."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Any

import typer

from loloha.errors import LolohaError, ParameterError

Force = Annotated[bool, typer.Option("--force", help="Replace FILE.")]


def check(out: Path, force: bool) -> None:
    """Refuse a file before the work for it is done.

    Raises
    ------
    LolohaError
        If its name says no format, or it is there and not to be replaced.
    """
    if out.suffix not in (".csv", ".parquet"):
        raise ParameterError(f"--out must end in .csv or .parquet, got {out.name!r}; rename it")
    if out.exists() and not force:
        raise LolohaError(f"--out must be new, got {str(out)!r}; replace it with --force")


def write(table: Any, out: Path) -> None:
    """Write an Arrow table in the format that the file's name says."""
    from pyarrow import parquet

    from loloha.server.frame import write_csv

    draft = out.with_name(f".{out.name}.{secrets.token_hex(4)}.part")
    try:
        (write_csv if out.suffix == ".csv" else parquet.write_table)(table, draft)
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)
