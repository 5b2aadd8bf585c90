"""Hash families with an exactly known collision probability: linear, affine, and peers' xxHash."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from loloha.errors import ParameterError
from loloha.rules.rng import Rng

if TYPE_CHECKING:
    import numpy as np

    from loloha.rules.counting.arrays import Bools, Ints

LARGEST_TABLE = 1 << 28
"""Most (seed, symbol) cells that a tally of the linear family may have: 2 GiB of counts."""

MERSENNE_31 = (1 << 31) - 1


@dataclass(frozen=True)
class HashFamily(ABC):
    """Functions from values 0..k-1 to symbols 0..g-1, one of which a user draws once, for ever.

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
    def key_bits(self) -> int:
        """Bits needed to send a key."""

    @abstractmethod
    def draw(self, rng: Rng) -> int:
        """Draw one key."""

    @abstractmethod
    def is_key(self, key: int) -> bool:
        """Whether ``key`` names a member of the family."""

    @abstractmethod
    def hash(self, key: int, v: int) -> int:
        """Symbol in 0..g-1 of the value ``v`` under the member that ``key`` names."""

    @abstractmethod
    def draw_many(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw ``n`` keys, int64[n]; the same law as `draw`."""

    @abstractmethod
    def are_keys(self, keys: Ints) -> Bools:
        """Which of ``keys`` int64[n] name a member, bool[n]."""

    @abstractmethod
    def hash_many(self, keys: Ints, values: Ints) -> Ints:
        """Symbols of ``values`` under ``keys``, both int64 and broadcast against each other."""


class LinearHash(HashFamily):
    """``H_s(v) = <s, v> mod g`` over the digits of s and v in base g, g prime (MATH section 4.1).

    A key is the integer s in 1..g^m - 1. Every member splits Z_g^m into g cells of equal size, and
    the support of all values at once is a Fourier transform of the counts of (seed, symbol).
    """

    name: ClassVar[str] = "linear"
    largest_k: ClassVar[int] = 1 << 24

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_prime(self.g):
            raise ParameterError(
                f"g must be prime for hash='linear', got {self.g!r}; use a prime g or 'affine'"
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

    @property
    def size(self) -> int:
        """g^m: one more than the number of keys."""
        return int(self.g**self.m)

    @property
    def collision(self) -> Fraction:
        return Fraction(self.size // self.g - 1, self.size - 1)

    @property
    def key_bits(self) -> int:
        return (self.size - 1).bit_length()

    def draw(self, rng: Rng) -> int:
        return 1 + rng.below(self.size - 1)

    def is_key(self, key: int) -> bool:
        return 1 <= key < self.size

    def hash(self, key: int, v: int) -> int:
        total, g = 0, self.g
        while key and v:
            total += (key % g) * (v % g)
            key //= g
            v //= g
        return total % g

    def draw_many(self, n: int, rng: np.random.Generator) -> Ints:
        return rng.integers(1, self.size, size=n)

    def are_keys(self, keys: Ints) -> Bools:
        return (keys >= 1) & (keys < self.size)

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


class AffineHash(HashFamily):
    """``H_{a,b}(v) = ((a v + b) mod P) mod g``, P = 2^31 - 1, for any g (MATH section 4.2).

    A key is the integer ``a * 2^31 + b``. It has 62 bits: a pseudonym of its user.
    """

    name: ClassVar[str] = "affine"
    largest_k: ClassVar[int] = 1 << 22

    @property
    def collision(self) -> Fraction:
        quotient, rest = divmod(MERSENNE_31, self.g)
        pairs = rest * (quotient + 1) * quotient + (self.g - rest) * quotient * (quotient - 1)
        return Fraction(pairs, MERSENNE_31 * (MERSENNE_31 - 1))

    @property
    def key_bits(self) -> int:
        return 62

    def draw(self, rng: Rng) -> int:
        return (1 + rng.below(MERSENNE_31 - 1)) << 31 | rng.below(MERSENNE_31)

    def is_key(self, key: int) -> bool:
        return 1 <= key >> 31 < MERSENNE_31 and key & MERSENNE_31 < MERSENNE_31

    def hash(self, key: int, v: int) -> int:
        return ((key >> 31) * v + (key & MERSENNE_31)) % MERSENNE_31 % self.g

    def draw_many(self, n: int, rng: np.random.Generator) -> Ints:
        factors = rng.integers(1, MERSENNE_31, size=n)
        return factors << 31 | rng.integers(0, MERSENNE_31, size=n)

    def are_keys(self, keys: Ints) -> Bools:
        factors = keys >> 31
        return (factors >= 1) & (factors < MERSENNE_31) & ((keys & MERSENNE_31) < MERSENNE_31)

    def hash_many(self, keys: Ints, values: Ints) -> Ints:
        # a v + b < 2^31 * 2^22 + 2^31, far inside int64.
        return ((keys >> 31) * values + (keys & MERSENNE_31)) % MERSENNE_31 % self.g


class XXHash(HashFamily):
    """``xxh32(str(v), seed) mod g``: to read reports of existing tools, never a default (MATH 4.3).

    A key is the 32-bit seed. The collision probability is *taken as* 1/g, as those tools do.
    """

    name: ClassVar[str] = "xxhash"
    largest_k: ClassVar[int] = 1 << 24

    @property
    def collision(self) -> Fraction:
        return Fraction(1, self.g)

    @property
    def key_bits(self) -> int:
        return 32

    def draw(self, rng: Rng) -> int:
        return rng.below(1 << 32)

    def is_key(self, key: int) -> bool:
        return 0 <= key < 1 << 32

    def hash(self, key: int, v: int) -> int:
        return int(_xxh32()(str(v).encode(), seed=key)) % self.g

    def draw_many(self, n: int, rng: np.random.Generator) -> Ints:
        return rng.integers(0, 1 << 32, size=n)

    def are_keys(self, keys: Ints) -> Bools:
        return (keys >= 0) & (keys < 1 << 32)

    def hash_many(self, keys: Ints, values: Ints) -> Ints:
        import numpy as np

        xxh32, g = _xxh32(), self.g
        pairs = np.broadcast(keys, values)
        hashed = (xxh32(str(v).encode(), seed=key) % g for key, v in _python_ints(pairs))
        return np.fromiter(hashed, np.int64, count=pairs.size).reshape(pairs.shape)


def _python_ints(pairs: Any) -> Any:
    return ((int(key), int(v)) for key, v in pairs)


def _xxh32() -> Any:
    try:
        from xxhash import xxh32_intdigest
    except ImportError as error:
        raise ParameterError(
            "hash must be 'linear' or 'affine' where the package xxhash is absent, got 'xxhash'; "
            "pip install 'loloha[xxhash]'"
        ) from error
    return xxh32_intdigest


FAMILIES: dict[str, type[HashFamily]] = {
    family.name: family for family in (LinearHash, AffineHash, XXHash)
}


def hash_family(name: str, k: int, g: int) -> HashFamily:
    """The family called ``name`` for domain size ``k`` and ``g`` symbols.

    Raises
    ------
    ParameterError
        If there is no such family, or it does not exist for these sizes.
    """
    if name not in FAMILIES:
        raise ParameterError(f"hash must be one of {sorted(FAMILIES)}, got {name!r}; choose one")
    return FAMILIES[name](k, g)


def default_family(k: int, g: int) -> str:
    """The linear family where it exists and its table is affordable, else the affine one."""
    affordable = g ** (digits(k, g) + 1) <= LARGEST_TABLE
    return LinearHash.name if affordable and is_prime(g) else AffineHash.name


def digits(k: int, g: int) -> int:
    """Least m >= 1 with g^m >= k."""
    m = 1
    while g**m < k:
        m += 1
    return m


def is_prime(g: int) -> bool:
    """Whether ``g`` is prime (trial division: g is small)."""
    return g >= 2 and all(g % divisor for divisor in range(2, int(g**0.5) + 1))


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
