"""The rows that a SQL statement gave, as counts of each round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from loloha.engines.base import RoundCounts
from loloha.engines.sql import counts_of
from loloha.errors import WireError
from loloha.protocols import Protocol

COLUMNS = ("round", "place", "n", "duplicates", "conflicts")
TOTAL = "total"
"""Column that is 1 in the one row that sums up all others, and 0 in these."""


def by_round(protocol: Protocol, table: Any, *, total: bool = False) -> Iterator[RoundCounts]:
    """Counts of each round."""
    columns = _checked(table, total)
    if any(len(column) and int(column.min()) < 0 for column in columns[2:]):
        raise WireError("n, duplicates and conflicts must not be negative; keep what was counted")
    order = np.argsort(columns[0], kind="stable")
    columns = [column[order] for column in columns]
    starts = np.unique(columns[0], return_index=True)[1]
    for part in np.split(np.arange(len(order)), starts[1:]):
        if len(part):
            here = slice(part[0], part[-1] + 1)
            round, places, n, duplicates, conflicts = (column[here] for column in columns)
            if len(np.unique(places)) < len(places):
                raise WireError(
                    "each round and place must have one row, got some twice; give the result once"
                )
            try:
                counts, reports = counts_of(protocol, places, n)
            except IndexError:
                raise WireError(
                    f"places must be those of {protocol.name}, got one outside; "
                    "give the protocol that the statement was made for"
                ) from None
            yield RoundCounts(
                int(round[0]), counts, reports, int(duplicates.sum()), int(conflicts.sum())
            )


def _checked(table: Any, total: bool) -> list[Any]:
    """The columns without the total, to which they must add up."""
    columns = [_integers(table, name) for name in COLUMNS]
    if not total:
        return columns
    is_total = _integers(table, TOTAL) != 0
    rows = [column[~is_total] for column in columns]
    sums = [[int(column.sum()) for column in part[2:]] for part in (
        rows, [column[is_total] for column in columns])]  # fmt: skip
    if np.count_nonzero(is_total) != 1 or sums[0] != sums[1]:
        raise WireError(
            f"result must hold its one row of totals and all that it sums up, got "
            f"{np.count_nonzero(is_total)} such rows, and others that add up to {sums[0]} where "
            f"{sums[1]} are due; export the whole result once"
        )
    return rows


def _integers(table: Any, name: str) -> Any:
    import pyarrow as pa

    places = table.schema.get_all_field_indices(name)
    column = table.column(places[0]) if len(places) == 1 else None
    if column is None or not pa.types.is_integer(column.type) or column.null_count:
        raise WireError(f"column {name!r} must hold whole numbers; keep the statement's columns")
    return column.cast(pa.int64()).to_numpy()
