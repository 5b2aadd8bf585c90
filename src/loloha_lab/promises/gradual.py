"""Gradual release of a memoised answer, for comparisons: no registered protocol.

Source: M. Pan, "Randomized Response with Gradual Release of Privacy Budget" (arXiv 2401.13952).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loloha.arrays import Array, Floats, Ints
from loloha.counting.decode import linear_support
from loloha.hashing import LinearHash
from loloha.population.samplers import Draws
from loloha.protocols import OLH
from loloha.server.estimate import unbiased


def refined(cells: Array, known: Array, before: Array, after: float, g: int) -> Floats:
    """Law of the next answer of each user, float64[n, g].

    The next answer is that of GRR with p - q = ``after``, given that the one with ``before`` was
    ``known``, which is a noisier copy of it: so both together say no more than the next one.

    Parameters
    ----------
    cells, known : int[n]
        The user's true symbol, and the last answer; any where ``before`` is 0.
    before : float64[n]
        0 where there was none.
    """
    symbols = np.arange(g)
    ratio = (np.asarray(before, dtype=np.float64) / after)[:, None]
    weights = (1 - after) / g + after * (symbols == np.asarray(cells)[:, None])
    weights = weights * ((1 - ratio) / g + ratio * (symbols == np.asarray(known)[:, None]))
    law: Floats = weights / weights.sum(axis=1, keepdims=True)
    return law


@dataclass(frozen=True)
class GradualRelease:
    """Hashing to g symbols; each cell's answer is refined from round to round.

    Parameters
    ----------
    k, g : int
        Values, and symbols: a prime.
    losses : tuple of float
        Of all reports of one constant value up to each round, not falling.
    """

    k: int
    g: int
    losses: tuple[float, ...]

    @cached_property
    def rules(self) -> tuple[OLH, ...]:
        """What a report of each round is, taken alone."""
        return tuple(OLH(k=self.k, eps=eps, g=self.g, hash="linear") for eps in self.losses)

    @cached_property
    def contrasts(self) -> Floats:
        """p - q of each round's GRR."""
        return np.array([rule.p1 - rule.q1 for rule in self.rules])

    def simulate(self, values: Ints, seed: int) -> Floats:
        """Unbiased frequencies of each round from a population, int[n, tau]; float64[tau, k]."""
        family, draws = LinearHash(self.k, self.g), Draws(np.random.default_rng(seed))
        rng = np.random.default_rng([seed, 1])
        n, tau = values.shape
        users, keys = np.arange(n), draws.keys(family, n)
        answers = np.zeros((n, self.g), dtype=np.int64)
        reached = np.zeros((n, self.g))
        estimates: Floats = np.empty((tau, self.k))
        for t, rule in enumerate(self.rules[:tau]):
            cells = family.hash_many(keys, values[:, t].astype(np.int64))
            law = refined(
                cells, answers[users, cells], reached[users, cells], self.contrasts[t], self.g
            )
            ys = (rng.random((n, 1)) > np.cumsum(law, axis=1)[:, :-1]).sum(axis=1)
            answers[users, cells], reached[users, cells] = ys, self.contrasts[t]
            counts = np.bincount(keys * self.g + ys, minlength=family.size * self.g)
            support = linear_support(counts[None], family)
            estimates[t] = unbiased(rule, support, np.full((1, self.k), n))[0]
        return estimates
