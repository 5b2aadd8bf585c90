"""The rounds that were answered, as a few intervals."""

from __future__ import annotations

from bisect import bisect
from itertools import pairwise

MOST_INTERVALS = 64

Rounds = tuple[tuple[int, int], ...]
"""Disjoint intervals, first and last round of each, ascending, none touching the next."""


def holds(rounds: Rounds, round: int) -> bool:
    """Whether a round is among them."""
    place = bisect(rounds, round, key=lambda interval: interval[0])
    return place > 0 and round <= rounds[place - 1][1]


def including(rounds: Rounds, more: Rounds) -> Rounds:
    """The union of rounds, perhaps with some in between."""
    # Beyond `MOST_INTERVALS` the shortest gap is closed: its rounds count as answered, which is
    # safe. A clock that was years ahead leaves a long gap, which stays open: the device goes on
    # reporting once the clock is right.
    merged: list[tuple[int, int]] = []
    for first, last in sorted((*rounds, *more)):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    while len(merged) > MOST_INTERVALS:
        gaps = [b[0] - a[1] for a, b in pairwise(merged)]
        place = gaps.index(min(gaps))
        merged[place : place + 2] = [(merged[place][0], merged[place + 1][1])]
    return tuple(merged)


def are_rounds(rounds: Rounds, largest: int) -> bool:
    """Whether these are intervals as `including` makes them."""
    return (
        len(rounds) <= MOST_INTERVALS
        and all(type(end) is int for interval in rounds for end in interval)
        and all(0 <= first <= last <= largest for first, last in rounds)
        and all(a[1] + 1 < b[0] for a, b in pairwise(rounds))
    )
