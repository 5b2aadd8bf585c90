"""Rows as text: a table in the terminal, or JSON."""

import json
import os
import platform
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.measure import Row

HEAD = (
    "work", "size", "by the clock", "of one core", "to reach", "straightforward", "times faster",
    "peak MB",
)  # fmt: skip

WIDTHS = (38, 46, 16, 16, 9, 18, 12, 7)


def text(rows: Iterable[Row]) -> Iterator[str]:
    """Lines of the table, one as soon as its row is there."""
    yield _line(HEAD)
    section = ""
    peers: dict[str, None] = {}
    for row in rows:
        if row.section != section:
            section = row.section
            yield f"-- {section}"
        peers.setdefault(f"{row.section}: {row.peer}" if row.peer else "")
        yield _line(
            (
                row.work, row.size, _quantity(row.figure, row), _quantity(row.processor, row),
                _target(row), _quantity(row.peer_figure, row),
                number(row.ratio) if row.ratio else "", f"{row.peak:.0f}" if row.peak else "",
            )
        )  # fmt: skip
    yield "Straightforward is:"
    yield from (f"   {peer}" for peer in peers if peer)


def _line(cells: Iterable[str]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


def _quantity(figure: float | None, row: Row) -> str:
    return "" if figure is None else f"{number(figure)} {row.unit}"


def as_json(rows: Iterable[Row]) -> str:
    return json.dumps({"machine": machine(), "rows": [row.to_dict() for row in rows]}, indent=1)


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": _optional("numba"),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


def _optional(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def number(value: float) -> str:
    """Three digits, and words for powers of ten."""
    for limit, factor, unit in ((1e9, 1e9, " bn"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= limit:
            return f"{value / factor:.3g}{unit}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _target(row: Row) -> str:
    if row.target is None:
        return ""
    return f"{number(row.target)} {'yes' if row.reached else 'NO'}"
