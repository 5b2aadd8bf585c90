"""Distributions of sums of many draws on a lattice, with bounds on the errors of a finite window.

The draws are whole numbers. Their pmf is transformed, raised to a power, and transformed back,
tilted so that rare events have the same relative precision. Source: MATH section 17.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

# What lies outside of a window has a chance below e^-48.
NATS = 48.0
OUTSIDE = 4 * math.exp(-NATS)
# Units of rounding: of one number that took a few operations, as a share of it.
ROUNDED = 8 * 2.0**-52
# e^x is not computed beyond it.
LARGEST = 690.0
# Steps of a lattice to the deviation of one user; points at most.
_STEPS, _POINTS = 10, 1 << 18


class Sum(NamedTuple):
    """Distributions of sums of draws that are whole numbers, to the same relative precision.

    They are transformed with e^(tilt x) times the chance of x, around the mean that this has.
    """

    places: Any
    middle: int
    tilt: float
    of_one: Any
    scale: float

    @classmethod
    def of(cls, places: Any, chances: Any, n: int, tilt: float, margin: int = 0) -> Sum:
        """Of draws from ``places`` with these chances, else 0; up to n of them."""
        # ``room``: points, on either side of the window, that stay empty.
        # Too much of it, if anything: what adds nothing may but come more often.
        rest = max(0.0, 1 - float(chances.sum())) + ROUNDED * math.sqrt(len(chances))
        tilted = chances * np.exp(tilt * places)
        scale, widest = float(tilted.sum()) + rest, int(np.abs(places).max())
        mean = float(tilted @ places) / scale
        variance = max(0.0, float(tilted @ (places - mean) ** 2) + rest * mean**2) / scale
        width = stray(n * variance, 2.0 * widest)
        points, middle = fast_size(2 * (math.ceil(width) + widest + margin + 1)), round(n * mean)
        pmf = cls(middle - points // 2 + np.arange(points), middle, tilt, None, scale)
        return pmf._replace(of_one=(pmf.transform(places, chances) + rest) / scale)

    def transform(self, places: Any, chances: Any) -> Any:
        """Fourier transform of one more draw, tilted."""
        points, tilted = len(self.places), chances * np.exp(self.tilt * places)
        return np.fft.rfft(np.bincount(places % points, weights=tilted, minlength=points))

    def positive_part(self, n: int) -> float:
        """At least the mean of the sum of n draws where it is positive."""
        raised = n * math.log(self.scale)
        if raised > LARGEST:
            return math.inf
        above = self.places > 0
        places = self.places[above]
        power = self.of_one**n
        tilted = np.maximum(self._back(power), 0.0)[above] + self._error(power, n)
        total = float((places * tilted) @ np.exp(raised - self.tilt * places))
        # What is outside of the window is no likelier in the tilted pmf; farther out it falls fast.
        total += OUTSIDE * math.exp(raised) * (abs(self.middle) + len(self.places))
        return total * (1 + drift(n))

    def best_threshold(self, n: int, places: Any, apart: Any, size: Any) -> float:
        """At most what the best threshold on n draws and another, of weights ``apart``, tells."""
        # ``size``: what the weights are differences of.
        # Far below the middle the distribution is not known as well, and no threshold any good.
        known = self.tilt * (self.places - self.middle) > -8
        back = n * math.log(self.scale) - self.tilt * self.places[known]
        if back.max(initial=0.0) > LARGEST:
            return 0.0
        back = np.exp(back)
        power = self.of_one**n
        weight = float(size @ np.exp(self.tilt * places))
        error = 2 * weight * self._error(power, n)
        tail = self._back(power * self.transform(places, apart - drift(n) * size))[known]
        gained = (tail - error) * back
        thresholds = np.cumsum(gained[::-1]) - OUTSIDE * weight * back[::-1]
        return float(thresholds.max(initial=0.0))

    def highest(self, n: int, places: Any, weights: Any) -> float:
        """At least the mean of weights[x + sum of n tilted draws], for the x of the largest."""
        # ``places``, where the weights stand, must have room; elsewhere they are 0.
        power = self.of_one**n
        size = float(np.abs(weights) @ np.exp(self.tilt * places))
        likeliest = min(1.0, 2 * float(np.abs(power).sum()) / len(self.places))
        peak = float(self._back(power * self.transform(places, weights)).max())
        return peak + size * (2 * self._error(power, n) + drift(n) * likeliest + OUTSIDE)

    def _back(self, transformed: Any) -> Any:
        """The distribution that was transformed, at ``places``."""
        points = len(self.places)
        return np.roll(np.fft.irfft(transformed, points), -(int(self.places[0]) % points))

    def _error(self, power: Any, n: int) -> float:
        """How far each of the tilted chances of n draws may be off, by rounding."""
        # A transform errs by log2(points) units of the root of the sum of squares; a power by n
        # times what its base does, times the power of n - 1 (of which Hoelder's inequality has the
        # mean).
        points, size = len(self.places), np.abs(power)
        mean = min(1.0, 2 * float(size.sum()) / points)
        root = math.sqrt(2 * float(size @ size) / points)
        fewer = mean ** (1 - 1 / n) if n else 0.0
        return ROUNDED * math.log2(points) * (n * fewer + root)


def drift(n: int) -> float:
    """How far a sum of chances of n draws may be off, as a share of it, by rounding of each."""
    return ROUNDED * (32 * n + (1 << 15))


def balance(values: Any, chances: Any) -> float:
    """Where the mean of the tilted draws is 0; no further than the values' own scale allows."""
    low, high = 0.0, 64 / float(np.abs(values).max())
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if chances @ (values * np.exp(middle * values)) < 0:
            low = middle
        else:
            high = middle
    return low


def split(values: Any, chances: Any) -> tuple[Any, Any]:
    """Places and chances on the whole numbers, each value's between its neighbours."""
    # That keeps the mean; of a convex function the mean can but grow.
    below = np.floor(values)
    places = np.concatenate([below, below + 1]).astype(np.int64)
    # As exact as the value, however near to 0: what is tiny may be what balances the rest.
    return places, np.concatenate([chances * (below + 1 - values), chances * (values - below)])


def spacing(values: Any, chances: Any, n: int) -> float:
    """Step of a lattice for a sum of n draws."""
    spread = float(chances @ values**2)
    widest = float(np.abs(values).max())
    return max(math.sqrt(spread) / _STEPS, 4 * stray(n * spread, widest) / _POINTS)


def stray(variance: float, widest: float) -> float:
    """How far a sum of draws strays from its mean but for a chance of 2 e^-48, by Bernstein."""
    return math.sqrt(2 * NATS * variance) + 2 / 3 * NATS * widest


def fast_size(least: int) -> int:
    """A number of points, no less, that is transformed fast."""
    power = 1 << max(3, (least - 1).bit_length())
    return power * 3 // 4 if power * 3 // 4 >= least else power
