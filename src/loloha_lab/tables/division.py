"""Panels beside other ways to keep a loss in any window: ``python -m loloha_lab.tables.division``.

Population division (LPU) and budget division (LBU) of LDP-IDS (arXiv 2204.00526), with fresh OLH,
are run as they are published: a random 1/w of the users with all of the budget, or all of them
with a w-th. The table of ``docs/panels.md``; equal seeds give equal figures. Exits with 1 where a
goal is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import loloha
from loloha.arrays import Floats, Ints
from loloha.datasets import browsers
from loloha.planning.window_plan import Way
from loloha.population import Simulation
from loloha.server.mean import mean_variance
from loloha.server.panel import rolling
from loloha_lab.tables import markdown

USERS, ROUNDS, WINDOW, LOSS, RUNS = 30_000, 60, 30, 2.0, 3
OVER_LPU, BELOW_ALL_ROUNDS = 1.4, 20.0
"""Goals: squared error of a window over population division's, and below LOLOHA in all rounds."""
HEAD = (
    "population", "way", "any 30 rounds lose", "one value, for ever", "reports of a user in 30",
    "MSE of a round", "expected", "MSE of the mean of 30", "expected",
)  # fmt: skip


class Measured(NamedTuple):
    """Mean squared errors over all values of a round and of a window, and what theory expects."""

    way: Way
    reports: float
    round: float
    expected_round: float
    window: float
    expected_window: float


def drifting(n: int, tau: int, *, k: int = 96, change: float = 0.02, rng: int) -> Ints:
    """Values of Zipf's frequencies, drawn anew with a small chance in each round; int64[n, tau].

    Frequencies drift: what is drawn in the last round lies a tenth of the domain further on.
    """
    source = np.random.default_rng(rng)
    shares = 1 / np.arange(1, k + 1)
    values = source.choice(k, size=(n, tau), p=shares / shares.sum())
    values = (values + np.arange(tau) * k // (10 * tau)) % k
    moved = source.random((n, tau)) < change
    for t in range(1, tau):
        values[:, t] = np.where(moved[:, t], values[:, t], values[:, t - 1])
    return values


def frequencies(values: Ints, k: int) -> Floats:
    """Of each round, float64[tau, k]."""
    return np.array([np.bincount(column, minlength=k) for column in values.T]) / len(values)


def measured(way: Way, values: Ints, window: int, seed: int) -> Measured:
    """One way on one population, in one run."""
    k = way.protocol.k
    result = loloha.simulate(way.protocol, values, every=way.every, keep_tallies=False, rng=seed)
    truth = frequencies(values, k)
    means = window_means(result, window)
    true_means = sliding_window_view(truth, window, axis=0).mean(axis=-1)
    sizes, f = result.n[:window].tolist(), truth.mean(axis=0)
    users = len(values) if way.every > 1 else None
    single, several = (
        float(np.mean(mean_variance(way.protocol, some, f, every=way.every, population=users)))
        for some in ([round(np.mean(sizes))], sizes)
    )
    reports = float(result.n.sum()) / len(values) * window / len(truth)
    return Measured(
        way, reports, float(((result.estimates - truth) ** 2).mean()), single,
        float(((means - true_means) ** 2).mean()), several,
    )  # fmt: skip


def window_means(result: Simulation, window: int) -> Floats:
    """Of each full window: all its reports count once; float64[windows, bins]."""
    means = rolling(result.observations(), window)
    return np.array([means[t].frequencies for t in range(window - 1, len(result.n))])


def compared(values: Ints, k: int, window: int, loss: float, seed: int) -> list[Measured]:
    """All ways on one population: what is planned for it first."""
    plan = loloha.plan(k, len(values), window=window, loss=loss)
    return [measured(way, values, window, seed) for way in plan.ways]


def mean_of_runs(runs: Sequence[list[Measured]]) -> list[Measured]:
    """The same numbers, each the mean of the runs."""
    return [Measured(ways[0].way, *np.mean([way[1:] for way in ways], axis=0).tolist())
            for ways in zip(*runs, strict=True)]  # fmt: skip


def missed(ways: Sequence[Measured]) -> list[str]:
    """Which goals are missed; see `loloha_lab.tables.division`."""
    panels, lpu, _, all_rounds, _ = ways
    one_value = loloha.privacy.growth(panels.way.protocol, reports=[10_000])[0]
    goals = {
        f"MSE of a window at most {OVER_LPU} times LPU's": panels.window <= OVER_LPU * lpu.window,
        f"below LOLOHA in all rounds by {BELOW_ALL_ROUNDS:g}": (
            BELOW_ALL_ROUNDS * panels.window <= all_rounds.window
        ),
        "one report in a window": abs(panels.reports - 1) < 1e-9,
        "loss of any window": panels.way.window_loss <= LOSS * (1 + 1e-9),
        "loss of 10 000 reports of one value": one_value <= panels.way.value_loss,
    }  # fmt: skip
    return [goal for goal, met in goals.items() if not met]


def populations() -> Iterator[tuple[str, int, list[Ints]]]:
    """Name, number of values, and a population for each run."""
    yield (
        "Zipf, 2 % change a round", 96,
        [drifting(USERS, ROUNDS, rng=run) for run in range(RUNS)],
    )  # fmt: skip
    data = browsers(USERS, tau=ROUNDS, rng=0)
    yield "Browsers, 1 to 4 % a round", data.k, [np.asarray(data.values)] * RUNS


def row(name: str, result: Measured) -> list[str]:
    """A line of the table."""
    bound = "no bound" if np.isinf(result.way.value_loss) else f"{result.way.value_loss:.3g}"
    numbers: Any = (result.round, result.expected_round, result.window, result.expected_window)
    return [
        name, result.way.name, f"{result.way.window_loss:.3g}", bound, f"{result.reports:.3g}",
        *(f"{number:.2e}" for number in numbers),
    ]  # fmt: skip


def main() -> int:
    """Print the table; 1 if a goal is missed."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows: list[Sequence[str]] = []
    failures: list[str] = []
    for name, k, runs in populations():
        ways = mean_of_runs(
            [compared(values, k, WINDOW, LOSS, seed) for seed, values in enumerate(runs)]
        )
        rows += [row(name, way) for way in ways]
        failures += [f"{name}: {goal}" for goal in missed(ways)]
    sys.stdout.write(markdown(HEAD, rows))
    sys.stderr.write("".join(f"missed: {failure}\n" for failure in failures))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
