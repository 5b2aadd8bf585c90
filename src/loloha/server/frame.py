"""Results as tables: in the kind of frame an analyst works with, as Arrow, and as HTML."""

from __future__ import annotations

import html
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from loloha import checks

BACKENDS = ("pandas", "polars", "pyarrow")

Printed = tuple[str, Sequence[str], Iterable[Sequence[Any]], str]
"""A title, names of columns, rows and a line below."""
HTML_ROWS = 10
"""How many rows a notebook shows of a long result."""
# What a spreadsheet would run or swallow; more apostrophes before it, so that one can be taken off.
_FORMULA = r"^('*[=+\-@\t\r])"
_NUMBER = r"^[+-]?[0-9]+([.][0-9]+)?$"
CELL_STYLE = ' style="padding: .1em .6em"'
FRAME_STYLE = "font-variant-numeric: tabular-nums"


def to_frame(columns: Mapping[str, Any], backend: str | None = None) -> Any:
    """A table of columns of one length, in which nan and None are nulls; see `as_kind`."""
    with tables_needed():
        import pyarrow

        return as_kind(
            pyarrow.table({name: _column(cells) for name, cells in columns.items()}), backend
        )


def as_kind(table: Any, backend: str | None = None) -> Any:
    """An Arrow table as a frame of another library."""
    kind: Any = checks.choice("backend", backend or "pyarrow", BACKENDS)
    if kind == "pyarrow":
        return table
    with tables_needed():
        import narwhals

        return narwhals.from_arrow(table, backend=kind).to_native()


@contextmanager
def tables_needed() -> Iterator[None]:
    """Say what to install where a library of frames is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise checks.missing(error.name or "", "make a frame", "cli") from None


def records_to_frame(records: Sequence[Mapping[str, Any]], backend: str | None = None) -> Any:
    """A table of records that all have the names of the first; see `to_frame`."""
    names = records[0] if records else ()
    return to_frame({name: [record[name] for record in records] for name in names}, backend)


class Tabular(ABC):
    """What any library which reads Arrow takes as a table."""

    @abstractmethod
    def to_frame(self, *, backend: str | None = None) -> Any:
        """As a table."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_frame(backend="pyarrow").__arrow_c_stream__(requested_schema)


class Framed(Tabular):
    """Records, a row each."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """A dict a row."""

    def to_frame(self, *, backend: str | None = None) -> Any:
        """The records as a table."""
        return records_to_frame(self.records(), backend)


class Shown(ABC):
    """What a notebook shows as a table, and ``print`` as the same in text."""

    @abstractmethod
    def _shown(self) -> Printed:
        """What is shown."""

    def _repr_html_(self) -> str:
        return to_html(*self._shown())

    def __str__(self) -> str:
        title, columns, rows, note = self._shown()
        cells = [list(columns), *([_short(cell) for cell in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
        return "\n".join([title, "", *lines, "", note])


def write_csv(table: Any, to: Any, *, header: bool = True) -> None:
    """Write an Arrow table as CSV in which no text is a formula."""
    # A text that begins with =, +, -, @, a tab or a carriage return, after apostrophes or none,
    # gets one more apostrophe in front: a spreadsheet shows it, and runs nothing. Texts that are
    # numbers, and numbers, stay. Parquet and JSON hold texts as they are.
    import pyarrow as pa
    from pyarrow import compute, csv

    for place, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            text = table.column(place).cast(kind)
            quoted = compute.replace_substring_regex(text, pattern=_FORMULA, replacement=r"'\1")
            numbers = compute.match_substring_regex(text, pattern=_NUMBER)
            quoted = compute.if_else(numbers, text, quoted)
            table = table.set_column(place, field.name, quoted)
    csv.write_csv(table, to, csv.WriteOptions(include_header=header))


def written(tables: Iterable[Any], form: str) -> Iterator[bytes]:
    """Arrow tables of one schema as the bytes of one file: "csv" or "parquet"."""
    from pyarrow import parquet

    if form == "csv":
        for place, table in enumerate(tables):
            sink = io.BytesIO()
            write_csv(table, sink, header=not place)
            yield sink.getvalue()
        return
    sink, writer = io.BytesIO(), None
    for table in tables:
        writer = writer or parquet.ParquetWriter(sink, table.schema)
        if table.num_rows:
            writer.write_table(table)
    if writer is not None:
        writer.close()
    yield sink.getvalue()


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def _column(content: Any) -> Any:
    """An Arrow array: of the labels' own type, or text where they have several."""
    import pyarrow

    try:
        return pyarrow.array(content, from_pandas=isinstance(content, np.ndarray))
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array([str(label) for label in content])


def to_html(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], note: str) -> str:
    """A table for a notebook: a caption, a header, short numbers and a line below."""
    header = "".join(f"<th{CELL_STYLE}>{html.escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td{CELL_STYLE}>{html.escape(_short(cell))}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return (
        f'<div style="overflow-x: auto"><strong>{html.escape(title)}</strong>'
        f'<table style="{FRAME_STYLE}"><thead><tr>{header}</tr></thead><tbody>{body}</tbody>'
        f"</table><small>{html.escape(note)}</small></div>"
    )


def _short(cell: Any) -> str:
    if cell is None or (isinstance(cell, float | np.floating) and np.isnan(cell)):
        return "–"
    return f"{cell:.4g}" if isinstance(cell, float | np.floating) else str(cell)
