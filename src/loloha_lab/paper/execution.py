"""Measures the cells of a grid on all cores, goes on where it was, and redoes what is damaged."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from loloha.population import archive
from loloha.population.archive import Archive, Row, measure_each
from loloha_lab.paper.cell import measure, measure_attack, measure_series, measure_visibility
from loloha_lab.paper.grid import (
    Attack,
    Cell,
    Grid,
    Smoothing,
    Task,
    Visibility,
    attacks,
    cells,
    points,
    smoothings,
)
from loloha_lab.paper.workload import Facts, Material, material

Progress = Callable[[int, int], None]
MEASURES: dict[type[Task], Callable[[Any, Material, int], Row]] = {
    Cell: measure,
    Attack: measure_attack,
    Visibility: measure_visibility,
    Smoothing: measure_series,
}


@dataclass(frozen=True)
class Measurements:
    """All of a grid."""

    rows: list[Row]
    attacks: list[Row]
    changes: list[Row]
    series: list[Row]
    measured: int
    reused: int
    damaged: int
    seconds: float
    peak_bytes: int
    jobs: int

    @property
    def rate(self) -> float | None:
        """Cells and attacks a second; None where nothing was measured."""
        return self.measured / self.seconds if self.measured else None


def measure_grid(
    grid: Grid,
    facts: Mapping[str, Facts],
    out: Path,
    *,
    changes: bool = False,
    series: bool = False,
    jobs: int = 1,
    progress: Progress = lambda done, total: None,
) -> Measurements:
    """Measure every cell that is not there yet."""
    results = Archive(out / archive.FILE)
    tasks: list[Task] = [*attacks(grid, facts), *cells(grid, facts)]
    if changes:
        tasks += map(Visibility, points(grid, facts))
    if series:
        tasks += smoothings(grid, facts)
    wanted = {task: task.identity(grid.seed, facts[task.point.workload]) for task in tasks}
    stored = {task: results.find(task.name, identity) for task, identity in wanted.items()}
    rows: dict[Task, Row] = {task: row for task, row in stored.items() if row is not None}
    missing = [task for task in wanted if task not in rows]
    # Long and short ones mixed, so that the time left can be estimated.
    mixed = [missing[i] for i in np.random.default_rng(grid.seed).permutation(len(missing))]
    progress(len(rows), len(wanted))
    started = time.perf_counter()
    peaks: dict[int, int] = {}
    measure_one = partial(measure_task, seed=grid.seed, facts=facts, out=out)
    for task, row, process, peak in measure_each(measure_one, mixed, jobs):
        results.keep(task.name, wanted[task], row)
        rows[task] = row
        peaks[process] = max(peak, peaks.get(process, 0))
        progress(len(rows), len(wanted))
    peaks[os.getpid()] = _peak_bytes()
    return Measurements(
        rows=[rows[task] for task in wanted if isinstance(task, Cell)],
        attacks=[rows[task] for task in wanted if isinstance(task, Attack)],
        changes=[rows[task] for task in wanted if isinstance(task, Visibility)],
        series=[rows[task] for task in wanted if isinstance(task, Smoothing)],
        measured=len(missing),
        reused=len(wanted) - len(missing),
        damaged=sum(task.name in results for task in missing),
        seconds=time.perf_counter() - started,
        peak_bytes=sum(peaks.values()),
        jobs=jobs,
    )


def measure_task(
    task: Task, *, seed: int, facts: Mapping[str, Facts], out: Path
) -> tuple[Task, Row, int, int]:
    """The task, its row, the number of this process and its largest resident size in bytes."""
    population = material(out, facts[task.point.workload])
    row = MEASURES[type(task)](task, population, seed)
    return task, row, os.getpid(), _peak_bytes()


def _peak_bytes() -> int:
    """Largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
