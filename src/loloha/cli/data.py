"""``loloha data``: which data sets there are, and fetching them."""

from __future__ import annotations

from pathlib import Path

from loloha.cli import console
from loloha.cli.command import Commands

group = Commands(name="data", no_args_is_help=True, help="List and fetch data sets.")


@group.command("list")
def list_all(*, as_json: bool = False) -> None:
    """List the data sets that loloha knows, beside any table of your own."""
    from loloha.datasets import CATALOGUE

    if as_json:
        console.show_json([entry._asdict() for entry in CATALOGUE])
    else:
        console.show_table(CATALOGUE[0]._fields, CATALOGUE)


@group.command()
def fetch(
    archive: str,
    region: str | None = None,
    *,
    cache: Path | None = None,
    url: str | None = None,
    timeout: float = 60.0,
    as_json: bool = False,
) -> None:
    """Download a public data set once, and verify what is there already."""
    from loloha import datasets

    with console.working(f"fetching {archive}"):
        path = datasets.fetch(archive, region, cache, url=url, timeout=timeout)
    if as_json:
        console.show_json({"name": archive, "state": region, "path": str(path)})
    else:
        console.show(str(path))
