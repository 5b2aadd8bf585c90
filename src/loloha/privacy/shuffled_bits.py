"""Others who hold whatever they like: for bits, a bound that is attained but for what is tiny.

The privacy blanket takes what others do not all send alike for recognised. Among bits that is too
much: whatever tells another's value from the rest is a bit that tells nothing of the user's. So
none hide less than those who all hold one *third* value do, but for a few who hold the user's own
two values, and what these may cost is bounded: D(eps) <= D_3(eps) + rest. Source, with the proof:
MATH section 17.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from loloha.privacy.blanket import Classes, Divergence
from loloha.privacy.lattice import (
    LARGEST,
    NATS,
    OUTSIDE,
    ROUNDED,
    Sum,
    balance,
    drift,
    spacing,
    split,
    stray,
)

# More draws of one kind than these are not needed to smooth a sum, and take time.
_MOST_ALIKE = 1 << 14
# What is lost is nothing beside this share of the divergence: no other bound can be much lower.
_NOTHING = 0.01


class Others(NamedTuple):
    """What others send."""

    user: Classes
    base: Any
    own: Sequence[Any]


class _Part(NamedTuple):
    """Part of what another user may send: by how much each speaks, in steps, and its chance."""

    values: Any
    chances: Any

    def stop_loss(self, places: Any) -> Any:
        """Mean of the excess over each whole number; that of the values split is the same."""
        return np.maximum(self.values[:, None] - places, 0.0).T @ self.chances

    def generated(self, tilt: float) -> float:
        """Moment generating function of the values split."""
        places, chances = split(*self)
        return float(chances @ np.exp(tilt * places))


def composed(others: Others, n: int, keys: float, otherwise: Divergence) -> Divergence:
    """At least the divergence of any data set of others, whatever each of them holds.

    ``otherwise``: another such bound, for where too much is lost.
    """
    one, two, third = (np.asarray(part, dtype=np.float64) for part in others.user)
    base, own = np.asarray(others.base), [np.asarray(pmf) for pmf in others.own]
    least = min(float((pmf / base).min()) for pmf in (third, *own))
    plain = min(least / 2, NATS * keys / max(1, n - 1))
    stays = plain * float(base**2 @ (1 / third))

    def divergence(eps: float) -> float:
        cost = math.exp(eps) * two
        apart = keys * (one - cost + ROUNDED * (one + cost))
        step = spacing(apart / third, third / keys, n)
        whole = _Part(apart / third / step, third / keys * (1 - ROUNDED))
        places, chances = split(*whole)
        tilt = balance(places, chances)
        positive = Sum.of(places, chances, n, tilt).positive_part(n) * step / n

        alike = _Part(whole.values, plain * base / keys)
        kinds = [_Part(whole.values, (third - plain * base) / keys)]
        for pmf in own:
            left = pmf - plain * base
            kinds.append(_Part((1 - stays) * apart / left / step, left / keys))
        rest = _exchanged(alike, kinds, n, 1 / keys, tilt) * step
        # Nobody is plain but the user, who has no other's place to take.
        alone = math.exp((n - 1) * math.log1p(-plain / keys)) * (1 - stays)
        rest += alone * float(np.maximum(apart, 0.0).sum()) / keys
        if rest > _NOTHING * positive:
            return min(1.0, positive + rest, otherwise(eps))
        return min(1.0, positive + rest)

    return divergence


def _exchanged(alike: _Part, kinds: list[_Part], n: int, share: float, tilt: float) -> float:
    """At most what n others can lose, in steps, if what is not ``alike`` is of the first kind."""
    # Each exchange costs the mean of Delta(-Y), Y the sum of the rest and Delta the difference of
    # the stop-loss transforms. Tilted, Y is e^(raised) times a pmf; so many draws in it are of one
    # kind.
    third, *own = kinds
    widest = max(float(np.abs(kind.values).max()) for kind in kinds)
    places = np.arange(-math.ceil(widest) - 1, math.ceil(widest) + 2)
    before = third.stop_loss(places)
    differences = []
    for kind in own:
        after = kind.stop_loss(places)
        differences.append(after - before + _rounded(kind, places) + _rounded(third, places))
    grown = max(kind.generated(tilt) for kind in kinds)
    total = 1 - share + alike.generated(tilt) + grown
    raised = (n - 1) * math.log(total)
    if raised > LARGEST:
        return math.inf
    fraction = grown / total
    many = (n - 1) * fraction - stray((n - 1) * fraction * (1 - fraction), 1.0)
    draws = max(0, min(_MOST_ALIKE, int(many // len(kinds))))
    lost = 0.0
    for kind in kinds if draws else kinds[:1]:
        spots, chances = split(*kind)
        pmf = Sum.of(spots, chances / chances.sum(), draws, tilt, margin=len(places))
        lost = max(lost, *(pmf.highest(draws, places, each) for each in differences))
    # So few are hardly ever left.
    highest = max(float((each * np.exp(tilt * places)).max()) for each in differences)
    return math.exp(raised) * (max(0.0, lost) + OUTSIDE * highest) * (1 + drift(n))


def _rounded(kind: _Part, places: Any) -> Any:
    """How far a stop-loss transform may be off: values beyond a place by units of their size."""
    return 4 * ROUNDED * (np.abs(places) + 2) * kind.stop_loss(places - 1)
