"""Values that share a memo cell: under one key, or under every key that matters."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from loloha.encodings import Encoding, Hashed, OneHot, SampledBuckets, Symbols, for_encoding
from loloha.encodings.part import MEMO_CELLS
from loloha.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loloha.arrays import Floats, Ints
    from loloha.report import Key

# Pairs of values times keys that are looked through for the worst key.
_PAIRS_AT_MOST = 1 << 22
# Values of which all partitions (203), buckets of which all samples (1024), are looked through.
_VALUES_AT_MOST, _BUCKETS_AT_MOST = 6, 10


@dataclass(frozen=True, eq=False)
class Pairs:
    """The different pairs (c_t, c'_t), each with the number of its rounds."""

    one: Ints
    two: Ints
    times: Ints

    @classmethod
    def of(cls, one: Ints, two: Ints, times: Ints | None = None) -> Self:
        """Of two rows of integers >= 0, each entry counted so many times."""
        size = 1 + int(max(one.max(), two.max()))
        code = one * size + two
        if size * size <= 2 * len(code) + 1024:
            # A table of all pairs is quicker than sorting those that occur.
            weight = np.bincount(code, weights=times)
            seen = np.flatnonzero(weight)
            weight = weight[seen]
        else:
            seen, place = np.unique(code, return_inverse=True)
            weight = np.bincount(place, weights=times)
        return cls(seen // size, seen % size, weight.astype(np.int64))

    @property
    def values(self) -> Ints:
        """What either history ever holds, ascending."""
        return np.unique(np.concatenate([self.one, self.two]))

    @property
    def differing(self) -> int:
        """Rounds in which they differ."""
        return int(self.times[self.one != self.two].sum())

    @property
    def swapped(self) -> Pairs:
        """The same with the histories exchanged."""
        return Pairs(self.two, self.one, self.times)

    @property
    def alike(self) -> bool:
        """Whether each cell of one always meets the same cell of the other, and back."""
        m = len(self.times)
        return len(np.unique(self.one)) == m == len(np.unique(self.two))

    def merged(self, labellings: Ints) -> Iterator[Pairs]:
        """With each of `values` replaced by its label, by each row of labels.

        Those that differ in most rounds come first.
        """
        values = self.values
        one, two = (np.searchsorted(values, part) for part in (self.one, self.two))
        apart = [self.times @ (labels[one] != labels[two]) for labels in labellings]
        for row in np.argsort(np.negative(apart), kind="stable"):
            yield Pairs.of(labellings[row][one], labellings[row][two], self.times)


def assign(cost: Floats) -> Ints:
    """Column of each row, all different, such that the costs add up to the least."""
    m = len(cost)
    # Every row starts at its cheapest column: what is left free costs a path each.
    row_price, column_price = np.min(cost, axis=1), np.zeros(m)
    row_of = np.full(m, -1)
    column_of = np.full(m, -1)
    for row, column in enumerate(np.argmin(cost, axis=1)):
        if row_of[column] < 0:
            row_of[column], column_of[row] = row, column
    for free in np.flatnonzero(column_of < 0):
        distance = cost[free] - row_price[free] - column_price
        before = np.full(m, free)
        open_ = np.ones(m, dtype=bool)
        while True:
            nearest = int(np.argmin(np.where(open_, distance, np.inf)))
            open_[nearest] = False
            if row_of[nearest] < 0:
                break
            row = row_of[nearest]
            through = cost[row] - row_price[row] - column_price + distance[nearest]
            shorter = open_ & (through < distance)
            distance[shorter], before[shorter] = through[shorter], row
        least = distance[nearest]
        done = ~open_
        done[nearest] = False
        column_price[done] += distance[done] - least
        row_price[row_of[done]] += least - distance[done]
        row_price[free] += least
        # Along the path every row takes the column that leads away from it.
        while True:
            row = before[nearest]
            row_of[nearest] = row
            nearest, column_of[row] = column_of[row], nearest
            if row == free:
                break
    return column_of


def labellings(encoding: Encoding, pairs: Pairs, key: Key) -> tuple[Any, bool] | None:
    """Memo cell of each value under each key that matters, and whether such keys exist.

    None where they are too many to look through.
    """
    look = MEMO_CELLS.required(encoding)
    if key is not None:
        if not encoding.is_key(key):
            raise ParameterError("key must be in the protocol's family (not shown); check it")
        return np.array([[encoding.memo_index(key, v) for v in pairs.values.tolist()]]), True
    labelled: tuple[Any, bool] | None = look(encoding, pairs)
    return labelled


@for_encoding(MEMO_CELLS.name, Symbols, OneHot)
def _as_they_are(encoding: Encoding, pairs: Pairs) -> tuple[Any, bool]:
    return pairs.values[None], True


@for_encoding(MEMO_CELLS.name, Hashed)
def _under_hashes(encoding: Hashed, pairs: Pairs) -> tuple[Any, bool] | None:
    family, values = encoding.family, pairs.values
    if family.members * len(pairs.times) <= _PAIRS_AT_MOST:
        keys = np.arange(family.members + 1, dtype=np.int64)
        keys = keys[family.are_keys(keys)]
        cells = _renamed(family.hash_many(keys[:, None], values[None]))
        return np.unique(cells, axis=0), True
    if len(values) <= _VALUES_AT_MOST:
        # Some of these partitions may have no key: the bound holds all the same.
        return np.array(_partitions(len(values), family.g)), False
    return None


def _renamed(cells: Ints) -> Ints:
    """With the cells of each row numbered as they occur: to a hash all names of cells are alike."""
    rows, first = (
        np.arange(len(cells)),
        np.zeros((len(cells), int(cells.max()) + 1), dtype=np.int64),
    )
    for place in reversed(range(cells.shape[1])):
        first[rows, cells[:, place]] = place
    occurred = np.take_along_axis(first, cells, axis=1)
    number = np.cumsum(occurred == np.arange(cells.shape[1]), axis=1) - 1
    renamed: Ints = np.take_along_axis(number, occurred, axis=1)
    return renamed


@for_encoding(MEMO_CELLS.name, SampledBuckets)
def _under_samples(encoding: SampledBuckets, pairs: Pairs) -> tuple[Any, bool] | None:
    buckets, bucket_of = np.unique(pairs.values * encoding.b // encoding.k, return_inverse=True)
    if encoding.d == encoding.b:
        return buckets[bucket_of][None], True
    if len(buckets) > _BUCKETS_AT_MOST:
        return None
    sampled = np.array(list(itertools.product((False, True), repeat=len(buckets))))
    some = sampled.sum(axis=1)
    sampled = sampled[(some <= encoding.d) & (encoding.d - some <= encoding.b - len(buckets))]
    # Which place a bucket has in the sample does not matter, only that it has one.
    labels = np.where(sampled, np.cumsum(sampled, axis=1) - 1, encoding.d)
    return labels[:, bucket_of], True


def _partitions(m: int, g: int) -> list[list[int]]:
    """All ways to put m values into at most g cells."""
    rows: list[list[int]] = [[]]
    for _ in range(m):
        rows = [[*row, cell] for row in rows for cell in range(min(max(row, default=-1) + 2, g))]
    return rows
