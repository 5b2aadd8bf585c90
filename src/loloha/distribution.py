"""The exact output distribution of device code: run it under every outcome of its random draws."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from loloha import _moved
from loloha.rng import SCALE, Rng

Outcome = TypeVar("Outcome", bound=Hashable)


class _Replay(Rng):
    """Follows one path through the tree of draws and remembers the branches not yet taken."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.depth = 0
        # The path's probability is ways / of, as two integers, reduced once at its end.
        self.ways = 1
        self.of = 1
        self.pending: list[list[int]] = []

    def bernoulli(self, threshold: int) -> bool:
        if threshold in (0, SCALE):
            return threshold == SCALE
        branch = self._take(2)
        self.ways *= threshold if branch else SCALE - threshold
        self.of *= SCALE
        return branch == 1

    def below(self, n: int) -> int:
        self.of *= n
        return self._take(n)

    def _take(self, n: int) -> int:
        if self.depth == len(self.path):
            self.pending += [[*self.path, other] for other in range(1, n)]
            self.path.append(0)
        branch = self.path[self.depth]
        self.depth += 1
        return branch


def exact_distribution(run: Callable[[Rng], Outcome]) -> dict[Outcome, Fraction]:
    """Distribution of ``run(rng)`` over all draws, in exact rational arithmetic.

    Parameters
    ----------
    run : callable
        Device code that draws only through the `Rng` it is given, finitely often, and returns
        something hashable. It is called once for each path of draws, so keep it small.

    Returns
    -------
    dict
        Outcome -> probability; the probabilities add up to exactly 1.
    """
    distribution: defaultdict[Outcome, Fraction] = defaultdict(Fraction)
    pending: list[list[int]] = [[]]
    while pending:
        replay = _Replay(pending.pop())
        distribution[run(replay)] += Fraction(replay.ways, replay.of)
        pending += replay.pending
    return dict(distribution)


def loss_between(pmf: Mapping[Outcome, Fraction], other: Mapping[Outcome, Fraction]) -> float:
    """Largest absolute log-ratio of two distributions: the eps at which they are indistinguishable.

    Returns
    -------
    float
        In nats; ``inf`` where one distribution can produce what the other cannot.
    """
    pairs = [(pmf.get(outcome), other.get(outcome)) for outcome in pmf.keys() | other.keys()]
    if not all(p and q for p, q in pairs):
        return math.inf
    return log_of(max(max(p / q, q / p) for p, q in pairs if p and q))


def log_of(ratio: Fraction) -> float:
    """ln of an exact ratio >= 1, accurate near 1 too."""
    return math.log1p(ratio - 1) if ratio < 2 else math.log(ratio)


if not TYPE_CHECKING:
    __getattr__ = _moved.getter(__name__)
