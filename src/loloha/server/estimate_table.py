"""Estimates as one table: the same columns in frames, files, exports and answers of a collector."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from loloha.address import at
from loloha.errors import ParameterError
from loloha.server.frame import as_kind, tables_needed

COLUMNS = (
    "campaign", "round", "start", "value", "label",
    "estimate", "standard_error", "lower", "upper", "level", "n",
)  # fmt: skip
NUMBERS = ("estimate", "standard_error", "lower", "upper")
WINDOW = tuple(f"window_{name}" for name in NUMBERS)
"""Columns of the mean of the last rounds, with panels."""
_TEXTS, _WHOLE = ("campaign", "start", "label"), ("round", "value", "n")
ROWS = 1 << 16
"""Rows that are made at a time: a writer never holds them all."""


def round_columns(numbers: Mapping[str, Any], bins: int) -> dict[str, Any]:
    """Further columns of a table: in all rows of a round its number, None where it has none."""
    return {
        name: [None if cell is None else np.full(bins, cell) for cell in np.atleast_1d(rows)]
        for name, rows in numbers.items()
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class EstimateTable:
    """Estimates of some rounds and values: a row for each round and value, in one set of columns.

    Columns that say nothing are null, so that any two tables concatenate and join.

    Attributes
    ----------
    estimate, standard_error, lower, upper : sequence of float64[values], one for each round
        Unbiased frequencies, their standard errors, and the ends of intervals; NaN or None where
        nothing is known. Of a suppressed round all four are None: it has no rows.
    level : float
        Of the intervals.
    n : sequence of int
        Reports of each round.
    value : sequence of int
        Indices of the values.
    label : sequence, optional
        What each value stands for; text in the rows.
    round : sequence of int, optional
        Number of each round; None of one that is a mean of several.
    start : sequence of str, optional
        When each round began (UTC, ISO 8601), or what the data call it.
    campaign : str, optional
        Its fingerprint.
    more : mapping of str to arrays
        Further columns, shaped as the estimates: truth, projected, bound.
    about : mapping
        What Arrow and Parquet keep beside the rows, as JSON under "loloha".
    """

    estimate: Any
    standard_error: Any
    lower: Any
    upper: Any
    level: float
    n: Any
    value: Any
    label: Sequence[Any] | None = None
    round: Sequence[int | None] | None = None
    start: Sequence[str] | None = None
    campaign: str | None = None
    more: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_series(cls, series: Mapping[str, Any]) -> EstimateTable:
        """The table of a series, as `loloha.sender.collector.Collector.series` returns it."""
        names = {*COLUMNS}
        if not names <= series.keys():
            raise ParameterError(
                f"series must have {', '.join(COLUMNS)}, it lacks "
                f"{', '.join(sorted(names - series.keys()))}; update a collector of loloha 0.2"
            )
        about = {"parameters": series.get("parameters")}
        more = {name: series[name] for name in WINDOW if name in series}
        more |= round_columns(series.get("numbers") or {}, len(series["value"]))
        return cls(about=about, more=more, **{name: series[name] for name in COLUMNS})

    @classmethod
    def joined(cls, tables: Sequence[EstimateTable]) -> EstimateTable:
        """One table of tables of the same values, whose rounds follow each other."""
        first = tables[0]
        if any([*table.value] != [*first.value] for table in tables):
            raise ParameterError("tables must have the same values, got others; ask for fewer")
        names = ("round", "start", "n", *NUMBERS)
        rows: dict[str, Any] = {
            name: [row for table in tables for row in getattr(table, name)] for name in names
        }
        shared = set[str].intersection(*({*table.more} for table in tables))
        more = {name: [row for table in tables for row in table.more[name]] for name in shared}
        return replace(first, more=more, **rows)

    @classmethod
    def read(cls, path: Path) -> EstimateTable:
        """The table in a .csv or .parquet file; see `from_rows`."""
        with tables_needed():
            import pyarrow
            from pyarrow import ArrowInvalid, csv, parquet

            try:
                if path.suffix == ".csv":
                    # A label 01 is no number, and a start no time.
                    texts = dict.fromkeys(_TEXTS, pyarrow.string())
                    convert = csv.ConvertOptions(
                        column_types=texts, null_values=["", "nan"], strings_can_be_null=True,
                        quoted_strings_can_be_null=False,
                    )  # fmt: skip
                    rows = csv.read_csv(at(path)[0], convert_options=convert)
                else:
                    rows = parquet.read_table(at(path)[0])
            except (ArrowInvalid, OSError) as error:
                reason = getattr(error, "strerror", None) or "it is no table"
                raise ParameterError(
                    f"estimates must be a .csv or .parquet file, got {str(path)!r}: {reason}; "
                    "write it by `loloha export` or `loloha estimate`"
                ) from None
        return cls.from_rows(rows)

    @classmethod
    def from_rows(cls, rows: Any) -> EstimateTable:
        """The table of rows as `to_frame` makes them, an Arrow table in any order."""
        if lacking := sorted({*COLUMNS} - {*rows.column_names}):
            raise ParameterError(
                f"estimates must have {', '.join(COLUMNS)}, they lack {', '.join(lacking)}; "
                "write them by `loloha export` or `loloha estimate`"
            )
        if "unbiased" in rows.column_names:
            raise ParameterError(
                "estimates must be of each round by itself, got a series; pass the estimates that "
                "it was made from"
            )
        if not len(rows) or rows["round"].null_count or len(rows["campaign"].unique()) > 1:
            raise ParameterError(
                "estimates must be of single rounds of one campaign, got others; leave out means"
            )
        rows = rows.sort_by([("round", "ascending"), ("value", "ascending")])
        rounds, values = (np.unique(rows[name].to_numpy()) for name in ("round", "value"))
        shape = len(rounds), len(values)
        if len(rows) != shape[0] * shape[1] or not (
            (rows["value"].to_numpy().reshape(shape) == values).all()
            and (rows["round"].to_numpy().reshape(shape) == rounds[:, None]).all()
        ):
            raise ParameterError(
                "estimates must have every value once in each round, they do not; write them "
                "whole, of all values"
            )
        more, numbers = (
            {
                name: rows[name].cast("double").to_numpy().astype(float).reshape(shape)
                for name in names
                if name in rows.column_names
            }
            for names in (("mean",), NUMBERS)
        )
        first, each = rows.slice(0, shape[1]), rows.take(np.arange(shape[0]) * shape[1])
        label, start = first["label"], each["start"]
        return cls(
            campaign=rows["campaign"][0].as_py(),
            round=rounds.tolist(),
            start=None if start.null_count else [*map(str, start.to_pylist())],
            value=values,
            label=None if label.null_count else [*map(str, label.to_pylist())],
            level=rows["level"][0].as_py(),
            n=each["n"].to_pylist(),
            about=json.loads((rows.schema.metadata or {}).get(b"loloha", b"{}")),
            more=more,
            **numbers,
        )

    def with_numbers(self, summaries: Mapping[str, Mapping[str, Any]]) -> EstimateTable:
        """With mean and quantiles as further columns: `Numeric.summaries`, by prefix."""
        columns = {
            f"{prefix}{name}": rows for prefix, of in summaries.items() for name, rows in of.items()
        }
        return replace(self, more=self.more | round_columns(columns, len(self.value)))

    def to_frame(self, backend: str | None = None) -> Any:
        """The rows, round by round."""
        with tables_needed():
            import pyarrow

            return as_kind(pyarrow.concat_tables(self.pieces()), backend)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_frame().__arrow_c_stream__(requested_schema)

    def pieces(self) -> Iterator[Any]:
        """Arrow tables of some thousand rows each; the first has none."""
        yield self._piece([], slice(0))
        shown = [place for place, numbers in enumerate(self.estimate) if numbers is not None]
        width = len(self.value)
        rounds = max(1, ROWS // max(1, width))
        for first in range(0, len(shown), rounds):
            for left in range(0, width, ROWS):
                yield self._piece(shown[first : first + rounds], slice(left, left + ROWS))

    def _piece(self, rounds: list[int], some: slice) -> Any:
        """Rows of these rounds and some of the values."""
        import pyarrow as pa

        values = np.asarray(self.value[some], dtype=np.int64)
        size = len(rounds) * len(values)
        each, over = np.repeat(rounds, len(values)), np.tile(np.arange(len(values)), len(rounds))
        of_round = {"round": self.round, "start": self.start, "n": self.n}
        named = None if self.label is None else [str(label) for label in self.label[some]]
        of_value = {"value": values, "label": named}
        of_table = {"campaign": self.campaign, "level": self.level}

        def column(name: str) -> Any:
            kind = pa.string() if name in _TEXTS else pa.int64() if name in _WHOLE else pa.float64()
            if name in of_table:
                return pa.repeat(pa.scalar(of_table[name], kind), size)
            content, places = (of_value[name], over) if name in of_value else (of_round[name], each)
            if content is None:
                return pa.nulls(size, kind)
            return pa.array(content, kind).take(pa.array(places, pa.int64()))

        def numbers(rows: Sequence[Any]) -> Any:
            cells = [np.asarray(rows[place][some], dtype=np.float64) for place in rounds]
            return pa.array(np.concatenate([*cells, np.empty(0)]), from_pandas=True)

        columns = {
            name: numbers(getattr(self, name)) if name in NUMBERS else column(name)
            for name in COLUMNS
        }
        columns |= {name: numbers(rows) for name, rows in self.more.items()}
        about = {"loloha": json.dumps(self.about, sort_keys=True)} if self.about else None
        return pa.table(columns).replace_schema_metadata(about)
