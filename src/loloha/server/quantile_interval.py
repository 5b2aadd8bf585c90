"""Intervals of quantiles: the values at which no decreasing distribution function is unlikely."""

from __future__ import annotations

import math

import numpy as np

from loloha.arrays import Floats
from loloha.server.variance import Channel

# Quantiles of twice the logarithm of the likelihood ratio at one point of a decreasing function,
# the same for all of them where there are many reports: M. Banerjee and J. Wellner, Annals of
# Statistics 29 (2001).
_CONFIDENCES = (0.25, 0.5, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
_RATIOS = (0.06402, 0.28506, 0.80694, 0.98729, 1.22756, 1.60246, 2.26916, 3.83630)


def deviance(confidence: float) -> float:
    """What twice the log likelihood ratio exceeds with a chance of 1 - ``confidence``."""
    # Nearly linear in the logarithm of that chance, with a slope of 1 in the end.
    at, known = -math.log1p(-confidence), -np.log1p(-np.array(_CONFIDENCES))
    beyond = max(0.0, at - float(known[-1]))
    return float(np.interp(at, [0.0, *known], [0.0, *_RATIOS])) + beyond


def quantile_ends(
    ones: Floats, eligible: Floats, channel: Channel, rest: float, most: float
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
    within = np.flatnonzero(free - left - right <= most)
    return float(within[0]), float(within[-1])


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
        share = (ones / reports - self.channel.q) / self.channel.contrast
        chance = self.channel.q + self.channel.contrast * min(self.most, max(self.least, share))
        return ones * math.log(chance) + (reports - ones) * math.log1p(-chance)
