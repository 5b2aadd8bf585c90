"""The checks: the same question to a port and to this library, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from loloha import checks
from loloha.conform import documents, histories, randomness
from loloha.conform.deviation import Difference
from loloha.conform.port import Port, connect


@dataclass(frozen=True)
class Result:
    """One group of checks.

    Attributes
    ----------
    name : str
    checked : int
    differences : tuple of str
        One for each check that failed; empty if the port conforms.
    """

    name: str
    checked: int
    differences: tuple[str, ...]


def conform(
    command: Sequence[str],
    *,
    only: Sequence[str] = (),
    until_first: bool = False,
    patience: float = 30.0,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Result]:
    """Ask a port everything, and compare."""
    chosen = [checks.choice("only", _OLD.get(name, name), GROUPS) for name in only] or list(GROUPS)
    results = []
    with connect(command, patience=patience) as port:
        for done, name in enumerate(chosen):
            progress(done / len(chosen))
            results.append(_result(name, GROUPS[name](port), until_first))
    return results


def _result(name: str, differences: Iterator[Difference], until_first: bool) -> Result:
    checked, wrong = 0, []
    for what, how in differences:
        checked += 1
        if how is not None:
            wrong.append(f"{what}: {how}")
            if until_first:
                break
    return Result(name, checked, tuple(wrong))


GROUPS: dict[str, Callable[[Port], Iterator[Difference]]] = {
    "documents": documents.documents,
    "thresholds": documents.thresholds,
    "values": documents.values,
    "histories": histories.histories,
    "states": histories.states,
    "distributions": histories.distributions,
    "draws": randomness.draws,
}
"""What a port is asked, by name."""
# Until 0.4.
_OLD = {"lives": "histories", "laws": "distributions"}
