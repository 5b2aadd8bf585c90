"""``loloha demo``: the main job on real data, offline, in a few seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loloha.cli import console
from loloha.cli.console import AsJson
from loloha.cli.folder import FILES, new_folder
from loloha.cli.run import Level, Seed, Top, check, run_and_save
from loloha.cli.summary import show_summary, show_top

ROUNDS = 12
EPS_INF, EPS_1 = 4.0, 2.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")] = Path(
        "loloha-demo"
    ),
    rounds: Annotated[int, typer.Option(help="Rounds to monitor.")] = ROUNDS,
    seed: Seed = None,
    top: Top = 8,
    level: Level = 0.95,
    as_json: AsJson = False,
) -> None:
    """Monitor the weekly hours of 45 222 people (UCI Adult, shipped histogram) by OLOLOHA.

    Needs no network. Ends with the estimates beside the truth, the privacy statement and a picture;
    an earlier demo in DIR is replaced.
    """
    import loloha

    check(top, level, seed)
    with new_folder(out, FILES, force=True) as draft:
        dataset = loloha.datasets.adult(tau=rounds)
        protocol = loloha.OLOLOHA(k=dataset.k, eps_inf=EPS_INF, eps_1=EPS_1)
        found = run_and_save(dataset, protocol, draft, seed=seed, top=top, level=level)
    if as_json:
        console.show_json({**found.metrics(), "picture": str(out / "frequencies.png")})
        return
    show_summary(found)
    show_top(found, top)
    console.show_text(str(loloha.privacy.explain(protocol)))
    console.show(f"\nPicture: {out / 'frequencies.png'}")
