"""Draws out of a list: what a vector says, a device draws."""

from __future__ import annotations

from collections.abc import Iterable

from loloha.errors import ParameterError
from loloha.rng import SCALE, Rng


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
