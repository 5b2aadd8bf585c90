"""Probabilities of one round and of the second one of a chain (MATH sections 2, 3, 5).

Floats, in forms that neither overflow nor cancel for eps from 1e-6 to 700.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from loloha.errors import ParameterError


class Pair(NamedTuple):
    """p = Pr[the truth], or Pr[bit 1 | set]; q = Pr[one given lie], or Pr[bit 1 | unset]."""

    p: float
    q: float


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


def table_loss(eps: float, g: int, m0: float | None, answers: int) -> float:
    """Loss of so many answers, at least 2, of one table of ``grr(eps, g)``, rounded up.

    B_m = ln(1 + (e^eps - 1) g! / ((g-m)! u)), u = g - m0/q: by default g - 2 + g q. At g = 2 that
    is 2 eps. Source: MATH section 15.
    """
    if g == 2 and m0 is None:
        return 2 * eps
    q = grr(eps, g).q
    rest = g - 2 + g * q if m0 is None else (g * q - m0) / q
    ways = math.fsum(map(math.log, range(g - answers + 1, g + 1)))
    # The terms do not cancel unless m0 is near g q; the error of their sum is that of the terms.
    terms = eps, math.log(-math.expm1(-eps)), ways, -math.log(rest)
    off = 2**-49 * (sum(map(abs, terms)) + g / rest)
    log_excess = math.fsum(terms)
    loss = max(log_excess, 0.0) + math.log1p(math.exp(-abs(log_excess)))
    # d loss is at most both d log_excess and loss d log_excess.
    return loss * (1 + 2**-50) + min(1.0, loss) * off


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
