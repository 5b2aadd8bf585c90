"""``loloha export``: all estimates that a collector shows of a campaign, as one table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loloha.cli import console
from loloha.cli.console import AsJson
from loloha.errors import LolohaError, ParameterError

if TYPE_CHECKING:
    from loloha.device.collector import Collector

NEWEST = 1000


def export(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="https://HOST/v1/campaigns/FINGERPRINT")
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help=".csv or .parquet.")],
    first: Annotated[int, typer.Option(min=0, help="Number of the first round.")] = 0,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a row for each round and value: dates, labels, estimates, errors and intervals.

    Rounds that the collector withholds are left out.
    """
    from loloha.device.collector import Collector

    if out.suffix not in (".csv", ".parquet"):
        raise ParameterError(f"--out must end in .csv or .parquet, got {out.name!r}; rename it")
    if out.exists() and not force:
        raise LolohaError(f"--out must be new, got {str(out)!r}; replace it with --force")
    with console.working("reading estimates"), Collector(url) as collector:
        parts = list(_series(collector, first, level))
    if not parts:
        raise LolohaError("collector must show estimates, it shows none of these rounds; wait")
    rows = _write(parts, out)
    if as_json:
        console.show_json({"out": str(out), "rows": rows})
        return
    console.show(f"Estimates: {out} ({rows} rows)")


def _series(collector: Collector, first: int, level: float) -> Iterator[dict[str, Any]]:
    """Parts of the series, the newest rounds first: a collector shows so many at a time."""
    last: dict[str, int] = {}
    while page := collector.rounds(first=first, newest=NEWEST, **last):
        wanted = sorted(one["round"] for one in page if one["n"] > 0 and one["round"] >= first)
        while wanted:
            part = collector.series(first=wanted[0], last=wanted[-1], newest=NEWEST, level=level)
            if not part["rounds"]:
                break
            yield part
            wanted = [one for one in wanted if one < min(part["rounds"])]
        below = min(one["round"] for one in page) - 1
        if below < first:
            return
        last = {"last": below}


def _write(parts: list[dict[str, Any]], out: Path) -> int:
    import secrets

    import pyarrow
    from pyarrow import parquet

    from loloha.server.frame import series_to_frame, write_csv

    table = pyarrow.concat_tables([series_to_frame(part) for part in reversed(parts)])
    draft = out.with_name(f".{out.name}.{secrets.token_hex(4)}.part")
    try:
        (write_csv if out.suffix == ".csv" else parquet.write_table)(table, draft)
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)
    return int(table.num_rows)
