"""Differences from the paper: each correction in words, with its evidence."""

from __future__ import annotations

from typing import NamedTuple

from loloha_lab.paper import evidence
from loloha_lab.paper.evidence import Evidence
from loloha_lab.paper.grid_results import Results


class Difference(NamedTuple):
    """One point on which the paper and we differ."""

    title: str
    theirs: str
    ours: str
    where: str
    evidence: tuple[Evidence, ...] = ()


def differences(results: Results | None) -> list[Difference]:
    """All of them, with the numbers that can be had: without a grid those that need no data."""
    exact = {
        "calibration": evidence.calibration(),
        "single bucket": evidence.single_bucket(),
        "patterns": evidence.change_patterns(),
        "best test": evidence.best_test(),
        "bound": evidence.bound(),
    }
    measured = {} if results is None else {
        "frequent values": evidence.variance_of_frequent_values(results),
        "calibration": evidence.gains(results, ("l-grr", "ololoha")),
        "collisions": evidence.collisions(results),
        "flip variance": evidence.flip_variance(results),
        "single bucket": evidence.gains(results, ("1bitflippm",)),
        "bound": evidence.rounds_beyond(results),
        "truth": evidence.truth_of_the_round(results),
        "memo of a bucket": evidence.memo_of_a_bucket(results),
    }  # fmt: skip
    return [
        correction._replace(evidence=(*exact.get(key, ()), *measured.get(key, ())))
        for key, correction in SAID.items()
    ]


SAID = {
    "frequent values": Difference(
        "Variance of a frequent value",
        "The variance of an estimate is γ(1−γ)/(n (p∗−q∗)²), γ the chance that a report supports "
        "the value.",
        "That adds the noise of drawing the users anew, and holds for a fixed population only at "
        "f = 0. With fixed users each report keeps its own chance: (f p∗(1−p∗) + (1−f) q∗(1−q∗)) / "
        "(n (p∗−q∗)²). Both give the same V*.",
        "Maths, section 1; figure 3, points and theory.",
    ),
    "calibration": Difference(
        "Calibration of the second round for more than two symbols",
        "p_s = p₁p₂ + q₁q₂, hence c = (ab−1)/(a−b).",
        "True for g = 2 only: a report can also reach a symbol through any of the others. The "
        "published second round is private, but noisier than asked; solving the true ratio gives "
        "more accuracy at the same two guarantees, or the same accuracy at a smaller cap. (Where "
        "ε₂ is held instead, the loss of one round, the paper's g is the best of such chains: "
        "maths, section 16.)",
        "Maths, section 3; figures 1 to 3 and the table of gains.",
    ),
    "collisions": Difference(
        "The collision probability of the hash",
        "A universal family, whose collisions are at most 1/g, is enough; the server uses 1/g.",
        "The exact probability c₀ must stand in q∗, or every estimate shifts by "
        "(1−f)(c₀−1/g) g/(g−1). Our families know theirs as a fraction.",
        "Maths, section 4.",
    ),
    "flip variance": Difference(
        "Variance of dBitFlipPM",
        "V* = b / (2 d n sinh(ε∞/2)).",
        "A square is missing in the derivation: V* = b / (4 d n sinh²(ε∞/4)).",
        "Maths, section 7; figure 3, bBitFlipPM.",
    ),
    "single bucket": Difference(
        "dBitFlipPM with one sampled bucket",
        "The same p for every d.",
        "At d = 1 two patterns differ in a single bit, so the published p spends only half of ε∞; "
        "p = exp(ε∞)/(exp(ε∞) + 1) spends it all.",
        "Maths, section 7; figure 3, 1BitFlipPM, and the table of gains.",
    ),
    "patterns": Difference(
        "What the longitudinal bound covers",
        "g ε∞ bounds the loss of any two sequences of values (Theorem 1).",
        "It bounds sequences that visit hash cells in one pattern of equalities. A different "
        "pattern of changes leaks beyond it; what bounds that is ε₂ for each round that differs, "
        "which for LOLOHA grows neither with k nor with time.",
        "Maths, sections 8 and 11; the figures of change patterns and of ε₂.",
    ),
    "best test": Difference(
        "What shows of a change",
        "A server that counts different answers detects every change of dBitFlipPM with d = b and "
        "next to none with d = 1. Rules with a second round are not put to the test.",
        "That test is blind wherever there is a second round. The best one, of likelihoods, reads "
        "changes of RAPPOR and L-OSUE from one report on either side: as many bits as there are "
        "values are a fingerprint of the memo. LOLOHA, with few symbols, shows far less.",
        "Maths, section 12; table 2 and its figure.",
    ),
    "bound": Difference(
        "Bound on the largest error",
        "sqrt(k / (4 n β (p₁−q₁′)(p₂−q₂))) holds with probability 1−β.",
        "Chebyshev's inequality has the contrast squared under the root: "
        "sqrt(k / (4 n β)) / ((p₁−q₁′)(p₂−q₂)). Hoeffding's, sqrt(ln(2k/β) / (2n)) / (p∗−q∗), is "
        "tighter.",
        "Maths, section 9.",
    ),
    "truth": Difference(
        "Which truth an estimate is compared with",
        "The published code compares every round with the last round's frequencies for three of "
        "the data sets, and clips and renormalises before it does.",
        "Each round is compared with its own truth, the unbiased estimate first and the clipped "
        "one beside it.",
        "Maths, section 10; figures 3a and 3b.",
    ),
    "memo of a bucket": Difference(
        "What dBitFlipPM memoises at d = 1",
        "Table 2 has 0.001 to 0.005 % for DB_MT.",
        "That is what an answer memoised for each visited bucket gives. The protocol memoises "
        "one for each pattern, which with one sampled bucket means: in it, or not. Users then show "
        "even less.",
        "Maths, section 7; table 2.",
    ),
}
"""In words, in the order of the page."""
