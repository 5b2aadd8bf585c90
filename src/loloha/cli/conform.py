"""``loloha conform``: whether a port of the device does what this one does."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from loloha.cli import console

if TYPE_CHECKING:
    from loloha.conform import Result

SHOWN = 5


def conform(
    *, command: str, only: list[str] | None = None, timeout: float = 30.0, as_json: bool = False
) -> None:
    """Check a port of the device, in any language, against this one.

    The command answers questions on its standard input, one JSON object a line; docs/protocol.md
    says how. Its documents, thresholds, values, histories, states and exact distributions are
    compared, and its own draws are audited. Exit code 1 if anything differs.
    """
    from loloha.audit.device import words_of
    from loloha.conform import suite

    with console.working("compare") as progress:
        results = suite.conform(
            words_of(command), only=only or (), patience=timeout, progress=progress
        )
    if as_json:
        console.show_json([asdict(result) for result in results])
    else:
        _show(results)
    if any(result.differences for result in results):
        raise typer.Exit(1)


def _show(results: list[Result]) -> None:
    console.show_table(
        ("checks", "made", "differ"),
        [(result.name, result.checked, len(result.differences)) for result in results],
    )
    for result in results:
        for difference in result.differences[:SHOWN]:
            console.show(console.visible(f"{result.name}: {difference}"))
        if (more := len(result.differences) - SHOWN) > 0:
            console.show(f"{result.name}: and {more} more; --json shows all")
