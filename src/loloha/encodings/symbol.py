"""Encodings whose answers are symbols: the value itself, or its hash under the user's own key."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

from loloha.channels import SymbolChannel
from loloha.encodings.base import Encoding, Kind, Number, OfValues, occurrences
from loloha.hashing import HashFamily
from loloha.report import Answer, Key, Report
from loloha.rng import Rng

if TYPE_CHECKING:
    from loloha.arrays import Bools, Floats, Ints


class _SymbolEncoding(Encoding):
    """Answers are symbols 0..g-1."""

    @property
    @abstractmethod
    def symbols(self) -> int:
        """Number of symbols g."""

    @property
    def memo_symbols(self) -> int:
        return self.symbols

    def is_answer(self, y: Answer) -> bool:
        return type(y) is int and 0 <= y < self.symbols

    def randomise(self, rng: Rng, x: int, channel: SymbolChannel) -> int:
        return channel.draw(rng, x)

    def rerandomise(self, rng: Rng, answer: Answer, channel: SymbolChannel) -> int:
        return channel.draw(rng, int(answer))

    def chain(self, p1: Number, q1: Number, p2: Number, q2: Number) -> tuple[Number, Number]:
        g = self.symbols
        return p1 * p2 + (g - 1) * (q1 * q2), p1 * q2 + q1 * p2 + (g - 2) * (q1 * q2)

    def likelihood_ratio(self, p: Number, q: Number) -> Number:
        return p / q

    def valid(self, keys: Any, ys: Ints) -> Bools:
        return (ys >= 0) & (ys < self.symbols)


@dataclass(frozen=True)
class Symbols(OfValues, _SymbolEncoding):
    """The value itself is the symbol (GRR)."""

    k: int
    kind: ClassVar[Kind] = "symbol"

    @property
    def symbols(self) -> int:
        return self.k

    @property
    def report_bits(self) -> int:
        return (self.k - 1).bit_length()

    def shapes(self, n: Any) -> tuple[None, tuple[Any]]:
        return None, (n,)

    def cell(self, report: Report) -> int | None:
        # This class exactly: a subclass may count otherwise.
        return cast("int", report.y) if type(self) is Symbols else None

    def count(self, counts: Ints, keys: None, ys: Ints) -> None:
        from loloha.counting import kernels

        kernels.count_symbols(counts, ys)

    @property
    def span(self) -> int:
        return 1 if type(self) is Symbols else super().span

    def increments(self, keys: None, ys: Ints) -> tuple[Ints, Ints]:
        # A subclass may count otherwise.
        return occurrences(ys) if type(self) is Symbols else super().increments(keys, ys)

    def admit(self, counts: Ints, keys: None, ys: Ints) -> bool:
        from loloha.counting import kernels

        return kernels.count_symbols(counts, ys)


@dataclass(frozen=True)
class Hashed(_SymbolEncoding):
    """The symbol is the value's hash under the user's own key (local hashing).

    Where the family has a table the counts are N[key, symbol], row by row; where it would be too
    big, or nobody keeps it (``expanded``), the counts are the support itself.
    """

    family: HashFamily
    expanded: bool = False
    kind: ClassVar[Kind] = "keyed symbol"

    @property
    def symbols(self) -> int:
        return self.family.g

    @property
    def bins(self) -> int:
        return self.family.k

    @property
    def memo_cells(self) -> int:
        return min(self.family.g, self.family.k)

    @property
    def cells(self) -> int:
        rows = None if self.expanded else self.family.table_rows
        return self.family.k if rows is None else rows * self.family.g

    @property
    def tabled(self) -> bool:
        """Whether the counts are a table of keys and symbols."""
        return not self.expanded and self.family.table_rows is not None

    @property
    def keyed(self) -> bool:
        return True

    @property
    def key_bits(self) -> int:
        return self.family.key_bits

    @property
    def report_bits(self) -> int:
        return self.key_bits + (self.family.g - 1).bit_length()

    def draw_key(self, rng: Rng) -> int:
        return self.family.draw(rng)

    def is_key(self, key: Key) -> bool:
        return type(key) is int and self.family.is_key(key)

    @property
    def key_count(self) -> int:
        return self.family.members

    def memo_index(self, key: Key, v: int) -> int:
        return self.family.hash(_seed(key), v)

    def memo_indices(self, keys: Ints, values: Ints, n: int) -> Ints:
        return self.family.hash_many(keys[:, None], values[None])

    @property
    def collision(self) -> Fraction:
        return self.family.collision

    def lasting_share(self, f: Floats, contrast: float) -> Floats:
        # Two values share a cell, and its memo, with probability c0. Otherwise a bin in the cell of
        # one is not in that of the other: for independent hashes of three values this subtracts
        # contrast^2 of that probability.
        c0, same = float(self.collision), (f**2).sum()
        lasting: Floats = 0 * f + same + (1 - same) * c0 * (1 - contrast**2)
        return lasting

    def shapes(self, n: Any) -> tuple[tuple[Any], tuple[Any]]:
        return (n,), (n,)

    def valid(self, keys: Ints, ys: Ints) -> Bools:
        return super().valid(keys, ys) & self.family.are_keys(keys)

    def cell(self, report: Report) -> int | None:
        if not self._adds_one:
            return None
        return _seed(report.key) * self.family.g + cast("int", report.y)

    def count(self, counts: Ints, keys: Ints, ys: Ints) -> None:
        from loloha.counting import kernels

        if self.tabled:
            kernels.count_pairs(counts, keys, ys, self.family.g, self.family.least_key)
        else:
            kernels.count_preimages(counts, self.family, keys, ys)

    def admit(self, counts: Ints, keys: Ints, ys: Ints) -> bool:
        from loloha.counting import kernels

        if self.tabled:
            return kernels.count_pairs(counts, keys, ys, self.family.g, self.family.least_key)
        return super().admit(counts, keys, ys)

    @property
    def span(self) -> int:
        return 1 if self._adds_one else super().span

    @property
    def _adds_one(self) -> bool:
        return type(self) is Hashed and self.tabled

    def increments(self, keys: Ints, ys: Ints) -> tuple[Ints, Ints]:
        if not self._adds_one:
            return super().increments(keys, ys)
        return occurrences(keys * self.family.g + ys)

    def support(self, counts: Ints) -> Ints:
        from loloha.counting import decode

        return decode.table_support(counts, self.family) if self.tabled else counts.copy()


def _seed(key: Key) -> int:
    if isinstance(key, int):
        return key
    raise TypeError("a hash seed is an int")
