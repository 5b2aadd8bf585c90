"""BiLOLOHA and OLOLOHA: a hash drawn once for ever, then two rounds of GRR over its g symbols."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from loloha import checks
from loloha.channels import SymbolChannel, TableChannel, symbol_channel, table_channel
from loloha.errors import ParameterError
from loloha.hashing import LinearHash, PrimeHash, default_family
from loloha.protocols.grr import SymbolChain
from loloha.protocols.hashed import (
    LARGEST_G,
    LEAST_SHARED,
    ChosenG,
    LocalHashing,
    least_variance_g,
    noise,
    shared_by,
    symbols_tried,
)

MOST_USERS = 1 << 53
JOINT = "joint"
MEMOS = ("independent", JOINT)


@dataclass(frozen=True, kw_only=True)
class Memoising(LocalHashing, SymbolChain):
    """Local hashing whose symbols are memoised: cell by cell, or in one table for life.

    Parameters
    ----------
    memo : {"independent", "joint"}
        "joint" draws the answers of all symbols together at enrolment (MATH section 15): the same
        accuracy, eps_1 and eps_inf, a far smaller cap; but one value that is exchanged for another
        costs up to the cap instead of eps_inf.
    m0 : float, optional
        For memo="joint", the probability that one symbol answers for all. By default changes
        show as they do for independent answers; 0 has the smallest cap, and changes show more.
    """

    memo: str = "independent"
    m0: float | None = None
    later: ClassVar[Mapping[str, Any]] = {"memo": "independent", "m0": None}

    def __post_init__(self) -> None:
        checks.choice("memo", self.memo, MEMOS)
        if self.m0 is not None:
            self._set("m0", checks.real("m0", self.m0, 0.0, 1.0, "leave it out for the usual one"))
            if self.memo != JOINT:
                raise ParameterError(
                    f"m0 must be left out for memo='independent', got {self.m0!r}; leave it out"
                )
        super().__post_init__()
        if self.memo != JOINT:
            return
        rest = self.symbols * self.first.q
        if self.m0 is not None and self.m0 >= rest:
            raise ParameterError(
                f"m0 must be below {rest:.6g}, all but the identity, got {self.m0!r}; leave it out"
            )
        cells, apart = self.encoding.memo_cells, self.encoding.memo_cells * self.eps_inf
        if self.cap > apart * (1 + 1e-9):
            raise ParameterError(
                f"memo must be 'independent' where one table spends more, {self.cap:.4g} against "
                f"{apart:.4g} over {cells} cells, got {self.memo!r}; leave it out or lower g or m0"
            )

    @classmethod
    def holding(
        cls,
        *,
        eps_1: float | None = None,
        eps_2: float | None = None,
        eps_inf: float | None = None,
        **params: Any,
    ) -> Self:
        """The protocol of least V* that holds two of the three numbers; the third follows.

        Parameters
        ----------
        eps_1, eps_2, eps_inf : float
            Exactly two of them: the loss of the first report, of any one round with all others
            known, of all reports of one value.
        **params
            As for the class; a g that is left out is searched for.

        Raises
        ------
        ParameterError
            If not two of them are given, eps_2 is not above eps_1, or a parameter is out of range.

        Notes
        -----
        A chain over g symbols multiplies lambda(eps) = (e^eps - 1)/(e^eps + g - 1), so
        lambda(eps_1) = lambda(eps_2) lambda(eps_inf). Source: MATH section 16.
        """
        given = {"eps_1": eps_1, "eps_2": eps_2, "eps_inf": eps_inf}
        held = {name: checks.eps(name, eps) for name, eps in given.items() if eps is not None}
        if len(held) != 2:
            raise ParameterError(
                "of eps_1, eps_2 and eps_inf two must be given, got "
                f"{', '.join(held) or 'none'}; leave one out"
            )
        if "eps_2" not in held:
            return cls(**{**params, **held})
        if held["eps_2"] <= held.get("eps_1", 0.0):
            raise ParameterError(
                f"eps_2 must be above eps_1 = {eps_1!r}, got {eps_2!r}; one round with all others "
                "known loses more than a first report alone"
            )
        tried = [(third(one.pop("symbols"), **held), one) for one in cls._candidates(params)]
        if not tried:
            raise ParameterError("g must leave something to choose from, got nothing; leave it out")
        low, high = checks.SMALLEST_EPS, checks.LARGEST_EPS
        beyond = [[eps for eps in one.values() if not low <= eps <= high] for one, _ in tried]
        if all(beyond):
            raise ParameterError(
                f"{' and '.join(held)} must leave the third budget in [{low:g}, {high:g}], got "
                f"{beyond[-1][0]:.4g}; move one of them"
            )
        made = [
            cls(**budgets, **one)  # type: ignore[arg-type]
            for (budgets, one), outside in zip(tried, beyond, strict=True)
            if not outside
        ]
        return min(made, key=lambda one: one.noise)

    @classmethod
    def _candidates(cls, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Parameters to try, each with its number of symbols."""
        yield {**params, "symbols": 2}

    @property
    def noise(self) -> float:
        """n V*."""
        return self.q_star * (1 - self.q_star) / self.contrast**2

    @cached_property
    def first_channel(self) -> SymbolChannel | TableChannel:
        alone = symbol_channel(self.eps_inf, self.symbols)
        return alone if self.memo != JOINT else table_channel(alone, self.m0)

    def spent(self, answers: int) -> float:
        if self.memo != JOINT or answers < 2:
            return super().spent(answers)
        # B_m = ln(1 + w g! / ((g-m)! u)), w = p1 - q1, u = g q1 - m0: by default q1 (g - 2 + g q1).
        p1, q1, g = *self.first, self.symbols
        if self.m0 is None:
            permuted = math.log(q1) + math.log(g - 2 + g * q1)
        else:
            permuted = math.log(g * q1 - self.m0)
        ways = sum(math.log(g - i) for i in range(answers))
        odds = math.log(p1 - q1) + ways - permuted
        loss = max(odds, 0.0) + math.log1p(math.exp(-abs(odds)))
        # A bound is rounded up.
        return max(self.eps_inf, loss * (1 + 2**-50))


@dataclass(frozen=True, kw_only=True)
class BiLOLOHA(Memoising):
    """LOLOHA with g = 2: the smallest cap and the fastest server. MATH section 4."""

    name: ClassVar[str] = "biloloha"
    summary: ClassVar[str] = "hash to g = 2 symbols, two rounds of GRR"

    @property
    def symbols(self) -> int:
        return 2


@dataclass(frozen=True, kw_only=True)
class OLOLOHA(ChosenG, Memoising):
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

    @classmethod
    def _candidates(cls, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if params.get("g") is not None:
            yield {**params, "symbols": params["g"]}
            return
        k, n = params["k"], params.get("n")
        names = [params["hash"]] if params.get("hash") else [LinearHash.name]
        if not params.get("hash") and n is not None:
            names.append(PrimeHash.name)
        for name in names:
            for g in symbols_tried(name, k):
                if name == PrimeHash.name and n and shared_by(name, k, g, n) < LEAST_SHARED:
                    continue
                yield {**params, "hash": name, "g": g, "symbols": g}

    def _best_g(self) -> int:
        if self.calibration == "published":
            return published_g(self.eps_inf, self.eps_1)
        return least_variance_g(self.k, self.eps_1, self.hash)


def third(g: int, **held: float) -> dict[str, float]:
    """eps_1 and eps_inf of a chain over g symbols, from two of eps_1, eps_2, eps_inf.

    With u = e^-eps, lambda_1 = lambda_2 lambda_inf solved for e^eps - 1: neither side cancels or
    overflows for eps in 1e-6..700. Source: MATH section 16.
    """
    # Rounded towards less loss: what is held is never passed.
    if "eps_inf" in held:
        u, v = math.exp(-held["eps_2"]), math.exp(-held["eps_inf"])
        odds = math.expm1(-held["eps_2"]) * math.expm1(-held["eps_inf"])
        eps_1 = math.log1p(odds / (u + v + (g - 2) * u * v))
        return {"eps_1": eps_1 * (1 - 1e-13), "eps_inf": held["eps_inf"]}
    u, v = math.exp(-held["eps_1"]), math.exp(-held["eps_2"])
    odds = math.expm1(-held["eps_1"]) * (1 + (g - 1) * v)
    eps_inf = math.log1p(odds / (u * math.expm1(held["eps_1"] - held["eps_2"])))
    return {"eps_1": held["eps_1"], "eps_inf": eps_inf * (1 + 1e-13)}


def published_g(eps_inf: float, eps_1: float) -> int:
    """The paper's closed form for the g of OLOLOHA, at most 2^20 (MATH section 3)."""
    # Multiplied by root + 1 - u^2, so that nothing cancels: root^2 - (1-u^2)^2 = 12 (r-u^2)(1-r).
    u, r = math.exp(-eps_inf), math.exp(eps_1 - eps_inf)
    lost = -math.expm1(-2 * eps_inf)
    root = math.sqrt(lost**2 - 12 * (r - u**2) * math.expm1(eps_1 - eps_inf))
    rule = 2 * (math.exp(eps_1) - u) / (root + lost)
    return 1 + max(1, round(min(rule, LARGEST_G - 1)))
