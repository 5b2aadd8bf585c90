"""The linear family: counts are a table, and the support of all values is one transform of it."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from loloha.errors import ParameterError
from loloha.hashing.family import HashFamily, is_prime

if TYPE_CHECKING:
    from loloha.arrays import Ints

LARGEST_TABLE = 1 << 28
"""Most (seed, symbol) cells that a tally of the linear family may have: 2 GiB of counts."""


class LinearHash(HashFamily):
    """``H_s(v) = <s, v> mod g`` over the digits of s and v in base g, g prime (MATH section 4).

    A key is the integer s in 1..g^m - 1. Every member splits Z_g^m into g cells of equal size, and
    the support of all values at once is a Fourier transform of the counts of (seed, symbol).
    """

    name: ClassVar[str] = "linear"
    largest_k: ClassVar[int] = 1 << 24
    least_key: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_prime(self.g):
            raise ParameterError(
                f"g must be prime for hash='linear', got {self.g!r}; use a prime g, 'prime' "
                "or 'affine'"
            )
        if self.size * self.g > LARGEST_TABLE:
            raise ParameterError(
                f"g must be small enough that the server's table of {self.size} x {self.g} cells "
                f"stays within {LARGEST_TABLE} for k = {self.k}, got {self.g!r}; choose a smaller g"
            )

    @cached_property
    def m(self) -> int:
        """Number of base-g digits: the least m >= 1 with g^m >= k."""
        return digits(self.k, self.g)

    @cached_property
    def size(self) -> int:
        """g^m: one more than the number of keys."""
        return int(self.g**self.m)

    @property
    def collision(self) -> Fraction:
        return Fraction(self.size // self.g - 1, self.size - 1)

    @property
    def members(self) -> int:
        return self.size - 1

    @property
    def separates(self) -> bool:
        # Values 0 and g^j differ in digit j alone, and k > g^(m-1) for m > 1.
        return True

    @property
    def table_rows(self) -> int:
        return self.size

    @property
    def line_rows(self) -> int:
        """Rows of counts N[line, symbol]: one for seed 0, then one for each line; see `lines`."""
        return 1 + (self.size - 1) // (self.g - 1)

    @cached_property
    def _inverses(self) -> list[int]:
        """1 / f mod g for each f; 0 has none."""
        return [0, *(pow(f, -1, self.g) for f in range(1, self.g))]

    def lines(self, keys: Ints) -> tuple[Ints, Ints]:
        """The line of each key, int64[n] in 1.., and a factor in 1..g - 1, int64[n].

        The multiples of a seed are its line. A report (f s, y) supports the values that (s, y / f)
        does: with the factor 1 / f its symbol is one of the line's seed whose highest digit is 1.
        """
        import numpy as np

        g = self.g
        highest, size = np.zeros_like(keys), np.ones_like(keys)
        for top in range(self.m):
            digit = keys // g**top % g
            highest, size = np.where(digit, digit, highest), np.where(digit, g**top, size)
        factors = np.array(self._inverses)[highest]
        seeds = sum(factors * (keys // g**top) % g * g**top for top in range(self.m))
        return 1 + (size - 1) // (g - 1) + seeds - size, factors

    def hash(self, key: int, v: int) -> int:
        total, g = 0, self.g
        while key and v:
            total += (key % g) * (v % g)
            key //= g
            v //= g
        return total % g

    def hash_many(self, keys: Ints, values: Ints) -> Ints:
        import numpy as np

        if self.g == 2:
            parity: Ints = np.bitwise_count(keys & values).astype(np.int64) & 1
            return parity
        total = np.zeros(np.broadcast_shapes(keys.shape, values.shape), dtype=np.int64)
        for _ in range(self.m):
            total += (keys % self.g) * (values % self.g)
            keys, values = keys // self.g, values // self.g
        return total % self.g


def digits(k: int, g: int) -> int:
    """Least m >= 1 with g^m >= k."""
    m = 1
    while g**m < k:
        m += 1
    return m


def admissible_primes(k: int) -> list[int]:
    """Primes g for which the linear family exists at ``k`` and more symbols could still help.

    Beyond the first prime >= k the hash is a bijection, and a larger g only adds noise.
    """
    primes = []
    g = 2
    while True:
        if is_prime(g):
            if g ** (digits(k, g) + 1) <= LARGEST_TABLE:
                primes.append(g)
            if g >= k:
                return primes
        # Past this point two digits no longer fit the table; only a bijection can.
        g = max(g + 1, k) if g**3 > LARGEST_TABLE else g + 1
