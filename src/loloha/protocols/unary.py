"""RAPPOR, L-OSUE, L-OUE and L-SOUE: one bit a value, two rounds of randomised response a bit."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from loloha.channels import (
    BitChannel,
    Pair,
    second_bit_channel,
    second_losue,
    second_oue_after_oue,
    second_oue_after_sue,
    second_rappor,
)
from loloha.protocols.block import OPTIMISED, SYMMETRIC, BitRound, OfBits
from loloha.protocols.two_round import TwoRound


class _Unary(OfBits, TwoRound):
    """Two rounds over each bit; subclasses name the block of each round (MATH section 5)."""

    _first_round: ClassVar[BitRound]
    _second_round: ClassVar[BitRound]
    _second_formula: ClassVar[staticmethod[[float, float], Pair]]

    def __post_init__(self) -> None:
        super().__post_init__()
        # Not every pair of budgets can be reached when p2 = 1/2: say so at once.
        _ = self.second

    @cached_property
    def first(self) -> Pair:
        return self._first_round.formula(self.eps_inf)

    @cached_property
    def second(self) -> Pair:
        return type(self)._second_formula(self.eps_inf, self.eps_1)

    @cached_property
    def first_channel(self) -> BitChannel:
        return self._first_round.channel(self.eps_inf)

    @cached_property
    def second_channel(self) -> BitChannel:
        symmetric = self._second_round is SYMMETRIC
        return second_bit_channel(self.first_channel, self.eps_1, symmetric=symmetric)


class RAPPOR(_Unary):
    """RAPPOR (L-SUE): symmetric bits, twice. Source: MATH section 5."""

    name: ClassVar[str] = "rappor"
    summary: ClassVar[str] = "k bits, both rounds symmetric (SUE, SUE)"
    _first_round, _second_round = SYMMETRIC, SYMMETRIC
    _second_formula = staticmethod(second_rappor)


class LOSUE(_Unary):
    """L-OSUE: optimised bits, then symmetric ones. Source: MATH section 5."""

    name: ClassVar[str] = "l-osue"
    summary: ClassVar[str] = "k bits, optimised then symmetric (OUE, SUE)"
    _first_round, _second_round = OPTIMISED, SYMMETRIC
    _second_formula = staticmethod(second_losue)


class LOUE(_Unary):
    """L-OUE: optimised bits, twice; needs e^eps_1 < (2 e^eps_inf + 1)/3. Source: MATH section 5."""

    name: ClassVar[str] = "l-oue"
    summary: ClassVar[str] = "k bits, both rounds optimised (OUE, OUE)"
    _first_round, _second_round = OPTIMISED, OPTIMISED
    _second_formula = staticmethod(second_oue_after_oue)


class LSOUE(_Unary):
    """L-SOUE: symmetric bits, then optimised; eps_1 has an upper bound. Source: MATH section 5."""

    name: ClassVar[str] = "l-soue"
    summary: ClassVar[str] = "k bits, symmetric then optimised (SUE, OUE)"
    _first_round, _second_round = SYMMETRIC, OPTIMISED
    _second_formula = staticmethod(second_oue_after_sue)
