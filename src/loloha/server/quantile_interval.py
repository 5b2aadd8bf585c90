"""Intervals of quantiles: the values at which no decreasing distribution function is unlikely."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from loloha.arrays import Bools, Floats, Ints
from loloha.server.variance import Channel

_LEVELS = 48
"""A fit of 2^14 thresholds has as many blocks on one side with a chance below 10^-20."""
_ROUNDING = 1e-9
HALF = 0.5
"""Of a report, that a block speaks less against a quantile: counts are whole."""


def quantile_ends(
    ones: Floats, eligible: Floats, channel: Channel, rest: float, confidence: float
) -> tuple[float, float]:
    """The least and the greatest value that the quantile may be."""
    if not eligible.any():
        return math.nan, math.nan
    drawn = list(zip(ones.tolist(), eligible.tolist(), strict=True))
    free = _likelihoods(drawn, Blocks(channel, 0.0, 1.0))[-1]
    left = np.array(_likelihoods(drawn, Blocks(channel, rest, 1.0)))
    # From the other end shares rise: those of bits that are 0 fall.
    turned = [(m - y, m) for y, m in reversed(drawn)]
    mirrored = Channel(1 - channel.q, 1 - channel.p, channel.contrast)
    right = np.array(_likelihoods(turned, Blocks(mirrored, 1 - rest, 1.0)))[::-1]
    below = np.concatenate([[0], np.cumsum(eligible > 0)])
    longer = np.maximum(below, below[-1] - below)
    within = np.flatnonzero(likely(2 * (free - left - right), longer, confidence))
    return float(within[0]), float(within[-1])


def likely(ratios: Floats, thresholds: Ints, confidence: float) -> Bools:
    """Which of twice the log likelihood ratios this ``confidence`` accepts, whatever the shares."""
    # They are largest where all shares on one side, of so many ``thresholds``, are just what the
    # quantile allows, and those on the other far from it. Then a fit has as many blocks on the
    # wrong side as a permutation has cycles that a coin picks (E. Sparre Andersen 1954), however
    # unequal the reports are; each adds a chi-square.
    half = np.maximum(ratios, 0) / 2
    # The chance of a chi-square of 0, 1, 2, ... degrees of freedom to be larger.
    tails = [np.zeros(len(half)), np.array([math.erfc(math.sqrt(x)) for x in half.tolist()])]
    term = [np.exp(-half), np.exp(-half) * np.sqrt(half) * 2 / math.sqrt(math.pi)]
    for degrees in range(2, _LEVELS):
        tails.append(tails[-2] + term[degrees % 2])
        term[degrees % 2] = term[degrees % 2] * half / (degrees / 2)
    larger = (_blocks(len(ratios))[thresholds].T * tails).sum(axis=0)
    accepted: Bools = (larger > 1 - confidence) | (half < _ROUNDING)
    return accepted


@lru_cache(maxsize=4)
def _blocks(most: int) -> Floats:
    """Chances of 0, 1, ... blocks on the wrong side, by how many thresholds there are."""
    chances = np.zeros((most + 1, _LEVELS))
    chances[0, 0] = 1.0
    for m in range(1, most + 1):
        # One more element begins a cycle, which a coin picks, or enters one of the others.
        chances[m] = (1 - 1 / (2 * m)) * chances[m - 1]
        chances[m, 1:] += chances[m - 1, :-1] / (2 * m)
    return chances


def _likelihoods(rows: list[tuple[float, float]], blocks: Blocks) -> list[float]:
    """Of none, the first, the first two, ... of these thresholds."""
    values = [0.0]
    for y, m in rows:
        if m:
            blocks.add(y, m)
        values.append(blocks.likelihood)
    return values


class Blocks:
    """The likeliest decreasing shares within bounds, as thresholds are added: pooled neighbours.

    Where shares must lie within bounds, the likeliest ones are those without bounds, clipped.
    """

    def __init__(self, channel: Channel, least: float, most: float) -> None:
        self.channel, self.least, self.most = channel, least, most
        # Ones, reports, and the likelihood of all blocks up to this one.
        self._stack: list[tuple[float, float, float]] = []

    def add(self, ones: float, reports: float) -> None:
        """One more threshold, above all others."""
        stack = self._stack
        while stack and stack[-1][0] * reports <= ones * stack[-1][1]:
            earlier = stack.pop()
            ones, reports = ones + earlier[0], reports + earlier[1]
        before = stack[-1][2] if stack else 0.0
        stack.append((ones, reports, before + self._of(ones, reports)))

    @property
    def likelihood(self) -> float:
        """Its logarithm, of all that was added."""
        return self._stack[-1][2] if self._stack else 0.0

    def _of(self, ones: float, reports: float) -> float:
        edge = reports * (self.channel.q + self.channel.contrast * self.least)
        if not self.least or ones >= edge:
            return self._within(self.least, ones, reports)
        nearer = min(ones + HALF, edge)
        against = self._within(0.0, nearer, reports) - self._within(self.least, nearer, reports)
        return self._within(0.0, ones, reports) - against

    def _within(self, least: float, ones: float, reports: float) -> float:
        share = (ones / reports - self.channel.q) / self.channel.contrast
        chance = self.channel.q + self.channel.contrast * min(self.most, max(least, share))
        return ones * math.log(chance) + (reports - ones) * math.log1p(-chance)
