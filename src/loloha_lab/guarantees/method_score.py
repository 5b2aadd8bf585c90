"""Errors of each method under each guarantee, beside theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from loloha.arrays import Floats
from loloha.datasets import browsers
from loloha.postprocess import project_simplex
from loloha_lab.guarantees.compared_method import (
    GUARANTEES,
    WINDOW,
    ComparedMethod,
    Population,
    methods,
)
from loloha_lab.paper.theory import Deviation, deviation_of
from loloha_lab.paper.workload import WORKLOADS

BROWSERS = "Browsers"
BROWSER_USERS, BROWSER_ROUNDS = 20_000, 60


class Score(NamedTuple):
    """One method under one guarantee on one data set.

    Attributes
    ----------
    round, mean : Deviation or None
        Mean squared error of unbiased estimates of rounds, and of means of `WINDOW` rounds, over
        the runs; None where the guarantee cannot be met.
    projected_round, projected_mean : float
        The same after projection to the simplex; NaN there.
    smoothed : float
        Of rounds estimated together, by `loloha.series`, in one run; NaN where that was not done.
    """

    guarantee: str
    data: str
    method: ComparedMethod
    round: Deviation | None = None
    mean: Deviation | None = None
    projected_round: float = math.nan
    projected_mean: float = math.nan
    smoothed: float = math.nan


class GuaranteeScores(NamedTuple):
    """All of a comparison.

    Attributes
    ----------
    uniform : dict of str to float
        Mean squared error of a round's answer "uniform", which needs no data, by data set.
    captions : dict of str to str
        Origin and size of each data set.
    """

    rows: list[Score]
    uniform: dict[str, float]
    captions: dict[str, str]

    def of(self, guarantee: str, data: str) -> list[Score]:
        """All methods under one guarantee on one data set."""
        return [row for row in self.rows if (row.guarantee, row.data) == (guarantee, data)]

    def to_rows(self) -> list[dict[str, Any]]:
        """As JSON data: a row for each error that was measured, or why there is none."""
        rows = []
        for row in self.rows:
            method = row.method
            cell: dict[str, Any] = {
                "guarantee": row.guarantee,
                "data_set": row.data,
                "protocol": method.name,
            }
            cell |= {"parameters": method.parameters, "reason": method.why}
            for kind, error in (("round", row.round), (f"mean of {WINDOW}", row.mean)):
                if error is None:
                    rows.append(
                        {**cell, "error": kind, "mse": None, "expected_mse": None, "z": None}
                    )
                else:
                    measured = {"mse": error.measured, "expected_mse": error.expected, "z": error.z}
                    rows.append({**cell, "error": kind, **measured})
        return rows


def populations(
    folder: Path | None, names: Iterable[str], *, quick: bool = False
) -> Iterator[Population]:
    """The paper's data sets, those that are not synthetic from a folder, and browsers."""
    seed = np.random.SeedSequence(2023)
    for name in names:
        if name == BROWSERS:
            data = browsers(BROWSER_USERS, tau=BROWSER_ROUNDS, rng=0)
        else:
            data = WORKLOADS[name].load(folder, 2 * WINDOW if quick else None, seed)
        values = data.values[:2000] if quick else data.values
        yield Population(name, values, data.k, data.source)


def score(
    populations: Iterable[Population], runs: int, progress: Callable[[str], object] = lambda _: None
) -> GuaranteeScores:
    """Measure all methods on all populations; equal seeds give equal numbers."""
    rows, uniform, captions = [], {}, {}
    for population in populations:
        uniform[population.name] = float(np.mean((population.truth - 1 / population.k) ** 2))
        captions[population.name] = (
            f"{population.source}, n = {population.n}, k = {population.k}, τ = {population.tau}"
        )
        for guarantee in GUARANTEES:
            for method in methods(guarantee, population):
                progress(f"{population.name}, {guarantee}: {method.name}")
                rows.append(measured(guarantee, population, method, runs))
    return GuaranteeScores(rows, uniform, captions)


def measured(guarantee: str, population: Population, method: ComparedMethod, runs: int) -> Score:
    """One method on one population."""
    if method.run is None:
        return Score(guarantee, population.name, method)
    truth, true_means = population.truth, population.means(population.truth)
    errors, expected, smoothed = np.empty((runs, 4)), np.empty((runs, 2)), math.nan
    for seed in range(runs):
        outcome = method.run(population, seed)
        errors[seed] = (
            _mean_square(outcome.estimates - truth),
            _mean_square(outcome.means - true_means),
            _mean_square(project_simplex(outcome.estimates) - truth),
            _mean_square(project_simplex(outcome.means) - true_means),
        )
        expected[seed] = outcome.expected_round, outcome.expected_mean
        if outcome.smoothed is not None:
            smoothed = _mean_square(outcome.smoothed - truth)
    # What is expected of a run depends on it where a method does: compared with run by run.
    ratios = errors[:, :2] / expected
    of_round, of_mean = (
        deviation_of(ratio * expectation, expectation)
        for ratio, expectation in zip(ratios.T, expected.mean(axis=0).tolist(), strict=True)
    )
    of_projected = errors[:, 2:].mean(axis=0).tolist()
    return Score(
        guarantee, population.name, method, of_round, of_mean, of_projected[0], of_projected[1],
        smoothed,
    )  # fmt: skip


def _mean_square(differences: Floats) -> float:
    return float(np.mean(np.square(differences)))
