"""Table 2 of the paper, and what the best test of a change sees where the printed one is blind."""

from __future__ import annotations

import itertools
from typing import Any

from loloha.population.archive import Row
from loloha.privacy.transcript import eps_2
from loloha_lab.attacks import Detection
from loloha_lab.paper.grid import CurvePoint, locate
from loloha_lab.paper.grid_results import Results
from loloha_lab.paper.method import METHODS, PUBLISHED, Method
from loloha_lab.paper.pattern import REPORTS
from loloha_lab.paper.result_table import Table, data_note


def exposure_table(results: Results) -> Table:
    """Table 2: users of whom every change is detected, in percent."""
    grid = results.grid
    alpha = grid.alphas[0]
    attacked = [method for method in METHODS.values() if not method.two_rounds]
    rows = []
    for eps_inf in grid.eps_inf:
        row = {"eps_inf": eps_inf}
        for method, workload in itertools.product(attacked, grid.workloads):
            point = locate(results.facts[workload], method, PUBLISHED, eps_inf, alpha)
            row[f"{workload}, {_sampled(method)}"] = 100 * results.mean(point, "exposed")
        rows.append(row)
    return Table(
        "table2",
        "Table 2. Users of whom dBitFlipPM lets the server detect every change, in %",
        rows,
        "Mean of the runs. The paper: 0 % at d = 1 (DB_MT 0.001 to 0.005 %), 100 % at d = b. "
        + data_note(results),
    )


def _sampled(method: Method) -> str:
    return "d = b" if method.sampled == 0 else f"d = {method.sampled}"


def attack_table(results: Results) -> Table:
    """The same attack on every method: what a second round hides."""
    rows = [
        {
            "data_set": row["data_set"],
            "protocol": METHODS[row["protocol"]].label,
            "eps_inf": row["eps_inf"],
            "alpha": row["alpha"],
            "users with every change detected": 100 * detection.share,
            "changes followed by another report": 100 * detection.hit_rate,
            "unchanged rounds followed by another report": 100 * detection.alarm_rate,
        }
        for row, detection in _detections(results)
    ]
    users = max((row["users"] for row in results.attacks), default=0)
    return Table(
        "table2-attack",
        "The printed attack on every protocol, in % (not in the paper)",
        rows,
        f"Real clients of {users} users drawn at random, published calibration (ours: tight). "
        "Where the last two columns are alike, this attack sees next to nothing; the best test "
        "does. " + data_note(results),
    )


def best_test_table(results: Results) -> Table:
    """The printed test of changes beside the best one, at some values of eps_inf."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row, detection in _detections(results):
        name = row["data_set"], METHODS[row["protocol"]].label
        aucs = results.change_aucs(CurvePoint.of(row))
        at = f"ε∞ = {row['eps_inf']:g}"
        entry = rows.setdefault(name, {"data_set": name[0], "protocol": name[1]})
        entry[f"{at}: printed, %"] = 100 * detection.share
        entry |= {f"{at}: best, T = {t}": auc for t, auc in zip(REPORTS, aucs, strict=True)}
    return Table(
        "table2-best",
        "Changes by the printed test and by the best one",
        list(rows.values()),
        "Printed test: users of whom it detects every change, in %. Best test: area under the ROC "
        "curve (0.5 is guessing, 1 certainty) for one change, from T reports before and T after, "
        "the key known, values equally likely; exact or an upper bound. "
        f"α = {results.grid.middle_alpha:g}, published calibration (ours: tight). "
        + data_note(results),
    )


def visibility_table(results: Results) -> Table:
    """The best test of a change, and eps_2, at every point of the grid."""
    rows = []
    for point in results.points:
        protocol = results.protocol(point)
        aucs = zip(REPORTS, results.change_aucs(point), strict=True)
        rows.append(
            {
                **point.head,
                "printed test, % of all users": 100 * results.mean(point, "exposed"),
                **{f"best test, T = {number}": auc for number, auc in aucs},
                "ε₂": eps_2(protocol),
            }
        )
    return Table(
        "table2-grid",
        "The best test of a change at every point of the grid",
        rows,
        "The printed test of the whole population exists where memoised answers are sent as they "
        "are. ε₂ is the loss of any one round when all others are known. " + data_note(results),
    )


def _detections(results: Results) -> list[tuple[Row, Detection]]:
    """Attacks by data set, eps_inf and method, with their counts."""
    order = list(METHODS)
    workloads = list(results.facts)
    ordered = sorted(
        results.attacks,
        key=lambda row: (
            workloads.index(row["data_set"]), row["eps_inf"], order.index(row["protocol"])
        ),
    )  # fmt: skip
    counts = Detection.__dataclass_fields__
    return [(row, Detection(**{name: row[name] for name in counts})) for row in ordered]
