"""One measurement: a population simulated under one protocol, compared with the truth."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from typing import Any

import numpy as np

from loloha.arrays import Floats
from loloha.population import Supports, supports
from loloha.population.archive import Row
from loloha.population.evaluation import binned
from loloha.postprocess import clip_and_renormalise, project_simplex
from loloha.protocols import Protocol
from loloha.server.bound import simultaneous_error
from loloha.server.observations import Observations
from loloha.server.series import series
from loloha.server.unbiased import unbiased
from loloha_lab.attacks import detect_changes, detect_memoised, record_answers
from loloha_lab.paper.grid import Attack, Cell, Smoothing, Visibility, seed_sequence
from loloha_lab.paper.pattern import change_aucs
from loloha_lab.paper.workload import Material

LEVEL = 0.95
"""Level of the simultaneous error bounds (MATH section 9) and intervals that are checked."""


def measure_visibility(task: Visibility, material: Material, seed: int) -> Row:
    """Areas under the ROC curve of the best test of a change; nothing is drawn from ``seed``."""
    protocol = task.point.protocol(material.facts)
    return task.point.row | {"areas": change_aucs(protocol)}


def measure(cell: Cell, material: Material, seed: int) -> Row:
    """Simulate all clients of one cell and compare the estimates with the truth."""
    started = time.perf_counter()
    facts = material.facts
    protocol = cell.point.protocol(facts)
    _, attacking = seed_sequence(cell, seed).spawn(2)
    simulated = _simulated(cell, material, seed)
    row = cell.point.row | {
        "run": cell.run,
        "g": protocol.g,
        "hash": protocol.get_params().get("hash"),
        "n": facts.n,
        "bins": protocol.bins,
        "rounds": facts.tau,
    }
    row |= _errors(protocol, simulated, material)
    row |= {
        "eps_avg": float(np.mean(simulated.loss)),
        "eps_max": float(np.max(simulated.loss)),
        "exposed": None,
    }
    if protocol.second_channel is None:
        row["exposed"] = detect_memoised(
            protocol, material.visits, np.random.default_rng(attacking)
        ).share
    return row | {"seconds": time.perf_counter() - started, "numpy": np.__version__}


def measure_series(task: Smoothing, material: Material, seed: int) -> Row:
    """Errors of the point's first run: rounds by themselves, filtered and smoothed."""
    started = time.perf_counter()
    facts = material.facts
    protocol = task.point.protocol(facts)
    simulated = _simulated(Cell(task.point, 0), material, seed)
    truth = binned(protocol, material.truth)
    single = unbiased(protocol, simulated.supports, simulated.eligible)
    seen = Observations(
        protocol, list(range(facts.tau)), single, simulated.eligible, np.full(facts.tau, facts.n)
    )
    smoothed = series(seen)
    filtered = seen.plausible(*smoothed.states.filtered)
    lower, upper = smoothed.interval(LEVEL)
    return task.point.row | {
        "mse_projected": _mean_square(project_simplex(np.nan_to_num(single)) - truth),
        "mse_filtered": _mean_square(filtered - truth),
        "mse_smoothed": _mean_square(smoothed.estimates - truth),
        "coverage": float(((lower <= truth) & (truth <= upper)).mean()),
        "seconds": time.perf_counter() - started,
    }


def _simulated(cell: Cell, material: Material, seed: int) -> Supports:
    counting, _ = seed_sequence(cell, seed).spawn(2)
    protocol = cell.point.protocol(material.facts)
    return supports(protocol, material.history, rng=np.random.default_rng(counting))


def measure_attack(attack: Attack, material: Material, seed: int) -> Row:
    """Run a client for some users, drawn at random: the point, and the counts of a `Detection`."""
    facts = material.facts
    protocol = attack.point.protocol(facts)
    rng = np.random.default_rng(seed_sequence(attack, seed))
    chosen = rng.choice(facts.n, size=attack.users, replace=False)
    values = np.asarray(material.values[np.sort(chosen)], dtype=np.int64)
    answers = record_answers(protocol, values, seed=int(rng.integers(1 << 62)))
    buckets = values * facts.buckets // facts.k if protocol.bins != facts.k else values
    return attack.point.row | asdict(detect_changes(answers, buckets))


def _errors(protocol: Protocol, simulated: Supports, material: Material) -> dict[str, Any]:
    truth = binned(protocol, material.truth)
    estimates = unbiased(protocol, simulated.supports, simulated.eligible)
    known = ~np.isnan(estimates[0])
    errors = (estimates - truth)[:, known]
    late = (estimates - truth[-1])[:, known]
    clipped = clip_and_renormalise(np.where(known, estimates, 0.0)) - truth
    top = np.take_along_axis(estimates - truth, truth.argmax(axis=1)[:, None], axis=1)
    # Everybody reports in every round, so the eligible users are those of the first one.
    bounds = simultaneous_error(protocol, simulated.eligible[0][known], level=LEVEL)
    return {
        "mse": _mean_square(errors),
        "mse_clipped": _mean_square(clipped),
        "mse_last_truth": _mean_square(late),
        "mse_top": _mean_square(top[~np.isnan(top)]),
        "mean_estimate": float(np.mean(estimates[:, known])),
        "largest_error": float(np.mean(np.abs(errors).max(axis=1))),
        "rounds_beyond": int(np.count_nonzero((np.abs(errors) > bounds).any(axis=1))),
    }


def _mean_square(errors: Floats) -> float:
    return float(np.mean(np.square(errors))) if errors.size else math.nan
