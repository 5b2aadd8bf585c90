"""The fit of theory to measurement, point by point and over all."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from loloha_lab.paper.grid_results import Results
from loloha_lab.paper.method import METHODS
from loloha_lab.paper.result_table import Table, data_note
from loloha_lab.paper.theory import Deviation, chance_beyond

LIMIT = 3.0


@dataclass(frozen=True)
class Fit:
    """Whether theory and measurement agree over all points."""

    points: int
    beyond: int
    chance: float

    @property
    def agrees(self) -> bool:
        """Whether chance explains what lies beyond, at one in a thousand."""
        return self.chance > 1e-3


def fit_of(results: Results) -> Fit:
    """Count the points whose measurement lies far from theory."""
    zs = [abs(deviation.z) for deviation in results.deviations.values()]
    known = [z for z in zs if not math.isnan(z)]
    beyond = sum(z > LIMIT for z in known)
    return Fit(len(known), beyond, chance_beyond(beyond, len(known), LIMIT))


def agreement_table(results: Results) -> Table:
    """Ratio of measured to expected MSE_avg, and z, for each method and data set."""
    groups: dict[tuple[str, str, str], list[Deviation]] = {}
    for point, deviation in results.deviations.items():
        key = point.workload, point.method, point.calibration
        groups.setdefault(key, []).append(deviation)
    rows = []
    grid = results.grid
    for key in itertools.product(grid.workloads, METHODS, grid.calibrations):
        if key not in groups:
            continue
        ratios = [deviation.ratio for deviation in groups[key]]
        zs = np.abs([deviation.z for deviation in groups[key]])
        rows.append(
            {
                "data_set": key[0],
                "protocol": METHODS[key[1]].label,
                "calibration": key[2],
                "points": len(ratios),
                "least ratio": min(ratios),
                "median": float(np.median(ratios)),
                "largest": max(ratios),
                "root mean z²": float(np.sqrt(np.mean(zs**2))),
                "largest |z|": float(np.max(zs)),
                "|z| > 3": int(np.count_nonzero(zs > LIMIT)),
            }
        )
    return Table(
        "agreement",
        "Measured MSE_avg of the unbiased estimates over the one theory expects",
        rows,
        "A point is a data set, protocol, calibration, ε∞ and α; z counts standard errors of the "
        "mean of its runs. " + data_note(results),
    )


def point_table(results: Results) -> Table:
    """Everything that was measured, a row a point."""
    rows = [
        {
            **point.head,
            "g": results.first(point, "g"),
            "hash": results.first(point, "hash"),
            "runs": deviation.runs,
            "mse": deviation.measured,
            "expected_mse": deviation.expected,
            "v_star": results.v_star(point),
            "ratio": deviation.ratio,
            "z": deviation.z,
            "mse_clipped": results.mean(point, "mse_clipped"),
            "eps_avg": results.mean(point, "eps_avg"),
            "eps_max": results.mean(point, "eps_max"),
            "mse_uniform": results.uniform(point),
        }
        for point, deviation in results.deviations.items()
    ]
    return Table("points", "All points of the grid", rows, data_note(results))
