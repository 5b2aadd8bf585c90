"""Mean squared errors of the post-processing steps on the four data sets, for the documentation.

``python -m benchmarks.postprocessing --out docs/postprocess-table.md``
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import loloha
from loloha.server.postprocess import (
    clip_and_renormalise,
    iterative_bayesian_update,
    project_simplex,
)
from loloha.server.tally import Tally
from loloha.study.datasets import DataError, Dataset

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
EPS_INF, ALPHA, RUNS, ROUNDS = (1.0, 2.0, 4.0), 0.5, 2, 2
STEPS: dict[str, Callable[[Tally], np.ndarray]] = {
    "unbiased": lambda tally: tally.estimate().frequencies,
    "clipped": lambda tally: clip_and_renormalise(tally.estimate().frequencies),
    "Norm-Sub": lambda tally: project_simplex(tally.estimate().frequencies),
    "IBU": lambda tally: iterative_bayesian_update(tally, tolerance=1e-6),
    "smoothed IBU": lambda tally: iterative_bayesian_update(
        tally, iterations=200, tolerance=1e-7, smooth=True
    ),
    "uniform": lambda tally: np.full(tally.protocol.k, 1 / tally.protocol.k),
}


def data_sets() -> dict[str, Dataset]:
    """Some rounds of each; a stand-in for the census where its files are not there."""
    found = {
        "Syn": loloha.datasets.syn(tau=ROUNDS, rng=0),
        "Adult": loloha.datasets.adult(tau=ROUNDS, rng=0),
    }
    for state, n in (("MT", 10_336), ("DE", 9_123)):
        try:
            found[f"DB_{state}"] = loloha.datasets.acs_weights(state, DATA, tau=ROUNDS)
        except DataError:
            found[f"DB_{state} (stand-in)"] = loloha.datasets.acs_standin(n, tau=ROUNDS, rng=0)
    return found


def rows() -> list[list[str]]:
    """A row for each data set and budget; the least error is bold."""
    found = []
    for name, data in data_sets().items():
        for eps_inf in EPS_INF:
            protocol = loloha.OLOLOHA(k=data.k, eps_inf=eps_inf, eps_1=ALPHA * eps_inf)
            errors: dict[str, list[float]] = {step: [] for step in STEPS}
            for run in range(RUNS):
                result = loloha.simulate(protocol, data, rng=run)
                for tally, truth in zip(result.tallies, result.truth, strict=True):
                    for step, apply in STEPS.items():
                        errors[step].append(float(np.mean((apply(tally) - truth) ** 2)))
            means = {step: float(np.mean(several)) for step, several in errors.items()}
            least = min(means.values())
            shown = [f"**{one:.2g}**" if one == least else f"{one:.2g}" for one in means.values()]
            found.append([f"{name}, k = {data.k}", f"{eps_inf:g}", *shown])
    return found


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    header = ["data set", "$\\varepsilon_\\infty$", *STEPS]
    lines = [header, ["---"] * len(header), *rows()]
    out.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
