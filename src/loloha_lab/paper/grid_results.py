"""Results of a grid, by point: what figures, tables and checks are made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from loloha.arrays import Floats
from loloha.population.archive import Row
from loloha.population.evaluation import binned
from loloha.protocols import Protocol
from loloha.server.estimate import variance
from loloha_lab.paper.execution import Measurements
from loloha_lab.paper.grid import CurvePoint, Grid, locate, points
from loloha_lab.paper.method import PUBLISHED, TIGHT, Method
from loloha_lab.paper.theory import Deviation, deviation_of, expected_mse
from loloha_lab.paper.workload import Facts, Material, material


class Results:
    """Measurements of all cells, and what theory expects of them."""

    def __init__(
        self, grid: Grid, facts: Mapping[str, Facts], measurements: Measurements, out: Path
    ) -> None:
        self.grid = grid
        self.facts = dict(facts)
        self.rows, self.attacks = measurements.rows, measurements.attacks
        self._aucs: dict[CurvePoint, list[float]] = {
            CurvePoint.of(row): row["areas"] for row in measurements.changes
        }
        self._series = {CurvePoint.of(row): row for row in measurements.series}
        self._out = out
        self._expected: dict[CurvePoint, float] = {}
        self._runs: dict[CurvePoint, list[Row]] = {point: [] for point in points(grid, facts)}
        for row in self.rows:
            self._runs[CurvePoint.of(row)].append(row)

    def save(self, path: Path) -> None:
        """Write all cells as one Parquet file, for whoever goes on with them."""
        draft = path.with_suffix(".draft")
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(self.rows), draft)
        draft.replace(path)

    @property
    def points(self) -> list[CurvePoint]:
        """Every point that was measured."""
        return list(self._runs)

    def measured(self, point: CurvePoint, column: str) -> Floats:
        """A column of all runs of a point, float64[runs]."""
        return np.array([row[column] for row in self._runs[point]], dtype=np.float64)

    def mean(self, point: CurvePoint, column: str) -> float:
        """Mean of a column over the runs of a point."""
        return float(np.mean(self.measured(point, column)))

    def first(self, point: CurvePoint, column: str) -> Any:
        """A column of the first run of a point."""
        return self._runs[point][0][column]

    def curve(
        self, workload: str, method: Method, calibration: str, alpha: float, column: str
    ) -> Floats:
        """Mean over the runs of a column, at each eps_inf; float64[len(eps_inf)]."""
        points = self.along(workload, method, calibration, alpha)
        return np.array([self.mean(point, column) for point in points])

    def along(
        self, workload: str, method: Method, calibration: str, alpha: float
    ) -> Iterator[CurvePoint]:
        """The points of a curve, one an eps_inf."""
        for eps_inf in self.grid.eps_inf:
            yield locate(self.facts[workload], method, calibration, eps_inf, alpha)

    def differs(
        self, workload: str, method: Method, alpha: float, *, spending: bool = False
    ) -> bool:
        """Whether the tight calibration was measured and is another curve than the published.

        Of the budget that users spend, if it is ``spending``: only another encoding changes it.
        """
        facts = self.facts[workload]
        return any(
            not spending or pair.protocol(facts).encoding != other.protocol(facts).encoding
            for pair, other in self.pairs(workload, method, alpha)
        )

    def pairs(
        self, workload: str, method: Method, alpha: float
    ) -> list[tuple[CurvePoint, CurvePoint]]:
        """Published and tight points of a curve where both were measured and are not alike."""
        if not {PUBLISHED, TIGHT} <= set(self.grid.calibrations):
            return []
        published = self.along(workload, method, PUBLISHED, alpha)
        tight = self.along(workload, method, TIGHT, alpha)
        return [pair for pair in zip(published, tight, strict=True) if pair[0] != pair[1]]

    def protocol(self, point: CurvePoint) -> Protocol:
        """The rules of a point."""
        return point.protocol(self.facts[point.workload])

    def change_aucs(self, point: CurvePoint) -> list[float]:
        """What the best test sees of a change, after each of `REPORTS` before it and after it."""
        return self._aucs[point]

    def together(self, point: CurvePoint, column: str) -> float:
        """A column of the first run of a point, whose rounds were estimated together."""
        return float(self._series[point][column])

    def material(self, point: CurvePoint) -> Material:
        """The population of a point."""
        return material(self._out, self.facts[point.workload])

    def truth(self, point: CurvePoint) -> Floats:
        """What the protocol of a point estimates, float64[tau, bins]."""
        return binned(self.protocol(point), self.material(point).truth)

    def expected(self, point: CurvePoint) -> float:
        """MSE_avg that theory expects of the unbiased estimates."""
        if point not in self._expected:
            facts = self.facts[point.workload]
            known = expected_mse(self.protocol(point), facts.n, self.truth(point))
            self._expected[point] = known
        return self._expected[point]

    def v_star(self, point: CurvePoint) -> float:
        """Approximate variance V* (f = 0)."""
        return float(variance(self.protocol(point), self.facts[point.workload].n))

    def uniform(self, point: CurvePoint) -> float:
        """MSE_avg of always answering "uniform"."""
        truth = self.truth(point)
        return float(np.mean((truth - 1 / truth.shape[1]) ** 2))

    @cached_property
    def deviations(self) -> dict[CurvePoint, Deviation]:
        """Measured MSE_avg of the unbiased estimates against theory, at every point."""
        return {
            point: deviation_of(self.measured(point, "mse"), self.expected(point))
            for point in self.points
        }
