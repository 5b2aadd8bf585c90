"""The numbers behind each difference from the paper, computed on the spot."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from loloha.protocols import LGRR, RAPPOR, BiLOLOHA, DBitFlipPM, Protocol, Realised
from loloha.server.estimate import variance
from loloha_lab.paper.gain import accuracy_gain
from loloha_lab.paper.grid import CurvePoint
from loloha_lab.paper.grid_results import Results
from loloha_lab.paper.method import METHODS, PUBLISHED, TIGHT
from loloha_lab.paper.pattern import WORST_REPORTS, change_aucs, pattern_losses, worst_losses
from loloha_lab.paper.printed import (
    BETA,
    exact_exceedance,
    exposed_by_bucket,
    gamma_variance,
    mean_if_one_over_g,
    paper_error_bound,
    paper_flip_variance,
)


class Evidence(NamedTuple):
    """What was computed, and the numbers."""

    what: str
    numbers: str


def variance_of_frequent_values(results: Results) -> Iterable[Evidence]:
    """The error of the most frequent value, over both formulas."""
    for point in _points(results, "Adult", ("l-osue", "rappor"), alpha_place=-1):
        protocol, n = results.protocol(point), results.facts[point.workload].n
        f = float(np.mean(results.truth(point).max(axis=1)))
        measured = float(np.mean(results.measured(point, "mse_top")))
        yield Evidence(
            f"{_name(point)}: most frequent value, f = {f:.2f}",
            f"measured / Eq. (1) = {measured / float(variance(protocol, n, f)):.3f}, "
            f"measured / γ(1−γ) form = {measured / gamma_variance(protocol, n, f):.3f}",
        )


def calibration() -> Iterable[Evidence]:
    """What the published calibration of L-GRR realises, and what it costs."""
    published, tight, gain = _calibrated(LGRR, eps_1=1.0)
    yield Evidence(
        "L-GRR, k = 96, ε∞ = 2, ε₁ = 1",
        f"the first report realises ε₁ = {published.eps_first:.4f} where 1 was asked; "
        f"tight: {tight.eps_first:.4f} and {gain:.0f} times less variance",
    )


def single_bucket() -> Iterable[Evidence]:
    """The same for dBitFlipPM with one bucket."""
    published, tight, gain = _calibrated(DBitFlipPM, d=1)
    yield Evidence(
        "1BitFlipPM, ε∞ = 2",
        f"realised {published.eps_memo:.3f}, tight {tight.eps_memo:.3f} at {gain:.2f} times less "
        "variance",
    )


def gains(results: Results, keys: Iterable[str]) -> Iterable[Evidence]:
    """Largest measured gain of each method, where both calibrations were measured."""
    for key in keys:
        pairs = [
            (pair[0], accuracy_gain(results, *pair))
            for workload in results.grid.workloads
            for alpha in results.grid.alphas
            for pair in results.pairs(workload, METHODS[key], alpha)
        ]
        if pairs:
            point, gain = max(pairs, key=lambda pair: pair[1].expected)
            yield Evidence(
                f"{_name(point)}: measured, where the gain is largest",
                f"{gain.measured:.4g} times less MSE_avg (theory {gain.expected:.4g})",
            )


def collisions(results: Results) -> Iterable[Evidence]:
    """The mean estimate with the exact collision probability, and with 1/g in its place."""
    for point in _points(results, "Adult", ("biloloha",), alpha_place=-1):
        protocol = results.protocol(point)
        mean = float(np.mean(results.measured(point, "mean_estimate")))
        wrong = mean_if_one_over_g(protocol, mean)
        yield Evidence(
            f"{_name(point)}: mean estimate of all values, times k (1 without bias)",
            f"with the exact c₀: {mean * protocol.k:.3f}; "
            f"with 1/g in its place: {wrong * protocol.k:.3f}",
        )


def flip_variance(results: Results) -> Iterable[Evidence]:
    """The error of bBitFlipPM over both formulas of V*."""
    for place in (0, -1):
        for point in _points(results, "Syn", ("bbitflippm",), eps_place=place):
            theirs = paper_flip_variance(results.protocol(point), results.facts[point.workload].n)
            measured = results.mean(point, "mse")
            yield Evidence(
                f"{_name(point)}: MSE_avg over V*",
                f"measured / ours = {measured / results.v_star(point):.3f}, "
                f"measured / paper's = {measured / theirs:.3f}",
            )


def change_patterns() -> Iterable[Evidence]:
    """Exact losses beyond g eps_inf."""
    protocol = BiLOLOHA(k=2, eps_inf=1.0, eps_1=0.5)
    alternating, worst = pattern_losses(protocol, 10), worst_losses(protocol, WORST_REPORTS)
    first = int(np.argmax(worst > protocol.cap))
    yield Evidence(
        "BiLOLOHA, ε∞ = 1, ε₁ = 0.5, so g ε∞ = 2; exact",
        f"worst pair of sequences: {worst[first]:.3f} after {first + 1} reports; constant "
        f"against alternating: {alternating[3]:.2f} after 4, {alternating[9]:.2f} after 10",
    )


def best_test() -> Iterable[Evidence]:
    """What the best test of a change sees of three protocols after one report, and after ten."""
    for key in ("rappor", "l-osue", "biloloha"):
        method = METHODS[key]
        once, often = change_aucs(method.build(96, 2.0, 0.5))
        yield Evidence(
            f"{method.label}, k = 96, ε∞ = 2, ε₁ = 1: area under the ROC curve of the best test",
            f"{once:.2f} from one report before and one after, {often:.2f} from ten",
        )


def bound() -> Iterable[Evidence]:
    """How often the printed bound is passed."""
    protocol, n = RAPPOR(k=2, eps_inf=0.1, eps_1=0.02), 1000
    chance = exact_exceedance(protocol, n, paper_error_bound(protocol, n))
    yield Evidence(
        f"RAPPOR, k = 2, n = {n}, ε₁ = 0.02, β = {BETA}: exact chance that one value's error "
        "exceeds the paper's bound",
        f"{chance:.2f}, asked for at most {BETA}",
    )


def rounds_beyond(results: Results) -> Iterable[Evidence]:
    """How often Hoeffding's bound is passed."""
    rounds = sum(row["rounds"] for row in results.rows)
    beyond = sum(row["rounds_beyond"] for row in results.rows)
    yield Evidence(
        "Rounds of the whole grid in which some value's error exceeds the Hoeffding bound",
        f"{beyond} of {rounds} ({100 * beyond / rounds:.3f} %, at most 5 % expected)",
    )


def truth_of_the_round(results: Results) -> Iterable[Evidence]:
    """What holding every round against the last one's truth does."""
    for workload in results.grid.workloads:
        for point in _points(results, workload, ("bbitflippm",)):
            late, own = (results.mean(point, metric) for metric in ("mse_last_truth", "mse"))
            yield Evidence(
                f"{_name(point)}: against the last round's truth over against its own",
                f"{late / own:.3f}",
            )


def memo_of_a_bucket(results: Results) -> Iterable[Evidence]:
    """Users exposed by memos of patterns, as measured, and of buckets."""
    for place in (0, -1):
        for point in _points(results, "DB_MT", ("1bitflippm",), eps_place=place):
            visits = results.material(point).visits
            apart = 100 * exposed_by_bucket(results.protocol(point), visits)
            yield Evidence(
                f"{_name(point)}: users of whom every change shows",
                f"measured {100 * results.mean(point, 'exposed'):.5f} %; with an answer memoised "
                f"for each bucket it would be {apart:.4f} %",
            )


def _points(
    results: Results,
    workload: str,
    keys: Iterable[str],
    *,
    alpha_place: int = 0,
    eps_place: int = -1,
) -> list[CurvePoint]:
    """The published points of some methods at one eps_inf, if they were measured."""
    grid = results.grid
    if workload not in grid.workloads or PUBLISHED not in grid.calibrations:
        return []
    alpha = grid.alphas[alpha_place]
    curves = [results.along(workload, METHODS[key], PUBLISHED, alpha) for key in keys]
    return [list(curve)[eps_place] for curve in curves]


def _calibrated(cls: Callable[..., Protocol], **more: float) -> tuple[Realised, Realised, float]:
    """What each calibration realises at k = 96 and eps_inf = 2, and how much less V* tight has."""
    published, tight = (
        cls(k=96, eps_inf=2.0, calibration=each, **more) for each in (PUBLISHED, TIGHT)
    )
    gain = float(variance(published, 1)) / float(variance(tight, 1))
    return published.realised, tight.realised, gain


def _name(point: CurvePoint) -> str:
    second = "" if point.alpha is None else f", α = {point.alpha:g}"
    return f"{METHODS[point.method].label} on {point.workload}, ε∞ = {point.eps_inf:g}{second}"
