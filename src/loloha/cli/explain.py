"""``loloha explain``: the guarantee of a protocol in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loloha.cli import console
from loloha.cli.console import AsJson
from loloha.cli.parameter import Name, find_protocol, with_parameters

if TYPE_CHECKING:
    import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(with_parameters()(explain))


def explain(protocol: Name, *, as_json: AsJson = False, parameters: dict[str, Any]) -> None:
    """Say what a protocol with these parameters protects, what it leaks, and what it spends."""
    from loloha.design import privacy

    found = privacy.explain(find_protocol(protocol, parameters).from_params(parameters))
    if as_json:
        console.show_json(found.to_dict())
    else:
        console.show_text(str(found))
