"""One protocol at one budget, measured on a population: a point of a comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from loloha import checks
from loloha.datasets import Dataset
from loloha.errors import ParameterError
from loloha.planning.planning import candidates
from loloha.population.archive import Row
from loloha.population.distinct import detect_changes, record_answers
from loloha.population.evaluation import evaluate
from loloha.population.population import simulate
from loloha.privacy.rounded import product
from loloha.protocols import Protocol

# A real client is a Python object: some tens of microseconds a report.
ATTACKED_REPORTS, FEWEST_ATTACKED = 6_000, 30
"""Reports of the users whose changes are looked for, and how few users there are at least."""
MEASURED = (
    "mse", "expected_mse", "mse_clipped", "mse_uniform", "coverage", "eps_avg", "eps_max",
)  # fmt: skip
"""Columns of each run; several runs have their mean."""


class BudgetPoint(NamedTuple):
    """One protocol at one budget."""

    label: str
    protocol: Protocol
    eps_inf: float


def points_of(
    dataset: Dataset,
    protocols: Iterable[str | Protocol] | str | Protocol,
    eps_inf: Iterable[float] | float,
    alpha: float,
    calibration: str,
) -> list[BudgetPoint]:
    """Every protocol at every budget, in the order in which the protocols are named."""
    alpha = checks.real("alpha", alpha, 0.0, 1.0, "the paper uses 0.4 to 0.6")
    if alpha in (0.0, 1.0):
        raise ParameterError(f"alpha must be inside (0, 1), got {alpha!r}; 0.5 is usual")
    checks.choice("calibration", calibration, ("tight", "published"))
    asked = [protocols] if isinstance(protocols, str | Protocol) else list(protocols)
    names = [wanted for wanted in asked if not isinstance(wanted, Protocol)]
    steps: Sequence[float] = [eps_inf] if isinstance(eps_inf, int | float) else list(eps_inf)
    points = []
    for step in sorted({checks.eps("eps_inf", step) for step in steps}):
        fixed = {"eps_inf": step, "eps_1": product(alpha, step)}
        others = {"k": dataset.k, "calibration": calibration}
        points += [
            BudgetPoint(candidate.label, candidate.protocol, step)
            for candidate in candidates(fixed, others, names)
            if candidate.protocol is not None
        ]
    # A protocol has its own budgets: one point.
    points += [
        BudgetPoint(candidate.label, made, made.asked_memo)
        for candidate in candidates(
            {}, {"k": dataset.k}, [wanted for wanted in asked if wanted not in names]
        )
        if (made := candidate.protocol) is not None
    ]
    if not points:
        raise ParameterError("protocols and eps_inf must be given, got none; see loloha.plan")
    order = list(dict.fromkeys(point.label for point in points))
    return sorted(points, key=lambda point: (order.index(point.label), point.eps_inf))


def name_of(point: BudgetPoint, run: int) -> str:
    """Name of a run in the archive; it decides the run's randomness too."""
    return f"{point.label}/{point.protocol.fingerprint}/eps{point.eps_inf!r}/run{run}"


def measure(
    name: str,
    *,
    dataset: Dataset,
    level: float,
    seed: int,
    tasks: dict[str, tuple[BudgetPoint, int]],
) -> tuple[str, Row]:
    """One run, with randomness that its name alone decides."""
    point, run = tasks[name]
    protocol = point.protocol
    key = np.frombuffer(hashlib.sha256(name.encode()).digest(), dtype=np.uint32)
    counting, attacking = np.random.SeedSequence(seed, spawn_key=key.tolist()).spawn(2)
    result = simulate(protocol, dataset, keep_tallies=False, rng=counting)
    truth: Any = result.truth
    measured = evaluate(protocol, result.estimates, truth, result.n, result.loss).to_dict()
    row: Row = {name: measured[name] for name in MEASURED if name in measured}
    row["coverage"] = result.coverage(level)
    return name, row | (_attack(protocol, dataset, attacking) if run == 0 else {})


def _attack(protocol: Protocol, dataset: Dataset, source: np.random.SeedSequence) -> Row:
    """How often the answers of some users, who report in every round, differ from the last."""
    rng = np.random.default_rng(source)
    steady = np.flatnonzero((dataset.values >= 0).all(axis=1))
    chosen = rng.permutation(steady)[: max(FEWEST_ATTACKED, ATTACKED_REPORTS // dataset.tau)]
    if not len(chosen):
        return {"change_seen": None, "changes": 0, "change_alarms": None, "stays": 0}
    values = dataset.values[chosen]
    answers = record_answers(protocol, values, seed=int(rng.integers(1 << 62)))
    bins = np.array([protocol.encoding.bin(value) for value in range(protocol.k)])
    detection = detect_changes(answers, bins[values])
    return {
        "change_seen": checks.finite(detection.hit_rate),
        "changes": detection.changes,
        "change_alarms": checks.finite(detection.alarm_rate),
        "stays": detection.stays,
    }
