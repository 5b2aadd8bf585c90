"""BiLOLOHA and OLOLOHA: a hash drawn once for ever, then two rounds of GRR over its g symbols."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from typing import ClassVar

from loloha.rules import checks
from loloha.rules.hashing import PrimeHash, default_family
from loloha.rules.protocols.grr import SymbolChain
from loloha.rules.protocols.hashed import (
    LARGEST_G,
    LEAST_SHARED,
    ChosenG,
    LocalHashing,
    least_variance_g,
    noise,
    shared_by,
)

MOST_USERS = 1 << 53


@dataclass(frozen=True, kw_only=True)
class BiLOLOHA(LocalHashing, SymbolChain):
    """LOLOHA with g = 2: the least worst-case loss and the fastest server. MATH section 4."""

    name: ClassVar[str] = "biloloha"
    summary: ClassVar[str] = "hash to g = 2 symbols, two rounds of GRR"

    @property
    def symbols(self) -> int:
        return 2


@dataclass(frozen=True, kw_only=True)
class OLOLOHA(ChosenG, SymbolChain):
    """LOLOHA with the g of least variance, or any g that is asked for. Source: MATH section 4.

    By default g is the integer of least exact V* among those that the hash family admits; with
    ``calibration="published"`` the paper's closed form.

    Parameters
    ----------
    n : int, optional
        Users expected. Where a hash is not asked for, and on average five of them share each key
        of the least-prime family, that family is taken if its V* is lower (MATH section 14). No
        part of the specification: what was chosen is.
    """

    n: InitVar[int | None] = None
    hints: ClassVar[frozenset[str]] = frozenset({"n"})

    name: ClassVar[str] = "ololoha"
    summary: ClassVar[str] = "hash to the g symbols of least variance, two rounds of GRR"

    def __post_init__(self, n: int | None) -> None:
        if n is not None:
            n = checks.integer("n", n, 1, MOST_USERS, "give the users you expect")
        self._set("_users", n)
        super().__post_init__()

    def _settle(self) -> None:
        asked = self.g
        super()._settle()
        users: int | None = getattr(self, "_users", None)
        if users is None or self.hash is not None or self.calibration == "published":
            return
        k, eps, prime = self.k, self.eps_1, PrimeHash.name
        g = least_variance_g(k, eps, prime) if asked is None else self.symbols
        usual = noise(default_family(k, self.symbols), k, self.symbols, eps)
        if noise(prime, k, g, eps) < usual and shared_by(prime, k, g, users) >= LEAST_SHARED:
            self._set("hash", prime)
            self._set("g", g)

    def _best_g(self) -> int:
        if self.calibration == "published":
            return published_g(self.eps_inf, self.eps_1)
        return least_variance_g(self.k, self.eps_1, self.hash)


def published_g(eps_inf: float, eps_1: float) -> int:
    """The paper's closed form for the g of OLOLOHA, at most 2^20 (MATH section 3)."""
    # Multiplied by root + 1 - u^2, so that nothing cancels: root^2 - (1-u^2)^2 = 12 (r-u^2)(1-r).
    u, r = math.exp(-eps_inf), math.exp(eps_1 - eps_inf)
    lost = -math.expm1(-2 * eps_inf)
    root = math.sqrt(lost**2 - 12 * (r - u**2) * math.expm1(eps_1 - eps_inf))
    rule = 2 * (math.exp(eps_1) - u) / (root + lost)
    return 1 + max(1, round(min(rule, LARGEST_G - 1)))
