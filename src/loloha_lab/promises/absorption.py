"""Population division with absorption (LPA) of LDP-IDS, for comparisons: no registered protocol.

Source: X. Ren, L. Shi, W. Yu, S. Yang, C. Zhao, Z. Xu, "LDP-IDS" (arXiv 2204.00526).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from loloha.arrays import Floats, Ints
from loloha.population import supports
from loloha.protocols import Protocol
from loloha.server.estimate import unbiased
from loloha.server.variance import variance

Survey = Callable[[int, Ints], Floats]
"""From a round and the users who are asked in it, once each, to unbiased frequencies."""


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
    window are told apart by one fresh report of ``protocol`` at most. Who is asked depends on
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
