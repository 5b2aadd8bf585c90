"""The random source of the device: two primitives, everything else is drawn through them."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterable
from typing import Protocol as Interface

from loloha.errors import ParameterError

DIGITS = 53
SCALE = 1 << DIGITS
"""Probabilities are integers out of 2^53: the same Bernoulli in Python, NumPy and JavaScript."""


class Rng(Interface):
    """What a device needs from a random source: a subclass defines the first two."""

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
    """The operating system's entropy through `secrets`: what a `Client` draws from by default."""

    __slots__ = ()

    def bernoulli(self, threshold: int) -> bool:
        return secrets.randbits(DIGITS) < threshold

    def below(self, n: int) -> int:
        return secrets.randbelow(n)

    def bernoullis(self, size: int, chosen: int, threshold: int, other: int) -> int:
        return compare_all(size, chosen, threshold, other, randbits=secrets.randbits)


def compare_all(
    size: int,
    chosen: int,
    threshold: int,
    other: int,
    *,
    randbits: Callable[[int], int],
    digits: int = DIGITS,
) -> int:
    """Compare ``size`` uniform numbers of so many binary digits with their thresholds, all at once.

    Parameters
    ----------
    size, chosen, threshold, other : int
        As for `Rng.bernoullis`; thresholds are out of ``2**digits``.
    randbits : callable
        Gives so many random bits as an integer.

    Returns
    -------
    int
        Bit i is set if number i is below its threshold.

    Notes
    -----
    One random integer holds a digit of every number, the highest digits first. A number is decided
    at the first digit in which it differs from its threshold. Each digit does with probability 1/2
    whatever the threshold is, so the number of turns, some log2(size) + 2, tells nothing of the
    bits.
    """
    everything = (1 << size) - 1
    below, undecided = 0, everything
    # Numbers lie below 2^digits; a threshold of that size has one digit more.
    for place in range(digits, -1, -1):
        drawn = randbits(size) if place < digits else 0
        wanted = chosen if threshold >> place & 1 else 0
        if other >> place & 1:
            wanted |= everything ^ chosen
        differ = undecided & (drawn ^ wanted)
        below |= differ & wanted
        undecided ^= differ
        if not undecided:
            break
    return below


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


class ScriptedRng(Rng):
    """Replays a list of draws, so that ports in other languages can share vectors.

    Parameters
    ----------
    draws : iterable of int
        For ``bernoulli`` an integer in 0..2**53-1 that is compared with the threshold; for
        ``below(n)`` an integer in 0..n-1.

    Raises
    ------
    ParameterError
        When the script runs out, or a draw lies outside the range of its primitive.
    """

    __slots__ = ("_draws",)

    def __init__(self, draws: Iterable[int]) -> None:
        self._draws = iter(draws)

    def bernoulli(self, threshold: int) -> bool:
        return self._next(SCALE) < threshold

    def below(self, n: int) -> int:
        return self._next(n)

    def finished(self) -> bool:
        """Whether every draw of the script has been used (consumes one draw if not)."""
        return next(self._draws, None) is None

    def _next(self, bound: int) -> int:
        draw = next(self._draws, None)
        if draw is None:
            raise ParameterError("draws must be long enough, the script ran out; add draws")
        if not 0 <= draw < bound:
            raise ParameterError(
                f"each draw must lie in 0..{bound - 1}, got {draw!r}; fix the script"
            )
        return draw
