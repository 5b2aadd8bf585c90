"""Population division with absorption (LPA) of LDP-IDS, for comparisons: no registered protocol.

Source: X. Ren, L. Shi, W. Yu, S. Yang, C. Zhao, Z. Xu, "LDP-IDS" (arXiv 2204.00526).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from loloha.arrays import Array, Floats, Ints
from loloha.counting.decode import linear_support
from loloha.hashing import LinearHash
from loloha.population import supports
from loloha.population.samplers import Draws
from loloha.protocols import OLH, Protocol
from loloha.server.estimate import unbiased
from loloha.server.variance import variance

Survey = Callable[[int, Ints], Floats]
"""From a round and the users who are asked in it, once each, to unbiased frequencies."""


def refined(cells: Array, known: Array, before: Array, after: float, g: int) -> Floats:
    """Distribution of the next answer of each user, float64[n, g].

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
    pmf: Floats = weights / weights.sum(axis=1, keepdims=True)
    return pmf


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
            pmf = refined(
                cells, answers[users, cells], reached[users, cells], self.contrasts[t], self.g
            )
            ys = (rng.random((n, 1)) > np.cumsum(pmf, axis=1)[:, :-1]).sum(axis=1)
            answers[users, cells], reached[users, cells] = ys, self.contrasts[t]
            counts = np.bincount(keys * self.g + ys, minlength=family.size * self.g)
            support = linear_support(counts[None], family)
            estimates[t] = unbiased(rule, support, np.full((1, self.k), n))[0]
        return estimates


class Published(NamedTuple):
    """What is shown in each round.

    Attributes
    ----------
    estimates : float64[tau, k]
    source : int64[tau]
        The round whose users gave it; -1 as long as nothing but "uniform" is shown.
    users : int64[tau]
        How many they were; 0 for "uniform".
    """

    estimates: Floats
    source: Ints
    users: Ints


@dataclass(frozen=True)
class Absorption:
    """The server of LPA: whom it asks, and when it shows something new.

    Each user answers at most once in any ``window`` rounds, so two histories that differ within a
    window are distinguished by one fresh report of ``protocol`` at most. Who is asked depends on
    chance and on earlier answers alone.

    Parameters
    ----------
    protocol : Protocol
        A one-round rule.
    n, window : int
        Users, and the rounds in which each answers once: n >= 2 window.
    """

    protocol: Protocol
    n: int
    window: int

    @property
    def share(self) -> int:
        """Users of a round for either purpose: to see a change, and to show something new."""
        return self.n // (2 * self.window)

    def run(self, tau: int, survey: Survey, rng: np.random.Generator) -> Published:
        """All rounds. In each ``share`` users tell how far the last publication is off.

        If that is more than a new publication would err, the users whom rounds without one left
        over are asked, and as many rounds to come lend none. The first rounds show "uniform",
        where LDP-IDS shows zeros: it needs no data either, and errs less.
        """
        k = self.protocol.k
        free = np.ones(self.n, dtype=bool)
        asked: list[list[Ints]] = []
        shown, source, size = np.full(k, 1 / k), -1, 0
        estimates, sources, sizes = np.empty((tau, k)), [], []

        def draw(count: int) -> Ints:
            users = rng.choice(np.flatnonzero(free), size=count, replace=False)
            free[users] = False
            asked[-1].append(users)
            return np.sort(users)

        for t in range(tau):
            asked.append([])
            if t >= self.window:
                free[np.concatenate(asked[t - self.window])] = True
            seen = survey(t, draw(self.share))
            change = float(np.mean((seen - shown) ** 2)) - self._noise(self.share)
            nullified = max(size // self.share - 1, 0)
            if t - source > nullified:
                count = self.share * min(t - source - nullified, self.window)
                if change > self._noise(count):
                    shown, source, size = survey(t, draw(count)), t, count
            estimates[t] = shown
            sources.append(source)
            sizes.append(size)
        return Published(estimates, np.array(sources), np.array(sizes))

    def simulate(self, values: Ints, seed: int) -> Published:
        """With the reports of a population, int[n, tau]."""
        rng = np.random.default_rng(seed)

        def survey(t: int, users: Ints) -> Floats:
            counted = supports(self.protocol, values[users, t : t + 1], rng=rng)
            estimates: Floats = unbiased(self.protocol, counted.supports, counted.eligible)[0]
            return estimates

        return self.run(values.shape[1], survey, rng)

    def _noise(self, users: int) -> float:
        """Mean variance of a value, where all are equally frequent."""
        return float(variance(self.protocol, users, 1 / self.protocol.k))

    def expected(self, published: Published, truth: Floats) -> float:
        """Mean squared error of what is shown, given when something new was; see `window_error`."""
        errors = [self._of_mean(published, truth, slice(t, t + 1)) for t in range(len(truth))]
        return float(np.mean(errors))

    def expected_mean(self, published: Published, truth: Floats, length: int) -> float:
        """The same of the means of full windows of so many rounds."""
        starts = range(0, len(truth) - length + 1, length)
        windows = [slice(start, start + length) for start in starts]
        return float(np.mean([self._of_mean(published, truth, window) for window in windows]))

    def _of_mean(self, published: Published, truth: Floats, window: slice) -> float:
        """Noise of each publication by its share of the window, and how far it is out of date."""
        rounds, counts = np.unique(published.source[window], return_counts=True)
        centre, noise = np.zeros(truth.shape[1]), 0.0
        for source, count in zip(rounds.tolist(), counts.tolist(), strict=True):
            share = count / counts.sum()
            if source < 0:
                centre += share / truth.shape[1]
                continue
            users, f = int(published.users[source]), truth[source]
            sampled = f * (1 - f) * (1 / users - 1 / self.n)
            noise += share**2 * float(np.mean(variance(self.protocol, users, f) + sampled))
            centre += share * f
        return noise + float(np.mean((centre - truth[window].mean(axis=0)) ** 2))
