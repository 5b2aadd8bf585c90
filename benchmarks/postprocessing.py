"""Mean squared errors of the post-processing steps on the data sets, for the documentation.

``python -m benchmarks.postprocessing --out docs/postprocess-table.md``
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import loloha
from loloha.datasets import DataError, Dataset
from loloha.postprocess import (
    clip_and_renormalise,
    iterative_bayesian_update,
    project_simplex,
    smooth_ordered,
)
from loloha.server.estimate import Estimate
from loloha.server.tally import Tally

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
EPS_INF, ALPHA, RUNS, ROUNDS = (1.0, 2.0, 4.0), 0.5, 2, 2


def smoothed(estimate: Estimate) -> np.ndarray:
    """The estimate of ordered values, smoothed and not yet projected."""
    return smooth_ordered(estimate.frequencies, estimate.standard_errors**2)


STEPS: dict[str, Callable[[Tally], np.ndarray]] = {
    "unbiased": lambda tally: tally.estimate().frequencies,
    "clipped": lambda tally: clip_and_renormalise(tally.estimate().frequencies),
    "Norm-Sub": lambda tally: project_simplex(tally.estimate().frequencies),
    "IBU": lambda tally: iterative_bayesian_update(tally, tolerance=1e-6),
    "smoothed": lambda tally: project_simplex(smoothed(tally.estimate())),
    "uniform": lambda tally: np.full(tally.protocol.k, 1 / tally.protocol.k),
}


def data_sets() -> dict[str, Dataset]:
    """Some rounds of each, over its whole domain; a stand-in for census files that are missing."""
    found = {
        "Syn": loloha.datasets.syn(tau=ROUNDS, rng=0),
        "Adult": loloha.datasets.adult(tau=ROUNDS, rng=0),
        "Browsers": loloha.datasets.browsers(tau=ROUNDS, rng=0),
    }
    for state, n in (("MT", 10_336), ("DE", 9_123)):
        try:
            found[f"DB_{state}"] = first_rounds(loloha.datasets.acs_weights(state, DATA))
        except DataError:
            found[f"DB_{state} (stand-in)"] = first_rounds(loloha.datasets.acs_standin(n, rng=0))
    return found


def first_rounds(data: Dataset) -> Dataset:
    """The first rounds of the data, with the domain of all of them."""
    return replace(data, values=data.values[:, :ROUNDS], rounds=data.rounds[:ROUNDS])


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
            shown = [
                f"**{millionths(one)}**" if one == least else millionths(one)
                for one in means.values()
            ]
            found.append([f"{name}, k = {data.k}", f"{eps_inf:g}", *shown])
    return found


def millionths(error: float) -> str:
    """The error in millionths, to two digits."""
    return f"{float(f'{1e6 * error:.2g}'):g}"


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
