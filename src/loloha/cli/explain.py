"""``loloha explain``: the guarantee of a protocol in plain words."""

from __future__ import annotations

from typing import Any

from loloha.cli import console
from loloha.cli.parameter import make_protocol


def explain(
    protocol: str,
    *,
    k: int,
    every: int = 1,
    shuffled: int | None = None,
    delta: float = 1e-6,
    as_json: bool = False,
    parameters: dict[str, Any],
) -> None:
    """Say what a protocol with these parameters protects, what it leaks, and what it spends."""
    from loloha import privacy

    rules = make_protocol(protocol, parameters, k)
    explanation = privacy.explain(rules, every=every)
    hidden = None if shuffled is None else privacy.shuffled(rules, shuffled, delta)
    if as_json:
        beside = {} if hidden is None else {"shuffled": hidden.to_dict()}
        console.show_json(explanation.to_dict() | beside)
        return
    console.show_text(str(explanation))
    if hidden is not None:
        console.show()
        console.show_text(hidden.text)
