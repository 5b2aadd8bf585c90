"""The whole evaluation: which parts were asked for, what they need, and the page at the end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from loloha.errors import ParameterError
from loloha_lab.paper import fit, sections
from loloha_lab.paper.difference import differences
from loloha_lab.paper.execution import Measurements, Progress, measure_grid
from loloha_lab.paper.fit import Fit
from loloha_lab.paper.grid import Grid
from loloha_lab.paper.grid_results import Results
from loloha_lab.paper.page import versions, write_page
from loloha_lab.paper.workload import Facts, prepare

PARTS = ("fig1", "fig2", "fig3", "fig4", "table1", "table2")
MEASURED = {"fig3", "fig4", "table2"}


@dataclass(frozen=True)
class Reproduction:
    """Results of `reproduce`."""

    report: Path
    facts: dict[str, Facts]
    results: Results | None
    measurements: Measurements | None
    fit: Fit | None
    seconds: float


def check_parts(parts: Iterable[str]) -> tuple[str, ...]:
    """Parts in the paper's order; ``all`` stands for every one."""
    asked = set(parts) or {"all"}
    if not asked <= {*PARTS, "all"}:
        raise ParameterError(
            f"parts must be among {', '.join((*PARTS, 'all'))}, got "
            f"{', '.join(sorted(asked))}; choose from these"
        )
    return PARTS if "all" in asked else tuple(part for part in PARTS if part in asked)


def reproduce(
    parts: Iterable[str],
    grid: Grid,
    out: Path,
    *,
    data_dir: Path | None = None,
    jobs: int = 1,
    progress: Progress = lambda done, total: None,
    command: str = "",
) -> Reproduction:
    """Make parts of the paper anew."""
    started = time.perf_counter()
    chosen = check_parts(parts)
    facts: dict[str, Facts] = {}
    results = measurements = judged = None
    if MEASURED & set(chosen):
        facts = prepare(
            grid.workloads, grid.seed, out, data_dir=data_dir, users=grid.users, rounds=grid.rounds
        )
        measurements = measure_grid(
            grid,
            facts,
            out,
            changes="table2" in chosen,
            series="fig3" in chosen,
            jobs=jobs,
            progress=progress,
        )
        results = Results(grid, facts, measurements, out)
        results.save(out / "cells.parquet")
        judged = fit.fit_of(results)
    content = sections.tell(chosen, results)
    out.mkdir(parents=True, exist_ok=True)
    page = write_page(
        out,
        content,
        grid=grid,
        facts=list(facts.values()),
        measurements=measurements,
        fit=judged,
        differences=differences(results),
        seconds=time.perf_counter() - started,
        command=command,
    )
    seconds = time.perf_counter() - started
    reproduction = Reproduction(page, facts, results, measurements, judged, seconds)
    _note_down(reproduction, grid, out)
    return reproduction


def _note_down(reproduction: Reproduction, grid: Grid, out: Path) -> None:
    """Leave grid, versions and times beside the results."""
    note = {
        "grid": asdict(grid),
        "data": [asdict(facts) for facts in reproduction.facts.values()],
        "versions": versions(),
        "seconds": reproduction.seconds,
    }
    if reproduction.measurements is not None:
        measurements = asdict(reproduction.measurements)
        for kind in ("rows", "attacks", "changes", "series"):
            del measurements[kind]
        note["measurements"] = measurements
    if reproduction.fit is not None:
        note["fit"] = asdict(reproduction.fit)
    (out / "run.json").write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
