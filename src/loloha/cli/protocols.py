"""``loloha protocols``: the registry as a table."""

from __future__ import annotations

from typing import Any

from loloha.cli import console
from loloha.cli.parameter import parameters_of, required
from loloha.protocols import REGISTRY, Protocol

# Parameters for an example of each, to show its kind of report.
EXAMPLE = {"k": 16, "eps_inf": 2.0, "eps_1": 1.0, "eps": 1.0}


def protocols(*, as_json: bool = False) -> None:
    """List all protocols: their reports, rounds of noise and parameters."""
    rows = [describe(cls) for cls in REGISTRY.values()]
    if as_json:
        console.show_json(rows)
        return
    console.show_table(
        ("name", "report", "rounds", "memo", "parameters [optional]", "summary"),
        [
            (
                row["name"],
                row["report"],
                row["rounds"],
                row["memoised"],
                " ".join(
                    name if name in row["required"] else f"[{name}]" for name in row["parameters"]
                ),
                row["summary"],
            )
            for row in rows
        ],
    )


def describe(cls: type[Protocol]) -> dict[str, Any]:
    """One protocol as JSON data."""
    # Keys: name, report (kind, None where an example needs other parameters), rounds of noise,
    # memoised, required and all parameters, summary.
    needed = required(cls)
    example = (
        cls.from_params({name: EXAMPLE[name] for name in needed})
        if EXAMPLE.keys() >= set(needed)
        else None
    )
    return {
        "name": cls.name,
        "report": example and example.encoding.kind,
        "rounds": example and (1 if example.second is None else 2),
        "memoised": cls.longitudinal,
        "required": needed,
        "parameters": parameters_of(cls),
        "summary": cls.summary,
    }
