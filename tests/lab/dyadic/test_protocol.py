"""A budget for changes: its parameters, and the law of the lies against every rival."""

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

import loloha
from loloha.campaign import Campaign, Labels, Schedule
from loloha.channels import exp_below
from loloha.distribution import exact_distribution
from loloha.errors import ParameterError
from loloha_lab.dyadic import DyadicLH
from loloha_lab.dyadic.protocol import best_lies, nth_choice, ways

PARAMETERS = {"k": 6, "eps": 1.0, "rounds": 8, "changes": 2}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k", 1), ("k", 2.0), ("eps", 0.0), ("eps", 701), ("eps", "1"), ("rounds", 0),
        ("rounds", True), ("rounds", (1 << 16) + 1), ("changes", -1), ("changes", 31),
    ],
)  # fmt: skip
def test_parameters_are_refused_by_name_and_value(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^{name} must be .*got {value!r}; "):
        DyadicLH(**(PARAMETERS | {name: value}))


def test_a_table_that_no_server_has_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^rounds must leave a table of at most"):
        DyadicLH(k=1 << 20, eps=1.0, rounds=1000, changes=2)


@pytest.mark.parametrize("rounds", [1, 2, 3, 7, 8, 120])
def test_pieces_make_up_every_round(rounds: int) -> None:
    """At most one of each level, none after the round, and each exactly as long as its level."""
    protocol = DyadicLH(k=4, eps=1.0, rounds=rounds, changes=1)
    assert 1 << protocol.levels - 1 <= rounds < 1 << protocol.levels
    for t in range(rounds):
        found = protocol.sum_of(t)
        covered = [
            at
            for level, number in found
            for at in range(number << level, (number + 1) << level)
        ]  # fmt: skip
        assert covered == list(range(t + 1))
        assert len({piece.level for piece in found}) == len(found) <= protocol.levels
        assert all(protocol.is_due(level, ((n + 1) << level) - 1) for level, n in found)


@pytest.mark.parametrize("size", range(1, 6))
def test_every_choice_of_lies_has_one_number(size: int) -> None:
    for most in range(size + 1):
        chosen = [nth_choice(number, size, most) for number in range(ways(size, most))]
        assert sorted(chosen) == [x for x in range(1 << size) if x.bit_count() <= most]


@pytest.mark.parametrize("eps", [1e-6, 0.5, 2.0, 9.0, 700.0])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_lies_have_their_distribution(eps: float, size: int) -> None:
    """Exactly: uniform in two groups, each answer alike, loss within eps, the gap as stated."""
    lies = best_lies(eps, size)
    law = exact_distribution(lies.draw)
    assert set(law) == set(range(1 << size))
    assert len({p for x, p in law.items() if x.bit_count() <= lies.most}) == 1
    assert len({p for x, p in law.items() if x.bit_count() > lies.most}) == 1
    assert max(law.values()) / min(law.values()) == lies.ratio <= exp_below(Fraction(eps))
    for place in range(size):
        lied = sum(p for x, p in law.items() if x >> place & 1)
        assert 1 - 2 * lied == lies.gap > 0


def alike(weights: Any, size: int) -> Fraction:
    """The gap of the law that gives each choice the weight of its number of lies."""
    total = sum(math.comb(size, n) * w for n, w in enumerate(weights))
    told = sum(math.comb(size, n) * w * (size - 2 * n) for n, w in enumerate(weights))
    return Fraction(told) / (size * Fraction(total))


@pytest.mark.parametrize("eps", [0.3, 1.0, 2.5, 6.0])
@pytest.mark.parametrize("size", range(1, 8))
def test_no_distribution_that_treats_answers_alike_has_a_larger_gap(eps: float, size: int) -> None:
    """The gap is linear-fractional in the weights: its largest value is at a vertex."""
    ratio = exp_below(Fraction(eps))
    vertices = itertools.product((Fraction(1), ratio), repeat=size + 1)
    best = max(alike(weights, size) for weights in vertices)
    assert float(best_lies(eps, size).gap) == pytest.approx(float(best), rel=1e-12)


@pytest.mark.parametrize("eps", [0.3, 1.0, 2.5, 6.0])
@pytest.mark.parametrize("size", range(2, 8))
def test_published_randomisers_have_smaller_gaps(eps: float, size: int) -> None:
    """One answer with news, kept at random, the others coins; and each with its share of eps."""
    gap = float(best_lies(eps, size).gap)
    assert gap > math.tanh(eps / 2) / size
    assert gap > math.tanh(eps / 2 / size)
    assert gap < math.tanh(eps / 2)


def test_the_gap_falls_as_the_root_of_the_changes() -> None:
    gaps = [float(best_lies(1.0, size).gap) * math.sqrt(size) for size in (1, 3, 7, 15, 31)]
    assert all(0.35 < gap < 0.47 for gap in gaps), gaps


def test_the_realised_loss_is_within_the_budget_and_next_to_it() -> None:
    for eps in (0.1, 1.0, 8.0):
        for changes in (0, 1, 5):
            protocol = DyadicLH(k=6, eps=eps, rounds=16, changes=changes)
            assert eps - 1e-9 < protocol.loss <= eps
    # A probability below 2^-53 does not occur.
    assert DyadicLH(k=6, eps=700.0, rounds=4, changes=1).loss < 40


def test_noise_adds_up_the_pieces() -> None:
    """Powers of two need one piece, of a whole sign; the others a step at twice its weight each."""
    protocol = DyadicLH(k=2, eps=1.0, rounds=8, changes=1)
    assert protocol.spread == 2.0
    gaps = [float(lies.gap) for lies in protocol.lies]
    assert [lies.size for lies in protocol.lies] == [2, 2, 2, 1]
    assert protocol.noise(7) == pytest.approx(4 / gaps[3] ** 2 / 4)
    expected = 4 * (1 / gaps[2] ** 2 + 4 / gaps[1] ** 2 + 4 / gaps[0] ** 2) / 4
    assert protocol.noise(6) == pytest.approx(expected)


def test_it_is_refused_where_messages_or_engines_would_be_needed() -> None:
    protocol: Any = DyadicLH(**PARAMETERS)
    labels = Labels(tuple("abcdef"))
    factories = [
        lambda: loloha.Client(protocol),
        lambda: loloha.Tally(protocol),
        lambda: Campaign(
            name="hours", protocol=protocol, domain=labels, schedule=Schedule(0, 3600)
        ),
        lambda: loloha.simulate(protocol, [[1]], rng=1),
        lambda: loloha.protocol(protocol.name, k=6),
        lambda: loloha.plan(k=6, n=100, eps_inf=2.0, eps_1=1.0, protocols=[protocol]),
    ]
    for factory in factories:
        with pytest.raises(ParameterError, match=r"^protocols? must be "):
            factory()
