"""Shuffled reports, held against every multiset that the shipped devices can send."""

import itertools
import json
import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest
from loloha.protocols import Protocol

import loloha
from loloha import law, privacy
from loloha.cli import main
from loloha.design.shuffling import _clones, _first_report
from loloha.errors import ParameterError

BUDGETS: Any = {"eps_inf": 2.0, "eps_1": 1.0}


def multisets(protocol: Protocol, values: tuple[int, ...]) -> dict[Any, Fraction]:
    """Exact law of the sorted first reports of users who hold these values."""
    total: dict[Any, Fraction] = {(): Fraction(1)}
    for v in values:
        one = law.exact_law(lambda rng, v=v: protocol.client(rng=rng).report(v, round=0).y)
        grown: dict[Any, Fraction] = defaultdict(Fraction)
        for (sent, p), (y, q) in itertools.product(total.items(), one.items()):
            grown[tuple(sorted((*sent, y)))] += p * q
        total = grown
    return total


def hockey_stick(one: dict[Any, Fraction], two: dict[Any, Fraction], eps: float) -> float:
    factor = math.exp(eps)
    outcomes = one.keys() | two.keys()
    there = sum(max(0.0, float(one.get(y, 0)) - factor * float(two.get(y, 0))) for y in outcomes)
    back = sum(max(0.0, float(two.get(y, 0)) - factor * float(one.get(y, 0))) for y in outcomes)
    return max(there, back)


CASES = [
    (loloha.GRR(k=3, eps=1.0), 4),
    (loloha.GRR(k=2, eps=1.0), 6),
    (loloha.LGRR(k=4, **BUDGETS), 4),
    (loloha.SUE(k=3, eps=1.0), 3),
    (loloha.RAPPOR(k=3, **BUDGETS), 3),
    (loloha.OUE(k=3, eps=1.0), 3),
]


@pytest.mark.parametrize(("protocol", "n"), CASES, ids=str)
@pytest.mark.parametrize("eps", [0.0, 0.2, 0.6])
def test_no_data_set_tells_more_than_the_bound(protocol: Protocol, n: int, eps: float) -> None:
    pair = _first_report(protocol)
    bound = _clones(pair, n, pair.r, pair.r, hidden=False)(eps)
    attained = _clones(pair, n, *pair.worst, hidden=True)(eps)
    worst = 0.0
    for others in itertools.combinations_with_replacement(range(protocol.k), n - 1):
        laws = [multisets(protocol, (v, *others)) for v in (0, 1)]
        found = hockey_stick(*laws, eps)
        worst = max(worst, found)
        if set(others) == {2 if protocol.k > 2 else 0}:
            # What is said to be attained is what these users attain, or less is seen of them.
            assert attained <= found + 1e-12
    assert worst <= bound + 1e-12


def test_the_bound_lies_above_what_is_attained() -> None:
    symbols = privacy.shuffled(loloha.LGRR(k=96, **BUDGETS), 1000)
    for one in (symbols.first, symbols.round):
        assert 0 < one.lower <= one.eps < one.local
    bits = privacy.shuffled(loloha.RAPPOR(k=96, **BUDGETS), 1000)
    assert 0 < bits.first.lower <= bits.first.eps < 0.5
    assert bits.round.eps == bits.round.local == privacy.eps_2(loloha.RAPPOR(k=96, **BUDGETS))


def test_the_numerical_bound_is_below_the_closed_form_in_its_range() -> None:
    for n in (1000, 4000):
        found = privacy.shuffled(loloha.GRR(k=4, eps=1.0), n).first
        assert found.closed is not None
        assert found.lower <= found.eps < found.closed
    assert privacy.shuffled(loloha.GRR(k=4, eps=1.0), 50).first.closed is None


def test_more_users_hide_more_and_more_delta_allows_less() -> None:
    protocol, last = loloha.GRR(k=4, eps=1.0), 1.0
    for n in (1, 10, 100, 1000):
        eps = privacy.shuffled(protocol, n).first.eps
        assert eps <= last + 1e-9
        last = eps
    assert privacy.shuffled(protocol, 1).first.eps == pytest.approx(1.0, abs=1e-5)
    assert (
        privacy.shuffled(protocol, 100, 1e-3).first.eps < privacy.shuffled(protocol, 100).first.eps
    )


def test_keys_leave_only_those_who_share_them() -> None:
    shared = privacy.shuffled(loloha.BiLOLOHA(k=96, **BUDGETS), 20_000)
    assert shared.group == pytest.approx(1 + 19_999 / 127)
    assert shared.first.eps < shared.first.local / 2
    # As one group of that size, with room for the spread of sizes.
    alone = privacy.shuffled(loloha.GRR(k=2, eps=1.0), round(shared.group)).first
    assert alone.eps < shared.first.eps < 1.6 * alone.eps
    named = privacy.shuffled(loloha.OLOLOHA(k=96, hash="affine", **BUDGETS), 20_000)
    assert named.first.eps == pytest.approx(1.0, abs=1e-5)
    assert "Not covered: linking over rounds" in named.text
    assert "shuffler itself must be trusted" in " ".join(named.text.split())


def test_what_is_said_is_json_and_on_the_command_line(capsys: Any) -> None:
    line = ["explain", "l-grr", "--k", "8", "--eps-inf", "2", "--eps-1", "1", "--shuffled", "500"]
    assert main(line) == 0
    assert "Shuffled among 500 users" in capsys.readouterr().out
    assert main([*line, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["shuffled"]
    found = privacy.shuffled(loloha.LGRR(k=8, **BUDGETS), 500)
    assert shown["first"]["eps"] == found.first.eps
    assert shown["round"]["local"] == found.round.local


@pytest.mark.parametrize(("n", "delta"), [(0, 0.1), (1.5, 0.1), (5, 0.0), (5, 0.5), (5, math.nan)])
def test_numbers_out_of_range_are_refused(n: Any, delta: Any) -> None:
    with pytest.raises(ParameterError):
        privacy.shuffled(loloha.GRR(k=4, eps=1.0), n, delta)
