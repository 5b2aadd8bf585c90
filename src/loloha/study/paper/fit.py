"""How well theory and measurement agree, point by point and over all."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow

from loloha.study.paper.contender import CONTENDERS
from loloha.study.paper.results import Results
from loloha.study.paper.table import Table, data_note
from loloha.study.paper.theory import chance_beyond

LIMIT = 3.0


@dataclass(frozen=True)
class Fit:
    """Whether theory and measurement agree over all points.

    Attributes
    ----------
    points, beyond : int
        All, and those with |z| > 3.
    chance : float
        Probability of so many or more if theory is right.
    """

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
    """Ratio of measured to expected MSE_avg, and z, for each contender and data set."""
    points = pyarrow.Table.from_pylist(
        [
            asdict(point) | {"ratio": deviation.ratio, "z": deviation.z}
            for point, deviation in results.deviations.items()
        ]
    )
    grid, keys = results.grid, ["workload", "contender", "calibration"]
    groups = points.group_by(keys, use_threads=False).aggregate([("ratio", "list"), ("z", "list")])
    found = {tuple(group[key] for key in keys): group for group in groups.to_pylist()}
    rows = []
    # Arrow promises no order of groups.
    for group in (
        found[key]
        for key in itertools.product(grid.workloads, CONTENDERS, grid.calibrations)
        if key in found
    ):
        ratios, zs = group["ratio_list"], np.abs(group["z_list"])
        rows.append(
            [
                group["workload"],
                CONTENDERS[group["contender"]].label,
                group["calibration"],
                len(ratios),
                min(ratios),
                float(np.median(ratios)),
                max(ratios),
                float(np.sqrt(np.mean(zs**2))),
                float(np.max(zs)),
                int(np.count_nonzero(zs > LIMIT)),
            ]
        )
    return Table(
        "agreement",
        "Measured MSE_avg of the unbiased estimates over the one theory expects",
        [
            "data set",
            "protocol",
            "calibration",
            "points",
            "least ratio",
            "median",
            "largest",
            "root mean z²",
            "largest |z|",
            "|z| > 3",
        ],
        rows,
        "A point is a data set, protocol, calibration, ε∞ and α; z counts standard errors of the "
        "mean of its runs. " + data_note(results),
    )


def point_table(results: Results) -> Table:
    """Everything that was measured, a row a point."""
    columns = ("mse_clipped", "eps_avg", "eps_max")
    rows = []
    for point, deviation in results.deviations.items():
        rows.append(
            [
                *point.head,
                results.first(point, "g"),
                results.first(point, "hash"),
                deviation.runs,
                deviation.measured,
                deviation.expected,
                results.v_star(point),
                deviation.ratio,
                deviation.z,
                *(results.mean(point, column) for column in columns),
                results.uniform(point),
            ]
        )
    return Table(
        "points",
        "All points of the grid",
        [
            "data set",
            "protocol",
            "calibration",
            "ε∞",
            "α",
            "g",
            "hash",
            "runs",
            "MSE_avg",
            "expected",
            "V*",
            "ratio",
            "z",
            "MSE_avg, clipped",
            "ε_avg",
            "ε_max",
            "MSE of uniform",
        ],
        rows,
        data_note(results),
    )
