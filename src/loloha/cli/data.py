"""``loloha data``: which data sets there are, and fetching them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loloha.cli import console
from loloha.cli.command import Commands
from loloha.cli.console import AsJson

group = Commands(name="data", no_args_is_help=True, help="List and fetch data sets.")


@group.command("list")
def list_all(*, as_json: AsJson = False) -> None:
    """List the data sets that loloha knows, beside any table of your own."""
    from loloha.datasets import CATALOGUE

    if as_json:
        console.show_json([entry._asdict() for entry in CATALOGUE])
    else:
        console.show_table(CATALOGUE[0]._fields, CATALOGUE)


@group.command()
def fetch(
    name: Annotated[str, typer.Argument(metavar="adult|acs")],
    state: Annotated[
        str | None, typer.Argument(help="For acs: postal code or name of a state.")
    ] = None,
    *,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for downloads; else LOLOHA_CACHE, else the user's cache."
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Another folder to download from, for mirrors.")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for each piece.")] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Download a public data set once, and verify what is there already."""
    from loloha import datasets

    with console.working(f"fetching {name}"):
        path = datasets.fetch(name, state, cache, url=url, timeout=timeout)
    if as_json:
        console.show_json({"name": name, "state": state, "path": str(path)})
    else:
        console.show(str(path))
