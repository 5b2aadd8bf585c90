"""L-GRR: two rounds of generalised randomised response over the values themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from loloha import checks
from loloha.channels import (
    Pair,
    SymbolChannel,
    TableChannel,
    exact_second_grr,
    exact_second_grr_published,
    grr,
    second_grr,
    second_grr_published,
    second_symbol_channel,
    symbol_channel,
)
from loloha.protocols.base import CALIBRATIONS
from loloha.protocols.block import OfSymbols, OverSymbols
from loloha.protocols.two_round import TwoRound

SECOND_ROUNDS = {"tight": second_grr, "published": second_grr_published}
EXACT = {"tight": exact_second_grr, "published": exact_second_grr_published}


@dataclass(frozen=True, kw_only=True)
class SymbolChain(OverSymbols, TwoRound):
    """Two rounds of GRR over the g symbols of the encoding (MATH section 3).

    Parameters
    ----------
    calibration : {"tight", "published"}
        "tight" spends exactly eps_1 on the first report; "published" is the paper's formula,
        which for g > 2 is private but noisier than asked.
    """

    calibration: str = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("calibration", self.calibration, CALIBRATIONS)

    @cached_property
    def first(self) -> Pair:
        return grr(self.eps_inf, self.symbols)

    @cached_property
    def second(self) -> Pair:
        return SECOND_ROUNDS[self.calibration](self.eps_inf, self.eps_1, self.symbols)

    @cached_property
    def first_channel(self) -> SymbolChannel | TableChannel:
        return symbol_channel(self.eps_inf, self.symbols)

    @cached_property
    def second_channel(self) -> SymbolChannel:
        asked = EXACT[self.calibration](self.eps_inf, self.eps_1, self.symbols)
        return second_symbol_channel(self.first_channel, self.eps_1, asked)


class LGRR(OfSymbols, SymbolChain):
    """L-GRR: GRR over the k values, twice. Source: MATH sections 3 and 6."""

    name: ClassVar[str] = "l-grr"
    summary: ClassVar[str] = "two rounds of GRR over the k values"
