"""Reading columns from CSV, Parquet, frames, Arrow streams and arrays."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loloha.checks import counted
from loloha.datasets.csv import PURPOSE, TEXT, open_packed, read_csv, refuse_repeated
from loloha.datasets.dataset import DataError, extra, foreign

PARQUET = (".parquet", ".pq")
_SAVE = "save its sheet as CSV (UTF-8) in the spreadsheet program"
_WORKBOOK = ("a workbook", _SAVE)
OTHER = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"), _WORKBOOK),
    **dict.fromkeys((".json", ".ndjson", ".jsonl"), ("JSON", "convert it to CSV or Parquet")),
    **dict.fromkeys((".zip", ".7z", ".tar", ".tgz"), ("an archive", "unpack it")),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), ("an Arrow file", "write it as Parquet")),
}
"""Suffixes of unsupported files, with advice."""
MAGIC = {
    b"PK\x03\x04": ("a workbook or a zip archive", f"{_SAVE}, or unpack it"),
    b"\xd0\xcf\x11\xe0": _WORKBOOK,
    b"PAR1": ("Parquet", "name it .parquet"),
    b"\x1f\x8b": ("a gzip file", "name it .csv.gz"),
    b"BZh": ("a bzip2 file", "name it .csv.bz2"),
    b"\xff\xfe": ("UTF-16", "save it as CSV UTF-8"),
    b"\xfe\xff": ("UTF-16", "save it as CSV UTF-8"),
}
UNNAMED = re.compile(r"\s*|__index_level_.*|Unnamed: [0-9]+(_level_[0-9]+)?")
"""Columns without a name, and what pandas calls them where they must have one."""


@dataclass(frozen=True, repr=False)
class TableColumns:
    """The columns of a table."""

    table: Any
    index: tuple[str, ...]
    is_text: bool
    categorical: frozenset[str]
    certain: bool


def read_columns(source: Any) -> TableColumns:
    """All columns of a table."""
    pyarrow = extra("pyarrow", PURPOSE)
    is_text = False
    is_duckdb = "duckdb" in type(source).__module__
    if isinstance(source, (str, Path)):
        table, is_text = _file(Path(source), pyarrow)
    else:
        table = _frame(source, pyarrow)
    index, categorical = _pandas(table)
    table = table.select(
        [place for place, name in enumerate(table.column_names) if not UNNAMED.fullmatch(name)]
    )
    refuse_repeated(table.column_names)
    if not table.num_rows or not table.num_columns:
        raise DataError(
            f"source must have rows and columns with names, got {counted(table.num_rows, 'row')} "
            f"of {counted(table.num_columns, 'column')}; check that the right table was passed"
        )
    if is_duckdb:
        categorical = frozenset(table.column_names)
    return TableColumns(table, index, is_text, categorical, certain=is_duckdb)


def _file(path: Path, pyarrow: Any) -> tuple[Any, bool]:
    """Read a CSV or Parquet file, distinguished by its suffix."""
    if not path.is_file():
        raise DataError(f"source must be an existing file, got {str(path)!r}; check the path")
    name = path.name.lower()
    if name.endswith(PARQUET):
        parquet = extra("pyarrow.parquet", PURPOSE)
        with (
            foreign("source must be a Parquet file that pyarrow reads", "repair or convert it"),
            # Opened here: Arrow takes no name that is not UTF-8.
            path.open("rb") as opened,
            parquet.ParquetFile(opened) as file,
        ):
            return file.read(), False
    if name.endswith(TEXT):
        _refuse_disguised(path)
        return read_csv(lambda: open_packed(path)), True
    kind, advice = next(
        (about for suffix, about in OTHER.items() if name.endswith(suffix)),
        ("another", "write it as one, and name it .csv, .tsv or .parquet"),
    )
    raise DataError(f"source must be a CSV or Parquet file, got {kind}, {path.name!r}; {advice}")


def _refuse_disguised(path: Path) -> None:
    """Refuse a file whose first bytes contradict its suffix."""
    if path.suffix.lower() in (".gz", ".bz2"):
        return
    with path.open("rb") as file:
        head = file.read(8)
    for magic, (kind, advice) in MAGIC.items():
        if head.startswith(magic):
            raise DataError(f"source must be a CSV as its name says, got {kind}; {advice}")


def _frame(source: Any, pyarrow: Any) -> Any:
    """Turn a frame, a lazy frame, an Arrow stream or a 2-D array into an Arrow table."""
    if isinstance(source, np.ndarray) and source.ndim != 2:
        raise DataError(
            f"source must have two dimensions, users and rounds, got {source.ndim}; reshape it"
        )
    _refuse_objects(source)
    with foreign(
        "each column must hold one type, of those that Arrow has", "cast it to text first"
    ):
        if isinstance(source, np.ndarray):
            # Arrow would cut NumPy's text off at a NUL.
            cells = source.astype(object) if source.dtype.kind == "U" else source
            columns = {str(t): pyarrow.array(cells[:, t]) for t in range(cells.shape[1])}
            return pyarrow.table(columns)
        if hasattr(source, "__arrow_c_stream__"):
            return pyarrow.table(source)
        return _narwhals(source)


def _narwhals(source: Any) -> Any:
    """The table of a frame that only narwhals knows."""
    narwhals = extra("narwhals", "read frames")
    try:
        frame = narwhals.from_native(source)
    except TypeError:
        raise DataError(
            "source must be a path, a frame, an Arrow stream or a 2-D array, "
            f"got {type(source).__name__}; pass a pandas, polars or pyarrow table"
        ) from None
    if isinstance(frame, narwhals.LazyFrame):
        _refuse_kinds(frame.collect_schema().dtypes())
        frame = frame.collect("pyarrow")
    _refuse_objects(frame)
    return frame.to_arrow()


def _refuse_objects(source: Any) -> None:
    """Refuse columns of Python objects, and duplicate names."""
    if hasattr(source, "column_names") or hasattr(source, "collect"):
        return
    names = getattr(source, "columns", None)
    if names is not None and not callable(names):
        refuse_repeated([str(name) for name in names])
    _refuse_kinds(getattr(source, "dtypes", None))


def _refuse_kinds(kinds: Any) -> None:
    try:
        listed = [] if kinds is None or callable(kinds) else list(map(str, kinds))
    except TypeError:
        listed = []
    if "Object" in listed:
        raise DataError(
            "columns must hold text, numbers, booleans or dates, got one of Python objects "
            "(dtype Object); turn them into text first"
        )


def _pandas(table: Any) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names of the columns that were a named index of pandas, and of its categoricals."""
    with foreign("metadata of pandas must be readable JSON", "write the file anew"):
        stored = table.schema.pandas_metadata or {}
        levels = len(stored.get("column_indexes") or [])
        names = [name for name in stored.get("index_columns") or [] if isinstance(name, str)]
        described = {
            str(column.get("field_name")): column.get("pandas_type")
            for column in stored.get("columns", [])
        }
    if levels > 1:
        raise DataError(
            f"columns must have one level of names, got {levels}; join the levels to one name each"
        )
    present = set(table.column_names)
    return (
        tuple(n for n in names if n in present and not UNNAMED.fullmatch(n)),
        frozenset(name for name, kind in described.items() if kind == "categorical"),
    )
