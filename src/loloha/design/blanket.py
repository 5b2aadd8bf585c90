"""How far the answers of others hide one's own: divergences of a round that arrives shuffled.

One user sends an answer of class y with chance one[y] or two[y]. Each of n - 1 others sends it,
whatever the value, with a chance of at least others[y], and is taken to be recognised else. Then
the two are told apart by at most

    D(eps) = E[(Z_1 + ... + Z_n)+] / n,
    Z = (one[y] - e^eps two[y]) / others[y] with chance others[y], else 0,

and by just that where the others do send with ``others``. That is the privacy blanket (B. Balle,
J. Bell, A. Gascon and K. Nissim, 2019), the best of all such decompositions (P. Su, H. Cheng and
P. Wang, 2025). Proof: let c be the sum of others. Among M + 1 hidden answers the user's own may be
any, so their chance, over that of M + 1 draws from others / c, is the mean of c one[y] / others[y];
M is Bin(n - 1, c), and Pr[M = m] / (m + 1) = Pr[M' = m + 1] / (n c) for M' of Bin(n, c). Who has
another key is recognised too: each of ``others`` is then divided by the number of keys.

What is computed stays on the safe side of rounding: chances are moved by a few units in the last
place to where more is told, and bounds on the errors of a Fourier transform, and on what lies
outside of its window, are added to what is told at most and taken from what is told at least. Where
they outgrow delta, no gain is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Divergence = Callable[[float], float]

# What lies outside of a window has a chance below e^-48.
_NATS = 48.0
_OUTSIDE = 4 * math.exp(-_NATS)
# Units of rounding: of one number that took a few operations, as a share of it.
_ROUNDED = 8 * 2.0**-52
# e^x is not computed beyond it.
_LARGEST = 690.0
# Steps of a lattice to the deviation of one user; points at most.
_STEPS, _POINTS = 10, 1 << 18
# Where data sets are gone through, one user in so many is left out: fewer hide less. So it is with
# the sizes of groups.
_PART, _SIZE_PART = 128, 64
# An eps is found up to this share of itself.
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
    """At least the divergence of any data set of others who send with ``others`` or more.

    Each value is split between its neighbours on a lattice, which keeps the mean: of a convex
    function, as (.)+ is, the mean can but grow.
    """
    one, two, others = (np.asarray(part, dtype=np.float64) for part in classes)
    chances = others / keys * (1 - _ROUNDED)

    def divergence(eps: float) -> float:
        cost = math.exp(eps) * two
        values = (one - cost + _ROUNDED * (one + cost)) / chances
        step = _step(values, chances, n)
        values = values / step
        below = np.floor(values)
        places = np.concatenate([below, below + 1]).astype(np.int64)
        # As exact as the value, however near to 0: what is tiny may be what balances the rest.
        split = np.concatenate([chances * (below + 1 - values), chances * (values - below)])
        law = _Sum.of(places, split, n, _tilt(places, split))
        return min(1.0, law.positive_part(n) * step / n)

    return divergence


def attained(classes: Classes, n: int, keys: float) -> Divergence:
    """At most the divergence of the data set of which the others send with ``others``.

    The test adds up whole numbers near the best weights of answers, and compares with a threshold.
    """
    one, two, others = (np.asarray(part, dtype=np.float64) for part in classes)
    chances = others / keys

    def divergence(eps: float) -> float:
        cost = math.exp(eps) * two
        apart = one - cost - _ROUNDED * (one + cost)
        values = apart / chances / _step(apart / chances, chances, n)
        places = np.rint(values).astype(np.int64)
        law = _Sum.of(places, chances, n, _tilt(values, chances))
        return law.best_threshold(n - 1, places, apart, one + cost)

    return divergence


def of_two_symbols(p: float, q: float, n: int, keys: float) -> Divergence:
    """At least the divergence of any data set of others who send one of two symbols, p + q = 1.

    With j others of one value the count is Bin(j, p) + Bin(m - j, q): all j and m are gone through,
    in parts, each with the users that all of a part have.
    """
    weights, rows = [], []
    for weight, m in _sizes(n, keys):
        part = 1 + m // _PART
        held = np.arange(0, m + 1, part)
        left = m - np.minimum(held + part - 1, m)
        weights.append(weight)
        rows.append(_sums_of_two(held, left, p, q))

    def divergence(eps: float) -> float:
        grown = math.exp(eps)
        gain = p - grown * q + _ROUNDED * (p + grown * q)
        cost = grown * p - q - _ROUNDED * (grown * p + q)
        total = _OUTSIDE
        for weight, (law, error) in zip(weights, rows, strict=True):
            most, least = law + error[:, None], np.maximum(law - error[:, None], 0.0)
            apart = np.maximum(gain * np.roll(most, 1, axis=1) - cost * least, 0.0)
            total += weight * float(apart.sum(axis=1).max())
        return min(1.0, total * (1 + 1e-9))

    return divergence


def meeting(divergences: list[Divergence], local: float, delta: float, *, above: bool) -> float:
    """The eps at which the largest of falling functions meets delta: from above, or from below.

    Their logarithms are nearly linear in eps^2: a secant, which halves what is kept too long.
    """

    def excess(eps: float) -> float:
        return math.log(max(1e-9, *(one(eps) / delta for one in divergences)))

    low, high, ends = 0.0, local, [excess(0.0), -1.0]
    if ends[0] <= 0:
        return 0.0
    if above and excess(local * (1 - _CLOSE)) > 0:
        return local
    while (close := _CLOSE * high) < high - low:
        squared = (high**2 * ends[0] - low**2 * ends[1]) / (ends[0] - ends[1])
        middle = min(max(math.sqrt(squared), low + close / 2), high - close / 2)
        found = excess(middle)
        if found > 0:
            low, ends = middle, [found, ends[1] / 2]
        else:
            high, ends = middle, [ends[0] / 2, found]
    return high if above else low


class _Sum(NamedTuple):
    """Laws of sums of draws that are whole numbers, to the same relative precision.

    They are transformed with e^(tilt x) times the chance of x, around the mean that this has.
    """

    places: Any
    middle: int
    tilt: float
    one: Any
    scale: float

    @classmethod
    def of(cls, places: Any, chances: Any, n: int, tilt: float) -> _Sum:
        """Of draws from ``places`` with these chances, else 0; up to n of them."""
        # Too much of it, if anything: what adds nothing may but come more often.
        rest = max(0.0, 1 - float(chances.sum())) + _ROUNDED * math.sqrt(len(chances))
        tilted = chances * np.exp(tilt * places)
        scale, widest = float(tilted.sum()) + rest, int(np.abs(places).max())
        mean = float(tilted @ places) / scale
        variance = max(0.0, float(tilted @ (places - mean) ** 2) + rest * mean**2) / scale
        reach = _reach(n * variance, 2.0 * widest)
        points, middle = _points(2 * math.ceil(reach) + 2 * widest + 2), round(n * mean)
        law = cls(middle - points // 2 + np.arange(points), middle, tilt, None, scale)
        return law._replace(one=(law.transform(places, chances) + rest) / scale)

    def transform(self, places: Any, chances: Any) -> Any:
        """Fourier transform of one more draw, tilted."""
        points, tilted = len(self.places), chances * np.exp(self.tilt * places)
        return np.fft.rfft(np.bincount(places % points, weights=tilted, minlength=points))

    def positive_part(self, n: int) -> float:
        """At least the mean of the sum of n draws where it is positive."""
        raised = n * math.log(self.scale)
        if raised > _LARGEST:
            return math.inf
        above = self.places > 0
        places = self.places[above]
        power = self.one**n
        tilted = np.maximum(self._back(power), 0.0)[above] + self._error(power, n)
        told = float((places * tilted) @ np.exp(raised - self.tilt * places))
        # What is outside of the window is no likelier in the tilted law; farther out it falls fast.
        told += _OUTSIDE * math.exp(raised) * (abs(self.middle) + len(self.places))
        return told * (1 + _drift(n))

    def best_threshold(self, n: int, places: Any, apart: Any, size: Any) -> float:
        """At most what the best threshold on n draws and another one, of weights ``apart``, tells.

        ``size``: what the weights are differences of.
        """
        # Far below the middle the law is not known as well, and no threshold any good.
        known = self.tilt * (self.places - self.middle) > -8
        back = n * math.log(self.scale) - self.tilt * self.places[known]
        if back.max(initial=0.0) > _LARGEST:
            return 0.0
        back = np.exp(back)
        power = self.one**n
        weight = float(size @ np.exp(self.tilt * places))
        error = 2 * weight * self._error(power, n)
        told = self._back(power * self.transform(places, apart - _drift(n) * size))[known]
        gained = (told - error) * back
        thresholds = np.cumsum(gained[::-1]) - _OUTSIDE * weight * back[::-1]
        return float(thresholds.max(initial=0.0))

    def _back(self, transformed: Any) -> Any:
        """The law that was transformed, at ``places``."""
        points = len(self.places)
        return np.roll(np.fft.irfft(transformed, points), -(int(self.places[0]) % points))

    def _error(self, power: Any, n: int) -> float:
        """How far each of the tilted chances of n draws may be off, by rounding.

        A transform errs by log2(points) units of the root of the sum of squares; a power by n times
        what its base does, times the power of n - 1 (of which Hoelder's inequality has the mean).
        """
        points, size = len(self.places), np.abs(power)
        mean = min(1.0, 2 * float(size.sum()) / points)
        root = math.sqrt(2 * float(size @ size) / points)
        fewer = mean ** (1 - 1 / n) if n else 0.0
        return _ROUNDED * math.log2(points) * (n * fewer + root)


def _drift(n: int) -> float:
    """How far a chance of n draws may be off, as a share of it, if each draw's is off by some."""
    return _ROUNDED * (32 * n + 1000)


def _tilt(values: Any, chances: Any) -> float:
    """Where the mean of the tilted draws is 0; no further than the values' own scale allows."""
    low, high = 0.0, 64 / float(np.abs(values).max())
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if chances @ (values * np.exp(middle * values)) < 0:
            low = middle
        else:
            high = middle
    return low


def _step(values: Any, chances: Any, n: int) -> float:
    spread = float(chances @ values**2)
    widest = float(np.abs(values).max())
    return max(math.sqrt(spread) / _STEPS, 4 * _reach(n * spread, widest) / _POINTS)


def _reach(variance: float, widest: float) -> float:
    """How far a sum of draws strays from its mean but for a chance of 2 e^-48, by Bernstein."""
    return math.sqrt(2 * _NATS * variance) + 2 / 3 * _NATS * widest


def _points(least: int) -> int:
    """A number of points, no less, that is transformed fast."""
    power = 1 << max(3, (least - 1).bit_length())
    return power * 3 // 4 if power * 3 // 4 >= least else power


def _sizes(n: int, keys: float) -> list[tuple[float, int]]:
    """How many others share one's key, in parts: chance, and the smallest number in it."""
    if keys == 1:
        return [(1.0, n - 1)]
    mean = (n - 1) / keys
    reach = _reach(mean, 1.0)
    sizes = np.arange(max(0, math.floor(mean - reach)), min(n - 1, math.ceil(mean + reach)) + 1)
    # Chances of a size over that of the one before; the window holds all but e^-48 of them.
    odds = (n - sizes[1:]) / (sizes[1:] * (keys - 1.0))
    law = np.concatenate([[0.0], np.cumsum(np.log(odds))])
    law = np.exp(law - law.max())
    law /= law.sum()
    firsts = [0]
    while (size := int(sizes[firsts[-1]])) + size // _SIZE_PART < sizes[-1]:
        firsts.append(firsts[-1] + 1 + size // _SIZE_PART)
    return list(zip(np.add.reduceat(law, firsts), sizes[firsts].tolist(), strict=True))


def _sums_of_two(ones: Any, others: Any, p: float, q: float) -> tuple[Any, Any]:
    """Laws of Bin(ones, p) + Bin(others, q), modulo more points than they have, and their errors.

    One a row.
    """
    m = int((ones + others).max())
    points = _points(min(m + 2, 2 * math.ceil(_reach(m * p * q, 1.0)) + 2))
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
    law = np.fft.irfft(sizes * np.exp(-1j * turn), points, axis=1)
    bits = math.log2(points)
    units = 1 + turn + (ones + others)[:, None] * np.maximum(-shrunk, 0.0)
    powers = 2 * (sizes * units).sum(axis=1) / points
    root = np.sqrt(2 * (sizes**2).sum(axis=1) / points)
    return law, _ROUNDED * (powers + bits * root) + _OUTSIDE
