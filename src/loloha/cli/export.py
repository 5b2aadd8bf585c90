"""``loloha export``: all estimates that a collector shows of a campaign, as one table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loloha.checks import counted
from loloha.cli import console, table_file
from loloha.errors import LolohaError

if TYPE_CHECKING:
    from loloha.sender.collector import Collector
    from loloha.server.estimate_table import EstimateTable

NEWEST = 1000


def export(
    address: str,
    *,
    out: Path,
    first: int = 0,
    level: float = 0.95,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Write a row for each round and value: dates, labels, estimates, errors and intervals.

    --out is a .csv or .parquet file. Suppressed rounds are left out.
    """
    table_file.check(out, force)
    with console.working("reading estimates"):
        tables = tables_of(address, first, level)
    suppressed = sum(numbers is None for table in tables for numbers in table.estimate)
    pieces = (piece for table in tables for piece in table.pieces())
    rows = table_file.write(pieces, out, announce=not as_json)
    if as_json:
        console.show_json({"out": str(out), "rows": rows, "suppressed_rounds": suppressed})
    if suppressed:
        console.say(
            f"left out, since too few reports came to be shown: {counted(suppressed, 'round')}"
        )


def tables_of(address: str, first: int, level: float) -> list[EstimateTable]:
    """A campaign's estimates from a round on, in tables of some rounds each."""
    from loloha.sender.collector import Collector
    from loloha.server.estimate_table import EstimateTable

    with Collector(address) as collector:
        parts = list(_series(collector, first, level))
    if not parts:
        raise LolohaError("collector must show estimates, it shows none of these rounds; wait")
    return [EstimateTable.from_series(part) for part in reversed(parts)]


def _series(collector: Collector, first: int, level: float) -> Iterator[dict[str, Any]]:
    """Parts of the series, newest rounds first: a collector shows limited numbers of rounds."""
    last: dict[str, int] = {}
    while page := collector.rounds(first=first, newest=NEWEST, **last):
        wanted = sorted(row["round"] for row in page if row["n"] > 0 and row["round"] >= first)
        while wanted:
            part = collector.series(first=wanted[0], last=wanted[-1], newest=NEWEST, level=level)
            if not part["round"]:
                break
            yield part
            wanted = [number for number in wanted if number < min(part["round"])]
        below = min(row["round"] for row in page) - 1
        if below < first:
            return
        last = {"last": below}
