"""What protocols are built of: symbols or bits of the k values, and a round over each bit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from loloha.channels import (
    BitChannel,
    Pair,
    halved_bit_channel,
    oue,
    sue,
    symmetric_bit_channel,
)
from loloha.encodings import Encoding, OneHot, Symbols
from loloha.protocols.base import Protocol


class BitRound(NamedTuple):
    """One round over each bit, whose loss over two bits is eps (MATH section 2)."""

    formula: Callable[[float], Pair]
    channel: Callable[[float], BitChannel]


SYMMETRIC = BitRound(sue, lambda eps: symmetric_bit_channel(eps / 2))
OPTIMISED = BitRound(oue, halved_bit_channel)


class OverSymbols(Protocol):
    """Randomised over g symbols."""

    @property
    @abstractmethod
    def symbols(self) -> int:
        """Number of symbols g."""


class OfSymbols(OverSymbols):
    """The symbols are the k values."""

    @property
    def symbols(self) -> int:
        return self.k

    @cached_property
    def encoding(self) -> Encoding:
        return Symbols(self.k)


class OfBits(Protocol):
    """One bit a value."""

    @cached_property
    def encoding(self) -> Encoding:
        return OneHot(self.k)
