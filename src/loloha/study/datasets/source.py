"""Reading columns out of whatever a user has: CSV, Parquet, a frame, an Arrow stream, an array."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from loloha.study.datasets.dataset import DataError, extra

PARQUET = (".parquet", ".pq")
TEXT = tuple(kind + packed for kind in (".csv", ".tsv", ".txt") for packed in ("", ".gz", ".bz2"))
PURPOSE = "read tables"
LONGEST_HEADER = 1 << 20


def read_columns(source: Any) -> tuple[Any, bool]:
    """All columns of a table, and whether its cells are text without a type.

    Parameters
    ----------
    source : path, frame, lazy frame, Arrow stream or 2-D array

    Returns
    -------
    pyarrow.Table
        At least one row; columns have distinct names, those without a name are left out.
    bool
        True for CSV, whose cells are read as text throughout.

    Raises
    ------
    DataError
        If the table cannot be read, is empty, or repeats a column name.
    ExtraError
        If pyarrow, or narwhals where a frame needs it, is not installed.
    """
    pyarrow = extra("pyarrow", PURPOSE)
    if isinstance(source, (str, Path)):
        table, is_text = _file(Path(source), pyarrow)
    else:
        table, is_text = _frame(source, pyarrow), False
    table = _without_row_numbers(table)
    _refuse_repeated(table.column_names)
    if not table.num_rows or not table.num_columns:
        raise DataError(
            f"source must have rows and columns with names, got {table.num_rows} rows of "
            f"{table.num_columns} columns; check that the right table was passed"
        )
    return table, is_text


def read_csv(opener: Callable[[], IO[bytes]], types: dict[str, Any] | None = None) -> Any:
    """Columns of a CSV file, as an Arrow table.

    Parameters
    ----------
    opener : callable
        Opens the file for reading bytes; called twice. A header line comes first; the delimiter
        is comma, semicolon or tab, whichever the header has most of.
    types : dict of str to pyarrow type, optional
        The only columns to read, with their types; by default all, as text.

    Raises
    ------
    DataError
        If the file is no UTF-8 text, a row has too few or too many fields, or a cell is not of the
        type asked for. The message shows no cell.
    """
    pyarrow, reader = extra("pyarrow", PURPOSE), extra("pyarrow.csv", PURPOSE)
    names, delimiter = read_header(opener)
    if types is None:
        named = [name for name in names if name.strip()]
        _refuse_repeated(named)
        types = dict.fromkeys(named, pyarrow.string())
    ragged: list[int] = []

    def skip(row: Any) -> str:
        ragged.append(row.actual_columns)
        return "skip"

    try:
        with opener() as stream:
            table = reader.read_csv(
                stream,
                parse_options=reader.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip
                ),
                convert_options=reader.ConvertOptions(
                    include_columns=list(types), column_types=types
                ),
            )
    except (pyarrow.ArrowException, OSError, EOFError):
        # Arrow quotes the cell it stumbled over, so its own message must not be passed on.
        raise DataError(
            "source must be a CSV in UTF-8 with each cell of its column's type, got a file that "
            "is not; repair it"
        ) from None
    if ragged:
        raise DataError(
            f"each row must have {len(names)} fields like the header, got {len(ragged)} rows that "
            "have not; quote cells that hold the delimiter"
        )
    return table


def read_header(opener: Callable[[], IO[bytes]]) -> tuple[list[str], str]:
    """Column names and delimiter of a CSV file."""
    try:
        with opener() as stream:
            text = stream.read(LONGEST_HEADER).partition(b"\n")[0].decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError):
        raise DataError(
            "source must be a CSV in UTF-8, compressed as its suffix says, got other bytes; "
            "convert the file"
        ) from None
    delimiter = max(",;\t", key=text.count)
    names = next(csv.reader(io.StringIO(text), delimiter=delimiter), [])
    if not any(name.strip() for name in names):
        raise DataError("source must have a header line, got an empty one; name the columns")
    return names, delimiter


def _file(path: Path, pyarrow: Any) -> tuple[Any, bool]:
    """Read a CSV or Parquet file, told apart by its suffix."""
    if not path.is_file():
        raise DataError(f"source must be an existing file, got {str(path)!r}; check the path")
    name = path.name.lower()
    if name.endswith(PARQUET):
        parquet = extra("pyarrow.parquet", PURPOSE)
        try:
            return parquet.ParquetFile(path).read(), False
        except (pyarrow.ArrowException, OSError):
            raise DataError(
                f"source must be a Parquet file, got {path.name!r} which is not one; repair it"
            ) from None
    if name.endswith(TEXT):
        return read_csv(lambda: _open(path, pyarrow)), True
    raise DataError(
        f"source must be a CSV or Parquet file, got {path.name!r}; name it .csv, .tsv or .parquet"
    )


def _open(path: Path, pyarrow: Any) -> IO[bytes]:
    """Open a file that may be compressed, as its suffix says."""
    packed: IO[bytes] = pyarrow.input_stream(str(path))
    return packed


def _frame(source: Any, pyarrow: Any) -> Any:
    """Turn a frame, a lazy frame, an Arrow stream or a 2-D array into an Arrow table."""
    try:
        if isinstance(source, np.ndarray):
            return _array(source, pyarrow)
        if hasattr(source, "__arrow_c_stream__"):
            return pyarrow.table(source)
        narwhals = extra("narwhals", "read frames")
        frame = narwhals.from_native(source)
        if isinstance(frame, narwhals.LazyFrame):
            frame = frame.collect("pyarrow")
        return frame.to_arrow()
    except pyarrow.ArrowException:
        raise DataError(
            "each column must hold one type, got a column that mixes types; cast it to text first"
        ) from None
    except TypeError:
        raise DataError(
            "source must be a path, a frame, an Arrow stream or a 2-D array, "
            f"got {type(source).__name__}; pass a pandas, polars or pyarrow table"
        ) from None


def _array(source: np.ndarray[Any, Any], pyarrow: Any) -> Any:
    """Make a column of each round of a users x rounds array."""
    if source.ndim != 2:
        raise DataError(
            f"source must have two dimensions, users and rounds, got {source.ndim}; reshape it"
        )
    return pyarrow.table({str(t): pyarrow.array(source[:, t]) for t in range(source.shape[1])})


def _without_row_numbers(table: Any) -> Any:
    """Drop columns without a name, and an index of pandas that has none."""
    stored = (table.schema.pandas_metadata or {}).get("index_columns", [])
    unnamed = {name for name in stored if str(name).startswith("__index_level_")}
    places = [
        place
        for place, name in enumerate(table.column_names)
        if name.strip() and name not in unnamed
    ]
    return table.select(places)


def _refuse_repeated(names: Sequence[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"column names must differ, got {repeated} more than once; rename them")
