"""Where the paper and we differ: each correction, with numbers computed on the spot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from loloha.rules.protocols import LGRR, RAPPOR, BiLOLOHA, DBitFlipPM
from loloha.server.estimate import variance
from loloha.study.paper.contender import CONTENDERS, PUBLISHED, TIGHT
from loloha.study.paper.grid import Point
from loloha.study.paper.pattern import WORST_REPORTS, pattern_losses, worst_losses
from loloha.study.paper.printed import (
    BETA,
    exact_exceedance,
    exposed_by_bucket,
    gamma_variance,
    mean_if_one_over_g,
    paper_error_bound,
    paper_flip_variance,
)
from loloha.study.paper.results import Results


class Evidence(NamedTuple):
    """What was computed, and the numbers."""

    what: str
    numbers: str


@dataclass(frozen=True)
class Difference:
    """One point on which the paper and we differ.

    Attributes
    ----------
    title : str
    theirs, ours : str
        In our own words.
    where : str
        The page of mathematics, and the figure or table that shows it.
    evidence : list of Evidence
        What was computed, and the numbers.
    """

    title: str
    theirs: str
    ours: str
    where: str
    evidence: list[Evidence]


def differences(results: Results | None) -> list[Difference]:
    """All of them; those that need measurements use what ``results`` holds.

    Parameters
    ----------
    results : Results or None
        None where no grid was measured.
    """
    return [
        _variance_of_frequent_values(results),
        _calibration(results),
        _collisions(results),
        _flip_variance(results),
        _single_bucket(results),
        _patterns(),
        _bounds(results),
        _truth_of_the_round(results),
        _memo_of_a_bucket(results),
    ]


def _variance_of_frequent_values(results: Results | None) -> Difference:
    evidence = []
    for known, point in _points(results, "Adult", ("l-osue", "rappor"), alpha_place=-1):
        protocol, n = known.protocol(point), known.facts[point.workload].n
        f = float(np.mean(known.truth(point).max(axis=1)))
        measured = float(np.mean(known.measured(point, "mse_top")))
        ours = float(variance(protocol, n, f))
        evidence.append(
            Evidence(
                f"{_name(point)}: most frequent value, f = {f:.2f}",
                f"measured / Eq. (1) = {measured / ours:.3f}, "
                f"measured / γ(1−γ) form = {measured / gamma_variance(protocol, n, f):.3f}",
            )
        )
    return Difference(
        "Variance of a frequent value",
        "The variance of an estimate is γ(1−γ)/(n (p∗−q∗)²), γ the chance that a report supports "
        "the value.",
        "That adds the noise of drawing the users anew, and holds for a fixed population only at "
        "f = 0. With fixed users each report keeps its own chance: (f p∗(1−p∗) + (1−f) q∗(1−q∗)) / "
        "(n (p∗−q∗)²). Both give the same V*.",
        "Maths, section 1; figure 3, points and theory.",
        evidence,
    )


def _calibration(results: Results | None) -> Difference:
    published = LGRR(k=96, eps_inf=2.0, eps_1=1.0, calibration=PUBLISHED)
    tight = LGRR(k=96, eps_inf=2.0, eps_1=1.0)
    gain = float(variance(published, 1)) / float(variance(tight, 1))
    evidence = [
        Evidence(
            "L-GRR, k = 96, ε∞ = 2, ε₁ = 1",
            f"the first report realises ε₁ = {published.realised.eps_first:.4f} where 1 was asked; "
            f"tight: {tight.realised.eps_first:.4f} and {gain:.0f} times less variance",
        )
    ]
    evidence += list(_gains(results, ("l-grr", "ololoha")))
    return Difference(
        "Calibration of the second round for more than two symbols",
        "p_s = p₁p₂ + q₁q₂, hence c = (ab−1)/(a−b).",
        "True for g = 2 only: a report can also reach a symbol through any of the others. The "
        "published second round is private, but noisier than asked; solving the true ratio gives "
        "more accuracy at the same two guarantees, or the same accuracy at a smaller cap.",
        "Maths, section 3; figures 1 to 3 and the table of gains.",
        evidence,
    )


def _gains(results: Results | None, keys: tuple[str, ...]) -> Iterator[Evidence]:
    """Largest measured gain of each contender, where both calibrations were measured."""
    if results is None or not {PUBLISHED, TIGHT} <= set(results.grid.calibrations):
        return
    for key in keys:
        pairs = [
            pair
            for workload in results.grid.workloads
            for alpha in results.grid.alphas
            for pair in results.pairs(workload, CONTENDERS[key], alpha)
        ]
        if pairs:
            published, tight = max(pairs, key=lambda pair: _expected_gain(results, pair))
            gain = _mse(results, published) / _mse(results, tight)
            expected = _expected_gain(results, (published, tight))
            yield Evidence(
                f"{_name(published)}: measured, where the gain is largest",
                f"{gain:.4g} times less MSE_avg (theory {expected:.4g})",
            )


def _expected_gain(results: Results, pair: tuple[Point, Point]) -> float:
    published, tight = pair
    return results.expected(published) / results.expected(tight)


def _collisions(results: Results | None) -> Difference:
    evidence = []
    for known, point in _points(results, "Adult", ("biloloha",), alpha_place=-1):
        protocol = known.protocol(point)
        mean = float(np.mean(known.measured(point, "mean_estimate")))
        wrong = mean_if_one_over_g(protocol, mean)
        evidence.append(
            Evidence(
                f"{_name(point)}: mean estimate of all values, times k (1 without bias)",
                f"with the exact c₀: {mean * protocol.k:.3f}; "
                f"with 1/g in its place: {wrong * protocol.k:.3f}",
            )
        )
    return Difference(
        "The collision probability of the hash",
        "A universal family, whose collisions are at most 1/g, is enough; the server uses 1/g.",
        "The exact probability c₀ must stand in q∗, or every estimate shifts by "
        "(1−f)(c₀−1/g) g/(g−1). Our families know theirs as a fraction.",
        "Maths, section 4.",
        evidence,
    )


def _flip_variance(results: Results | None) -> Difference:
    evidence = []
    for place in (0, -1):
        for known, point in _points(results, "Syn", ("bbitflippm",), eps_place=place):
            protocol, n = known.protocol(point), known.facts[point.workload].n
            measured = _mse(known, point)
            evidence.append(
                Evidence(
                    f"{_name(point)}: MSE_avg over V*",
                    f"measured / ours = {measured / known.v_star(point):.3f}, "
                    f"measured / paper's = {measured / paper_flip_variance(protocol, n):.3f}",
                )
            )
    return Difference(
        "Variance of dBitFlipPM",
        "V* = b / (2 d n sinh(ε∞/2)).",
        "A square is missing in the derivation: V* = b / (4 d n sinh²(ε∞/4)).",
        "Maths, section 7; figure 3, bBitFlipPM.",
        evidence,
    )


def _single_bucket(results: Results | None) -> Difference:
    published = DBitFlipPM(k=96, eps_inf=2.0, d=1, calibration=PUBLISHED)
    tight = DBitFlipPM(k=96, eps_inf=2.0, d=1)
    gain = float(variance(published, 1)) / float(variance(tight, 1))
    evidence = [
        Evidence(
            "1BitFlipPM, ε∞ = 2",
            f"realised {published.realised.eps_memo:.3f}, tight {tight.realised.eps_memo:.3f} at "
            f"{gain:.2f} times less variance",
        ),
        *_gains(results, ("1bitflippm",)),
    ]
    return Difference(
        "dBitFlipPM with one sampled bucket",
        "The same p for every d.",
        "At d = 1 two patterns differ in a single bit, so the published p spends only half of ε∞; "
        "p = exp(ε∞)/(exp(ε∞) + 1) spends it all.",
        "Maths, section 7; figure 3, 1BitFlipPM, and the table of gains.",
        evidence,
    )


def _patterns() -> Difference:
    protocol = BiLOLOHA(k=2, eps_inf=1.0, eps_1=0.5)
    alternating, worst = pattern_losses(protocol, 10), worst_losses(protocol, WORST_REPORTS)
    first = int(np.argmax(worst > protocol.cap))
    return Difference(
        "What the longitudinal bound covers",
        "g ε∞ bounds the loss of any two sequences of values (Theorem 1).",
        "It bounds sequences that visit hash cells in one pattern of equalities. A different "
        "pattern of changes leaks beyond it, as in every memoising protocol; the second round only "
        "slows that down.",
        "Maths, section 8; figure “change patterns”.",
        [
            Evidence(
                "BiLOLOHA, ε∞ = 1, ε₁ = 0.5, so g ε∞ = 2; exact",
                f"worst pair of sequences: {worst[first]:.3f} after {first + 1} reports; constant "
                f"against alternating: {alternating[3]:.2f} after 4, {alternating[9]:.2f} after 10",
            )
        ],
    )


def _bounds(results: Results | None) -> Difference:
    protocol, n = RAPPOR(k=2, eps_inf=0.1, eps_1=0.02), 1000
    bound = paper_error_bound(protocol, n)
    evidence = [
        Evidence(
            f"RAPPOR, k = 2, n = {n}, ε₁ = 0.02, β = {BETA}: exact chance that one value's error "
            "exceeds the paper's bound",
            f"{exact_exceedance(protocol, n, bound):.2f}, asked for at most {BETA}",
        )
    ]
    if results is not None:
        rounds = sum(row["rounds"] for row in results.rows)
        beyond = sum(row["rounds_beyond"] for row in results.rows)
        evidence.append(
            Evidence(
                "Rounds of the whole grid in which some value's error exceeds the Hoeffding bound",
                f"{beyond} of {rounds} ({100 * beyond / rounds:.3f} %, at most 5 % expected)",
            )
        )
    return Difference(
        "Bound on the largest error",
        "sqrt(k / (4 n β (p₁−q₁′)(p₂−q₂))) holds with probability 1−β.",
        "Chebyshev's inequality has the contrast squared under the root: "
        "sqrt(k / (4 n β)) / ((p₁−q₁′)(p₂−q₂)). Hoeffding's, sqrt(ln(2k/β) / (2n)) / (p∗−q∗), is "
        "tighter.",
        "Maths, section 9.",
        evidence,
    )


def _truth_of_the_round(results: Results | None) -> Difference:
    evidence = []
    workloads = results.grid.workloads if results else ()
    for workload in workloads:
        for known, point in _points(results, workload, ("bbitflippm",)):
            ratio = float(np.mean(known.measured(point, "mse_last_truth"))) / _mse(known, point)
            evidence.append(
                Evidence(
                    f"{_name(point)}: against the last round's truth over against its own",
                    f"{ratio:.3f}",
                )
            )
    return Difference(
        "Which truth an estimate is held against",
        "The published code compares every round with the last round's frequencies for three of "
        "the data sets, and clips and renormalises before it does.",
        "Each round is held against its own truth, the unbiased estimate first and the clipped one "
        "beside it.",
        "Maths, section 10; figures 3a and 3b.",
        evidence,
    )


def _memo_of_a_bucket(results: Results | None) -> Difference:
    evidence = []
    for place in (0, -1):
        for known, point in _points(results, "DB_MT", ("1bitflippm",), eps_place=place):
            measured = 100 * float(np.mean(known.measured(point, "exposed")))
            visits = known.material(point).visits
            apart = 100 * exposed_by_bucket(known.protocol(point), visits)
            evidence.append(
                Evidence(
                    f"{_name(point)}: users of whom every change shows",
                    f"measured {measured:.5f} %; with an answer kept for each bucket it would be "
                    f"{apart:.4f} %",
                )
            )
    return Difference(
        "What dBitFlipPM memoises at d = 1",
        "Table 2 has 0.001 to 0.005 % for DB_MT.",
        "That is what an answer kept for each visited bucket gives. The protocol keeps one for "
        "each pattern, which with one sampled bucket means: in it, or not. Users then show even "
        "less.",
        "Maths, section 7; table 2.",
        evidence,
    )


def _points(
    results: Results | None,
    workload: str,
    keys: tuple[str, ...],
    *,
    alpha_place: int = 0,
    eps_place: int = -1,
) -> Iterator[tuple[Results, Point]]:
    """The published points of some contenders at one eps_inf, with the results, if measured."""
    if results is None or workload not in results.grid.workloads:
        return
    if PUBLISHED not in results.grid.calibrations:
        return
    alpha = results.grid.alphas[alpha_place]
    for key in keys:
        points = list(results.along(workload, CONTENDERS[key], PUBLISHED, alpha))
        yield results, points[eps_place]


def _mse(results: Results, point: Point) -> float:
    return float(np.mean(results.measured(point, "mse_unbiased")))


def _name(point: Point) -> str:
    second = "" if point.alpha is None else f", α = {point.alpha:g}"
    return (
        f"{CONTENDERS[point.contender].label} on {point.workload}, ε∞ = {point.eps_inf:g}{second}"
    )
