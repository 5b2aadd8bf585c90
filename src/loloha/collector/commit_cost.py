"""The cost of commits, and how a large upload is cut so that no commit is long."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loloha.arrays import Ints
    from loloha.encodings import Encoding

CELLS = 4096
"""Counts in a part, which is read and written as a whole."""

# Costs are in reports, of which one takes a microsecond.
ROUND_WORK = 200
"""Cost of a round: its guard and counts are read and written."""
PART_WORK = 50
"""Cost of a part of a round's counts."""
_CELLS_A_REPORT = 256
"""Cells that a report adds to that cost as much as one more report."""


def report_work(encoding: Encoding) -> int:
    """One more report in a round."""
    return 1 + encoding.span // _CELLS_A_REPORT


def round_work(encoding: Encoding, reports: Any) -> Any:
    """A round with so many reports, beside them; also int64[n]."""
    parts = -(-encoding.cells // CELLS)
    return ROUND_WORK + PART_WORK * np.minimum(parts, reports * encoding.span)


def upload_work(encoding: Encoding, rounds: Any) -> int:
    """Cost of an upload beyond its first round; at least its reports."""
    n = len(rounds)
    if not n:
        return 0
    _, reports = np.unique(rounds, return_counts=True)
    shared = ROUND_WORK + PART_WORK
    return n * report_work(encoding) + int(round_work(encoding, reports).sum()) - shared


def by_round(rounds: Ints, rows: Ints) -> list[tuple[int, Ints]]:
    """These rows, round by round, those of a round in their order."""
    if not rows.size:
        return []
    rows = rows[np.argsort(rounds[rows], kind="stable")]
    edges = [0, *(np.flatnonzero(np.diff(rounds[rows])) + 1).tolist(), len(rows)]
    return [(int(rounds[rows[start]]), rows[start:end]) for start, end in pairwise(edges)]


def cut(encoding: Encoding, rounds: Ints, most: int) -> Iterator[tuple[Any, Ints]]:
    """Rows of an upload, as many at a time as are committed together, each with a name."""
    # A commit has at most ``most`` of work, or one round. Rows of several uploads under one name
    # are of the same rounds: together they cost little more than one.
    window = max(1, most // int(round_work(encoding, encoding.cells)))
    step = max(1, most // report_work(encoding))
    for number, rows in by_round(rounds // window, np.arange(len(rounds))):
        for start in range(0, len(rows), step):
            yield (number, start), rows[start : start + step]
