"""Variants of LOLOHA, with any g, hash family and memo: those of little error and least cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from loloha import checks
from loloha.errors import ParameterError
from loloha.hashing import AffineHash, LinearHash, PrimeHash
from loloha.planning.holding import symbols_tried, third
from loloha.planning.prospect import REPORTS_OF_A_CHANGE, Prospect, prospect
from loloha.privacy.change import change_auc
from loloha.privacy.transcript import eps_2
from loloha.protocols import OLOLOHA, Protocol
from loloha.protocols.choice import hides_keys, noise, symbols_near
from loloha.protocols.parameter_check import MEMOS
from loloha.protocols.realised import NEAR

CHOSEN = (LinearHash.name, PrimeHash.name, AffineHash.name)
"""Families to choose from; xxHash only reads other tools' reports."""

_WEIGHTS: dict[str, Callable[[Protocol], float]] = {
    "cap": lambda protocol: protocol.cap,
    "round": eps_2,
    "change": lambda protocol: _change(protocol),
}


def _change(protocol: Protocol) -> float:
    shown = change_auc(protocol, REPORTS_OF_A_CHANGE)
    return math.inf if shown is None else shown.auc


def variants(
    k: int,
    n: int,
    fixed: Mapping[str, float],
    *,
    hash: str | None,
    least: float,
    as_good: float,
    objective: str,
    **options: Any,
) -> Iterator[Prospect]:
    """The OLOLOHA of least V*, and of each memo the best among those that err little more."""
    families = CHOSEN if hash is None else (hash,)
    tried = sorted(_tried(k, fixed, families), key=lambda candidate: candidate[0])
    if hash is None:
        tried = [
            candidate
            for candidate in tried
            if hides_keys(candidate[1]["hash"], k, candidate[1]["g"], n)
        ]
    if not tried:
        return

    def row(protocol: OLOLOHA) -> Prospect:
        label = f"{protocol.name} {protocol.hash} g={protocol.g}"
        label += f" {protocol.memo}" * protocol.joint
        budgets: dict[str, Any] = {**fixed, **options}
        return prospect(protocol, n, label=label, **budgets)

    best = row(OLOLOHA(k=k, **tried[0][1]))
    yield best
    # V* is the square of the error, up to a common factor.
    most = (as_good * min(least, best.error_one) / best.error_one) ** 2 * tried[0][0]
    near = [params for candidate, params in tried if candidate <= most * (1 + 1e-12)]
    near.sort(key=lambda params: (params["g"], families.index(params["hash"])))
    if "eps_2" not in fixed or objective == "change":
        near = _fewest(near)
    lowest = math.inf
    for memo in MEMOS:
        made = [rival for params in near if (rival := _made(k, memo, params)) is not None]
        weights = [_WEIGHTS[objective](protocol) for protocol in made]
        # Joint responses have a price: their gain must exceed rounding.
        if min(weights, default=math.inf) < lowest * (1 - NEAR):
            lowest = min(weights)
            tied = [
                row(protocol)
                for protocol, weight in zip(made, weights, strict=True)
                if weight <= lowest * (1 + NEAR)
            ]
            yield min(
                tied, key=lambda candidate: (candidate.report_bytes, candidate.server_operations)
            )


def _fewest(near: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each family the fewest symbols, and the fewest from three on, of rows in their order."""
    # Where eps_1 and eps_inf are the same for all, more symbols spend more: the cap is g eps_inf
    # or, of one table and from three symbols on, ln(1 + (a-1) g! / (g - 2 + g/(a+g-1))), which
    # rises with g; and e^eps_2 is linear in g. A change shows more as well, as far as was tried.
    fewest: dict[tuple[str, bool], dict[str, Any]] = {}
    for params in near:
        fewest.setdefault((params["hash"], params["g"] > 2), params)
    return list(fewest.values())


def _made(k: int, memo: str, params: Mapping[str, Any]) -> OLOLOHA | None:
    """None where one table is refused, since it spends more than answers of their own."""
    with suppress(ParameterError):
        return OLOLOHA(k=k, memo=memo, **params)
    return None


def _tried(
    k: int, fixed: Mapping[str, float], families: tuple[str, ...]
) -> Iterator[tuple[float, dict[str, Any]]]:
    """n V* and parameters of every g of every family."""
    low, high = checks.SMALLEST_EPS, checks.LARGEST_EPS
    for family in families:
        if "eps_2" in fixed:
            symbols = symbols_tried(family, k)
        else:
            symbols = symbols_near(family, k, fixed["eps_1"])
        for g in symbols:
            budgets = third(g, **fixed) if "eps_2" in fixed else dict(fixed)
            if all(low <= eps <= high for eps in budgets.values()):
                # Skip families that do not exist for these sizes.
                with suppress(ParameterError):
                    params = {"hash": family, "g": g, **budgets}
                    yield noise(family, k, g, budgets["eps_1"]), params
