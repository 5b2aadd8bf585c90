"""Primes."""

from __future__ import annotations

import math
from functools import cache


def is_prime(g: int) -> bool:
    """Whether ``g`` is prime (trial division: g is small)."""
    return g >= 2 and all(g % divisor for divisor in range(2, math.isqrt(g) + 1))


@cache
def least_prime(n: int) -> int:
    """The least prime >= ``n``."""
    while not is_prime(n):
        n += 1
    return n
