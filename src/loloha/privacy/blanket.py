"""The privacy blanket: divergences of a round whose reports arrive shuffled.

One user sends an answer of class y with chance one[y] or two[y]. Each of n - 1 others sends it,
whatever the value, with a chance of at least others[y], and is taken to be recognised else. Then
the two are distinguished by at most

    D(eps) = E[(Z_1 + ... + Z_n)+] / n,
    Z = (one[y] - e^eps two[y]) / others[y] with chance others[y], else 0,

and by just that where the others do send with ``others``. That is the privacy blanket (B. Balle,
J. Bell, A. Gascon and K. Nissim, 2019), the best of all such decompositions (P. Su, H. Cheng and
P. Wang, 2025). Proof: let c be the sum of others. Among M + 1 hidden answers the user's own may be
any, so their chance, over that of M + 1 draws from others / c, is the mean of c one[y] / others[y];
M is Bin(n - 1, c), and Pr[M = m] / (m + 1) = Pr[M' = m + 1] / (n c) for M' of Bin(n, c). Who has
another key is recognised too: each of ``others`` is then divided by the number of keys.

What is computed stays on the safe side of rounding: chances are moved by a few units in the last
place towards more loss, and bounds on the errors of a Fourier transform, and on what lies outside
of its window, are added to upper bounds and subtracted from lower ones. Where they outgrow delta,
no gain is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from loloha.privacy.lattice import OUTSIDE, ROUNDED, Sum, balance, fast_size, spacing, split, stray

Divergence = Callable[[float], float]

# Where data sets are gone through, one user in so many is left out: fewer hide less. So it is with
# the sizes of groups.
_PART, _SIZE_PART = 128, 64
# Relative precision of eps.
_CLOSE = 1e-4


class Classes(NamedTuple):
    """Chances of each class of answers: of the user, for either value, and of the others."""

    one: Any
    two: Any
    others: Any

    @property
    def swapped(self) -> Classes:
        """With the two values exchanged."""
        return Classes(self.two, self.one, self.others)


def hidden(classes: Classes, n: int, keys: float) -> Divergence:
    """At least the divergence of any data set of others who send with ``others`` or more."""
    # Values are split between their neighbours on a lattice: (.)+ is convex.
    one, two, others = (np.asarray(part, dtype=np.float64) for part in classes)
    chances = others / keys * (1 - ROUNDED)

    def divergence(eps: float) -> float:
        cost = math.exp(eps) * two
        values = (one - cost + ROUNDED * (one + cost)) / chances
        step = spacing(values, chances, n)
        places, parts = split(values / step, chances)
        pmf = Sum.of(places, parts, n, balance(places, parts))
        return min(1.0, pmf.positive_part(n) * step / n)

    return divergence


def attained(classes: Classes, n: int, keys: float) -> Divergence:
    """At most the divergence of the data set of which the others send with ``others``."""
    # The test adds up whole numbers near the best weights of answers, and compares with a
    # threshold.
    one, two, others = (np.asarray(part, dtype=np.float64) for part in classes)
    chances = others / keys

    def divergence(eps: float) -> float:
        cost = math.exp(eps) * two
        apart = one - cost - ROUNDED * (one + cost)
        values = apart / chances / spacing(apart / chances, chances, n)
        places = np.rint(values).astype(np.int64)
        pmf = Sum.of(places, chances, n, balance(values, chances))
        return pmf.best_threshold(n - 1, places, apart, one + cost)

    return divergence


def of_two_symbols(p: float, q: float, n: int, keys: float) -> Divergence:
    """At least the divergence of any data set of others who send one of two symbols, p + q = 1."""
    # With j others of one value the count is Bin(j, p) + Bin(m - j, q): all j and m are gone
    # through, in parts, each with the users that all of a part have.
    weights, rows = [], []
    for weight, m in _sizes(n, keys):
        part = 1 + m // _PART
        low_part = np.arange(0, m + 1, part)
        left = m - np.minimum(low_part + part - 1, m)
        weights.append(weight)
        rows.append(_sums_of_two(low_part, left, p, q))

    def divergence(eps: float) -> float:
        grown = math.exp(eps)
        gain = p - grown * q + ROUNDED * (p + grown * q)
        cost = grown * p - q - ROUNDED * (grown * p + q)
        total = OUTSIDE
        for weight, (pmf, error) in zip(weights, rows, strict=True):
            most, least = pmf + error[:, None], np.maximum(pmf - error[:, None], 0.0)
            apart = np.maximum(gain * np.roll(most, 1, axis=1) - cost * least, 0.0)
            total += weight * float(apart.sum(axis=1).max())
        return min(1.0, total * (1 + 1e-9))

    return divergence


def meeting(divergences: list[Divergence], local: float, delta: float, *, above: bool) -> float:
    """The eps at which the largest of falling functions meets delta: from above, or from below."""
    eps = 0.0
    for divergence in divergences:
        # What has fallen below delta by then adds nothing.
        if not eps or divergence(eps) > delta:
            eps = max(eps, _meeting(divergence, local, delta, above=above))
    return eps


def _meeting(falling: Divergence, local: float, delta: float, *, above: bool) -> float:
    """The same for one."""
    # Its logarithm is nearly linear in eps^2: a secant that halves the value of the end
    # that stays, as the Illinois method does.

    def excess(eps: float) -> float:
        return math.log(max(1e-9, falling(eps) / delta))

    low, high, ends = 0.0, local, [excess(0.0), -1.0]
    if ends[0] <= 0:
        return 0.0
    if above and excess(local * (1 - _CLOSE)) > 0:
        return local
    while (close := _CLOSE * high) < high - low:
        squared = (high**2 * ends[0] - low**2 * ends[1]) / (ends[0] - ends[1])
        middle = min(max(math.sqrt(squared), low + close / 2), high - close / 2)
        value = excess(middle)
        if value > 0:
            low, ends = middle, [value, ends[1] / 2]
        else:
            high, ends = middle, [ends[0] / 2, value]
    return high if above else low


def _sizes(n: int, keys: float) -> list[tuple[float, int]]:
    """How many others share one's key, in parts: chance, and the smallest number in it."""
    if keys == 1:
        return [(1.0, n - 1)]
    mean = (n - 1) / keys
    width = stray(mean, 1.0)
    sizes = np.arange(max(0, math.floor(mean - width)), min(n - 1, math.ceil(mean + width)) + 1)
    # Chances of a size over that of the one before; the window holds all but e^-48 of them.
    ratios = (n - sizes[1:]) / (sizes[1:] * (keys - 1.0))
    pmf = np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    pmf = np.exp(pmf - pmf.max())
    pmf /= pmf.sum()
    firsts = [0]
    while (size := int(sizes[firsts[-1]])) + size // _SIZE_PART < sizes[-1]:
        firsts.append(firsts[-1] + 1 + size // _SIZE_PART)
    return list(zip(np.add.reduceat(pmf, firsts), sizes[firsts].tolist(), strict=True))


def _sums_of_two(ones: Any, others: Any, p: float, q: float) -> tuple[Any, Any]:
    """Pmfs of Bin(ones, p) + Bin(others, q), one a row, modulo more points; their errors."""
    m = int((ones + others).max())
    points = fast_size(min(m + 2, 2 * math.ceil(stray(m * p * q, 1.0)) + 2))
    half = np.pi * np.arange(points // 2 + 1) / points
    # Logarithms of 1 - p + p e^(-2i half), and of the same with q: as exact near 1 as anywhere.
    far, up = np.sin(half) ** 2, np.sin(2 * half)
    real = q - p + 2 * p * np.cos(half) ** 2
    shrunk = np.log(np.maximum(np.hypot(real, p * up), 1e-300))
    near = 4 * p * q * far < 0.5
    shrunk[near] = np.log1p(-4 * p * q * far[near]) / 2
    turns = [np.arctan2(p * up, real), np.arctan2(q * up, p - q + 2 * q * np.cos(half) ** 2)]
    turn = ones[:, None] * turns[0] + others[:, None] * turns[1]
    sizes = np.exp((ones + others)[:, None] * shrunk)
    pmf = np.fft.irfft(sizes * np.exp(-1j * turn), points, axis=1)
    bits = math.log2(points)
    units = 1 + turn + (ones + others)[:, None] * np.maximum(-shrunk, 0.0)
    powers = 2 * (sizes * units).sum(axis=1) / points
    root = np.sqrt(2 * (sizes**2).sum(axis=1) / points)
    return pmf, ROUNDED * (powers + bits * root) + OUTSIDE
