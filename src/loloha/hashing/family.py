"""The base class of hash families."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from loloha.errors import ParameterError
from loloha.rng import Rng

if TYPE_CHECKING:
    import numpy as np

    from loloha.arrays import Bools, Ints


def is_prime(g: int) -> bool:
    """Whether ``g`` is prime (trial division: g is small)."""
    return g >= 2 and all(g % divisor for divisor in range(2, math.isqrt(g) + 1))


@cache
def least_prime(n: int) -> int:
    """The least prime >= ``n``."""
    while not is_prime(n):
        n += 1
    return n


@dataclass(frozen=True)
class HashFamily(ABC):
    """Functions from values 0..k-1 to symbols 0..g-1, one of which a user draws once, for ever.

    Keys are the ``members`` integers from `least_key` on, unless a family says otherwise.

    Parameters
    ----------
    k : int
        Domain size, k >= 2.
    g : int
        Number of symbols, g >= 2.
    """

    k: int
    g: int

    name: ClassVar[str]
    largest_k: ClassVar[int]
    least_key: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.k > self.largest_k:
            raise ParameterError(
                f"k must be at most {self.largest_k} for hash={self.name!r}, got {self.k!r}; "
                "group the values into fewer labels"
            )

    @property
    @abstractmethod
    def collision(self) -> Fraction:
        """Exact probability c0 that two different values get the same symbol."""

    @property
    @abstractmethod
    def members(self) -> int:
        """How many keys there are, all equally likely: n users share each with n / members."""

    @property
    def separates(self) -> bool:
        """Whether no key puts all values in one cell, for certain."""
        return False

    @property
    def table_rows(self) -> int | None:
        """Rows of the table N[key, symbol] where a server counts in one; None where it is too big.

        Row 0 belongs to no key where `least_key` is 1. Without a table the support is counted.
        """
        return None

    @property
    def key_bits(self) -> int:
        """Bits needed to send a key."""
        return (self.least_key + self.members - 1).bit_length()

    def draw(self, rng: Rng) -> int:
        """Draw one key."""
        return self.least_key + rng.below(self.members)

    def is_key(self, key: int) -> bool:
        """Whether ``key`` names a member of the family."""
        return 0 <= key - self.least_key < self.members

    @abstractmethod
    def hash(self, key: int, v: int) -> int:
        """Symbol in 0..g-1 of the value ``v`` under the member that ``key`` names."""

    def draw_many(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw ``n`` keys, int64[n]; the same distribution as `draw`."""
        return rng.integers(self.least_key, self.least_key + self.members, size=n)

    def are_keys(self, keys: Ints) -> Bools:
        """Which of ``keys`` int64[n] name a member, bool[n]."""
        return (keys >= self.least_key) & (keys < self.least_key + self.members)

    @abstractmethod
    def hash_many(self, keys: Ints, values: Ints) -> Ints:
        """Symbols of ``values`` under ``keys``, both int64 and broadcast against each other."""
