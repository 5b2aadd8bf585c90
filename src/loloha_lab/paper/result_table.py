"""A table: for the page, and as CSV at full precision."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha_lab.paper.grid_results import Results

LONG = 40
"""Letters of a cell beyond which it has several lines."""


@dataclass(frozen=True)
class Table:
    """Rows below a header."""

    name: str
    title: str
    rows: Sequence[Mapping[str, Any]]
    note: str = ""

    @property
    def columns(self) -> list[str]:
        """The header."""
        return list(self.rows[0])

    def to_csv(self) -> str:
        """The table as CSV, numbers at full precision."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def cells(self) -> list[list[str]]:
        """Rows as text for a reader."""
        return [[shorten(cell) for cell in row.values()] for row in self.rows]

    def classes(self) -> list[str]:
        """Of each column: "" of numbers, "text", or "text long" where lines must be broken."""
        return [_class_of([row[name] for row in self.rows]) for name in self.columns]


def _class_of(column: Sequence[Any]) -> str:
    lengths = [len(cell) for cell in column if isinstance(cell, str)]
    if not lengths:
        return ""
    return "text long" if max(lengths) > LONG else "text"


def shorten(cell: Any) -> str:
    """A cell for a reader: four digits of a number."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return "–"
    if isinstance(cell, (float, np.floating)):
        return "∞" if math.isinf(cell) else f"{cell:.4g}"
    return str(cell)


def data_note(results: Results) -> str:
    """Which data were used, for every table and figure."""
    size = "REDUCED SIZE, not the paper's evaluation. " if results.grid.reduced else ""
    return size + "Data: " + "; ".join(facts.caption for facts in results.facts.values()) + "."
