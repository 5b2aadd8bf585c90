"""What all protocols with a hash share: the family, and the number g of symbols."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from loloha import checks
from loloha.encodings import Encoding, Hashed
from loloha.hashing import (
    FAMILIES,
    LinearHash,
    PrimeHash,
    admissible_primes,
    default_family,
    hash_family,
    least_prime,
)
from loloha.protocols.block import OverSymbols

LARGEST_G = 1 << 20
LEAST_SHARED = 5
"""Users who must share a key on average before a family is chosen for its variance alone: fewer
than one in a hundred then has a key to himself (e^-5)."""
MOST_SYMBOLS_TRIED = 4096
MOST_HELD = 128


@dataclass(frozen=True, kw_only=True)
class LocalHashing(OverSymbols):
    """Values are hashed to g symbols by a member of a family, and the symbols randomised.

    Parameters
    ----------
    hash : {"linear", "prime", "affine", "xxhash"}, optional
        Hash family; by default "linear" where g is prime and the table
        of seeds and symbols is affordable, else "affine".
    """

    hash: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hash is not None:
            checks.choice("hash", self.hash, FAMILIES)
        self._settle()
        if self.hash is None:
            self._set("hash", default_family(self.k, self.symbols))
        # A family that does not exist for these sizes is refused now, not at the first report.
        _ = self.encoding

    def _settle(self) -> None:
        """Resolve the number of symbols, where it is a parameter."""

    @cached_property
    def encoding(self) -> Encoding:
        return Hashed(hash_family(str(self.hash), self.k, self.symbols))


@dataclass(frozen=True, kw_only=True)
class ChosenG(LocalHashing):
    """Local hashing whose g is a parameter, by default the best one.

    Parameters
    ----------
    g : int, optional
        Number of symbols, 2..2^20.
    """

    g: int | None = None

    def _settle(self) -> None:
        if self.g is None:
            self._set("g", self._best_g())
        self._set("g", checks.integer("g", self.g, 2, LARGEST_G, "leave it out for the best one"))

    @abstractmethod
    def _best_g(self) -> int:
        """The default g."""

    @property
    def symbols(self) -> int:
        # Settled when the protocol was made.
        return cast("int", self.g)


def least_variance_g(k: int, eps: float, family: str | None) -> int:
    """The g of least exact V* of local hashing whose report spends ``eps``.

    Parameters
    ----------
    k : int
        Domain size.
    eps : float
        Loss of the (first) report: p_s = e^eps / (e^eps + g - 1).
    family : str or None
        Hash family; None and "linear" look among the admissible primes, others among all g.

    Returns
    -------
    int
        The smallest of the best.
    """
    name = family or LinearHash.name
    return min(symbols_near(name, k, eps), key=lambda g: (noise(name, k, g, eps), g))


def noise(family: str, k: int, g: int, eps: float) -> float:
    """n V* of local hashing whose (first) report spends ``eps``.

    Notes
    -----
    With c0 the collision probability and w = e^-eps, p_s = 1/(1 + (g-1)w) and
    q_star = (c0 + (1-c0) w) p_s, so n V* = q_star (1 - q_star) / ((1-c0) (1-w) p_s)^2.
    """
    w = math.exp(-eps)
    c0 = float(hash_family(family, k, g).collision)
    spread = 1 + (g - 1) * w
    q_star = (c0 + (1 - c0) * w) / spread
    return q_star * (1 - q_star) * (spread / (1 - c0)) ** 2


def shared_by(family: str, k: int, g: int, n: int) -> float:
    """With how many users, oneself included, each of ``n`` users shares a key on average."""
    return n / hash_family(family, k, g).members


def symbols_tried(family: str, k: int) -> Iterable[int]:
    """All g worth trying where the loss of the first report is not known yet."""
    if family == LinearHash.name:
        return [g for g in admissible_primes(k) if g <= MOST_HELD]
    most = min(least_prime(k), MOST_HELD) if family == PrimeHash.name else MOST_HELD
    return range(2, most + 1)


def symbols_near(family: str, k: int, eps: float) -> Iterable[int]:
    """All g up to those that may have the least V* where the first report spends ``eps``."""
    if family == LinearHash.name:
        return admissible_primes(k)
    best = math.exp(min(eps, 36.0)) + 1
    if family == PrimeHash.name:
        # Where few values leave few collisions, more symbols than e^eps + 1 can still help.
        return range(2, int(min(least_prime(k), 128 + 4 * best, MOST_SYMBOLS_TRIED)) + 1)
    # V* falls up to g = e^eps + 1 and rises beyond it (c0 = 1/g).
    return range(2, int(min(best + 2, MOST_SYMBOLS_TRIED)) + 1)
