"""Randomised response as a device draws it, over symbols or bits.

Where a channel is joint, the answers to all symbols are drawn together.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from loloha.rng import SCALE, Rng


@dataclass(frozen=True)
class SymbolChannel:
    """Randomised response over g symbols (GRR): keep with a probability, else another symbol.

    Parameters
    ----------
    g : int
        Number of symbols, g >= 2.
    keep : int
        Threshold of keeping the symbol, out of 2^53.
    """

    g: int
    keep: int
    joint: ClassVar[bool] = False

    @property
    def p(self) -> Fraction:
        return Fraction(self.keep, SCALE)

    @property
    def q(self) -> Fraction:
        return Fraction(SCALE - self.keep, SCALE * (self.g - 1))

    def draw(self, rng: Rng, x: int) -> int:
        """Randomise the symbol ``x``."""
        if rng.bernoulli(self.keep):
            return x
        # Uniform over the g - 1 others: a lie never equals the truth.
        other = rng.below(self.g - 1)
        return other + (other >= x)


@dataclass(frozen=True)
class TableChannel:
    """One table from the g symbols to their answers, drawn as a whole (MATH section 15).

    The identity, else one symbol for all, else a uniform permutation. Each symbol alone is answered
    by randomised response; two of them are not independent.

    Parameters
    ----------
    g : int
        Number of symbols, g >= 2.
    identity : int
        Threshold of the identity, out of 2^53.
    constant : int
        Threshold of one symbol for all where it is not the identity, out of 2^53.
    """

    g: int
    identity: int
    constant: int
    joint: ClassVar[bool] = True

    @property
    def p(self) -> Fraction:
        return Fraction(SCALE + (self.g - 1) * self.identity, self.g * SCALE)

    @property
    def q(self) -> Fraction:
        return Fraction(SCALE - self.identity, self.g * SCALE)

    def table(self, rng: Rng) -> tuple[int, ...]:
        """Draw the answers of all symbols.

        A port draws in this order: whether it is the identity; whether it is constant, and then the
        symbol; else for i = g - 1, ..., 1 which of the first i + 1 places changes with place i.
        """
        if rng.bernoulli(self.identity):
            return tuple(range(self.g))
        if rng.bernoulli(self.constant):
            return (rng.below(self.g),) * self.g
        answers = list(range(self.g))
        for i in range(self.g - 1, 0, -1):
            j = rng.below(i + 1)
            answers[i], answers[j] = answers[j], answers[i]
        return tuple(answers)

    def draw(self, rng: Rng, x: int) -> int:
        """Randomise the symbol ``x`` by a table that is not stored."""
        return self.table(rng)[x]


@dataclass(frozen=True)
class BitChannel:
    """Randomised response of bits: 1 with probability p where a bit is set, else q.

    Parameters
    ----------
    set, unset : int
        Thresholds of answering 1, out of 2^53, for a set and for an unset bit.
    """

    set: int
    unset: int
    joint: ClassVar[bool] = False

    @property
    def p(self) -> Fraction:
        return Fraction(self.set, SCALE)

    @property
    def q(self) -> Fraction:
        return Fraction(self.unset, SCALE)

    def draw(self, rng: Rng, size: int, bits: int) -> int:
        """Randomise ``size`` bits of an integer, each for itself."""
        return rng.bernoullis(size, bits, self.set, self.unset)
