"""A device with a budget for changes: the exact law of all that it ever sends."""

import copy
import itertools
import pickle
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest

from loloha.channels import exp_below
from loloha.distribution import exact_distribution
from loloha.errors import DomainError, ParameterError, StateError
from loloha.rng import Rng, SimulationRng
from loloha_lab.dyadic import DyadicLH

Law = dict[Any, Fraction]


def transcript(protocol: Any, history: Iterable[int], rng: Rng) -> Any:
    """All that a user sends, with the rounds in which it is sent."""
    client = protocol.client(rng=rng)
    sent = [client.report(v, round=t) for t, v in enumerate(history)]
    return tuple((t, one.key, one.y) for t, one in enumerate(sent) if one)


def laws(protocol: Any, histories: Iterable[Iterable[int]]) -> list[Law]:
    return [
        exact_distribution(lambda rng, held=held: transcript(protocol, held, rng))
        for held in histories
    ]


def worst(found: list[Law]) -> Fraction:
    """The largest ratio that any transcript has between any two of the laws."""
    outcomes = set(found[0])
    assert all(set(law) == outcomes for law in found), "a transcript gives a history away"
    return max(max(law[y] for law in found) / min(law[y] for law in found) for y in outcomes)


def changing(rounds: int, changes: int) -> list[tuple[int, ...]]:
    """All histories of a bit that change at most so often."""
    return [
        bits
        for bits in itertools.product((0, 1), repeat=rounds)
        if sum(a != b for a, b in itertools.pairwise(bits)) <= changes
    ]


@pytest.mark.parametrize("eps", [0.5, 2.0])
@pytest.mark.parametrize(("rounds", "changes"), [(1, 1), (2, 1), (3, 2), (4, 0), (4, 1), (4, 2)])
def test_all_reports_of_all_rounds_lose_eps_whatever_changes(
    rounds: int, changes: int, eps: float
) -> None:
    """Every pair of histories, those with more changes than count as well: exactly the budget."""
    # At k = 2 there is one hash, and the bit is the value.
    protocol = DyadicLH(k=2, eps=eps, rounds=rounds, changes=changes)
    loss = worst(laws(protocol, itertools.product((0, 1), repeat=rounds)))
    assert loss == max(lies.ratio for lies in protocol.lies) <= exp_below(Fraction(eps))


def test_hashed_values_lose_no_more() -> None:
    """Keys included: all histories of three values."""
    protocol = DyadicLH(k=3, eps=1.0, rounds=3, changes=1)
    loss = worst(laws(protocol, itertools.product(range(3), repeat=3)))
    assert loss == max(lies.ratio for lies in protocol.lies) <= exp_below(Fraction(1))


@pytest.mark.parametrize("changes", [1, pytest.param(2, marks=pytest.mark.long)])
def test_eight_rounds_lose_eps(changes: int) -> None:
    """Every pair of histories with at most so many changes."""
    protocol = DyadicLH(k=2, eps=1.0, rounds=8, changes=changes)
    loss = worst(laws(protocol, changing(8, changes)))
    assert loss == max(lies.ratio for lies in protocol.lies) <= exp_below(Fraction(1))


@pytest.mark.parametrize("history", list(itertools.product((0, 1), repeat=4)))
def test_an_answer_with_news_is_the_bit_and_any_other_a_coin(history: tuple[int, ...]) -> None:
    """Exactly, for every level: the mean of each answer, of the history whose changes count."""
    protocol = DyadicLH(k=2, eps=1.0, rounds=4, changes=1)
    (law,) = laws(protocol, [history])
    held, left = [history[0]], 1
    for bit in history[1:]:
        moved = bit != held[-1] and left > 0
        held.append(bit if moved else held[-1])
        left -= moved
    for level in range(protocol.levels):
        mine = {y: p for y, p in law.items() if y[0][1][1] == level}
        assert sum(mine.values()) == Fraction(1, protocol.levels)
        ends = range((1 << level) - 1, 4, 1 << level)
        assert {tuple(t for t, _, _ in y) for y in mine} == {tuple(ends)}
        told = None
        for number, t in enumerate(ends):
            mean = sum(p * (1 - 2 * y[number][2]) for y, p in mine.items()) * protocol.levels
            gap = protocol.lies[level].gap
            assert mean == (0 if held[t] == told else gap * (1 - 2 * held[t]))
            told = held[t]


def test_values_of_one_cell_are_one_history() -> None:
    protocol = DyadicLH(k=4, eps=1.0, rounds=3, changes=2)

    def under(seed: int, history: Iterable[int]) -> Law:
        (law,) = laws(protocol, [history])
        return {y: p for y, p in law.items() if y[0][1][0] == seed}

    assert protocol.family.hash(1, 0) == protocol.family.hash(1, 2)
    assert under(1, (0, 0, 1)) == under(1, (2, 0, 3))
    assert under(2, (0, 0, 1)) != under(2, (2, 0, 3))


def test_rounds_follow_each_other_and_are_answered_once() -> None:
    protocol = DyadicLH(k=6, eps=1.0, rounds=4, changes=1)
    for seed in range(8):
        client = protocol.client(rng=SimulationRng(seed))
        sent = [client.report(3, round=0)]
        assert client.report(5, round=0) == sent[0]
        for wrong in (2, 3):
            with pytest.raises(ParameterError, match="round must be 1, the next one"):
                client.report(3, round=wrong)
        sent += [client.report(3, round=t) for t in (1, 2, 3)]
        with pytest.raises(ParameterError, match=r"round must be an integer in 0\.\.3"):
            client.report(3, round=4)
        with pytest.raises(ParameterError, match="round must be 4"):
            client.report(3, round=2)
        assert client.loss == 1.0
        assert sum(one is not None for one in sent) in (1, 2, 4)


def test_nothing_secret_is_shown_or_copied() -> None:
    client = DyadicLH(k=6, eps=1.0, rounds=4, changes=1).client()
    with pytest.raises(DomainError) as refused:
        client.report(77, round=0)
    assert "77" not in str(refused.value)
    assert repr(client).endswith("state hidden)")
    for copied in (copy.copy, pickle.dumps):
        with pytest.raises(StateError):
            copied(client)
