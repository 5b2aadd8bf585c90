"""``loloha explain``: the guarantee of a protocol in plain words."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from loloha.cli import console
from loloha.cli.console import AsJson
from loloha.cli.parameter import Name, find_protocol, with_parameters


@with_parameters()
def explain(
    protocol: Name,
    *,
    shuffled: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Say as well what a round reveals if the reports of N users arrive shuffled, "
            "without their senders.",
        ),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Chance with which what is said of shuffling need not hold.")
    ] = 1e-6,
    as_json: AsJson = False,
    parameters: dict[str, Any],
) -> None:
    """Say what a protocol with these parameters protects, what it leaks, and what it spends."""
    from loloha import privacy

    rules = find_protocol(protocol, parameters).from_params(parameters)
    found = privacy.explain(rules)
    hidden = None if shuffled is None else privacy.shuffled(rules, shuffled, delta)
    if as_json:
        beside = {} if hidden is None else {"shuffled": hidden.to_dict()}
        console.show_json(found.to_dict() | beside)
        return
    console.show_text(str(found))
    if hidden is not None:
        console.show()
        console.show_text(hidden.text)
