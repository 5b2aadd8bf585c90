"""``loloha reproduce``: the publication's figures and tables, measured anew."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loloha.cli import console

if TYPE_CHECKING:
    from loloha_lab.paper.execution import Progress
    from loloha_lab.paper.reproduction import Reproduction


def reproduce(
    parts: list[str] | None = None,
    *,
    out: Path,
    data_dir: Path | None = None,
    calibration: str = "published",
    jobs: int | None = None,
    seed: int = 2023,
    runs: int | None = None,
    quick: bool = False,
    users: int | None = None,
    rounds: int | None = None,
    eps_inf: list[float] | None = None,
    data_set: list[str] | None = None,
    as_json: bool = False,
) -> None:
    """Reproduce the paper's evaluation and write report.html to the folder --out.

    Every measurement is stored there, in results.ndjson. An interrupted run continues when it is
    started again with the same options. By default everything, with
    20 repetitions of each point. With --calibration tight, ours is measured beside the published
    one, wherever they differ, and two rules of our own. --data-dir holds adult.data, adult.test and
    the census person files; without them, or what `loloha data fetch` fetched, a shipped histogram
    of Adult and a stand-in for the census are used instead, and every figure says so.
    """
    from loloha import checks
    from loloha.errors import ParameterError
    from loloha_lab.paper.method import PUBLISHED, TIGHT

    for library in ("jinja2", "joblib", "scipy"):
        checks.library(library, "reproduce the paper", "paper")
    from loloha_lab.paper import reproduction
    from loloha_lab.paper.grid import QUICK, Grid

    if calibration not in (PUBLISHED, TIGHT):
        raise ParameterError(
            f"calibration must be published or tight, got {calibration!r}; choose one"
        )
    if data_dir is not None and not data_dir.is_dir():
        raise ParameterError(
            f"data-dir must be a folder, got {str(data_dir)!r}; leave it out if there is none"
        )
    jobs = checks.integer(
        "jobs", console.cores() if jobs is None else jobs, 1, 1 << 10, "one a core is best"
    )
    chosen = reproduction.check_parts(parts or ["all"])
    given: dict[str, Any] = {
        "runs": runs,
        "users": users,
        "rounds": rounds,
        "eps_inf": tuple(eps_inf or ()),
        "workloads": tuple(data_set or ()),
    }
    grid = replace(
        QUICK if quick else Grid(),
        seed=seed,
        calibrations=(PUBLISHED,) if calibration == PUBLISHED else (PUBLISHED, TIGHT),
        **{name: value for name, value in given.items() if value},
    )
    with _progress() as progress:
        result = reproduction.reproduce(
            chosen,
            grid,
            out,
            data_dir=data_dir,
            jobs=jobs,
            progress=progress,
            command=shlex.join(["loloha", *sys.argv[1:]]),
        )
    _tell(result, as_json=as_json)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar with the time left on stderr; outside a terminal a line every tenth of the way."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    terminal = Console(stderr=True)
    bar = Progress(
        TextColumn("cells"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
        console=terminal,
        disable=not terminal.is_terminal,
    )
    task = bar.add_task("cells", total=None)
    last_tenth = -1

    def advance(done: int, total: int) -> None:
        nonlocal last_tenth
        bar.update(task, completed=done, total=total)
        tenth = 10 * done // max(total, 1)
        if not terminal.is_terminal and tenth > last_tenth:
            last_tenth = tenth
            console.say(f"{done} of {total} cells")
        if done == total:
            console.say("figures and tables ...")

    with bar:
        yield advance


def _tell(result: Reproduction, *, as_json: bool) -> None:
    summary: dict[str, Any] = {"report": str(result.report), "seconds": result.seconds}
    summary["data"] = {name: facts.source for name, facts in result.facts.items()}
    if result.measurements is not None:
        measurements = result.measurements
        summary |= {
            "cells": measurements.measured + measurements.reused,
            "measured": measurements.measured,
            "damaged": measurements.damaged,
            "cells_per_second": measurements.rate,
            "peak_bytes": measurements.peak_bytes,
        }
    if result.fit is not None:
        summary["fit"] = asdict(result.fit) | {"agrees": result.fit.agrees}
    if as_json:
        console.show_json(summary)
        return
    for facts in result.facts.values():
        if facts.source == "stand-in":
            console.warn(f"{facts.caption}: no figure of the paper can be reproduced from it")
    if result.measurements is not None and result.fit is not None:
        measurements, fit = result.measurements, result.fit
        rate = f", {measurements.rate:.1f} cells/s" if measurements.rate else ""
        console.show(
            f"{measurements.measured} cells measured, {measurements.reused} reused{rate}; "
            f"peak memory {measurements.peak_bytes / 1e9:.2f} GB"
        )
        console.show(
            f"theory and measurement {'agree' if fit.agrees else 'differ'}: |z| > 3 at "
            f"{fit.beyond} of {fit.points} points "
            f"(probability of as many by chance: {fit.chance:.2f})"
        )
    console.show(f"{result.report} ({result.seconds:.0f} s)")
