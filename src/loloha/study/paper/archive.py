"""Results on disk, one Parquet file a cell: complete or absent, and known to be undamaged."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

Row = dict[str, Any]

FOLDER, DRAFT = "cells", ".draft"
CELL = pyarrow.schema(
    [
        ("workload", pyarrow.string()),
        ("contender", pyarrow.string()),
        ("calibration", pyarrow.string()),
        ("eps_inf", pyarrow.float64()),
        ("alpha", pyarrow.float64()),
        ("run", pyarrow.int64()),
        ("g", pyarrow.int64()),
        ("hash", pyarrow.string()),
        ("n", pyarrow.int64()),
        ("bins", pyarrow.int64()),
        ("rounds", pyarrow.int64()),
        ("mse_unbiased", pyarrow.float64()),
        ("mse_clipped", pyarrow.float64()),
        ("mse_last_truth", pyarrow.float64()),
        ("mse_top", pyarrow.float64()),
        ("mean_estimate", pyarrow.float64()),
        ("largest_error", pyarrow.float64()),
        ("rounds_beyond", pyarrow.int64()),
        ("eps_avg", pyarrow.float64()),
        ("eps_max", pyarrow.float64()),
        ("exposed", pyarrow.float64()),
        ("seconds", pyarrow.float64()),
        ("numpy", pyarrow.string()),
    ]
)
"""One row a cell; what each column means is told in `loloha.study.paper.cell.measure`."""
ATTACK = pyarrow.schema(
    [
        ("workload", pyarrow.string()),
        ("contender", pyarrow.string()),
        ("calibration", pyarrow.string()),
        ("eps_inf", pyarrow.float64()),
        ("alpha", pyarrow.float64()),
        ("users", pyarrow.int64()),
        ("exposed", pyarrow.int64()),
        ("changes", pyarrow.int64()),
        ("seen", pyarrow.int64()),
        ("stays", pyarrow.int64()),
        ("alarms", pyarrow.int64()),
    ]
)
"""One row an attack; the counts are those of `loloha.study.attacks.Detection`."""


def write(path: Path, row: Row, identity: str, schema: Any = CELL) -> None:
    """Write one result to a temporary name, then rename: a reader meets all of it or nothing.

    Parameters
    ----------
    path : Path
    row : dict
        A value for each column of the schema.
    identity : str
        `loloha.study.paper.grid.Cell.identity`.
    schema : pyarrow.Schema
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    seal = {"identity": identity, "checksum": _checksum(row, schema)}
    table = pyarrow.Table.from_pylist([row], schema=schema.with_metadata(seal))
    draft = path.with_name(f"{path.name}.{os.getpid()}{DRAFT}")
    pyarrow.parquet.write_table(table, draft, compression="none", use_dictionary=False)
    draft.replace(path)


def read(path: Path, identity: str, schema: Any = CELL) -> Row | None:
    """The result that `write` left.

    Returns
    -------
    dict or None
        None if there is none, it is damaged, or it is that of other data, rules or seeds.
    """
    try:
        # In memory first: a file cut short must not become a crash of a memory map.
        source = pyarrow.BufferReader(path.read_bytes())
        table = pyarrow.parquet.ParquetFile(source).read(use_threads=False)
    except (OSError, pyarrow.ArrowException):
        return None
    seal = table.schema.metadata or {}
    if table.num_rows != 1 or seal.get(b"identity") != identity.encode():
        return None
    if not table.schema.equals(schema):
        return None
    row: Row = table.to_pylist()[0]
    return row if seal.get(b"checksum") == _checksum(row, schema).encode() else None


def sweep(folder: Path) -> int:
    """Remove what killed processes left half-written; how many files that were."""
    drafts = [path for path in folder.rglob(f"*{DRAFT}") if path.is_file()]
    for draft in drafts:
        draft.unlink(missing_ok=True)
    return len(drafts)


def gather(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write all results as one Parquet file, for whoever goes on with them."""
    table = pyarrow.Table.from_pylist(list(rows), schema=CELL)
    draft = path.with_name(path.name + DRAFT)
    pyarrow.parquet.write_table(table, draft)
    draft.replace(path)


def _checksum(row: Mapping[str, Any], schema: Any) -> str:
    ordered = [row[name] for name in schema.names]
    return hashlib.sha256(json.dumps(ordered).encode()).hexdigest()
