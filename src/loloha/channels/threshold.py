"""Exact channels: thresholds out of 2^53 whose loss is at most the loss asked for."""

from __future__ import annotations

from bisect import bisect_left
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

from loloha.channels.channel import BitChannel, SymbolChannel, TableChannel
from loloha.rng import SCALE

# e^eps to 60 digits; `exp_below` steps far more than the rounding error below it.
_PRECISE = Context(prec=60)
_SHRINK = 1 - Fraction(1, 10**55)


@cache
def exp_below(eps: Fraction) -> Fraction:
    """A rational just below e^eps (relative distance 1e-55)."""
    exact = _PRECISE.divide(Decimal(eps.numerator), Decimal(eps.denominator))
    return Fraction(exact.exp(_PRECISE)) * _SHRINK


def symbol_channel(eps: float, g: int) -> SymbolChannel:
    """GRR whose realised loss ln(p/q) is the largest on the grid of 2^-53 that is at most eps."""
    return SymbolChannel(g, _largest_keep(exp_below(Fraction(eps)), g))


def exact_second_grr(eps_inf: float, eps_1: float, g: int) -> Fraction:
    """p of `second_grr`, in exact arithmetic: the same on every machine."""
    a, b = exp_below(Fraction(eps_inf)), exp_below(Fraction(eps_1))
    weight = b * (a + g - 2) - (g - 1)
    return weight / (weight + (g - 1) * (a - b))


def exact_second_grr_published(eps_inf: float, eps_1: float, g: int) -> Fraction:
    """p of `second_grr_published`, in exact arithmetic."""
    a, b = exp_below(Fraction(eps_inf)), exp_below(Fraction(eps_1))
    weight = a * b - 1
    return weight / (weight + (g - 1) * (a - b))


def table_channel(alone: SymbolChannel, m0: float | None) -> TableChannel:
    """A table whose cells are each at least as private as under ``alone``.

    Parameters
    ----------
    alone : SymbolChannel
    m0 : float or None
        Probability of one symbol for all; None for the one at which two cells are answered alike
        as often as if they were independent: then it is (1 + w)/g where it is not the identity.
    """
    g = alone.g
    identity = (g * alone.keep - SCALE) // (g - 1)
    if m0 is None:
        return TableChannel(g, identity, (SCALE + identity) // g)
    return TableChannel(g, identity, int(Fraction(m0) * SCALE * SCALE / (SCALE - identity)))


def second_symbol_channel(
    first: SymbolChannel | TableChannel, eps_1: float, asked: Fraction
) -> SymbolChannel:
    """The IRR nearest to ``asked`` such that the chain after ``first`` realises at most eps_1.

    Parameters
    ----------
    first : SymbolChannel
    eps_1 : float
    asked : Fraction
        p of the second round. Its nearest double, rounded down to 2^-53, is what releases before
        this one took on most machines; it may lie below the largest that keeps within eps_1.
    """
    g, ratio = first.g, exp_below(Fraction(eps_1))
    contrast = (ratio - 1) / (ratio + g - 1) / (first.p - first.q)
    tightest = SCALE if contrast >= 1 else int(SCALE * (1 + (g - 1) * contrast) / g)
    return SymbolChannel(g, min(tightest, int(float(asked) * SCALE)))


def symmetric_bit_channel(eps: float) -> BitChannel:
    """One bit answered truthfully with p, falsely with 1 - p; realised ln(p/(1-p)) at most eps."""
    keep = _largest_keep(exp_below(Fraction(eps)), 2)
    return BitChannel(keep, SCALE - keep)


def halved_bit_channel(eps: float) -> BitChannel:
    """One bit with p = 1/2; realised ln((1-q)/q) at most eps."""
    return BitChannel(SCALE // 2, SCALE - _largest_keep(exp_below(Fraction(eps)), 2))


def second_bit_channel(first: BitChannel, eps_1: float, *, symmetric: bool) -> BitChannel:
    """The IRR of least q such that two differing bits realise at most eps_1 in the chain.

    Its p is 1 - q where it is ``symmetric``, else 1/2; raising q weakens the chain.
    """
    ratio = exp_below(Fraction(eps_1))

    def channel(unset: int) -> BitChannel:
        return BitChannel(SCALE - unset if symmetric else SCALE // 2, unset)

    def is_within(unset: int) -> bool:
        # As `chained_bits`, in integers out of 2^106: fractions take twenty times as long.
        slope, whole = channel(unset).set - unset, SCALE**2
        p_star, q_star = (unset * SCALE + bit * slope for bit in (first.set, first.unset))
        products = p_star * (whole - q_star), (whole - p_star) * q_star
        return products[0] * ratio.denominator <= ratio.numerator * products[1]

    return channel(bisect_left(range(SCALE // 2), True, key=is_within))


def chained_bits(first: BitChannel, second: BitChannel) -> tuple[Fraction, Fraction]:
    """Pr[bit 1 | set] and Pr[bit 1 | unset] after both rounds, exactly."""
    slope = second.p - second.q
    return second.q + first.p * slope, second.q + first.q * slope


def _largest_keep(ratio: Fraction, g: int) -> int:
    """Largest T < 2^53 with T (g-1) / (2^53 - T) <= ratio."""
    return int(SCALE * ratio / (ratio + g - 1))
