"""``loloha fleet``: many simulated users against a collector."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loloha.cli import console
from loloha.cli.console import AsJson
from loloha.cli.report import TOKEN
from loloha.cli.source import as_indices, load

if TYPE_CHECKING:
    from collections.abc import Callable


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fleet")(fleet)


def fleet(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="Who holds which value in which round: a table or data set, as `loloha run` "
            "takes it.",
            show_default=False,
        ),
    ],
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the files of adult or acs lie.", show_default=False
        ),
    ] = None,
    campaign: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help=f"https://HOST/v1/campaigns/FINGERPRINT; {TOKEN} holds the submit token.",
            show_default=False,
        ),
    ],
    users: Annotated[
        int | None, typer.Option(min=1, help="Only the first users.", show_default=False)
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Only the first rounds.", show_default=False)
    ] = None,
    first: Annotated[int, typer.Option(min=0, help="Number of the first round.")] = 0,
    batch: Annotated[int, typer.Option(min=1, help="Reports in a request.")] = 10_000,
    seed: Annotated[
        int | None, typer.Option(help="Make the run repeatable.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let simulated users report to a collector, round by round, in batches.

    For trying a collector out. Labels of the table must be labels of the campaign; a campaign with
    a label for others takes all.
    """
    from loloha.device.collector import Collector
    from loloha.study.fleet import run_fleet

    with Collector(campaign) as collector:
        found = collector.document()
    values = as_indices(found, load(table, data, None))[:users, :rounds]
    began = time.monotonic()
    with _progress("sending reports", int((values >= 0).sum())) as advance:
        receipt = run_fleet(
            campaign,
            found,
            values,
            first=first,
            token=os.environ.get(TOKEN),
            batch=batch,
            progress=advance,
            rng=seed,
        )
    seconds = time.monotonic() - began
    said = {
        "users": len(values),
        "rounds": values.shape[1],
        "sent": receipt.sent,
        "accepted": receipt.accepted,
        "duplicates": receipt.duplicates,
        "refused": dict(receipt.refused),
        "seconds": seconds,
    }
    if as_json:
        console.show_json(said)
    else:
        console.show(
            f"{receipt.sent} reports of {len(values)} users in {values.shape[1]} rounds: "
            f"{receipt.accepted} counted, {receipt.duplicates} duplicates, "
            f"{sum(receipt.refused.values())} refused, {seconds:.1f} s"
        )
        for reason, count in sorted(receipt.refused.items()):
            console.warn(f"{count} refused: {reason}")
    if receipt.refused:
        raise typer.Exit(1)


@contextmanager
def _progress(task: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, in a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    to = Console(stderr=True)
    with Progress(console=to, transient=True, disable=not to.is_terminal) as progress:
        bar = progress.add_task(task, total=total)
        yield lambda done: progress.advance(bar, done)
