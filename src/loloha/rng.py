"""The random source of the device: two primitives, everything else is drawn through them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol as Interface

DIGITS = 53
_SMALL = 2048
SCALE = 1 << DIGITS
"""Probabilities are integers out of 2^53: the same Bernoulli in Python, NumPy and JavaScript."""

_HIGHEST_BIT = b"0" * 128 + b"1" * 128
"""Translates a byte into its highest bit, as a character."""


class Rng(Interface):
    """The random source of a device; subclasses define the first two methods."""

    def bernoulli(self, threshold: int) -> bool:
        """Return True with probability exactly ``threshold / 2**53``, 0 <= threshold <= 2**53."""
        ...

    def below(self, n: int) -> int:
        """Return an integer uniform on 0..n-1, n >= 1."""
        ...

    def bernoullis(self, size: int, chosen: int, threshold: int, other: int) -> int:
        """Return ``size`` independent draws as the bits of an integer, the first one lowest.

        A draw is 1 with probability ``threshold / 2**53`` where the bit of ``chosen`` is set, and
        ``other / 2**53`` elsewhere.
        """
        drawn = 0
        for position in range(size):
            if self.bernoulli(threshold if chosen >> position & 1 else other):
                drawn |= 1 << position
        return drawn


class SecureRng(Rng):
    """The operating system's entropy, the default of a `Client`."""

    __slots__ = ()

    def bernoulli(self, threshold: int) -> bool:
        # Seven bytes have three bits more than the 53 digits.
        return int.from_bytes(os.urandom(7), "little") >> 3 < threshold

    def below(self, n: int) -> int:
        bits = (n - 1).bit_length()
        size, spare = (bits + 7) // 8, -bits % 8
        while True:
            drawn = int.from_bytes(os.urandom(size), "little") >> spare
            if drawn < n:
                return drawn

    def bernoullis(self, size: int, chosen: int, threshold: int, other: int) -> int:
        return compare_all(size, chosen, threshold, other, randbytes=os.urandom)


def compare_all(
    size: int,
    chosen: int,
    threshold: int,
    other: int,
    *,
    randbytes: Callable[[int], bytes],
    digits: int = DIGITS,
) -> int:
    """Compare ``size`` uniform numbers of so many binary digits with their thresholds, all at once.

    Parameters
    ----------
    size, chosen, threshold, other : int
        As for `Rng.bernoullis`, size >= 1; thresholds are out of ``2**digits``.
    randbytes : callable
        Gives so many random bytes.

    Returns
    -------
    int
        Bit i is set if number i is below its threshold.

    Notes
    -----
    The numbers lie side by side in one integer, the first one lowest, each in whole bytes of which
    the highest bit is a guard: 2^guard + threshold - 1 - number keeps it where the number is below.

    Every number is compared with both thresholds to its last digit, and ``chosen`` only selects.
    Stopping once every number has differed from its threshold would take some log2(size) + 2
    digits. The distribution of that count does not depend on the thresholds, but with
    the answers it tells of them: a 1 that took n digits or fewer cannot come from a threshold below
    2^-n.
    """
    width = digits // 8 + 1
    guard = 1 << (8 * width - 1)
    numbers = int.from_bytes(randbytes(width * size), "little")
    numbers &= _side_by_side(size, (1 << digits) - 1, width)

    def below(threshold: int) -> int:
        guarded = _side_by_side(size, guard + threshold - 1, width) - numbers
        return int(guarded.to_bytes(width * size, "big")[::width].translate(_HIGHEST_BIT), 2)

    chosen_below, other_below = below(threshold), below(other)
    return other_below ^ ((chosen_below ^ other_below) & chosen)


def _side_by_side(size: int, number: int, width: int) -> int:
    """So many times the same number, each in so many bytes."""
    # The cache stays below a megabyte.
    return (_small if size <= _SMALL else _small.__wrapped__)(size, number, width)


@lru_cache(maxsize=64)
def _small(size: int, number: int, width: int) -> int:
    return int.from_bytes(number.to_bytes(width, "little") * size, "little")


class SimulationRng(Rng):
    """A seeded source for simulations and tests; predictable, so never for a real user's report.

    Parameters
    ----------
    seed : int
        Equal seeds give equal draws.
    """

    __slots__ = ("_random",)

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def bernoulli(self, threshold: int) -> bool:
        return self._random.getrandbits(DIGITS) < threshold

    def below(self, n: int) -> int:
        return self._random.randrange(n)
