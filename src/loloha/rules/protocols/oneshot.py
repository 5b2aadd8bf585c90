"""One-round oracles: GRR, BLH, OLH, SUE, OUE. Nothing is memoised; every report spends eps."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from loloha.rules import checks
from loloha.rules.channels import (
    BitChannel,
    Pair,
    SymbolChannel,
    grr,
    halved_bit_channel,
    oue,
    sue,
    symbol_channel,
    symmetric_bit_channel,
)
from loloha.rules.encodings import Encoding, OneHot, Symbols
from loloha.rules.protocols.base import CALIBRATIONS, Protocol
from loloha.rules.protocols.hashed import LARGEST_G, ChosenG, LocalHashing, least_variance_g


@dataclass(frozen=True, kw_only=True)
class _OneRound(Protocol):
    """A fresh answer every round.

    Parameters
    ----------
    eps : float
        Bound on the loss of each report, 1e-6..700.
    """

    eps: float

    longitudinal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("eps", checks.eps("eps", self.eps))

    @property
    def asked_first(self) -> float:
        return self.eps

    @property
    def asked_memo(self) -> float:
        return self.eps


class _OneRoundSymbols(_OneRound):
    """GRR over g symbols, once."""

    @property
    @abstractmethod
    def symbols(self) -> int:
        """Number of symbols g."""

    @cached_property
    def first(self) -> Pair:
        return grr(self.eps, self.symbols)

    @cached_property
    def first_channel(self) -> SymbolChannel:
        return symbol_channel(self.eps, self.symbols)


class GRR(_OneRoundSymbols):
    """Generalised randomised response over the k values. Source: MATH section 2."""

    name: ClassVar[str] = "grr"
    summary: ClassVar[str] = "one round of GRR over the k values"

    @property
    def symbols(self) -> int:
        return self.k

    @cached_property
    def encoding(self) -> Encoding:
        return Symbols(self.k)


@dataclass(frozen=True, kw_only=True)
class BLH(LocalHashing, _OneRoundSymbols):
    """Binary local hashing: a fresh hash to two symbols in every report. Source: MATH section 2."""

    name: ClassVar[str] = "blh"
    summary: ClassVar[str] = "fresh hash to g = 2 symbols, one round of GRR"

    @property
    def symbols(self) -> int:
        return 2


@dataclass(frozen=True, kw_only=True)
class OLH(ChosenG, _OneRoundSymbols):
    """Optimal local hashing: a fresh hash to g symbols in every report. Source: MATH section 2.

    Parameters
    ----------
    calibration : {"tight", "published"}
        How g is chosen where it is not given: the integer of least exact V* among those that the
        hash family admits, or g = round(e^eps + 1).
    """

    name: ClassVar[str] = "olh"
    summary: ClassVar[str] = "fresh hash to the g symbols of least variance, one round of GRR"

    calibration: str = "tight"

    def __post_init__(self) -> None:
        checks.choice("calibration", self.calibration, CALIBRATIONS)
        super().__post_init__()

    def _best_g(self) -> int:
        if self.calibration == "published":
            return round(min(math.exp(self.eps) + 1, LARGEST_G))
        return least_variance_g(self.k, self.eps, self.hash)


class SUE(_OneRound):
    """Symmetric unary encoding (basic RAPPOR). Source: MATH section 2."""

    name: ClassVar[str] = "sue"
    summary: ClassVar[str] = "one round over k bits, symmetric"

    @cached_property
    def encoding(self) -> Encoding:
        return OneHot(self.k)

    @cached_property
    def first(self) -> Pair:
        return sue(self.eps)

    @cached_property
    def first_channel(self) -> BitChannel:
        return symmetric_bit_channel(self.eps / 2)


class OUE(_OneRound):
    """Optimised unary encoding. Source: MATH section 2."""

    name: ClassVar[str] = "oue"
    summary: ClassVar[str] = "one round over k bits, optimised"

    @cached_property
    def encoding(self) -> Encoding:
        return OneHot(self.k)

    @cached_property
    def first(self) -> Pair:
        return oue(self.eps)

    @cached_property
    def first_channel(self) -> BitChannel:
        return halved_bit_channel(self.eps)
