"""Estimates as one table: the same columns in frames, files, exports and answers of a collector."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loloha.errors import ParameterError
from loloha.server.frame import as_kind, tables_needed

COLUMNS = (
    "campaign", "round", "start", "value", "label",
    "estimate", "standard_error", "lower", "upper", "level", "n",
)  # fmt: skip
NUMBERS = ("estimate", "standard_error", "lower", "upper")
_TEXTS, _WHOLE = ("campaign", "start", "label"), ("round", "value", "n")
ROWS = 1 << 16
"""Rows that are made at a time: a writer never holds them all."""


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
        return cls(about=about, **{name: series[name] for name in COLUMNS})

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
        named = None if self.label is None else [str(one) for one in self.label[some]]
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
