"""Two residues of a prime for every pair of values: least-prime and affine hashing."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from loloha.hashing.family import HashFamily, least_prime
from loloha.rng import Rng

if TYPE_CHECKING:
    import numpy as np

    from loloha.arrays import Bools, Ints

LARGEST_PRIME_TABLE = 1 << 22
"""Most cells for which the prime family keeps a table: beyond it, one of k supports is smaller."""

MERSENNE_31 = (1 << 31) - 1


class ModularHash(HashFamily):
    """``H_{a,b}(v) = ((a v + b) mod P) mod g``, P prime, a in 1..P-1, b in 0..P-1, for any g.

    Two values go to a uniform pair of different residues, so the collision probability is exact:
    with n_i the number of residues that are i mod g, sum n_i (n_i - 1) / (P (P - 1)).
    """

    @property
    @abstractmethod
    def modulus(self) -> int:
        """P: at most 2^31, so that products with values stay below 2^53."""

    @abstractmethod
    def split(self, key: Any) -> tuple[Any, Any]:
        """a and b of a key, or of an array of them."""

    @abstractmethod
    def join(self, a: Any, b: Any) -> Any:
        """The key of a and b."""

    @property
    def collision(self) -> Fraction:
        return Fraction(colliding_pairs(self.modulus, self.g), self.members)

    @property
    def members(self) -> int:
        return self.modulus * (self.modulus - 1)

    @property
    def separates(self) -> bool:
        # The values' residues all differ, and a cell holds at most ceil(P/g) of them.
        return -(-self.modulus // self.g) < self.k

    def draw(self, rng: Rng) -> int:
        a = 1 + rng.below(self.modulus - 1)
        return int(self.join(a, rng.below(self.modulus)))

    def hash(self, key: int, v: int) -> int:
        a, b = self.split(key)
        return int((a * v + b) % self.modulus % self.g)

    def draw_many(self, n: int, rng: np.random.Generator) -> Ints:
        a = rng.integers(1, self.modulus, size=n)
        keys: Ints = self.join(a, rng.integers(0, self.modulus, size=n))
        return keys

    def hash_many(self, keys: Ints, values: Ints) -> Ints:
        a, b = self.split(keys)
        symbols: Ints = (a * values + b) % self.modulus % self.g
        return symbols


class PrimeHash(ModularHash):
    """The modular family with the least prime P >= max(k, g) (MATH section 14).

    A key is the integer ``(a - 1) P + b``. The reports are within a few percent of the least
    variance that any first report can have, and there are only P (P - 1) keys: users share them.
    """

    name: ClassVar[str] = "prime"
    largest_k: ClassVar[int] = 1 << 24

    @cached_property
    def modulus(self) -> int:
        return least_prime(max(self.k, self.g))

    @property
    def table_rows(self) -> int | None:
        return self.members if self.members * self.g <= LARGEST_PRIME_TABLE else None

    def split(self, key: Any) -> tuple[Any, Any]:
        return key // self.modulus + 1, key % self.modulus

    def join(self, a: Ints, b: Ints) -> Any:
        return (a - 1) * self.modulus + b


class AffineHash(ModularHash):
    """The modular family with P = 2^31 - 1 (MATH section 4).

    A key is the integer ``a * 2^31 + b``. It has 62 bits: a pseudonym of its user.
    """

    name: ClassVar[str] = "affine"
    largest_k: ClassVar[int] = 1 << 22

    @property
    def modulus(self) -> int:
        return MERSENNE_31

    @property
    def key_bits(self) -> int:
        return 62

    def split(self, key: Any) -> tuple[Any, Any]:
        return key >> 31, key & MERSENNE_31

    def join(self, a: Ints, b: Ints) -> Any:
        return a << 31 | b

    def is_key(self, key: int) -> bool:
        return 1 <= key >> 31 < MERSENNE_31 and key & MERSENNE_31 < MERSENNE_31

    def are_keys(self, keys: Ints) -> Bools:
        factors = keys >> 31
        return (factors >= 1) & (factors < MERSENNE_31) & ((keys & MERSENNE_31) < MERSENNE_31)


def colliding_pairs(modulus: int, g: int) -> int:
    """Ordered pairs of different residues mod ``modulus`` that are equal mod ``g``."""
    quotient, rest = divmod(modulus, g)
    return rest * (quotient + 1) * quotient + (g - rest) * quotient * (quotient - 1)
