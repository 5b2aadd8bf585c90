"""Randomised response: exact laws of the shipped client, by enumeration of all its draws."""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest

from laws import at_most_bits, law, longitudinal, oracle
from laws.variants import VARIANTS
from loloha.distribution import exact_distribution, loss_between
from loloha.rng import Rng


def tight(protocol: Any) -> bool:
    return getattr(protocol, "calibration", "tight") == "tight"


def exceeds(ratio: Fraction, eps: float) -> bool:
    """Whether a likelihood ratio is above e^eps, in 80 digits."""
    with localcontext() as context:
        context.prec = 80
        return Decimal(ratio.numerator) / Decimal(ratio.denominator) > Decimal(eps).exp()


def worst(laws: list[oracle.Law]) -> Fraction:
    """Largest likelihood ratio between any two laws over the same outcomes."""
    assert len({frozenset(one) for one in laws}) == 1, "an outcome gives a value away"
    return max(one[y] / other[y] for one in laws for other in laws for y in one)


def largest_loss(laws: list[oracle.Law]) -> float:
    """What the laws of all values lose, at worst."""
    return max(loss_between(one, other) for one in laws for other in laws)


def reporting(protocol: Any, *values: int) -> Callable[[Rng], Any]:
    """Device code: one new client, one report a value."""

    def run(rng: Rng) -> Any:
        client = protocol.client(rng=rng)
        sent = [client.report(v, round=round) for round, v in enumerate(values)]
        return tuple((report.key, report.y) for report in sent)

    return run


def remembering(protocol: Any, v: int) -> Callable[[Rng], Any]:
    """Device code: what a client keeps after its first report."""

    def run(rng: Rng) -> Any:
        client = protocol.client(rng=rng)
        report = client.report(v, round=0)
        ((_, kept),) = client.to_dict()["memo"]
        return report.key, bytes.fromhex(kept) if isinstance(kept, str) else kept

    return run


@law(VARIANTS)
def first_report_loses_what_is_realised_and_at_most_eps_1(protocol: Any) -> None:
    laws = [exact_distribution(reporting(protocol, v)) for v in range(protocol.k)]
    assert laws == [oracle.reports_law(protocol, v, 1) for v in range(protocol.k)]
    assert largest_loss(laws) == pytest.approx(protocol.realised.eps_first, abs=1e-12)
    assert not exceeds(worst(laws), protocol.asked_first)
    if tight(protocol):
        assert protocol.realised.eps_first == pytest.approx(protocol.asked_first, abs=1e-9)


@law(VARIANTS, longitudinal)
def memo_loses_what_is_realised_and_at_most_eps_inf(protocol: Any) -> None:
    """PAINS 1: all reports of one value are drawn from the memo, so its law bounds them all."""
    laws = [exact_distribution(remembering(protocol, v)) for v in range(protocol.k)]
    assert largest_loss(laws) == pytest.approx(protocol.realised.eps_memo, abs=1e-12)
    assert not exceeds(worst(laws), protocol.asked_memo)
    if tight(protocol):
        assert protocol.realised.eps_memo == pytest.approx(protocol.asked_memo, abs=1e-9)


@law(VARIANTS, longitudinal)
def memo_is_the_truth_with_p1_and_lies_are_uniform(protocol: Any) -> None:
    """PAINS 2, and no bit is left unrandomised."""
    for v in range(protocol.k):
        assert exact_distribution(remembering(protocol, v)) == oracle.memo_law(protocol, v)


@law(VARIANTS, at_most_bits(3))
def three_reports_share_one_memo(protocol: Any) -> None:
    """PAINS 5: exact joint law; it loses exactly the eps_t of MATH section 8, not t times eps_1."""
    # Two reports where three have too many outcomes to list.
    reports = 3 if protocol.longitudinal and oracle.bits(protocol) <= 2 else 2
    expected = [oracle.reports_law(protocol, v, reports) for v in range(protocol.k)]
    for v in {0, protocol.k - 1}:
        assert exact_distribution(reporting(protocol, *[v] * reports)) == expected[v]
    eps = oracle.eps_after(protocol, reports)
    assert largest_loss(expected) == pytest.approx(eps, abs=1e-12)
    if protocol.longitudinal:
        assert eps <= protocol.realised.eps_memo


@law(VARIANTS, lambda protocol: longitudinal(protocol) and oracle.bits(protocol) <= 2)
def returning_to_a_value_finds_its_old_answer(protocol: Any) -> None:
    """The law of v, w, v: two memos where v and w differ in their symbol, else one."""
    first, last = 0, protocol.k - 1
    seen = exact_distribution(reporting(protocol, first, last, first))
    expected: oracle.Law = {}
    every = oracle.keys(protocol)
    for key in every:
        x, z = (oracle.symbol(protocol, key, v) for v in (first, last))
        for (at_x, at_z), p in oracle.pair_law(protocol, x, z).items():
            weight = p / len(every)
            second = [oracle.second_round(protocol, kept) for kept in (at_x, at_z, at_x)]
            for a, pa in second[0].items():
                for b, pb in second[1].items():
                    for c, pc in second[2].items():
                        sent = oracle.shown(protocol, key)
                        outcome = ((sent, a), (sent, b), (sent, c))
                        chance = weight * pa * pb * pc
                        expected[outcome] = expected.get(outcome, Fraction(0)) + chance
    assert seen == expected


@law(VARIANTS, lambda protocol: protocol.k == 2 and oracle.bits(protocol) <= 2)
def clients_are_independent(protocol: Any) -> None:
    """PAINS 20: two clients of one protocol share neither key nor memo; their law is a product."""

    def run(rng: Rng) -> Any:
        one, other = protocol.client(rng=rng), protocol.client(rng=rng)
        first = one.report(0, round=0)
        known = one.to_dict()
        reports = (first, other.report(1, round=0))
        assert one.to_dict() == known
        return tuple((report.key, report.y) for report in reports)

    alone = [oracle.reports_law(protocol, v, 1) for v in (0, 1)]
    expected = {a + b: p * q for a, p in alone[0].items() for b, q in alone[1].items()}
    assert exact_distribution(run) == expected


@law(VARIANTS, lambda protocol: protocol.joint)
def a_table_for_life_has_exactly_the_stated_law(protocol: Any) -> None:
    """MATH section 15: identity, permutation, one symbol; and every cell alone is GRR."""
    seen = exact_distribution(protocol.remember)
    assert seen == oracle.tables_law(protocol)
    p, q = protocol.realised.p1, protocol.realised.q1
    for x in range(protocol.g):
        alone = {y: sum(c for table, c in seen.items() if table[x] == y) for y in range(protocol.g)}
        assert alone == {y: p if y == x else q for y in range(protocol.g)}
    if protocol.m0 is None:
        # As often alike as if they were independent, but for the last of 53 digits.
        alike = sum(chance for table, chance in seen.items() if table[0] == table[1])
        assert float(alike) == pytest.approx(float(2 * p * q + (protocol.g - 2) * q * q), abs=1e-15)


@law(VARIANTS, lambda protocol: protocol.joint)
def a_table_for_life_spends_what_the_odometer_says(protocol: Any) -> None:
    """Answers to m symbols, whatever is reported of them and how often, lose at most B_m."""
    law = oracle.tables_law(protocol)
    for m in range(1, protocol.encoding.memo_cells + 1):
        laws = []
        for cells in permutations(range(protocol.g), m):
            answers: oracle.Law = {}
            for table, chance in law.items():
                answer = tuple(table[x] for x in cells)
                answers[answer] = answers.get(answer, Fraction(0)) + chance
            laws.append(answers)
        assert not exceeds(worst(laws), protocol.spent(m))
        assert largest_loss(laws) == pytest.approx(protocol.spent(m), abs=1e-9)
        assert protocol.spent(m) <= m * protocol.eps_inf * (1 + 1e-12)
