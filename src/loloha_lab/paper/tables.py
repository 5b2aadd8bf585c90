"""The tables of the paper, and what else its evaluation leaves open."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from loloha.protocols import Protocol
from loloha_lab.paper.gain import accuracy_gain, against_usual, budget_gain, mean_ratio
from loloha_lab.paper.grid import CurvePoint
from loloha_lab.paper.grid_results import Results
from loloha_lab.paper.method import BEYOND, METHODS, PAPER, PUBLISHED, TIGHT, Method
from loloha_lab.paper.result_table import Table, data_note

Error = Callable[[CurvePoint], float]
TOGETHER = {"projected": "mse_projected", "filter": "mse_filtered", "smoother": "mse_smoothed"}
"""Columns of the runs whose rounds are estimated together."""


def gain_table(results: Results) -> Table | None:
    """What the tight calibration gains, for the same two guarantees; None if not measured."""
    grid = results.grid
    if not {PUBLISHED, TIGHT} <= set(grid.calibrations):
        return None
    rows = []
    for workload, method in itertools.product(grid.workloads, PAPER):
        gains = [
            accuracy_gain(results, *pair)
            for alpha in grid.alphas[: None if method.two_rounds else 1]
            for pair in results.pairs(workload, method, alpha)
        ]
        if gains:
            measured = [gain.measured for gain in gains]
            expected = [gain.expected for gain in gains]
            rows.append(
                {
                    "data_set": workload,
                    "protocol": method.label,
                    "points that differ": len(gains),
                    "least": min(measured),
                    "median": float(np.median(measured)),
                    "largest": max(measured),
                    "median, theory": float(np.median(expected)),
                    "largest, theory": max(expected),
                }
            )
    return Table(
        "gains",
        "What the tight calibration gains: published over tight MSE_avg (unbiased)",
        rows,
        "Both calibrations keep the same ε∞ and ε₁. " + data_note(results),
    )


def beyond_table(results: Results) -> Table:
    """What least-prime hashing and joint responses gain on OLOLOHA as 0.1.0 makes it."""
    grid = results.grid
    rows = []
    for workload, method in itertools.product(grid.workloads, BEYOND):
        pairs = [
            pair
            for alpha in grid.alphas
            for pair in against_usual(results, workload, method, alpha)
        ]
        errors = mean_ratio([accuracy_gain(results, *pair) for pair in pairs])
        budgets = [budget_gain(results, *pair) for pair in pairs]
        caps = [results.protocol(a).cap / results.protocol(b).cap for a, b in pairs]
        n = results.facts[workload].n
        rows.append(
            {
                "data_set": workload,
                "ours": method.label,
                "points": len(pairs),
                "more MSE, %": 100 * (errors.measured - 1),
                "± standard error": 100 * errors.error,
                "theory, %": 100 * (errors.expected - 1),
                "z": errors.z,
                "ε_avg ratio": mean_ratio(budgets).measured,
                "largest ε_avg ratio": max(budget.measured for budget in budgets),
                "largest ratio of caps": max(caps),
                "users a key, at least": min(
                    _sharing(results.protocol(better), n) for _, better in pairs
                ),
            }
        )
    return Table(
        "beyond",
        "OLOLOHA of 0.1.0 against ours: means over the points of a data set",
        rows,
        "More MSE (unbiased), and ratios, are of 0.1.0 over ours: above 0 %, or 1, ours is better. "
        "Both sides have the tight calibration, the same ε∞ and ε₁, the g of least V* for their "
        "family, and independent runs. Means are geometric. " + data_note(results),
    )


def _sharing(protocol: Protocol, n: int) -> float:
    """With how many users, oneself included, a user shares the key on average."""
    encoding: Any = protocol.encoding
    return float(n / encoding.family.members)


def symbols_table(results: Results) -> Table:
    """The g and the hash family in force for OLOLOHA."""
    grid = results.grid
    curves = [(METHODS["ololoha"], calibration) for calibration in grid.calibrations]
    curves += [(method, TIGHT) for method in grid.methods if method.hash]
    rows = []
    for workload, (method, calibration), alpha in itertools.product(
        grid.workloads, curves, grid.alphas
    ):
        points = results.along(workload, method, calibration, alpha)
        row = {
            "data_set": workload, "protocol": method.label, "calibration": calibration,
            "alpha": alpha,
        }  # fmt: skip
        chosen = {f"ε∞ = {point.eps_inf:g}": _choice(results.protocol(point)) for point in points}
        rows.append(row | chosen)
    return Table(
        "symbols",
        "g in force for OLOLOHA",
        rows,
        "Prime g hash by the linear family, others (*) by the affine one; least prime takes any.",
    )


def _choice(protocol: Protocol) -> str:
    return f"{protocol.g}" + ("*" if protocol.get_params()["hash"] == "affine" else "")


def uniform_table(results: Results) -> Table:
    """From which eps_inf on single rounds, and rounds together, beat the answer "uniform"."""
    grid, middle = results.grid, results.grid.middle_alpha
    columns: dict[str, tuple[float, Error]] = {
        f"α = {alpha:g}": (alpha, partial(results.mean, column="mse_clipped"))
        for alpha in grid.alphas
    }
    columns |= {
        f"α = {middle:g}, {name}": (middle, partial(results.together, column=column))
        for name, column in TOGETHER.items()
    }
    rows = [
        {"data_set": workload, "protocol": method.label}
        | {
            name: _beats_uniform_from(results, workload, method, *of)
            for name, of in columns.items()
        }
        for workload, method in itertools.product(grid.workloads, grid.methods)
    ]
    return Table(
        "uniform",
        "Least ε∞ from which estimates beat the answer “uniform”",
        rows,
        f"Published calibration (ours: tight), up to ε∞ = {max(grid.eps_inf):g}. Single rounds are "
        "clipped and renormalised, as the paper's, or projected to shares as series are; filter "
        "and smoother estimate rounds together, in the first run. dBitFlipPM is compared with "
        "uniform buckets. " + data_note(results),
    )


def _beats_uniform_from(
    results: Results, workload: str, method: Method, alpha: float, error: Error
) -> str:
    first = "never"
    for point in reversed(list(results.along(workload, method, PUBLISHED, alpha))):
        if error(point) >= results.uniform(point):
            break
        first = f"{point.eps_inf:g}"
    return first


def series_table(results: Results) -> Table:
    """What estimating rounds together gains, a row a point at the middle alpha."""
    grid = results.grid
    rows = []
    for workload, method in itertools.product(grid.workloads, grid.methods):
        for point in results.along(workload, method, PUBLISHED, grid.middle_alpha):
            single, filtered, smoothed = (
                results.together(point, column) for column in TOGETHER.values()
            )
            rows.append(
                {
                    **point.head,
                    "mse_uniform": results.uniform(point),
                    "mse_projected": single,
                    "mse_filtered": filtered,
                    "mse_smoothed": smoothed,
                    "gain of the filter": single / filtered,
                    "gain of the smoother": single / smoothed,
                    "coverage": results.together(point, "coverage"),
                }
            )
    return Table(
        "series",
        "Rounds estimated together: errors, gains, coverage of 95 % intervals",
        rows,
        "Errors are MSE_avg of shares, of the first run; gains are over single rounds projected "
        "to shares. " + data_note(results),
    )
