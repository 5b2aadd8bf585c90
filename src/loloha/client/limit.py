"""The limit on a user's loss, checked at enrolment and never later. Standard library only.

A client that refused a report at its limit would show by its silence that the user moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, Context
from typing import Any

from loloha import checks
from loloha.errors import BudgetError, ParameterError
from loloha.protocols import OLOLOHA, BiLOLOHA, Protocol

_ROUNDING = 1 + 1e-12
"""Absorbs rounding alone: a limit of 0.3 covers 3 x 0.1."""
_MANY = 20
"""Number of responses beyond which no sensible limit covers all of them."""

ANEW = (
    "limit must cover all that can ever be spent, that of this state does not, or nothing tells: "
    "a client that refused at its limit would show when its user moved. Nothing is lost; ask the "
    "user for consent anew, with a higher limit, or none"
)


def covers(limit: float | None, amount: float) -> bool:
    """Whether this much may be spent under a limit; None is no limit."""
    return limit is None or amount <= limit * _ROUNDING


def total(amounts: Iterable[float], first: float = 0.0) -> float:
    """Their sum in order, bit for bit as in other languages and releases of Python."""
    # From Python 3.12 on `sum` compensates: a port could then refuse a limit that passes here.
    for amount in amounts:
        first += amount
    return first


def least(protocol: Protocol) -> float:
    """The loss that a new client commits: its cap, or one report if it has none."""
    return protocol.cap if protocol.longitudinal else protocol.asked_memo


def agreed(
    limit: Any, before: float, protocols: Sequence[Protocol], claims: Iterable[float] | None = None
) -> float | None:
    """A limit that covers what was committed before and what clients claim; None for no limit."""
    if limit is None:
        return None
    need = total(map(least, protocols) if claims is None else claims, before)
    try:
        number = checks.real("limit", limit, 0.0, math.inf, "")
    except ParameterError:
        number = math.nan
    if number > 0 and covers(number, need):
        return None if number == math.inf else number
    why = "one report must fit"
    if any(protocol.longitudinal for protocol in protocols):
        why = (
            "a client that refused at its limit would show when its user moved, so the limit must "
            "cover all that can ever be spent"
        )
    raise ParameterError(
        f"limit must be a number in [{upward(need)}, inf], got {checks.shown(limit)}; {why}"
        f"{_earlier(before)}. {_fitting(protocols)}"
    )


def upward(amount: float) -> str:
    """Six digits of an amount, rounded so that a limit of them covers it."""
    return f"{float(Context(6, ROUND_CEILING).create_decimal_from_float(amount / _ROUNDING)):g}"


def _earlier(before: float) -> str:
    return f", with the {upward(before)} of earlier enrolments" if before else ""


def _fitting(protocols: Sequence[Protocol]) -> str:
    """What each protocol can spend, and which others with the same budgets can spend less."""
    advice = []
    for protocol in dict.fromkeys(protocols):
        if not protocol.longitudinal:
            advice.append(f"{protocol.name} spends {upward(protocol.asked_memo)} with each report")
            continue
        fewer = [
            f"{name} {upward(cap)}" for name, cap in _alternatives(protocol) if cap < protocol.cap
        ]
        rather = f" (with the same eps_inf: {', '.join(fewer)})" if fewer else ""
        count = protocol.encoding.memo_cells
        small = ", too many for any small limit" if count > _MANY else ""
        advice.append(
            f"{protocol.name} keeps up to {count} answers{small}, and spends "
            f"{upward(protocol.cap)} with all of them{rather}"
        )
    return f"Agree to a higher limit, or to a campaign that spends less: {'; '.join(advice)}"


def _alternatives(protocol: Protocol) -> Iterable[tuple[str, float]]:
    """Protocols of the same budgets, by name, and their caps."""
    if not protocol.histogram:
        return
    eps_1 = min(protocol.asked_first, protocol.asked_memo / 2)
    k, eps_inf = protocol.k, protocol.asked_memo
    with suppress(ParameterError):
        # Drawn jointly, three cells have the smallest cap where eps_inf is at least 1.
        yield (
            "ololoha with g=3 and memo='joint'",
            OLOLOHA(k=k, eps_inf=eps_inf, eps_1=eps_1, g=3, memo="joint").cap,
        )
    own = protocol.get_params()
    if own.get("memo", "joint") != "joint":
        with suppress(ParameterError):
            joint = type(protocol).from_params({**own, "memo": "joint"})
            yield f"{protocol.name} with memo='joint'", joint.cap
    with suppress(ParameterError):
        yield "biloloha", BiLOLOHA(k=k, eps_inf=eps_inf, eps_1=eps_1).cap


def may_reset(
    limit: float, committed: float, protocols: Sequence[Protocol], known: float | None
) -> None:
    """Refuse new clients that a limit does not cover, in addition to what was committed."""
    need = total(map(least, protocols), committed)
    if known is None or not covers(limit, committed):
        raise BudgetError(ANEW)
    if covers(limit, need):
        return
    raise BudgetError(
        f"limit must cover {upward(need)} for a new user, with the {upward(committed)} of "
        f"enrolments so far, got {limit!r}; keep key and memo, or ask the user to accept a "
        "higher limit"
    )


def cost_of_reset(spent: float, protocols: Sequence[Protocol], *, wait: bool) -> str:
    """What a reset means, in a sentence to show."""
    count = len(protocols)
    whose = "Key, memo and sent reports"
    if count > 1:
        whose = f"Keys, memos and sent reports of {count} campaigns"
    cap = sum(protocol.cap for protocol in protocols)
    more = f"up to {cap:g} on top of it" if cap < math.inf else "more on top of it, without a cap"
    again = (
        "Rounds that were answered are not answered again."
        if wait
        else "A round that is answered again counts this user twice in it."
    )
    return (
        f"{whose} are forgotten. The {spent:g} spent so far stays spent; new "
        f"reports can spend {more}. The server keeps what it has already counted. {again}"
    )
