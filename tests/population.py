"""Populations for the tests: the exact law of a whole one, and a source that enumerates it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from loloha.distribution import exact_distribution
from loloha.population.samplers import History, sample, sample_reports
from loloha.population.samplers.enumerated import EnumeratedDraws
from loloha.rng import SCALE, Rng

Law = dict[Any, Fraction]


class Width(Rng):
    """A source that follows one path and tells how many there are, at most."""

    def __init__(self) -> None:
        self.paths = 1

    def bernoulli(self, threshold: int) -> bool:
        self.paths *= 1 if threshold in (0, SCALE) else 2
        return False

    def below(self, n: int) -> int:
        self.paths *= n
        return 0


def sampled(protocol: Any, history: History, rng: Rng) -> Any:
    """Counts of all rounds and losses of all users, as the samplers draw them."""
    drawn = sample(protocol, history, EnumeratedDraws(rng), lambda _: None)
    counts = tuple(tuple(of_round.tolist()) for of_round in drawn.counts)
    return counts, tuple(drawn.loss.tolist())


def sent(protocol: Any, history: History, rng: Rng) -> Any:
    """Reports of all rounds, as the samplers draw them: key and y of each user, or None."""
    rounds = []
    for senders, keys, ys in sample_reports(protocol, history, EnumeratedDraws(rng)):
        listed = iter([None] * len(ys) if keys is None else keys.tolist())
        told = iter(ys.tolist() if ys.ndim == 1 else [row.tobytes() for row in ys])
        rounds.append(tuple((_key(next(listed)), next(told)) if here else None for here in senders))
    return tuple(rounds)


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def reports_law(protocol: Any, values: Any) -> Law:
    """Joint law of all reports of all rounds, of the shipped clients."""

    def told(held: Iterable[int], rng: Rng) -> Any:
        client = protocol.client(rng=rng)
        reports = [client.report(int(v), round=t) if v >= 0 else None for t, v in enumerate(held)]
        return tuple(report and (report.key, report.y) for report in reports)

    total: Law = {((),) * np.shape(values)[1]: Fraction(1)}
    for held in values:
        user = exact_distribution(lambda rng, held=held: told(held, rng))
        total = {
            tuple((*there, one) for there, one in zip(rounds, own, strict=True)): p * q
            for rounds, p in total.items()
            for own, q in user.items()
        }
    return total


def reported(protocol: Any, held: Iterable[int], rng: Rng) -> Any:
    """Counts of all rounds and the loss, as one user's client draws them."""
    client = protocol.client(rng=rng)
    counts = []
    for t, v in enumerate(held):
        tally = protocol.tally()
        if v >= 0:
            tally.add(client.report(int(v), round=t))
        counts.append(tuple(tally.counts.tolist()))
    return tuple(counts), (client.loss,)


def population_law(protocol: Any, values: Any) -> Law:
    """Joint law of the counts of all rounds and of the losses, of the shipped clients."""
    nobody = tuple((0,) * protocol.encoding.cells for _ in np.transpose(values))
    total: Law = {(nobody, ()): Fraction(1)}
    for held in values:
        # Users draw independently of each other.
        user = exact_distribution(lambda rng, held=held: reported(protocol, held, rng))
        added: Counter[Any] = Counter()
        for (counts, loss), p in total.items():
            for (more, spent), q in user.items():
                both = tuple(
                    tuple(a + b for a, b in zip(one, other, strict=True))
                    for one, other in zip(counts, more, strict=True)
                )
                added[both, loss + spent] += p * q
        total = dict(added)
    return total


def numpy_only(patch: pytest.MonkeyPatch) -> None:
    """Let NumPy do all the work, as where numba is not installed."""
    patch.setattr("loloha.counting.compiled._load", lambda name: None)


def always_compiled(patch: pytest.MonkeyPatch) -> None:
    """Let compiled loops do even the smallest work."""
    pytest.importorskip("numba", reason="the extra 'fast' is not installed")
    patch.setattr("loloha.counting.compiled.WORTH_LOADING", 0)


WAYS = {"numpy": numpy_only, "numba": always_compiled}


def wandering(n: int, tau: int, k: int, seed: int = 0, stay: float = 0.6, gap: float = 0.1) -> Any:
    """Values of users who often keep theirs, int64[n, tau], with gaps of -1."""
    rng = np.random.default_rng(seed)
    values = rng.integers(k, size=(n, tau))
    for t in range(1, tau):
        kept = rng.random(n) < stay
        values[kept, t] = values[kept, t - 1]
    values[rng.random((n, tau)) < gap] = -1
    return values
