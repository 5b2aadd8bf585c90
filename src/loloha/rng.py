"""The random source of the device: two primitives, everything else is drawn through them."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterable
from typing import Protocol as Interface

from loloha.errors import ParameterError

SCALE = 1 << 53
"""Probabilities are integers out of 2^53: the same Bernoulli in Python, NumPy and JavaScript."""


class Rng(Interface):
    """What a device needs from a random source."""

    def bernoulli(self, threshold: int) -> bool:
        """Return True with probability exactly ``threshold / 2**53``, 0 <= threshold <= 2**53."""
        ...

    def below(self, n: int) -> int:
        """Return an integer uniform on 0..n-1, n >= 1."""
        ...


class SecureRng:
    """The operating system's entropy through `secrets`: what a `Client` draws from by default."""

    __slots__ = ()

    def bernoulli(self, threshold: int) -> bool:
        return secrets.randbits(53) < threshold

    def below(self, n: int) -> int:
        return secrets.randbelow(n)


class SimulationRng:
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
        return self._random.getrandbits(53) < threshold

    def below(self, n: int) -> int:
        return self._random.randrange(n)


class ScriptedRng:
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
