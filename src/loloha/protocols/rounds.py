"""Rounds of randomised response for the rows of protocols: formulas and exact channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from loloha.channels import (
    BitChannel,
    Pair,
    exact_second_grr,
    exact_second_grr_published,
    grr,
    halved_bit_channel,
    oue,
    second_bit_channel,
    second_grr,
    second_grr_published,
    second_symbol_channel,
    sue,
    symbol_channel,
    symmetric_bit_channel,
)
from loloha.encodings import Channel

CALIBRATIONS = ("tight", "published")
"""Exact, and as the paper has it: MATH section 3."""


class Rounds(NamedTuple):
    """Of a protocol, the formula and the exact channel of its first and of its second round."""

    first: Callable[[Any], Pair]
    first_channel: Callable[[Any], Channel]
    second: Callable[[Any], Pair | None] = lambda _: None
    second_channel: Callable[[Any], Channel | None] = lambda _: None


def _second_grr(protocol: Any) -> Pair:
    tight = protocol.calibration == "tight"
    formula = second_grr if tight else second_grr_published
    return formula(protocol.eps_inf, protocol.eps_1, protocol.encoding.memo_symbols)


def _second_symbol_channel(protocol: Any) -> Channel:
    tight = protocol.calibration == "tight"
    exact = exact_second_grr if tight else exact_second_grr_published
    asked = exact(protocol.eps_inf, protocol.eps_1, protocol.encoding.memo_symbols)
    return second_symbol_channel(protocol.first_channel, protocol.eps_1, asked)


SYMBOLS = Rounds(
    lambda protocol: grr(protocol.asked_memo, protocol.encoding.memo_symbols),
    lambda protocol: symbol_channel(protocol.asked_memo, protocol.encoding.memo_symbols),
)
"""GRR over g symbols, once (MATH section 2)."""
SYMBOLS_TWICE = SYMBOLS._replace(second=_second_grr, second_channel=_second_symbol_channel)
"""GRR over g symbols, twice (MATH section 3)."""


def _eps_bit(protocol: Any) -> float:
    """Loss of one bit: with one sampled bucket two patterns differ in one bit, else in two."""
    alone = protocol.d == 1 and protocol.calibration == "tight"
    eps: float = protocol.eps_inf
    return eps if alone else eps / 2


BUCKET_BITS = Rounds(
    lambda protocol: grr(_eps_bit(protocol), 2),
    lambda protocol: symmetric_bit_channel(_eps_bit(protocol)),
)
"""GRR over each bit of the sampled buckets, once (MATH section 7)."""


class BitRound(NamedTuple):
    """One round over each bit, whose loss over two bits is eps (MATH section 2)."""

    formula: Callable[[float], Pair]
    channel: Callable[[float], BitChannel]


SYMMETRIC = BitRound(sue, lambda eps: symmetric_bit_channel(eps / 2))
OPTIMISED = BitRound(oue, halved_bit_channel)


def bits(round: BitRound) -> Rounds:
    """One round over each bit."""
    return Rounds(
        lambda protocol: round.formula(protocol.asked_memo),
        lambda protocol: round.channel(protocol.asked_memo),
    )


def bits_twice(round: BitRound, two: BitRound, formula: Callable[[float, float], Pair]) -> Rounds:
    """Two rounds over each bit, and the formula of the second (MATH section 5)."""
    return bits(round)._replace(
        second=lambda protocol: formula(protocol.eps_inf, protocol.eps_1),
        second_channel=lambda protocol: second_bit_channel(
            protocol.first_channel, protocol.eps_1, symmetric=two is SYMMETRIC
        ),
    )
