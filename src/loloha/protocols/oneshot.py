"""One-round oracles: GRR, BLH, OLH, SUE, OUE. Nothing is memoised; every report spends eps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from loloha import checks
from loloha.channels import BitChannel, Pair, SymbolChannel, grr, symbol_channel
from loloha.protocols.base import CALIBRATIONS, Protocol
from loloha.protocols.block import (
    OPTIMISED,
    SYMMETRIC,
    BitRound,
    OfBits,
    OfSymbols,
    OverSymbols,
)
from loloha.protocols.hashed import LARGEST_G, ChosenG, LocalHashing, least_variance_g


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


class _OneRoundSymbols(OverSymbols, _OneRound):
    """GRR over g symbols, once."""

    @cached_property
    def first(self) -> Pair:
        return grr(self.eps, self.symbols)

    @cached_property
    def first_channel(self) -> SymbolChannel:
        return symbol_channel(self.eps, self.symbols)


class GRR(OfSymbols, _OneRoundSymbols):
    """Generalised randomised response over the k values. Source: MATH section 2."""

    name: ClassVar[str] = "grr"
    summary: ClassVar[str] = "one round of GRR over the k values"


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


class _OneRoundBits(OfBits, _OneRound):
    """One round over each bit; subclasses say which."""

    _round: ClassVar[BitRound]

    @cached_property
    def first(self) -> Pair:
        return self._round.formula(self.eps)

    @cached_property
    def first_channel(self) -> BitChannel:
        return self._round.channel(self.eps)


class SUE(_OneRoundBits):
    """Symmetric unary encoding (basic RAPPOR). Source: MATH section 2."""

    name: ClassVar[str] = "sue"
    summary: ClassVar[str] = "one round over k bits, symmetric"
    _round = SYMMETRIC


class OUE(_OneRoundBits):
    """Optimised unary encoding. Source: MATH section 2."""

    name: ClassVar[str] = "oue"
    summary: ClassVar[str] = "one round over k bits, optimised"
    _round = OPTIMISED
