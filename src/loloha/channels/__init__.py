"""Randomised response over symbols or bits: formulas, exact thresholds, chains of two rounds.

Formulas give floats (MATH sections 2, 3, 5). Thresholds are what a device draws with: integers out
of 2^53, rounded so that the realised loss, in exact rational arithmetic, never exceeds the one
asked for.
"""

from loloha.channels.channel import BitChannel, SymbolChannel, TableChannel
from loloha.channels.formula import (
    Pair,
    grr,
    oue,
    second_grr,
    second_grr_published,
    second_losue,
    second_oue_after_oue,
    second_oue_after_sue,
    second_rappor,
    sue,
    table_loss,
)
from loloha.channels.threshold import (
    chained_bits,
    exact_second_grr,
    exact_second_grr_published,
    exp_below,
    halved_bit_channel,
    second_bit_channel,
    second_symbol_channel,
    symbol_channel,
    symmetric_bit_channel,
    table_channel,
)

__all__ = [
    "BitChannel",
    "Pair",
    "SymbolChannel",
    "TableChannel",
    "chained_bits",
    "exact_second_grr",
    "exact_second_grr_published",
    "exp_below",
    "grr",
    "halved_bit_channel",
    "oue",
    "second_bit_channel",
    "second_grr",
    "second_grr_published",
    "second_losue",
    "second_oue_after_oue",
    "second_oue_after_sue",
    "second_rappor",
    "second_symbol_channel",
    "sue",
    "symbol_channel",
    "symmetric_bit_channel",
    "table_channel",
    "table_loss",
]
