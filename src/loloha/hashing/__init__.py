"""Hash families with an exactly known collision probability, and peers' xxHash."""

from __future__ import annotations

from loloha import checks
from loloha.hashing.family import HashFamily, is_prime, least_prime
from loloha.hashing.linear import LARGEST_TABLE, LinearHash, admissible_primes, digits
from loloha.hashing.modular import (
    LARGEST_PRIME_TABLE,
    MERSENNE_31,
    AffineHash,
    ModularHash,
    PrimeHash,
)
from loloha.hashing.xxhash import XXHash

__all__ = [
    "FAMILIES",
    "LARGEST_PRIME_TABLE",
    "LARGEST_TABLE",
    "MERSENNE_31",
    "AffineHash",
    "HashFamily",
    "LinearHash",
    "ModularHash",
    "PrimeHash",
    "XXHash",
    "admissible_primes",
    "default_family",
    "digits",
    "hash_family",
    "is_prime",
    "least_prime",
]

FAMILIES: dict[str, type[HashFamily]] = {
    family.name: family for family in (LinearHash, PrimeHash, AffineHash, XXHash)
}


def hash_family(name: str, k: int, g: int) -> HashFamily:
    """The family called ``name`` for domain size ``k`` and ``g`` symbols.

    Raises
    ------
    ParameterError
        If there is no such family, or it does not exist for these sizes.
    """
    return FAMILIES[checks.choice("hash", name, FAMILIES)](k, g)


def default_family(k: int, g: int) -> str:
    """The linear family where it exists and its table is affordable, else the affine one."""
    affordable = g ** (digits(k, g) + 1) <= LARGEST_TABLE
    return LinearHash.name if affordable and is_prime(g) else AffineHash.name
