"""Scores: the evidence about a value from one user's reports, if the value is constant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.engines.constancy import Length
from loloha.privacy.likelihood import binomial
from loloha.protocols import Protocol

if TYPE_CHECKING:
    from loloha.arrays import Floats, Ints

SCALE = 1 << 20
"""The largest score."""


@dataclass(frozen=True)
class Scores:
    """Scores of a value by the number s of supporting reports out of T.

    Parameters
    ----------
    protocol : Protocol
        With two rounds over symbols.
    reports : int
        T, at least 1.

    Notes
    -----
    The memoised answer supports the value with probability p1 (the user's own value) or
    q (another), and then each report with p2, else q2. The score is the probability that the user
    holds the value, given s and 1/k beforehand, in whole multiples of 2^-20 of the largest: of all
    functions of s it has the least variance for users drawn at equal frequencies (it is the
    regression on s of who holds the value). Any function gives an unbiased estimate once its means
    are known, which are those of the rounded one. Source: MATH sections 13 and 16.
    """

    protocol: Protocol
    reports: int

    @property
    def second(self) -> tuple[float, float]:
        """p and q of the second round, which there is."""
        channel: Any = self.protocol.second_channel
        return float(channel.p), float(channel.q)

    @cached_property
    def pmfs(self) -> tuple[Floats, Floats]:
        """Distribution of s if the user holds the value, and if not; float64[T + 1] each."""
        exact = self.protocol.realised
        memo = self.protocol.encoding.supporting(exact.p1, exact.q1)
        binomials = [binomial(self.reports, p, 1 - p) for p in self.second]
        own, other = (float(p) * binomials[0] + float(1 - p) * binomials[1] for p in memo)
        return own, other

    @cached_property
    def table(self) -> Ints:
        """The score of s = 0..T, int64[T + 1]: at most 2^20."""
        exact = self.protocol.realised
        memo = [float(p) for p in self.protocol.encoding.supporting(exact.p1, exact.q1)]
        p2, q2 = self.second
        s = np.arange(self.reports + 1)
        shown = s * math.log(p2 / q2) + (self.reports - s) * (math.log1p(-p2) - math.log1p(-q2))
        # Posterior probability that the memo supports it after s reports, from a prior of 1/2.
        chance = 1 / (1 + np.exp(-np.clip(shown, -700, 700)))
        among = (memo[0] + (self.protocol.k - 1) * memo[1]) / self.protocol.k
        own, drawn = (m * chance + (1 - m) * (1 - chance) for m in (memo[0], among))
        scores: Ints = np.rint(SCALE * own / drawn * (among / memo[0])).astype(np.int64)
        return scores

    def length(self, users: int, weight: float) -> Length:
        """Parts of estimates by these users, each of this weight."""

        def part(table: Any) -> Floats:
            own, other = (pmf @ table for pmf in self.pmfs)
            scaled: Floats = weight * (table - other) / (own - other)
            return scaled

        plain = part(np.arange(self.reports + 1.0))
        return Length(users, self.pmfs, plain, part(self.table.astype(np.float64)), weight)
