"""Results as tables: in the kind of frame an analyst works with, as Arrow, and as HTML."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from loloha import checks

BACKENDS = ("pandas", "polars", "pyarrow")

SERIES = (
    "campaign", "round", "start", "value", "label", "estimate", "error", "low", "high", "n",
    "level",
)  # fmt: skip
HTML_ROWS = 10
"""How many rows a notebook shows of a long result."""
# What a spreadsheet would run or swallow; more apostrophes before it, so that one can be taken off.
_FORMULA = r"^('*[=+\-@\t\r])"
_NUMBER = r"^[+-]?[0-9]+([.][0-9]+)?$"
CELL_STYLE = ' style="padding: .1em .6em"'
FRAME_STYLE = "font-variant-numeric: tabular-nums"


def to_frame(
    columns: Mapping[str, Any],
    backend: str | None = None,
    *,
    instants: str | None = None,
    categories: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Any:
    """A table of columns of one length.

    Parameters
    ----------
    columns : mapping of str to array or list
        nan and None are nulls.
    backend : {"pandas", "polars", "pyarrow"}, optional
        Kind of the frame; a pyarrow table by default, which pandas, polars and DuckDB read.
    instants : str, optional
        Name of a column of texts such as 2026-01-05T00:00:00Z, which become times in UTC.
    categories : mapping of str to sequence of str
        For columns of these categories, in order: categories of pandas, an enum of polars, a
        dictionary of Arrow.

    Raises
    ------
    ParameterError
        If the backend is unknown.
    ExtraError
        If a library is not installed.
    """
    checks.choice("backend", backend or "pyarrow", BACKENDS)
    try:
        import pyarrow

        arrays = {name: _column(content) for name, content in columns.items()}
        if instants is not None:
            arrays[instants] = arrays[instants].cast(pyarrow.timestamp("s", "UTC"))
        for name, listed in categories.items():
            places = {category: place for place, category in enumerate(listed)}
            arrays[name] = pyarrow.DictionaryArray.from_arrays(
                pyarrow.array([places[category] for category in columns[name]], pyarrow.int32()),
                pyarrow.array(listed, pyarrow.string()),
            )
        table = pyarrow.table(arrays)
        if backend in (None, "pyarrow"):
            return table
        import narwhals

        kind: Any = backend
        frame = narwhals.from_arrow(table, backend=kind)
        if kind == "polars":
            enums = [
                narwhals.col(name).cast(narwhals.Enum(listed))
                for name, listed in categories.items()
            ]
            frame = frame.with_columns(*enums)
        return frame.to_native()
    except ModuleNotFoundError as error:
        raise checks.missing(error.name or "", "make a frame", "cli") from None


def records_to_frame(records: Sequence[Mapping[str, Any]], backend: str | None = None) -> Any:
    """A table of records that all have the names of the first; see `to_frame`."""
    names = records[0] if records else ()
    return to_frame({name: [record[name] for record in records] for name in names}, backend)


class Framed(ABC):
    """Records that any library which reads Arrow takes as a table."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """A dict a row."""

    def to_frame(self, *, backend: str | None = None) -> Any:
        """The records as a table.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            Kind of the frame; pyarrow by default.
        """
        return records_to_frame(self.records(), backend)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_frame(backend="pyarrow").__arrow_c_stream__(requested_schema)


def series_to_frame(series: Mapping[str, Any], *, backend: str | None = None) -> Any:
    """The series that a collector serves, a row for each round and value.

    Parameters
    ----------
    series : mapping
        What `loloha.sender.collector.Collector.series` returns.
    backend : {"pandas", "polars", "pyarrow"}, optional
        Kind of the frame; pyarrow by default.

    Returns
    -------
    frame
        With columns campaign, round, start (when it began, in UTC), value, label, estimate, error
        (standard error), low, high (ends of the intervals), n and level. Rounds that are withheld
        are left out; so are the ends of intervals that a collector of 0.2.0 does not give.
    """
    columns: dict[str, list[Any]] = {name: [] for name in SERIES}
    unknown = [[None] * len(series["values"])] * len(series["rounds"])
    rounds = zip(
        series["rounds"], series["begins"], series["n"], series["frequencies"],
        series["standard_errors"], series.get("lower", unknown), series.get("upper", unknown),
        strict=True,
    )  # fmt: skip
    for round, start, n, frequencies, *others in rounds:
        if frequencies is None:
            continue
        cells = zip(series["values"], series["labels"], frequencies, *others, strict=True)
        for value, label, *numbers in cells:
            known = (None if one is None or np.isnan(one) else one for one in numbers)
            row = series["campaign"], round, start, value, label, *known, n, series["level"]
            for column, cell in zip(columns.values(), row, strict=True):
                column.append(cell)
    return to_frame(columns, backend, instants="start")


def write_csv(table: Any, to: Any, *, header: bool = True) -> None:
    """Write an Arrow table as CSV in which no text is a formula.

    A text that begins with =, +, -, @, a tab or a carriage return, after apostrophes or none, gets
    one more apostrophe in front: a spreadsheet shows it, and runs nothing. Texts that are numbers,
    and numbers, stay. Parquet and JSON hold texts as they are.

    Parameters
    ----------
    table : pyarrow.Table
    to : path or file
    header : bool
        Whether names of the columns come first.
    """
    import pyarrow as pa
    from pyarrow import compute, csv

    for place, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            text = table.column(place).cast(kind)
            told = compute.replace_substring_regex(text, pattern=_FORMULA, replacement=r"'\1")
            numbers = compute.match_substring_regex(text, pattern=_NUMBER)
            told = compute.if_else(numbers, text, told)
            table = table.set_column(place, field.name, told)
    csv.write_csv(table, to, csv.WriteOptions(include_header=header))


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal law."""
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
