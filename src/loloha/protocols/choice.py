"""The rules that pick g and the hash family, where they are left out."""

from __future__ import annotations

import math
from collections.abc import Iterable

from loloha.hashing import LinearHash, PrimeHash, admissible_primes, hash_family, least_prime

LARGEST_G = 1 << 20
LEAST_SHARED = 5
"""Least mean number of users per key for choosing a family by its variance alone: then
e^-5 of the users have a key of their own."""
MOST_SYMBOLS_TRIED = 4096


def least_variance_g(k: int, eps: float, family: str | None) -> int:
    """The least g of least exact V* where the (first) report spends ``eps``; None is "linear"."""
    name = family or LinearHash.name
    return min(symbols_near(name, k, eps), key=lambda g: (noise(name, k, g, eps), g))


def noise(family: str, k: int, g: int, eps: float) -> float:
    """n V* of local hashing whose (first) report spends ``eps``."""
    # With w = e^-eps, p_s = 1/(1 + (g-1)w) and q_star = (c0 + (1-c0) w) p_s:
    # n V* = q_star (1 - q_star) / ((1-c0) (1-w) p_s)^2.
    w = math.exp(-eps)
    c0 = float(hash_family(family, k, g).collision)
    spread = 1 + (g - 1) * w
    q_star = (c0 + (1 - c0) * w) / spread
    return q_star * (1 - q_star) * (spread / (1 - c0)) ** 2


def hides_keys(family: str, k: int, g: int, n: int) -> bool:
    """Whether a family may be chosen for its variance alone: of few keys, each names its user."""
    # By how many of ``n`` users, oneself included, share a key on average.
    return family == LinearHash.name or n / hash_family(family, k, g).members >= LEAST_SHARED


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


def published_g(eps_inf: float, eps_1: float) -> int:
    """The paper's closed form for the g of OLOLOHA, at most 2^20 (MATH section 3)."""
    # Multiplied by root + 1 - u^2, so that nothing cancels: root^2 - (1-u^2)^2 = 12 (r-u^2)(1-r).
    u, r = math.exp(-eps_inf), math.exp(eps_1 - eps_inf)
    lost = -math.expm1(-2 * eps_inf)
    root = math.sqrt(lost**2 - 12 * (r - u**2) * math.expm1(eps_1 - eps_inf))
    rule = 2 * (math.exp(eps_1) - u) / (root + lost)
    return 1 + max(1, round(min(rule, LARGEST_G - 1)))
