"""Randomised response over symbols or bits: formulas, exact thresholds, chains of two rounds.

Formulas give floats (MATH sections 2, 3, 5) in forms that neither overflow nor cancel for eps from
1e-6 to 700. Thresholds are what a device draws with: integers out of 2^53, rounded so that the
realised loss, in exact rational arithmetic, never exceeds the one asked for.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from loloha.errors import ParameterError
from loloha.rules.rng import SCALE, Rng

# e^eps to 60 digits; `_exp_below` steps far more than the rounding error below it.
_PRECISE = Context(prec=60)
_SHRINK = 1 - Fraction(1, 10**55)


class Pair(NamedTuple):
    """p = Pr[the truth], or Pr[bit 1 | set]; q = Pr[one given lie], or Pr[bit 1 | unset]."""

    p: float
    q: float


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
        """Randomise the symbol ``x`` alone, by a table that is forgotten."""
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

    @property
    def p(self) -> Fraction:
        return Fraction(self.set, SCALE)

    @property
    def q(self) -> Fraction:
        return Fraction(self.unset, SCALE)

    def draw(self, rng: Rng, size: int, bits: int) -> int:
        """Randomise ``size`` bits of an integer, each for itself."""
        return rng.bernoullis(size, bits, self.set, self.unset)


# -- formulas: one round


def grr(eps: float, g: int) -> Pair:
    """GRR over g symbols: ratio p/q = e^eps."""
    u = math.exp(-eps)
    total = 1 + (g - 1) * u
    return Pair(1 / total, u / total)


def sue(eps: float) -> Pair:
    """Symmetric unary encoding: each of the two bits that differ spends eps/2."""
    return grr(eps / 2, 2)


def oue(eps: float) -> Pair:
    """Optimised unary encoding: p = 1/2, q = 1/(e^eps + 1)."""
    return Pair(0.5, grr(eps, 2).q)


# -- formulas: the second round of a chain


def second_grr(eps_inf: float, eps_1: float, g: int) -> Pair:
    """IRR over g symbols after ``grr(eps_inf, g)``, such that the first report spends eps_1.

    A chain multiplies lambda = p - q, so lambda_2 = lambda(eps_1) / lambda(eps_inf); q is written
    out of u = e^-eps_inf, w = e^-eps_1 because 1 - lambda_2 cancels. Source: MATH section 3.
    """
    u, w = math.exp(-eps_inf), math.exp(-eps_1)
    gap = _gap(eps_inf, eps_1)
    q = gap / ((1 + (g - 1) * w) * -math.expm1(-eps_inf))
    lambda_2 = (math.expm1(-eps_1) * (1 + (g - 1) * u)) / (math.expm1(-eps_inf) * (1 + (g - 1) * w))
    return Pair((1 + (g - 1) * lambda_2) / g, q)


def second_grr_published(eps_inf: float, eps_1: float, g: int) -> Pair:
    """The paper's IRR: c = (ab - 1)/(a - b), which fits g = 2 and is noisier than asked beyond."""
    gap, rise = _gap(eps_inf, eps_1), -math.expm1(-(eps_inf + eps_1))
    total = rise + (g - 1) * gap
    return Pair(rise / total, gap / total)


def second_rappor(eps_inf: float, eps_1: float) -> Pair:
    """Symmetric IRR after ``sue(eps_inf)``: the chain is ``sue(eps_1)``. Source: MATH section 5."""
    x, y = eps_inf / 4, eps_1 / 4
    q = math.sinh(x - y) / (2 * math.sinh(x) * math.cosh(y))
    return Pair((1 + math.tanh(y) / math.tanh(x)) / 2, q)


def second_losue(eps_inf: float, eps_1: float) -> Pair:
    """Symmetric IRR after ``oue(eps_inf)``: the chain is ``oue(eps_1)``. Source: MATH section 5."""
    return second_grr_published(eps_inf, eps_1, 2)


def second_oue_after_oue(eps_inf: float, eps_1: float) -> Pair:
    """IRR with p2 = 1/2 after ``oue(eps_inf)``.

    With p_star = (1 + 2 q2)/4 and q_star = (q1 + 2 (1-q1) q2)/2, setting the odds ratio to b is a
    quadratic in q2; its coefficients are multiplied by e^-eps_1 (1 + e^-eps_inf).

    Raises
    ------
    ParameterError
        If even q2 = 0 spends less than eps_1: then e^eps_1 > (2 e^eps_inf + 1)/3.
    """
    u = math.exp(-eps_inf)
    lost, lost_first = -math.expm1(-eps_inf), -math.expm1(-eps_1)
    linear = lost + lost_first - math.expm1(-(eps_inf + eps_1))
    constant = _gap(eps_inf, eps_1) - u * lost_first / 2
    _reachable(constant, eps_1, (2 + u) / 3, eps_inf)
    root = math.sqrt(linear**2 - 8 * lost_first * constant)
    return Pair(0.5, 2 * constant / (linear + root))


def second_oue_after_sue(eps_inf: float, eps_1: float) -> Pair:
    """IRR with p2 = 1/2 after ``sue(eps_inf)``.

    As for `second_oue_after_oue`, with h = e^(-eps_inf/2), p1 = 1/(1+h), unknown 2 q2, and
    coefficients multiplied by e^-eps_1 (1 + h)^2.

    Raises
    ------
    ParameterError
        If even q2 = 0 spends less than eps_1: then e^eps_1 > (2 + h)/(h (1 + 2h)).
    """
    h, w = math.exp(-eps_inf / 2), math.exp(-eps_1)
    lost, lost_first = -math.expm1(-eps_inf), -math.expm1(-eps_1)
    linear = lost * (1 + w) + 2 * h * lost_first
    constant = 2 * _gap(eps_inf, eps_1) - h * lost_first
    _reachable(constant, eps_1, (2 + h) * h / (1 + 2 * h), eps_inf)
    root = math.sqrt(linear**2 - 4 * h * lost_first * constant)
    return Pair(0.5, constant / (linear + root))


def _gap(eps_inf: float, eps_1: float) -> float:
    """e^-eps_1 - e^-eps_inf, without cancellation."""
    return -math.exp(-eps_1) * math.expm1(eps_1 - eps_inf)


def _reachable(constant: float, eps_1: float, scaled_bound: float, eps_inf: float) -> None:
    """``scaled_bound`` is the largest e^eps_1 times e^-eps_inf."""
    if constant <= 0:
        bound = eps_inf + math.log(scaled_bound)
        raise ParameterError(
            f"eps_1 must be below {bound:.6g} for eps_inf = {eps_inf:.6g}, got {eps_1!r}: a second "
            "round that keeps a set bit half the time cannot spend more; lower eps_1 or use l-osue"
        )


# -- exact thresholds


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
    kept = b * (a + g - 2) - (g - 1)
    return kept / (kept + (g - 1) * (a - b))


def exact_second_grr_published(eps_inf: float, eps_1: float, g: int) -> Fraction:
    """p of `second_grr_published`, in exact arithmetic."""
    a, b = exp_below(Fraction(eps_inf)), exp_below(Fraction(eps_1))
    kept = a * b - 1
    return kept / (kept + (g - 1) * (a - b))


def table_channel(alone: SymbolChannel, m0: float | None) -> TableChannel:
    """One table whose cells are each at least as private as under ``alone``.

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
    contrast = (ratio - 1) / (ratio + g - 1) / _contrast(first)
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
        p_star, q_star = chained_bits(first, channel(unset))
        return p_star * (1 - q_star) <= ratio * (1 - p_star) * q_star

    return channel(bisect_left(range(SCALE // 2), True, key=is_within))


def chained_bits(first: BitChannel, second: BitChannel) -> tuple[Fraction, Fraction]:
    """Pr[bit 1 | set] and Pr[bit 1 | unset] after both rounds, exactly."""
    slope = second.p - second.q
    return second.q + first.p * slope, second.q + first.q * slope


def chained_symbols(
    first: SymbolChannel | TableChannel, second: SymbolChannel
) -> tuple[Fraction, Fraction]:
    """p_s and q_s of MATH section 3, exactly."""
    g = first.g
    p_s = first.p * second.p + (g - 1) * first.q * second.q
    return p_s, (1 - p_s) / (g - 1)


def _largest_keep(ratio: Fraction, g: int) -> int:
    """Largest T < 2^53 with T (g-1) / (2^53 - T) <= ratio."""
    return int(SCALE * ratio / (ratio + g - 1))


def _contrast(channel: SymbolChannel | TableChannel) -> Fraction:
    """p - q: what a chain multiplies."""
    return channel.p - channel.q
