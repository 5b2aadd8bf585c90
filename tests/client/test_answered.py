"""Rounds that were answered, as few intervals: none is ever forgotten."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from loloha.client.answered import MOST_INTERVALS, are_rounds, holds, including


def rounds_of(intervals: Any) -> set[int]:
    return {t for first, last in intervals for t in range(first, last + 1)}


def drawn(rng: Any, count: int, largest: int) -> tuple[tuple[int, int], ...]:
    """Intervals that `including` can have made."""
    ends = np.sort(rng.choice(np.arange(0, largest, 2), size=2 * count, replace=False))
    return tuple((int(a), int(b)) for a, b in ends.reshape(-1, 2))


@pytest.mark.parametrize("seed", range(20))
def test_few_intervals_are_their_union(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = drawn(rng, 3, 40), drawn(rng, 2, 40)
    both = including(one, other)
    assert rounds_of(both) == rounds_of(one) | rounds_of(other)
    assert both == including(other, one) == including(both, one)
    assert are_rounds(both, 40)
    for t in range(42):
        assert holds(both, t) == (t in rounds_of(both))


def test_neighbours_are_one_interval() -> None:
    assert including(((0, 3),), ((4, 6),)) == ((0, 6),)
    assert including(((0, 3),), ((5, 6),)) == ((0, 3), (5, 6))
    assert including(((0, 9),), ((2, 3),)) == ((0, 9),)
    assert including((), ((7, 7),)) == ((7, 7),)


def test_of_many_the_shortest_gap_is_closed_the_first_of_equal_ones() -> None:
    gaps = [9] * (MOST_INTERVALS + 1)
    gaps[5] = gaps[7] = 4
    starts = np.cumsum([0, *gaps])
    intervals = tuple((int(start), int(start)) for start in starts)
    found = including(intervals[:-1], intervals[-1:])
    assert len(found) == MOST_INTERVALS
    assert rounds_of(found) >= rounds_of(intervals)
    assert {b[0] - a[1] for a, b in pairwise(found)} == {9}
    assert are_rounds(found, int(starts[-1]))
    assert including(intervals[:MOST_INTERVALS], ()) == intervals[:MOST_INTERVALS]
    # One gap too many, and only one is closed.
    once = including(intervals[:MOST_INTERVALS], intervals[-1:])
    assert once[5] == (int(starts[5]), int(starts[6]))
    assert once[6] == (int(starts[7]), int(starts[7]))


def test_what_is_no_list_of_rounds() -> None:
    assert are_rounds(((0, 0), (2, 7)), 7)
    wrong: list[Any] = [
        ((0, 0), (1, 7)), ((0, 3), (3, 7)), ((2, 7), (0, 0)), ((0, 8),), ((-1, 3),), ((3, 2),),
        ((0, 1.0),), ((False, 1),),
        tuple((3 * i, 3 * i) for i in range(MOST_INTERVALS + 1)),
    ]  # fmt: skip
    for rounds in wrong:
        assert not are_rounds(rounds, 7 if len(rounds) <= MOST_INTERVALS else 10**9), rounds
    assert are_rounds(wrong[-1][1:], 10**9)
