"""Encodings of numbers: the symbol is whether the value reaches a threshold of the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

from loloha.encodings.base import Kind, occurrences
from loloha.encodings.part import (
    CELL_WORDS,
    CELLS,
    CHANGE,
    COST,
    HISTORIES,
    LINK_WORDS,
    MEMO_CELLS,
    ONE_ROUND,
    REPEATED,
    SHUFFLED,
    for_encoding,
    like_encoding,
)
from loloha.encodings.symbol import Hashed, _SymbolEncoding
from loloha.report import Key, Report
from loloha.rng import Rng

if TYPE_CHECKING:
    from loloha.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class Threshold(_SymbolEncoding):
    """One bit: whether the value is at least a threshold t, drawn once from 1..k-1 (1BitMean).

    What is estimated is the share of users with a value of at least j, for j = 1..k-1; bin j - 1.
    Counts are N[t - 1, bit], row by row. Source: MATH section 20.
    """

    k: int
    kind: ClassVar[Kind] = "keyed symbol"

    @property
    def symbols(self) -> int:
        return 2

    @property
    def bins(self) -> int:
        return self.k - 1

    @property
    def values(self) -> int:
        return self.k

    @property
    def memo_cells(self) -> int:
        return 2

    @property
    def cells(self) -> int:
        return 2 * self.bins

    @property
    def keyed(self) -> bool:
        return True

    @property
    def key_bits(self) -> int:
        return (self.k - 1).bit_length()

    @property
    def key_count(self) -> int:
        return self.k - 1

    @property
    def report_bits(self) -> int:
        return self.key_bits + 1

    def draw_key(self, rng: Rng) -> int:
        return 1 + rng.below(self.k - 1)

    def is_key(self, key: Key) -> bool:
        return type(key) is int and 1 <= key < self.k

    def memo_index(self, key: Key, v: int) -> int:
        return int(v >= cast("int", key))

    def memo_indices(self, keys: Ints, values: Ints, n: int) -> Ints:
        cells: Ints = (values[None] >= keys[:, None]).astype("int64")
        return cells

    # -- what is estimated

    def bin(self, v: int) -> int:
        """The last bin that counts the value ``v``; none counts the value 0."""
        return v - 1

    def weight(self, v: int, bin: int) -> Fraction:
        return Fraction(v > bin)

    def bin_values(self, bin: int) -> tuple[int, int] | None:
        return bin + 1, self.k - 1

    def frequencies(self, shares: Floats) -> Floats:
        tails: Floats = shares[..., ::-1].cumsum(axis=-1)[..., ::-1]
        return tails[..., 1:]

    # -- server

    def shapes(self, n: Any) -> tuple[tuple[Any] | None, tuple[Any]]:
        return (n,), (n,)

    def valid(self, keys: Any, ys: Ints) -> Bools:
        in_range: Bools = super().valid(keys, ys) & (keys >= 1) & (keys < self.k)
        return in_range

    def cell(self, report: Report) -> int | None:
        return 2 * (cast("int", report.key) - 1) + cast("int", report.y)

    def count(self, counts: Ints, keys: Any, ys: Ints) -> None:
        from loloha.counting import kernels

        kernels.count_pairs(counts, keys - 1, ys, 2, 0)

    @property
    def span(self) -> int:
        return 1

    def increments(self, keys: Any, ys: Ints) -> tuple[Ints, Ints]:
        return occurrences(2 * (keys - 1) + ys)

    def support(self, counts: Ints) -> Ints:
        return counts[1::2].copy()

    def expected_eligible(self, n: int) -> float:
        return n / self.bins

    def eligible(self, counts: Ints, n: int) -> Ints:
        drew: Ints = counts.reshape(-1, 2).sum(axis=1)
        return drew

    def lasting_share(self, f: Floats, contrast: float) -> Floats:
        # Whose threshold is this one: both times at or above it, or both times below.
        lasting: Floats = f**2 + (1 - f) ** 2
        return lasting


@dataclass(frozen=True)
class HiddenThreshold(Threshold):
    """The same bit without its threshold, which stays on the device: enough for the mean alone.

    What is estimated, in one bin, is the mean as a share of the range 0..k-1. Counts are [0s, 1s].
    """

    kind: ClassVar[Kind] = "symbol"

    @property
    def bins(self) -> int:
        return 1

    @property
    def key_bits(self) -> int:
        return 0

    @property
    def key_count(self) -> int:
        return 1

    @property
    def fractional(self) -> bool:
        return True

    def sent(self, key: Key) -> Key:
        return None

    def is_sent(self, key: Key) -> bool:
        return key is None

    def weight(self, v: int, bin: int) -> Fraction:
        return Fraction(v, self.k - 1)

    def bin_values(self, bin: int) -> None:
        return None

    def frequencies(self, shares: Floats) -> Floats:
        mean: Floats = super().frequencies(shares).mean(axis=-1, keepdims=True)
        return mean

    def shapes(self, n: Any) -> tuple[None, tuple[Any]]:
        return None, (n,)

    def valid(self, keys: Any, ys: Ints) -> Bools:
        return _SymbolEncoding.valid(self, keys, ys)

    def cell(self, report: Report) -> int | None:
        return cast("int", report.y)

    def count(self, counts: Ints, keys: Any, ys: Ints) -> None:
        from loloha.counting import kernels

        kernels.count_symbols(counts, ys)

    def increments(self, keys: Any, ys: Ints) -> tuple[Ints, Ints]:
        return occurrences(ys)


# -- parts; those that only ask how two symbols are randomised are those of a hash to two

_OF_SYMBOLS = (REPEATED, ONE_ROUND, HISTORIES, CHANGE, SHUFFLED)
like_encoding(Hashed, Threshold, HiddenThreshold, parts=[part.name for part in _OF_SYMBOLS])
for_encoding(CELL_WORDS.name, Threshold, HiddenThreshold)("sides of the user's own threshold")


@for_encoding(COST.name, Threshold, HiddenThreshold)
def _work(protocol: Any, encoding: Threshold, n: int) -> tuple[str, float]:
    return "one addition a report", n + encoding.cells


@for_encoding(LINK_WORDS.name, Threshold)
def _by_threshold(encoding: Threshold) -> str:
    return (
        f"by key. A user's reports carry the same threshold, one of {encoding.key_count}. About "
        f"n/{encoding.key_count} of n users share it; where there are fewer users than thresholds "
        "it can single one out. Asked for the mean alone, devices send none."
    )


@for_encoding(LINK_WORDS.name, HiddenThreshold)
def _by_bit(encoding: HiddenThreshold) -> str:
    return (
        "by fingerprint. The threshold is not sent, but one permanent bit shows through all the "
        "reports of a user who stays on one side of it: two of them look a little more alike than "
        "reports of two users."
    )


@for_encoding(MEMO_CELLS.name, Threshold, HiddenThreshold)
def _sides(encoding: Threshold, pairs: Any) -> tuple[Any, bool]:
    """The side of each value: only thresholds between two of these values differ."""
    import numpy as np

    between = np.unique(np.append(pairs.values, encoding.k - 1))
    thresholds = between[between > 0]
    return (pairs.values[None] >= thresholds[:, None]).astype(np.int64), True


class _Sides:
    """Answers are (threshold, side) pairs, which support the values on that side."""

    def arrange(self, counts: Ints) -> Any:
        return counts.reshape(-1, 2)

    def masses(self, frequencies: Floats) -> Any:
        below = frequencies.cumsum()
        import numpy as np

        return np.stack([below[:-1], np.maximum(below[-1] - below[:-1], 0.0)], axis=1)

    def supporting(self, weights: Any) -> Floats:
        # Above a value lie the thresholds that it stays below.
        above = weights[::-1, 0].cumsum()[::-1]
        up_to = weights[:, 1].cumsum()
        total: Floats = _padded(above, end=True) + _padded(up_to, end=False)
        return total


def _padded(sums: Any, *, end: bool) -> Any:
    import numpy as np

    return np.append(sums, 0.0) if end else np.append(0.0, sums)


@for_encoding(CELLS.name, Threshold)
def _cells(encoding: Threshold) -> _Sides:
    return _Sides()


@for_encoding(CELLS.name, HiddenThreshold)
def _no_cells(encoding: HiddenThreshold) -> None:
    """Two counts do not determine a distribution."""
