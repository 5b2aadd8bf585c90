"""How well theory and measurement agree, point by point and over all."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loloha.study.paper.contender import CONTENDERS
from loloha.study.paper.results import Results
from loloha.study.paper.table import Table, data_note
from loloha.study.paper.theory import chance_beyond

LIMIT = 3.0


@dataclass(frozen=True)
class Verdict:
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


def verdict(results: Results) -> Verdict:
    """Count the points whose measurement lies far from theory."""
    zs = [abs(agreement.z) for agreement in results.agreements.values()]
    known = [z for z in zs if not math.isnan(z)]
    beyond = sum(z > LIMIT for z in known)
    return Verdict(len(known), beyond, chance_beyond(beyond, len(known), LIMIT))


def agreement_table(results: Results) -> Table:
    """Ratio of measured to expected MSE_avg, and z, for each contender and data set."""
    rows = []
    for workload in results.settings.workloads:
        for contender in CONTENDERS.values():
            for calibration in results.settings.calibrations:
                found = [
                    agreement
                    for point, agreement in results.agreements.items()
                    if (point.workload, point.contender) == (workload, contender.key)
                    and point.calibration == calibration
                ]
                if not found:
                    continue
                ratios = [agreement.ratio for agreement in found]
                zs = np.abs([agreement.z for agreement in found])
                rows.append(
                    [
                        workload,
                        contender.label,
                        calibration,
                        len(found),
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
    for point, agreement in results.agreements.items():
        first = results.first(point)
        rows.append(
            [
                point.workload,
                CONTENDERS[point.contender].label,
                point.calibration,
                point.eps_inf,
                point.alpha,
                first["g"],
                first["hash"],
                agreement.runs,
                agreement.measured,
                agreement.expected,
                results.v_star(point),
                agreement.ratio,
                agreement.z,
                *(float(np.mean(results.measured(point, column))) for column in columns),
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
