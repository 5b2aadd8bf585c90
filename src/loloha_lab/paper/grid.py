"""The cells of the grid, and the randomness of each, from its own name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np

from loloha import checks
from loloha.errors import ParameterError
from loloha.protocols import Protocol
from loloha_lab.paper.method import METHODS, PAPER, PUBLISHED, TIGHT, Method
from loloha_lab.paper.workload import WORKLOADS, Facts, words

MOST_RUNS = 10_000
# Raised when what a cell measures, or how it draws, changes: older results are then redone.
MEASUREMENT = 2
# A client is a Python object: some milliseconds for the reports of a user.
ATTACKED_USERS = 50


@dataclass(frozen=True)
class Grid:
    """Size of the evaluation; the defaults are the paper's."""

    runs: int = 20
    eps_inf: tuple[float, ...] = tuple(step / 2 for step in range(1, 11))
    alphas: tuple[float, ...] = (0.4, 0.5, 0.6)
    calibrations: tuple[str, ...] = (PUBLISHED,)
    workloads: tuple[str, ...] = tuple(WORKLOADS)
    users: int | None = None
    rounds: int | None = None
    seed: int = 2023

    def __post_init__(self) -> None:
        checks.integer("runs", self.runs, 1, MOST_RUNS, "the paper has 20")
        checks.integer("seed", self.seed, 0, (1 << 128) - 1, "any number will do")
        if not self.workloads or not set(self.workloads) <= set(WORKLOADS):
            raise ParameterError(
                f"data sets must be among {list(WORKLOADS)}, got {list(self.workloads)}; choose "
                "from these"
            )
        for name, value in (("users", self.users), ("rounds", self.rounds)):
            if value is not None:
                checks.integer(name, value, 2, 1 << 30, "leave it out for all of them")
        if not self.eps_inf or not self.alphas or not all(0 < alpha < 1 for alpha in self.alphas):
            raise ParameterError(
                f"alphas must lie in (0, 1) and eps_inf be given, got {self.alphas!r} and "
                f"{self.eps_inf!r}; the paper has 0.4, 0.5, 0.6 and 0.5 to 5"
            )
        for calibration in self.calibrations:
            checks.choice("calibration", calibration, (PUBLISHED, TIGHT))

    @property
    def methods(self) -> list[Method]:
        """The paper's; and ours, if the tight calibration is asked for."""
        return list(METHODS.values()) if TIGHT in self.calibrations else PAPER

    @property
    def middle_alpha(self) -> float:
        """Where one alpha stands for all."""
        return self.alphas[len(self.alphas) // 2]

    @property
    def attacked(self) -> tuple[float, ...]:
        """The first, the middle and the last eps_inf, where clients are attacked."""
        steps = self.eps_inf
        return tuple(dict.fromkeys((steps[0], steps[len(steps) // 2], steps[-1])))

    @property
    def reduced(self) -> bool:
        """Whether less than the paper's evaluation is asked for."""
        full = Grid()
        return bool(self.users or self.rounds or self.runs < full.runs) or not (
            set(full.eps_inf) <= set(self.eps_inf) and set(full.workloads) <= set(self.workloads)
        )


QUICK = Grid(runs=3, eps_inf=(1.0, 3.0, 5.0), users=600, rounds=8)
"""Everything, at a size that takes about a minute of one core."""


CELL = ("data_set", "protocol", "calibration", "eps_inf", "alpha")
"""Columns that say which point a row is of."""


@dataclass(frozen=True, order=True)
class CurvePoint:
    """One point of a curve: what all its runs share."""

    workload: str
    method: str
    calibration: str
    eps_inf: float
    alpha: float | None

    @property
    def name(self) -> str:
        """Readable, and different for different points."""
        second = "" if self.alpha is None else f"-alpha{self.alpha:g}"
        return f"{self.workload}/{self.method}/{self.calibration}/eps{self.eps_inf:g}{second}"

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """The point that a result is of."""
        return cls(*(row[name] for name in CELL))

    @property
    def row(self) -> dict[str, Any]:
        """The first columns of whatever is measured of it."""
        return dict(zip(CELL, astuple(self), strict=True))

    @property
    def head(self) -> dict[str, Any]:
        """The first cells of its row in any table: where it is and what is measured."""
        return {
            "data_set": self.workload,
            "protocol": METHODS[self.method].label,
            "calibration": self.calibration,
            "eps_inf": self.eps_inf,
            "alpha": self.alpha,
        }

    def protocol(self, facts: Facts) -> Protocol:
        """The rules that are measured here."""
        return METHODS[self.method].build(
            facts.k, self.eps_inf, self.alpha, self.calibration, buckets=facts.buckets
        )


@dataclass(frozen=True, order=True)
class Task:
    """Something to be measured at a point."""

    point: CurvePoint

    @property
    def name(self) -> str:
        """Name of the result in the archive; it decides the randomness too."""
        raise NotImplementedError

    def identity(self, seed: int, facts: Facts) -> str:
        """Digest of all that decides the result: one with another digest is another result."""
        decisive = {
            "measurement": MEASUREMENT,
            "name": self.name,
            "seed": seed,
            "data": facts.digest,
            "protocol": _specification(self.point, facts),
        }
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, order=True)
class Cell(Task):
    """One measurement: a point and the number of the run."""

    run: int

    @property
    def name(self) -> str:
        return f"{self.point.name}/run{self.run:02d}"


@dataclass(frozen=True, order=True)
class Attack(Task):
    """The attack of Table 2 on some users, each run by a real client; a cell of another kind."""

    users: int

    @property
    def name(self) -> str:
        return f"{self.point.name}/attack-on-{self.users}"


@dataclass(frozen=True, order=True)
class Visibility(Task):
    """What the best test sees of a change: of the rules alone, and the same for every run."""

    @property
    def name(self) -> str:
        return f"{self.point.name}/change"


@dataclass(frozen=True, order=True)
class Smoothing(Task):
    """The first run of a point with its rounds estimated together."""

    @property
    def name(self) -> str:
        return f"{self.point.name}/series"


def seed_sequence(task: Task, seed: int) -> np.random.SeedSequence:
    """The randomness of a cell or an attack, which no other shares and no order changes."""
    return np.random.SeedSequence(seed, spawn_key=words("cell", task.name))


@lru_cache(maxsize=1 << 14)
def _specification(point: CurvePoint, facts: Facts) -> str:
    return point.protocol(facts).fingerprint


def points(grid: Grid, facts: Mapping[str, Facts]) -> list[CurvePoint]:
    """Every point of the grid once; a tight point that equals the published one is not repeated."""
    distinct: dict[CurvePoint, None] = {}
    for workload in grid.workloads:
        for method in grid.methods:
            for eps_inf in grid.eps_inf:
                for alpha in grid.alphas if method.two_rounds else (None,):
                    for calibration in grid.calibrations:
                        point = locate(facts[workload], method, calibration, eps_inf, alpha)
                        distinct[point] = None
    return list(distinct)


@lru_cache(maxsize=1 << 14)
def locate(
    facts: Facts, method: Method, calibration: str, eps_inf: float, alpha: float | None
) -> CurvePoint:
    """Where a point of a curve is measured."""
    alpha = alpha if method.two_rounds else None
    settled = method.settle(facts.k, eps_inf, alpha, calibration)
    return CurvePoint(facts.name, method.key, settled, eps_inf, alpha)


def cells(grid: Grid, facts: Mapping[str, Facts]) -> Iterator[Cell]:
    """Every cell of the grid."""
    for point in points(grid, facts):
        for run in range(grid.runs):
            yield Cell(point, run)


def attacks(grid: Grid, facts: Mapping[str, Facts]) -> Iterator[Attack]:
    """Attacks on every method at the middle alpha and some values of eps_inf."""
    for eps_inf in grid.attacked:
        for workload in grid.workloads:
            users = min(ATTACKED_USERS, facts[workload].n)
            for method in grid.methods:
                point = locate(facts[workload], method, PUBLISHED, eps_inf, grid.middle_alpha)
                yield Attack(point, users)


def smoothings(grid: Grid, facts: Mapping[str, Facts]) -> Iterator[Smoothing]:
    """Every method, data set and eps_inf at the middle alpha."""
    for workload in grid.workloads:
        for method in grid.methods:
            for eps_inf in grid.eps_inf:
                yield Smoothing(
                    locate(facts[workload], method, PUBLISHED, eps_inf, grid.middle_alpha)
                )
