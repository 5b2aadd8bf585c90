"""Two histories side by side: how often each pair of cells stands in one round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loloha.arrays import Ints


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
