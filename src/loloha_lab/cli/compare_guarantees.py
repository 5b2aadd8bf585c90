"""``loloha compare-guarantees``: protocols at the same promise, measured."""

from __future__ import annotations

from pathlib import Path

from loloha.cli import console

TABLE, FIGURE = "guarantees-table.md", "guarantees"


def compare_guarantees(
    *,
    out: Path,
    data_dir: Path | None = None,
    data_set: list[str] | None = None,
    runs: int = 4,
    quick: bool = False,
) -> None:
    """Compare protocols that keep the same promise, and write a table and a figure to --out.

    Three promises in turn: of one value (a first report loses 1, all of one value 2), of any 30
    rounds (2), of the whole transcript (2). The paper's data sets and Browsers; --data-dir holds
    adult.data, adult.test and the census person files, in whose place stand-ins come else.
    """
    from loloha import checks, figure
    from loloha.errors import ParameterError
    from loloha_lab.paper.workload import WORKLOADS

    for library in ("scipy", "matplotlib"):
        checks.library(library, "compare guarantees", "paper")
    from loloha_lab.promises import promise_figure, promise_table
    from loloha_lab.promises.promise_score import BROWSERS, populations, score

    names = (*WORKLOADS, BROWSERS)
    chosen = data_set or list(names)
    if not set(chosen) <= set(names):
        raise ParameterError(
            f"data sets must be among {', '.join(names)}, got {', '.join(chosen)}; choose from "
            "these"
        )
    runs = checks.integer("runs", runs, 2, 1000, "their spread is the error of the mean")
    scores = score(populations(data_dir, chosen, quick=quick), runs, console.say)
    out.mkdir(parents=True, exist_ok=True)
    (out / TABLE).write_text(promise_table.text(scores), encoding="utf-8")
    figure.save(promise_figure.draw(scores), out / FIGURE)
    console.show(promise_table.agreement(scores))
    console.show(f"{out / TABLE}, {out / FIGURE}.png, {out / FIGURE}.svg")
