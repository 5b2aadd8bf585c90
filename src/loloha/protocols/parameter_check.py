"""Checks and defaults of the parameters of all protocols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loloha import checks
from loloha.errors import ParameterError
from loloha.hashing import FAMILIES, default_family, hash_family
from loloha.protocols.choice import LARGEST_G
from loloha.protocols.rounds import CALIBRATIONS

LARGEST_K = 1 << 24
JOINT = "joint"
MEMOS = ("independent", JOINT)
TARGETS = ("distribution", "mean")


def _m0(protocol: Any, m0: Any) -> float | None:
    if m0 is None:
        return None
    m0 = checks.real("m0", m0, 0.0, 1.0, "leave it out for the usual one")
    if protocol.memo != JOINT:
        raise ParameterError(
            f"m0 must be left out for memo='independent', got {m0!r}; leave it out"
        )
    return float(m0)


def _hash(protocol: Any, name: Any) -> str:
    chosen = default_family(protocol.k, protocol.g) if name is None else name
    # Refuse a family that does not exist for these sizes now, not at the first report.
    return hash_family(checks.choice("hash", chosen, FAMILIES), protocol.k, protocol.g).name


PARAMETERS: dict[str, Callable[[Any, Any], Any]] = {
    "k": lambda _, k: checks.integer("k", k, 2, LARGEST_K, "count the labels of the domain"),
    "eps": lambda _, eps: checks.eps("eps", eps),
    "eps_inf": lambda _, eps: checks.eps("eps_inf", eps),
    "eps_1": lambda protocol, eps: checks.budgets(protocol.eps_inf, eps)[1],
    "calibration": lambda _, name: checks.choice("calibration", name, CALIBRATIONS),
    "target": lambda _, target: checks.choice("target", target, TARGETS),
    "memo": lambda _, memo: checks.choice("memo", memo, MEMOS),
    "m0": _m0,
    "g": lambda protocol, g: checks.integer(
        "g", protocol.best_g() if g is None else g, 2, LARGEST_G, "leave it out for the best one"
    ),
    "hash": _hash,
    "b": lambda protocol, b: checks.integer(
        "b", protocol.k if b is None else b, 2, protocol.k, "use at most one bucket a value"
    ),
    "d": lambda protocol, d: checks.integer(
        "d", protocol.b if d is None else d, 1, protocol.b, "sample at most all the buckets"
    ),
}
"""How a parameter of this name is checked, or chosen where it is left out, in this order."""
