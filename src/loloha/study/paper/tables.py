"""The tables of the paper, and what else its evaluation leaves open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from loloha.study.archive import Row
from loloha.study.attacks import Detection
from loloha.study.paper.contender import CONTENDERS, PUBLISHED, TIGHT, Contender
from loloha.study.paper.costs import FORMULAS, Cost
from loloha.study.paper.grid import Point
from loloha.study.paper.results import Results
from loloha.study.paper.table import Table, data_note


def cost_table(costs: Iterable[Cost], n: int) -> Table:
    """Table 1: formulas, and what was measured on this machine."""
    rows = []
    for cost in costs:
        bits, theirs, ours, cap = FORMULAS[cost.contender.key]
        rows.append(
            [
                cost.contender.label,
                bits,
                cost.report_bytes,
                cost.key_bytes,
                theirs,
                ours,
                cost.server_seconds * 1e3,
                cost.client_seconds * 1e6,
                cap,
                cost.protocol.cap,
            ]
        )
    first = next(iter(costs), None)
    k = first.protocol.k if first else 0
    return Table(
        "table1",
        "Table 1. Communication, server cost and worst-case budget",
        [
            "protocol",
            "bits a report",
            "bytes, measured",
            "bytes of the key, once",
            "server, paper",
            "server, here",
            "ms a round, measured",
            "µs a report on a device, measured",
            "cap",
            "cap in numbers",
        ],
        rows,
        f"Measured at k = {k}, n = {n}, ε∞ = 2, ε₁ = 1, published calibration; the server counts "
        "and decodes reports in memory on one core, the device is the Python client. No data set.",
    )


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
    rows = []
    for row in attacks:
        counts = {name: row[name] for name in Detection.__dataclass_fields__}
        found = Detection(**counts)
        rows.append(
            [
                row["workload"],
                CONTENDERS[row["contender"]].label,
                row["eps_inf"],
                row["alpha"],
                100 * found.share,
                100 * found.hit_rate,
                100 * found.alarm_rate,
            ]
        )
    order = [contender.label for contender in CONTENDERS.values()]
    workloads = list(results.facts)
    rows.sort(key=lambda row: (workloads.index(row[0]), row[2], order.index(row[1])))
    users = max((row["users"] for row in attacks), default=0)
    return Table(
        "table2-attack",
        "The same attack on every protocol, in % (not in the paper)",
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
        f"Real clients of {users} users drawn at random, published calibration. Where the last two "
        "columns are alike, a changed report says next to nothing about a changed value. "
        + data_note(results),
    )


def gain_table(results: Results) -> Table | None:
    """What the tight calibration gains, for the same two guarantees; None if not measured."""
    if not {PUBLISHED, TIGHT} <= set(results.grid.calibrations):
        return None
    rows = []
    for workload in results.grid.workloads:
        for contender in CONTENDERS.values():
            pairs = [
                pair
                for alpha in results.grid.alphas[: None if contender.two_rounds else 1]
                for pair in results.pairs(workload, contender, alpha)
            ]
            if not pairs:
                continue
            measured = [_mean(results, a) / _mean(results, b) for a, b in pairs]
            expected = [results.expected(a) / results.expected(b) for a, b in pairs]
            rows.append(
                [
                    workload,
                    contender.label,
                    len(pairs),
                    min(measured),
                    float(np.median(measured)),
                    max(measured),
                    float(np.median(expected)),
                    max(expected),
                ]
            )
    return Table(
        "gains",
        "What the tight calibration gains: published over tight MSE_avg (unbiased)",
        [
            "data set",
            "protocol",
            "points that differ",
            "least",
            "median",
            "largest",
            "median, theory",
            "largest, theory",
        ],
        rows,
        "Both calibrations keep the same ε∞ and ε₁. " + data_note(results),
    )


def symbols_table(results: Results) -> Table:
    """The g and the hash family in force for OLOLOHA."""
    contender = CONTENDERS["ololoha"]
    rows = []
    for workload in results.grid.workloads:
        for calibration in results.grid.calibrations:
            for alpha in results.grid.alphas:
                points = results.along(workload, contender, calibration, alpha)
                protocols = [results.protocol(point) for point in points]
                chosen = [
                    f"{protocol.g}" + ("" if protocol.get_params()["hash"] == "linear" else "*")
                    for protocol in protocols
                ]
                rows.append([workload, calibration, alpha, *chosen])
    return Table(
        "symbols",
        "g in force for OLOLOHA",
        ["data set", "calibration", "α", *(f"ε∞ = {eps:g}" for eps in results.grid.eps_inf)],
        rows,
        "Prime g hash by the linear family, the others (*) by the affine one.",
    )


def uniform_table(results: Results) -> Table:
    """From which eps_inf on the clipped estimates beat the answer "uniform"."""
    rows = []
    for workload in results.grid.workloads:
        for contender in CONTENDERS.values():
            found: list[Any] = []
            for alpha in results.grid.alphas:
                points = list(results.along(workload, contender, PUBLISHED, alpha))
                better = [
                    float(np.mean(results.measured(point, "mse_clipped"))) < results.uniform(point)
                    for point in points
                ]
                first = next(
                    (at for at in range(len(points)) if all(better[at:])),
                    None,
                )
                found.append("never" if first is None else f"{points[first].eps_inf:g}")
            rows.append([workload, contender.label, *found])
    return Table(
        "uniform",
        "Least ε∞ from which the clipped estimates beat the answer “uniform”",
        ["data set", "protocol", *(f"α = {alpha:g}" for alpha in results.grid.alphas)],
        rows,
        "Published calibration, up to ε∞ = "
        f"{max(results.grid.eps_inf):g}. dBitFlipPM is held against uniform buckets. "
        + data_note(results),
    )


def _mean(results: Results, point: Point) -> float:
    return float(np.mean(results.measured(point, "mse_unbiased")))
