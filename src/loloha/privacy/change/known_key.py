"""The cells of a known hash key: how symbols are drawn, and how many values each has."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha.encodings import Hashed, Threshold
from loloha.hashing import HashFamily, LinearHash, XXHash
from loloha.privacy.roc import SEED
from loloha.protocols import Protocol
from loloha.rng import SCALE

if TYPE_CHECKING:
    from loloha.arrays import Array

# Keys that are gone through, else drawn; values that are hashed under all of them.
_KEYS_AT_MOST, _DRAWN_KEYS, _HASHES = 1 << 14, 1 << 12, 1 << 21
# Keys that were not drawn are rarer than 8 in as many as were, but for a chance of e^-8.
_UNSEEN = 8
# Values, and to a cell, that are looked at of a larger domain.
_VALUES, _VALUES_A_CELL = 1 << 9, 1 << 3
# ln of a ratio that stands for infinity: its e^- is 0, and no sum of some overflows.
CERTAIN = 1e4


class CellChannels(NamedTuple):
    """From a cell to its memo, and from a memo to a report."""

    g: int
    p1: float
    q1: float
    p2: float
    log_ratio: float
    table: tuple[float, float, float] | None

    @classmethod
    def of(cls, protocol: Protocol) -> CellChannels:
        """Of a protocol of symbols; where nothing is memoised, the memo is the value itself."""
        first: Any = protocol.first_channel
        second: Any = protocol.second_channel
        if not protocol.longitudinal:
            return cls(first.g, 1.0, 0.0, float(first.p), _log_ratio(first), None)
        table = None
        if first.joint:
            identity = first.identity / SCALE
            constant = (1 - identity) * (first.constant / SCALE)
            table = identity, constant, 1 - identity - constant
        p2 = 1.0 if second is None else float(second.p)
        return cls(first.g, float(first.p), float(first.q), p2, _log_ratio(second), table)

    @property
    def certain(self) -> bool:
        """Whether the memo is sent as it is."""
        return self.log_ratio >= CERTAIN


class CellSizes(NamedTuple):
    """How many values each cell holds under some keys."""

    sizes: Any
    values: int
    weight: Any
    drawn: bool = False

    @classmethod
    def of(cls, protocol: Protocol) -> CellSizes:
        """All keys, else some of them."""
        # Of a large domain some values: a server that knows them, the user's included, knows no
        # less.
        encoding = protocol.encoding
        if isinstance(encoding, Threshold):
            # Of all thresholds, else of some evenly spaced ones and as many values.
            values = min(encoding.k, _VALUES)
            below = np.arange(1, values)
            return CellSizes(
                np.stack([below, values - below], axis=1),
                values,
                np.full(values - 1, 1 / (values - 1)),
            )
        if type(encoding) is not Hashed:
            return cls(None, protocol.k, np.ones(1))
        return _of_keys(encoding.family)

    @property
    def unseen(self) -> float:
        """The share of keys that were not drawn, at most."""
        return min(1.0, 2 * _UNSEEN / len(self.weight)) if self.drawn else 0.0

    def values_in(self, rows: Any, symbols: Array) -> Any:
        """Values in the cells that are called ``symbols``, of each row."""
        return np.ones(symbols.shape) if self.sizes is None else self.sizes[rows, symbols]

    def squares(self, rows: Any) -> Any:
        """Sum over cells of the squares of these numbers."""
        if self.sizes is None:
            return np.full(np.shape(rows), float(self.values))
        return (self.sizes.astype(float) ** 2).sum(axis=1)[rows]

    def find(self, row: int, values: Array) -> Any:
        """The cells of values that are numbered cell by cell."""
        if self.sizes is None:
            return values
        return np.searchsorted(np.cumsum(self.sizes[row]), values, side="right")


@lru_cache(maxsize=64)
def _of_keys(family: HashFamily) -> CellSizes:
    """Of all keys, else some: once for a family, whatever is drawn with it later."""
    rng = np.random.default_rng(SEED)
    if type(family) is LinearHash:
        return _of_linear_keys(family)
    if type(family) is XXHash:
        # Taken as a random function, as its collision probability is.
        rows = _drawn_keys(family.g)
        sizes = rng.multinomial(family.k, np.full(family.g, 1 / family.g), size=rows)
        return CellSizes(sizes, family.k, np.full(rows, 1 / rows), drawn=True)
    if family.members <= _KEYS_AT_MOST and family.members * family.k <= _HASHES:
        keys = np.arange(family.members + 1)
        keys = keys[family.are_keys(keys)]
        sizes = _sizes(family, keys, np.arange(family.k)[None])
        # Which cell is which does not matter.
        sizes, times = np.unique(np.sort(sizes, axis=1), axis=0, return_counts=True)
        return CellSizes(sizes, family.k, times / len(keys))
    values = min(family.k, max(_VALUES, _VALUES_A_CELL * family.g))
    keys = family.draw_many(_drawn_keys(max(values, family.g)), rng)
    shown = np.stack([rng.choice(family.k, values, replace=False, shuffle=False) for _ in keys])
    return CellSizes(
        _sizes(family, keys, shown), values, np.full(len(keys), 1 / len(keys)), drawn=True
    )


def _drawn_keys(numbers: int) -> int:
    """How many keys are drawn where each takes so many numbers."""
    return min(_DRAWN_KEYS, max(1, _HASHES // numbers))


def _of_linear_keys(family: LinearHash) -> CellSizes:
    """All keys by their lowest digit j that is not 0, which decides the sizes of their cells."""
    # Each g^(j + 1) values in a row go to all cells alike; of the rest, each g^j to one of them.
    k, g, m = family.k, family.g, family.m
    sizes = np.zeros((m, g), dtype=np.int64)
    for j in range(m):
        whole, rest = divmod(k, g ** (j + 1))
        more, last = divmod(rest, g**j)
        sizes[j] = whole * g**j
        sizes[j, :more] += g**j
        sizes[j, more] += last
    weight = np.array([(g - 1) * float(g) ** (m - 1 - j) for j in range(m)])
    return CellSizes(sizes, k, weight / weight.sum())


def _log_ratio(channel: Any) -> float:
    if channel is None or not channel.q:
        return CERTAIN
    return min(CERTAIN, math.log(channel.p) - math.log(channel.q))


def _sizes(family: HashFamily, keys: Array, values: Array) -> Any:
    """Values in each cell under each key: int64[keys, g]."""
    cells = family.hash_many(keys[:, None], values)
    places = cells + family.g * np.arange(len(keys))[:, None]
    counts = np.bincount(places.ravel(), minlength=len(keys) * family.g)
    return counts.reshape(len(keys), family.g)
