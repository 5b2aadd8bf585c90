"""Table 2 of the paper, and what the best test of a change sees where the printed one is blind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from loloha.design.transcript import eps_2
from loloha.study.archive import Row
from loloha.study.attacks import Detection
from loloha.study.paper.contender import CONTENDERS, PUBLISHED, Contender
from loloha.study.paper.grid import Point
from loloha.study.paper.results import POINT, Results
from loloha.study.paper.table import Table, data_note
from loloha.study.paper.visibility import REPORTS, change_areas


def exposure_table(results: Results) -> Table:
    """Table 2: users of whom every change is detected, in percent."""
    grid = results.grid
    alpha = grid.alphas[0]
    attacked = [contender for contender in CONTENDERS.values() if not contender.two_rounds]
    columns = ["ε∞"] + [
        f"{workload}, {_sampled(contender)}"
        for contender in attacked
        for workload in grid.workloads
    ]
    rows = []
    for place, eps_inf in enumerate(grid.eps_inf):
        shares: list[Any] = [eps_inf]
        for contender in attacked:
            for workload in grid.workloads:
                point = list(results.along(workload, contender, PUBLISHED, alpha))[place]
                shares.append(100 * float(np.mean(results.measured(point, "exposed"))))
        rows.append(shares)
    return Table(
        "table2",
        "Table 2. Users of whom dBitFlipPM lets the server detect every change, in %",
        columns,
        rows,
        "Mean of the runs. The paper: 0 % at d = 1 (DB_MT 0.001 to 0.005 %), 100 % at d = b. "
        + data_note(results),
    )


def _sampled(contender: Contender) -> str:
    return "d = b" if contender.sampled == 0 else f"d = {contender.sampled}"


def attack_table(results: Results, attacks: Iterable[Row]) -> Table:
    """The same attack on every contender: what a second round hides."""
    rows = [
        [
            row["workload"],
            CONTENDERS[row["contender"]].label,
            row["eps_inf"],
            row["alpha"],
            100 * found.share,
            100 * found.hit_rate,
            100 * found.alarm_rate,
        ]
        for row, found in _detections(results, attacks)
    ]
    users = max((row["users"] for row in attacks), default=0)
    return Table(
        "table2-attack",
        "The printed attack on every protocol, in % (not in the paper)",
        [
            "data set",
            "protocol",
            "ε∞",
            "α",
            "users with every change detected",
            "changes followed by another report",
            "unchanged rounds followed by another report",
        ],
        rows,
        f"Real clients of {users} users drawn at random, published calibration (ours: tight). "
        "Where the last two columns are alike, this attack sees next to nothing; the best test "
        "does. " + data_note(results),
    )


def best_test_table(results: Results, attacks: Iterable[Row]) -> Table:
    """The printed test of changes beside the best one, at some values of eps_inf."""
    grid = results.grid
    tests = ("printed, %", *(f"best, T = {number}" for number in REPORTS))
    columns = [f"ε∞ = {eps_inf:g}: {test}" for eps_inf in grid.attacked for test in tests]
    rows: dict[tuple[str, str], list[Any]] = {}
    for row, found in _detections(results, attacks):
        name = row["workload"], CONTENDERS[row["contender"]].label
        point = Point(*(row[field] for field in POINT))
        areas = change_areas(results.protocol(point))
        rows.setdefault(name, [*name]).extend([100 * found.share, *areas])
    return Table(
        "table2-best",
        "Changes by the printed test and by the best one",
        ["data set", "protocol", *columns],
        list(rows.values()),
        "Printed test: users of whom it detects every change, in %. Best test: area under the ROC "
        "curve (0.5 is guessing, 1 certainty) for one change, from T reports before and T after, "
        f"values equally likely. α = {grid.middle_alpha:g}, published calibration (ours: tight). "
        + data_note(results),
    )


def visibility_table(results: Results) -> Table:
    """The best test of a change, and eps_2, at every point of the grid."""
    rows = []
    for point in results.points:
        protocol = results.protocol(point)
        exposed = results.measured(point, "exposed")
        rows.append(
            [
                *point.head,
                float(100 * np.mean(exposed)),
                *change_areas(protocol),
                eps_2(protocol),
            ]
        )
    return Table(
        "table2-grid",
        "The best test of a change at every point of the grid",
        [
            "data set",
            "protocol",
            "calibration",
            "ε∞",
            "α",
            "printed test, % of all users",
            *(f"best test, T = {number}" for number in REPORTS),
            "ε₂",
        ],
        rows,
        "The printed test of the whole population exists where memoised answers are sent as they "
        "are. ε₂ is the loss of any one round when all others are known. " + data_note(results),
    )


def _detections(results: Results, attacks: Iterable[Row]) -> list[tuple[Row, Detection]]:
    """Attacks by data set, eps_inf and contender, with their counts."""
    order = list(CONTENDERS)
    workloads = list(results.facts)
    ordered = sorted(
        attacks,
        key=lambda row: (
            workloads.index(row["workload"]), row["eps_inf"], order.index(row["contender"])
        ),
    )  # fmt: skip
    counts = Detection.__dataclass_fields__
    return [(row, Detection(**{name: row[name] for name in counts})) for row in ordered]
