"""How surely a change shows: the best test, held against the exact law of the shipped client."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from loloha.protocols import Protocol
from scipy.stats import mannwhitneyu

import loloha
from loloha import law
from loloha.design.change import (
    _usual_ones,
    change_area,
    exact_area,
    link_area,
    repeated_answers,
)
from loloha.design.likelihood import scores_of_bits, scores_of_counts
from loloha.design.roc import Roc
from loloha.errors import ParameterError

BUDGETS: Any = {"eps_inf": 2.0, "eps_1": 1.0}


def transcripts(protocol: Protocol, history: tuple[int, ...]) -> dict[Any, Fraction]:
    """Exact law of all that a client sends over a history of values."""

    def run(rng: Any) -> tuple[Any, ...]:
        client = protocol.client(rng=rng)
        reports = [client.report(v, round=t) for t, v in enumerate(history)]
        return tuple((report.key, report.y) for report in reports)

    return law.exact_law(run)


def mixture(laws: list[dict[Any, Fraction]]) -> dict[Any, Fraction]:
    total: dict[Any, Fraction] = defaultdict(Fraction)
    for one in laws:
        for outcome, chance in one.items():
            total[outcome] += chance / len(laws)
    return total


def best(absent: dict[Any, Fraction], present: dict[Any, Fraction]) -> float:
    """Area of the likelihood-ratio test of two exact laws."""
    outcomes = list(absent.keys() | present.keys())
    low, high = (
        [one.get(outcome, Fraction(0)) for outcome in outcomes] for one in (absent, present)
    )
    ratio = [float(b / a) if a else math.inf for a, b in zip(low, high, strict=True)]
    return exact_area(np.array(ratio), np.array(low, dtype=float), np.array(high, dtype=float))


EXACT = [
    (loloha.BiLOLOHA(k=4, **BUDGETS), 1),
    (loloha.BiLOLOHA(k=4, **BUDGETS), 2),
    (loloha.LGRR(k=3, **BUDGETS), 1),
    (loloha.LGRR(k=3, **BUDGETS), 2),
    (loloha.RAPPOR(k=2, **BUDGETS), 1),
    (loloha.RAPPOR(k=3, **BUDGETS), 1),
    (loloha.LOUE(k=3, eps_inf=3.0, eps_1=1.0), 1),
    (loloha.DBitFlipPM(k=3, eps_inf=1.0), 1),
    (loloha.DBitFlipPM(k=6, b=3, d=2, eps_inf=1.0), 1),
    (loloha.DBitFlipPM(k=6, b=3, d=1, eps_inf=1.0), 2),
    (loloha.GRR(k=4, eps=1.0), 1),
    (loloha.GRR(k=4, eps=1.0), 2),
    (loloha.SUE(k=3, eps=1.0), 1),
    (loloha.OUE(k=2, eps=1.0), 2),
    (loloha.BLH(k=4, eps=1.0), 1),
]


@pytest.mark.parametrize(("protocol", "reports"), EXACT, ids=str)
def test_the_area_is_that_of_the_likelihood_ratio_of_the_client(
    protocol: Protocol, reports: int
) -> None:
    """Four standard errors: a fixed seed, so it holds for good; a bit's p for q is off by 20."""
    k = protocol.k
    stayed = mixture([transcripts(protocol, (v,) * 2 * reports) for v in range(k)])
    moved = mixture([
        transcripts(protocol, (v,) * reports + (w,) * reports)
        for v, w in itertools.permutations(range(k), 2)
    ])  # fmt: skip
    found = change_area(protocol, reports)
    assert found is not None
    assert abs(found.auc - best(stayed, moved)) <= max(4 * found.error, 1e-9)


def test_linking_is_that_of_two_clients() -> None:
    for protocol in (loloha.LGRR(k=3, **BUDGETS), loloha.BiLOLOHA(k=4, **BUDGETS)):
        one_user = mixture([transcripts(protocol, (v, v)) for v in range(protocol.k)])
        single = mixture([transcripts(protocol, (v,)) for v in range(protocol.k)])
        two_users = {
            (*a, *b): p * q for (a, p), (b, q) in itertools.product(single.items(), repeat=2)
        }
        found = link_area(protocol, 1)
        assert found is not None
        if protocol.name == "l-grr":
            assert found.auc == pytest.approx(best(two_users, one_user), abs=1e-9)
        else:
            # Two users hold other values here; of equal keys the difference is a few thousandths.
            assert found.auc == pytest.approx(best(two_users, one_user), abs=0.03)
    affine = link_area(loloha.OLOLOHA(k=96, hash="affine", **BUDGETS), 1)
    assert affine == (1.0, pytest.approx(0.0, abs=1e-12))
    fingerprint = link_area(loloha.RAPPOR(k=1000, **BUDGETS), 1)
    assert fingerprint is not None
    assert fingerprint.auc > 0.999


# eps_inf, eps_1, k, T; RAPPOR, L-OSUE, L-GRR, OLOLOHA, BiLOLOHA: MATH section 12.
TABLE = [
    (2.0, 1.0, 96, 1, 0.953, 0.916, 0.537, 0.576, 0.574),
    (2.0, 1.0, 96, 2, 0.998, 0.996, 0.620, 0.647, 0.612),
    (2.0, 1.0, 96, 10, 1.000, 1.000, 0.968, 0.806, 0.695),
    (2.0, 1.0, 96, 30, 1.000, 1.000, 0.995, 0.817, 0.696),
    (2.0, 1.0, 1000, 1, 1.000, 1.000, None, 0.576, 0.571),
    (1.0, 0.5, 96, 1, 0.956, 0.946, 0.573, 0.556, 0.541),
    (1.0, 0.5, 96, 30, 1.000, 1.000, 0.996, 0.739, 0.652),
    (4.0, 2.0, 96, 1, 0.913, 0.778, 0.516, 0.610, 0.649),
    (4.0, 2.0, 96, 30, 1.000, 1.000, 0.992, 0.925, 0.739),
]
SYMBOLS = {1.0: 4, 0.5: 3, 2.0: 8}


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_the_table_of_the_specification(row: Any) -> None:
    eps_inf, eps_1, k, reports, *areas = row
    budgets: Any = {"k": k, "eps_inf": eps_inf, "eps_1": eps_1}
    protocols = [
        loloha.RAPPOR(**budgets), loloha.LOSUE(**budgets), loloha.LGRR(**budgets),
        loloha.OLOLOHA(g=SYMBOLS[eps_1], **budgets), loloha.BiLOLOHA(**budgets),
    ]  # fmt: skip
    for protocol, area in zip(protocols, areas, strict=True):
        found = change_area(protocol, reports)
        assert found is not None
        assert area is None or found.auc == pytest.approx(area, abs=0.02), protocol


def test_hashed_changes_never_all_show() -> None:
    """In the limit both memos are known: a change shows unless cells or memos coincide."""
    for protocol in (loloha.BiLOLOHA(k=96, **BUDGETS), loloha.OLOLOHA(k=96, g=4, **BUDGETS)):
        p1, q1, g = protocol.p1, protocol.q1, protocol.g or 0
        c0 = float(protocol.encoding.family.collision)  # type: ignore[attr-defined]
        hidden = c0 + (1 - c0) * (2 * p1 * q1 + (g - 2) * q1**2)
        found = change_area(protocol, 1000)
        assert found is not None
        assert found.auc == pytest.approx(1 - hidden / 2, abs=1e-6)
        last = 0.5
        for reports in (1, 2, 5, 30):
            one = change_area(protocol, reports)
            assert one is not None
            assert last < one.auc <= found.auc + 1e-9
            last = one.auc


def test_very_many_bits_are_normal() -> None:
    """Drawn at k = 256 and by formula at 257: four standard errors."""
    for protocol in (loloha.RAPPOR, loloha.LOSUE):
        for budgets in ((2.0, 1.0), (0.5, 0.2)):
            drawn, formula = (
                change_area(protocol(k=k, eps_inf=budgets[0], eps_1=budgets[1]), 1)
                for k in (256, 257)
            )
            assert drawn is not None
            assert formula is not None
            assert abs(drawn.auc - formula.auc) < 4 * drawn.error + 0.002


def test_scores_of_symbols_that_were_never_sent() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.integers(0, 3, size=(2, 7, 5))
    wide = [np.pad(counts, ((0, 0), (0, 4))) for counts in (before, after)]
    known = scores_of_counts(before, after, 0.7, rest=4)
    assert scores_of_counts(*wide, 0.7) == pytest.approx(known)


def test_scores_of_bits_are_the_log_likelihood_ratio() -> None:
    protocol = loloha.RAPPOR(k=3, **BUDGETS)
    stayed = mixture([transcripts(protocol, (v, v)) for v in range(3)])
    moved = mixture([transcripts(protocol, pair) for pair in itertools.permutations(range(3), 2)])
    for outcome, chance in stayed.items():
        bits = [np.array([y[0] >> bit & 1 for bit in range(3)]) for _, y in outcome]
        score = scores_of_bits(protocol, *bits, reports=1)
        assert score == pytest.approx(math.log(moved[outcome] / chance), abs=1e-9)


@pytest.mark.parametrize("protocol", [
    loloha.RAPPOR(k=2, eps_inf=60.0, eps_1=30.0), loloha.RAPPOR(k=3, eps_inf=80.0, eps_1=40.0),
    loloha.RAPPOR(k=3, eps_inf=20.0, eps_1=15.0), loloha.LOSUE(k=3, eps_inf=60.0, eps_1=30.0),
], ids=str)  # fmt: skip
def test_scores_hold_where_one_value_outweighs_all_others(protocol: Protocol) -> None:
    """In exact arithmetic, over all pairs of answers that a device could send."""
    k = protocol.k
    first: Any = protocol.first_channel
    second: Any = protocol.second_channel
    answers = np.array(list(itertools.product((0, 1), repeat=k)))

    def sent(bit: int, memo: int) -> Fraction:
        one = Fraction(second.p if memo else second.q)
        return one if bit else 1 - one

    def memo(bit: int, own: bool) -> Fraction:
        one = Fraction(first.p if own else first.q)
        return one if bit else 1 - one

    def chance(value: int, bits: Any) -> Fraction:
        return math.prod((
            sum((memo(x, v == value) * sent(int(bit), x) for x in (0, 1)), Fraction(0))
            for v, bit in enumerate(bits)
        ), start=Fraction(1))  # fmt: skip

    def twice(value: int, bits: Any, later: Any) -> Fraction:
        return math.prod((
            sum((memo(x, v == value) * sent(int(a), x) * sent(int(b), x) for x in (0, 1)),
                Fraction(0))
            for v, (a, b) in enumerate(zip(bits, later, strict=True))
        ), start=Fraction(1))  # fmt: skip

    for before, after in itertools.product(answers, repeat=2):
        moved = sum(
            (chance(v, before) * chance(w, after) for v, w in itertools.permutations(range(k), 2)),
            Fraction(0),
        ) / (k * (k - 1))
        stayed = sum((twice(v, before, after) for v in range(k)), Fraction(0)) / k
        (score,) = scores_of_bits(protocol, before[None], after[None], reports=1)
        ratio = moved / stayed
        exact = math.log(ratio.numerator) - math.log(ratio.denominator)
        assert score == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_wide_domains_of_bits_take_no_list_of_all_numbers_of_ones() -> None:
    """At k = 2^24 a law over all of them would hold 2^24 numbers."""
    protocol = loloha.DBitFlipPM(k=1 << 24, eps_inf=2.0)
    ones = _usual_ones(protocol)
    assert len(ones) < 1 << 16
    stayed, repeated = repeated_answers(protocol, ones)
    assert stayed.sum() == pytest.approx(1.0, abs=1e-6)
    assert repeated.sum() == pytest.approx(0.0, abs=1e-12)
    narrow = loloha.DBitFlipPM(k=600, b=300, d=200, eps_inf=40.0)
    whole = repeated_answers(narrow, np.arange(201))
    some = _usual_ones(narrow)
    assert len(some) < 201
    for part, all_ in zip(repeated_answers(narrow, some), whole, strict=True):
        assert part == pytest.approx(all_[some])
        assert part.sum() == pytest.approx(all_.sum(), abs=1e-12)
    assert whole[0].sum() == pytest.approx(1.0, abs=1e-12)


def test_an_area_counts_pairs() -> None:
    rng = np.random.default_rng(1)
    absent, present = rng.integers(0, 6, 300), rng.integers(1, 8, 200)
    roc = Roc(absent, present)
    pairs = mannwhitneyu(present, absent).statistic / (300 * 200)
    assert roc.auc == pytest.approx(pairs)
    # The error against repetition: 2 000 areas of as many cases.
    areas = [
        Roc(rng.integers(0, 6, 300), rng.integers(1, 8, 200)).auc for _ in range(2000)
    ]  # fmt: skip
    assert roc.error == pytest.approx(np.std(areas), rel=0.15)
    alarms, hits, errors = roc.curve
    assert (alarms[0], hits[0], alarms[-1], hits[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(hits, alarms) == pytest.approx(roc.auc)
    assert errors.max() <= 0.5 / math.sqrt(200)
    assert roc.hit_rate(0.0) == pytest.approx((present > 5).mean())
    assert "auc" in repr(roc)


@pytest.mark.parametrize("scores", [([], [1.0]), ([1.0], []), ([math.nan], [1.0])])
def test_scores_that_are_none_are_refused(scores: Any) -> None:
    with pytest.raises(ParameterError, match="at least one score"):
        Roc(*scores)


def test_what_cannot_be_computed_is_refused_or_left_out() -> None:
    protocol = loloha.BiLOLOHA(k=4, **BUDGETS)
    for reports in (0, 1001, 1.5):
        with pytest.raises(ParameterError, match="reports"):
            change_area(protocol, reports)  # type: ignore[arg-type]
    assert change_area(loloha.OLH(k=1 << 20, eps=1.0), 100) is None
    assert change_area(loloha.OUE(k=1 << 20, eps=1.0), 1) is None
    assert link_area(loloha.OUE(k=1 << 20, eps=1.0), 1) is None
    once = loloha.BiLOLOHA(k=2, eps_inf=60.0, eps_1=59.0)
    found = change_area(once, 3)
    assert found is not None
    assert found.auc == pytest.approx(1.0)
