"""How a value becomes a memo symbol and an answer, and how answers become additive counts.

An encoding and one or two channels make a protocol. Scalar methods run on the device and draw only
through an `Rng`; array methods run on the server, on n reports at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from loloha.channels import BitChannel, SymbolChannel
from loloha.hashing import HashFamily, LinearHash
from loloha.report import Answer, Key
from loloha.rng import Rng

if TYPE_CHECKING:
    from loloha.arrays import Bools, Ints

Number = TypeVar("Number", float, Fraction)
Channel = SymbolChannel | BitChannel
Kind = Literal["symbol", "keyed symbol", "bits", "sampled bits"]


class Encoding(ABC):
    """From values 0..k-1 to answers, and from answers to support counts.

    Array forms of a report's key and y, for n reports:

    ============== =================== =========================
    kind           keys                ys
    ============== =================== =========================
    symbol         None                int64[n]
    keyed symbol   int64[n]            int64[n]
    bits           None                uint8[n, ceil(k / 8)]
    sampled bits   int64[n, d]         uint8[n, ceil(d / 8)]
    ============== =================== =========================
    """

    kind: ClassVar[Kind]

    @property
    @abstractmethod
    def bins(self) -> int:
        """How many frequencies are estimated: k, or the number of buckets."""

    @property
    @abstractmethod
    def memo_cells(self) -> int:
        """Most memo symbols that one user can ever visit."""

    @property
    @abstractmethod
    def memo_symbols(self) -> int:
        """Memo symbols are 0..memo_symbols - 1 (one user need not be able to visit all)."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """Length of the array of counts."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """Bits of key and y that a user sends the first time."""

    @property
    @abstractmethod
    def key_bits(self) -> int:
        """Bits of the key, which need to be sent only once."""

    def bin(self, v: int) -> int:
        """The estimated bin that holds the value ``v``."""
        return v

    # -- device

    def draw_key(self, rng: Rng) -> Key:
        """What a user draws once, for ever."""
        return None

    def is_key(self, key: Key) -> bool:
        """Whether ``key`` could have been drawn."""
        return key is None

    def memo_index(self, key: Key, v: int) -> int:
        """Memo symbol of the value ``v``: values that share it share their answer."""
        return v

    @abstractmethod
    def is_answer(self, y: Answer) -> bool:
        """Whether ``y`` could have been sent."""

    @abstractmethod
    def randomise(self, rng: Rng, x: int, channel: Any) -> Answer:
        """First randomised response: from the memo symbol ``x`` to an answer."""

    @abstractmethod
    def rerandomise(self, rng: Rng, answer: Answer, channel: Any) -> Answer:
        """Second randomised response: from an answer to a fresh one."""

    # -- laws; each works on floats and on exact fractions

    @abstractmethod
    def chain(self, p1: Number, q1: Number, p2: Number, q2: Number) -> tuple[Number, Number]:
        """p and q of two rounds after each other, before any hashing."""

    @abstractmethod
    def odds(self, p: Number, q: Number) -> Number:
        """Largest likelihood ratio of one answer between two memo symbols: e^loss."""

    def supporting(self, p: Number, q: Number) -> tuple[Number, Number]:
        """p_star and q_star: Pr[answer supports v | user holds v], [.. | user holds another]."""
        return p, q

    # -- server

    @abstractmethod
    def shapes(self, n: Any) -> tuple[tuple[Any, ...] | None, tuple[Any, ...]]:
        """Shapes of keys and ys of n reports."""

    @abstractmethod
    def valid(self, keys: Any, ys: Any) -> Bools:
        """Which of n reports are in range, bool[n]; keys and ys have the array forms above."""

    @abstractmethod
    def count(self, counts: Ints, keys: Any, ys: Any) -> None:
        """Add n valid reports to ``counts`` int64[cells], in place."""

    def admit(self, counts: Ints, keys: Any, ys: Any) -> bool:
        """`count` n reports if all of them are `valid`, else leave ``counts`` as it is.

        Some encodings do both in one pass: override it together with either of them.

        Returns
        -------
        bool
            Whether they were counted.
        """
        if not self.valid(keys, ys).all():
            return False
        self.count(counts, keys, ys)
        return True

    @abstractmethod
    def support(self, counts: Ints) -> Ints:
        """How many reports support each bin, int64[bins]."""

    def reach(self, counts: Ints, n: int) -> Ints:
        """How many reports could support each bin, int64[bins]."""
        import numpy as np

        return np.full(self.bins, n, dtype=np.int64)


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

    def odds(self, p: Number, q: Number) -> Number:
        return p / q

    def valid(self, keys: Any, ys: Ints) -> Bools:
        return (ys >= 0) & (ys < self.symbols)


@dataclass(frozen=True)
class Symbols(_SymbolEncoding):
    """The value itself is the symbol (GRR)."""

    k: int
    kind: ClassVar[Kind] = "symbol"

    @property
    def symbols(self) -> int:
        return self.k

    @property
    def bins(self) -> int:
        return self.k

    @property
    def memo_cells(self) -> int:
        return self.k

    @property
    def cells(self) -> int:
        return self.k

    @property
    def key_bits(self) -> int:
        return 0

    @property
    def report_bits(self) -> int:
        return (self.k - 1).bit_length()

    def shapes(self, n: Any) -> tuple[None, tuple[Any]]:
        return None, (n,)

    def count(self, counts: Ints, keys: None, ys: Ints) -> None:
        from loloha import kernels

        kernels.count_symbols(counts, ys)

    def admit(self, counts: Ints, keys: None, ys: Ints) -> bool:
        from loloha import kernels

        return kernels.count_symbols(counts, ys)

    def support(self, counts: Ints) -> Ints:
        return counts.copy()


@dataclass(frozen=True)
class Hashed(_SymbolEncoding):
    """The symbol is the value's hash under the user's own key (local hashing).

    With the linear family the counts are the table N[seed, symbol], row by row; with others there
    is no table small enough, and the counts are the support itself.
    """

    family: HashFamily
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
        family = self.family
        return family.size * family.g if isinstance(family, LinearHash) else family.k

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

    def memo_index(self, key: Key, v: int) -> int:
        return self.family.hash(_seed(key), v)

    def supporting(self, p: Number, q: Number) -> tuple[Number, Number]:
        c0: Any = self.family.collision
        if isinstance(p, float):
            c0 = float(c0)
        return p, c0 * p + (1 - c0) * q

    def shapes(self, n: Any) -> tuple[tuple[Any], tuple[Any]]:
        return (n,), (n,)

    def valid(self, keys: Ints, ys: Ints) -> Bools:
        return super().valid(keys, ys) & self.family.are_keys(keys)

    def count(self, counts: Ints, keys: Ints, ys: Ints) -> None:
        from loloha import kernels

        if isinstance(self.family, LinearHash):
            kernels.count_pairs(counts, keys, ys, self.family.g)
        else:
            kernels.count_preimages(counts, self.family, keys, ys)

    def admit(self, counts: Ints, keys: Ints, ys: Ints) -> bool:
        from loloha import kernels

        if isinstance(self.family, LinearHash):
            return kernels.count_pairs(counts, keys, ys, self.family.g)
        return super().admit(counts, keys, ys)

    def support(self, counts: Ints) -> Ints:
        from loloha import decode

        if isinstance(self.family, LinearHash):
            return decode.linear_support(counts, self.family)
        return counts.copy()


@dataclass(frozen=True)
class OneHot(Encoding):
    """One bit a value; the user's own is set (unary encoding)."""

    k: int
    kind: ClassVar[Kind] = "bits"

    @property
    def bins(self) -> int:
        return self.k

    @property
    def memo_cells(self) -> int:
        return self.k

    @property
    def memo_symbols(self) -> int:
        return self.k

    @property
    def cells(self) -> int:
        return self.k

    @property
    def key_bits(self) -> int:
        return 0

    @property
    def report_bits(self) -> int:
        return self.k

    def is_answer(self, y: Answer) -> bool:
        return _are_bits(y, self.k)

    def randomise(self, rng: Rng, x: int, channel: BitChannel) -> bytes:
        return _pack(self.k, channel.draw(rng, self.k, 1 << x))

    def rerandomise(self, rng: Rng, answer: Answer, channel: BitChannel) -> bytes:
        return _pack(self.k, channel.draw(rng, self.k, _unpack(answer)))

    def chain(self, p1: Number, q1: Number, p2: Number, q2: Number) -> tuple[Number, Number]:
        return p1 * p2 + (1 - p1) * q2, q1 * p2 + (1 - q1) * q2

    def odds(self, p: Number, q: Number) -> Number:
        # Two bits differ between two values.
        return p * (1 - q) / ((1 - p) * q)

    def shapes(self, n: Any) -> tuple[None, tuple[Any, int]]:
        return None, (n, (self.k + 7) // 8)

    def valid(self, keys: None, ys: Any) -> Bools:
        return _padding_is_zero(ys, self.k)

    def count(self, counts: Ints, keys: None, ys: Any) -> None:
        from loloha import kernels

        kernels.count_bits(counts, ys)

    def support(self, counts: Ints) -> Ints:
        return counts.copy()


@dataclass(frozen=True)
class SampledBuckets(Encoding):
    """d of b buckets, drawn once; one bit says for each whether it holds the value (dBitFlipPM).

    Counts are [ones for each bucket, users who sampled each bucket].
    """

    k: int
    b: int
    d: int
    kind: ClassVar[Kind] = "sampled bits"

    @property
    def bins(self) -> int:
        return self.b

    @property
    def memo_cells(self) -> int:
        return min(self.d + 1, self.b)

    @property
    def memo_symbols(self) -> int:
        return self.d + 1

    @property
    def cells(self) -> int:
        return 2 * self.b

    @property
    def key_bits(self) -> int:
        return self.d * (self.b - 1).bit_length()

    @property
    def report_bits(self) -> int:
        return self.key_bits + self.d

    def bin(self, v: int) -> int:
        return v * self.b // self.k

    def draw_key(self, rng: Rng) -> tuple[int, ...]:
        # Floyd's subset sampling: uniform, and with a bounded number of draws.
        chosen: set[int] = set()
        for newest in range(self.b - self.d, self.b):
            candidate = rng.below(newest + 1)
            chosen.add(newest if candidate in chosen else candidate)
        return tuple(sorted(chosen))

    def is_key(self, key: Key) -> bool:
        if not isinstance(key, tuple):
            return False
        buckets: tuple[Any, ...] = key
        in_range = all(type(bucket) is int and 0 <= bucket < self.b for bucket in buckets)
        return in_range and len(key) == self.d and list(key) == sorted(set(key))

    def memo_index(self, key: Key, v: int) -> int:
        """Position of the value's bucket among the sampled ones, d if it is not sampled."""
        buckets = _buckets(key)
        bucket = self.bin(v)
        return buckets.index(bucket) if bucket in buckets else self.d

    def is_answer(self, y: Answer) -> bool:
        return _are_bits(y, self.d)

    def randomise(self, rng: Rng, x: int, channel: BitChannel) -> bytes:
        # Where no sampled bucket holds the value, x is d and no bit is set.
        return _pack(self.d, channel.draw(rng, self.d, (1 << x) % (1 << self.d)))

    def rerandomise(self, rng: Rng, answer: Answer, channel: BitChannel) -> bytes:
        return _pack(self.d, channel.draw(rng, self.d, _unpack(answer)))

    def chain(self, p1: Number, q1: Number, p2: Number, q2: Number) -> tuple[Number, Number]:
        return p1 * p2 + (1 - p1) * q2, q1 * p2 + (1 - q1) * q2

    def odds(self, p: Number, q: Number) -> Number:
        # Two patterns differ in two bits, but in one if only one bucket is sampled.
        one, zero = p / q, (1 - q) / (1 - p)
        return max(one, zero) if self.d == 1 else one * zero

    def shapes(self, n: Any) -> tuple[tuple[Any, int], tuple[Any, int]]:
        return (n, self.d), (n, (self.d + 7) // 8)

    def valid(self, keys: Ints, ys: Any) -> Bools:
        import numpy as np

        in_range = ((keys >= 0) & (keys < self.b)).all(axis=1)
        ascending = (np.diff(keys, axis=1) > 0).all(axis=1)
        return in_range & ascending & _padding_is_zero(ys, self.d)

    def count(self, counts: Ints, keys: Ints, ys: Any) -> None:
        from loloha import kernels

        kernels.count_buckets(counts[: self.b], keys, ys)
        kernels.count_symbols(counts[self.b :], keys.reshape(-1))

    def support(self, counts: Ints) -> Ints:
        return counts[: self.b].copy()

    def reach(self, counts: Ints, n: int) -> Ints:
        return counts[self.b :].copy()


def _seed(key: Key) -> int:
    if isinstance(key, int):
        return key
    raise TypeError("a hash seed is an int")


def _buckets(key: Key) -> tuple[int, ...]:
    if isinstance(key, tuple):
        return key
    raise TypeError("sampled buckets are a tuple")


def _pack(size: int, bits: int) -> bytes:
    """``size`` bits, eight to a byte, first bit lowest."""
    return bits.to_bytes((size + 7) // 8, "little")


def _unpack(answer: Any) -> int:
    return int.from_bytes(answer, "little")


def _are_bits(y: Answer, size: int) -> bool:
    return (
        isinstance(y, bytes)
        and len(y) == (size + 7) // 8
        and not (size % 8 and y[-1] >> (size % 8))
    )


def _padding_is_zero(ys: Any, size: int) -> Bools:
    import numpy as np

    last: Any = ys[:, -1]
    return last >> (size % 8) == 0 if size % 8 else np.ones(len(ys), dtype=bool)
