"""``loloha compare-guarantees``: protocols under the same guarantee, measured."""

from __future__ import annotations

from pathlib import Path

from loloha.cli import console
from loloha.cli.results_folder import unwritable, writing_to

TABLE, FIGURE = "guarantees-table.md", "guarantees"


def compare_guarantees(
    *,
    out: Path,
    data_dir: Path | None = None,
    data_set: list[str] | None = None,
    runs: int = 4,
    quick: bool = False,
    as_json: bool = False,
) -> None:
    """Compare protocols that give the same guarantee, and write a table and a figure to --out.

    Three guarantees in turn: of one value (a first report loses 1, all of one value 2), of any 30
    rounds (2), of the whole transcript (2). The paper's data sets and Browsers; --data-dir holds
    adult.data, adult.test and the census person files; without them stand-ins are used.
    """
    from loloha import checks, figure
    from loloha.errors import ParameterError
    from loloha_lab.paper.workload import WORKLOADS

    for library in ("scipy", "matplotlib"):
        checks.library(library, "compare guarantees", "paper")
    from loloha_lab.guarantees import guarantee_table
    from loloha_lab.guarantees.method_score import BROWSERS, populations, score

    names = (*WORKLOADS, BROWSERS)
    chosen = data_set or list(names)
    if not set(chosen) <= set(names):
        raise ParameterError(
            f"data sets must be among {', '.join(names)}, got {', '.join(chosen)}; choose from "
            "these"
        )
    if data_dir is not None and not data_dir.is_dir():
        raise ParameterError(
            f"data-dir must be a folder, got {str(data_dir)!r}; leave it out if there is none"
        )
    runs = checks.integer("runs", runs, 2, 1000, "their spread is the error of the mean")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(out, error) from error
    scores = score(populations(data_dir, chosen, quick=quick), runs, console.say)
    with writing_to(out):
        (out / TABLE).write_text(guarantee_table.text(scores), encoding="utf-8")
        figure.save(guarantee_table.draw(scores), out / FIGURE)
    if as_json:
        console.show_json(scores.to_rows())
        return
    console.show(guarantee_table.agreement(scores))
    console.show(f"{out / TABLE}, {out / FIGURE}.png, {out / FIGURE}.svg")
