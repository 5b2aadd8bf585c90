"""Encodings whose answers are bits: one a value, or one for each of some sampled buckets."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from loloha.channels import BitChannel
from loloha.encodings.base import Encoding, Kind, Number, OfValues, occurrences
from loloha.report import Answer, Key
from loloha.rng import Rng

if TYPE_CHECKING:
    from loloha.arrays import Array, Bools, Floats, Ints


class _BitEncoding(Encoding):
    """Answers are bits, eight to a byte, first bit lowest; at most one is set before the noise."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of bits."""

    def is_answer(self, y: Answer) -> bool:
        return (
            isinstance(y, bytes)
            and len(y) == (self.size + 7) // 8
            and not int.from_bytes(y, "little") >> self.size
        )

    def randomise(self, rng: Rng, x: int, channel: BitChannel) -> bytes:
        # Where no sampled bucket holds the value, x is the size and no bit is set.
        return self._draw(rng, (1 << x) % (1 << self.size), channel)

    def rerandomise(self, rng: Rng, answer: Answer, channel: BitChannel) -> bytes:
        sent: Any = answer
        return self._draw(rng, int.from_bytes(sent, "little"), channel)

    def _draw(self, rng: Rng, bits: int, channel: BitChannel) -> bytes:
        return channel.draw(rng, self.size, bits).to_bytes((self.size + 7) // 8, "little")

    def chain(self, p1: Number, q1: Number, p2: Number, q2: Number) -> tuple[Number, Number]:
        return p1 * p2 + (1 - p1) * q2, q1 * p2 + (1 - q1) * q2

    def _padding_is_zero(self, ys: Array) -> Bools:
        import numpy as np

        last: Any = ys[:, -1]
        rest = self.size % 8
        return last >> rest == 0 if rest else np.ones(len(ys), dtype=bool)


@dataclass(frozen=True)
class OneHot(OfValues, _BitEncoding):
    """One bit a value; the user's own is set (unary encoding)."""

    k: int
    kind: ClassVar[Kind] = "bits"

    @property
    def size(self) -> int:
        return self.k

    @property
    def report_bits(self) -> int:
        return self.k

    def likelihood_ratio(self, p: Number, q: Number) -> Number:
        # Two bits differ between two values.
        return p * (1 - q) / ((1 - p) * q)

    def shapes(self, n: Any) -> tuple[None, tuple[Any, int]]:
        return None, (n, (self.k + 7) // 8)

    def valid(self, keys: None, ys: Array) -> Bools:
        return self._padding_is_zero(ys)

    def count(self, counts: Ints, keys: None, ys: Array) -> None:
        from loloha.counting import kernels

        kernels.count_bits(counts, ys)


@dataclass(frozen=True)
class SampledBuckets(_BitEncoding):
    """d of b buckets, drawn once; one bit says for each whether it holds the value (dBitFlipPM).

    Counts are [ones for each bucket, users who sampled each bucket].
    """

    k: int
    b: int
    d: int
    kind: ClassVar[Kind] = "sampled bits"

    @property
    def size(self) -> int:
        return self.d

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
    def keyed(self) -> bool:
        return True

    @property
    def key_bits(self) -> int:
        return self.d * (self.b - 1).bit_length()

    @property
    def key_count(self) -> int:
        return math.comb(self.b, self.d)

    @property
    def report_bits(self) -> int:
        return self.key_bits + self.d

    def bin(self, v: int) -> int:
        return v * self.b // self.k

    def bin_values(self, bin: int) -> tuple[int, int]:
        return self._first(bin), self._first(bin + 1) - 1

    def _first(self, bin: int) -> int:
        # The values of a bucket are those with v * b // k == bucket.
        return -(-bin * self.k // self.b)

    def frequencies(self, shares: Floats) -> Floats:
        import numpy as np

        sums: Floats = np.add.reduceat(shares, [*map(self._first, range(self.b))], axis=-1)
        return sums

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

    def likelihood_ratio(self, p: Number, q: Number) -> Number:
        # Two patterns differ in two bits, but in one if only one bucket is sampled.
        one, zero = p / q, (1 - q) / (1 - p)
        return max(one, zero) if self.d == 1 else one * zero

    def shapes(self, n: Any) -> tuple[tuple[Any, int], tuple[Any, int]]:
        return (n, self.d), (n, (self.d + 7) // 8)

    def valid(self, keys: Ints, ys: Array) -> Bools:
        import numpy as np

        in_range = ((keys >= 0) & (keys < self.b)).all(axis=1)
        ascending = (np.diff(keys, axis=1) > 0).all(axis=1)
        return in_range & ascending & self._padding_is_zero(ys)

    def count(self, counts: Ints, keys: Ints, ys: Array) -> None:
        from loloha.counting import kernels

        kernels.count_buckets(counts[: self.b], keys, ys)
        kernels.count_symbols(counts[self.b :], keys.reshape(-1))

    @property
    def span(self) -> int:
        return 2 * self.d if type(self) is SampledBuckets else super().span

    def increments(self, keys: Ints, ys: Array) -> tuple[Ints, Ints]:
        import numpy as np

        if type(self) is not SampledBuckets:
            return super().increments(keys, ys)
        ones = np.unpackbits(ys, axis=1, count=self.d, bitorder="little") == 1
        return occurrences(np.concatenate([keys[ones], self.b + keys.reshape(-1)]))

    def support(self, counts: Ints) -> Ints:
        return counts[: self.b].copy()

    def expected_eligible(self, n: int) -> float:
        return n * self.d / self.b

    def lasting_share(self, f: Floats, contrast: float) -> Floats:
        # The others of the sample are d - 1 of b - 1 buckets, drawn without replacement.
        chance, others = (self.d - 1) / (self.b - 1), (f**2).sum() - f**2
        unsampled = (1 - chance) * (1 - f)
        scatter = (others * (self.b - 1) - (1 - f) ** 2) / max(self.b - 2, 1)
        lasting: Floats = f**2 + chance * others + unsampled**2 + chance * (1 - chance) * scatter
        return lasting

    def eligible(self, counts: Ints, n: int) -> Ints:
        return counts[self.b :].copy()


def _buckets(key: Key) -> tuple[int, ...]:
    if isinstance(key, tuple):
        return key
    raise TypeError("sampled buckets are a tuple")
