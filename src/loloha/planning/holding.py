"""Any two of the three numbers eps_1, eps_2 and eps_inf, for every protocol; the third follows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from loloha import checks
from loloha.checks import LARGEST_EPS, SMALLEST_EPS
from loloha.errors import ParameterError
from loloha.hashing import LinearHash, PrimeHash, admissible_primes, least_prime
from loloha.privacy.transcript import eps_2
from loloha.protocols import Protocol
from loloha.protocols.choice import hides_keys
from loloha.protocols.table import LOLOHA

MOST_TRIED = 128
_STEPS = 60

Kind = TypeVar("Kind", bound=LOLOHA)


def check_fixed(**given: float | None) -> dict[str, float]:
    """The two numbers that are given, checked."""
    fixed = {name: checks.eps(name, eps) for name, eps in given.items() if eps is not None}
    if len(fixed) != 2:
        raise ParameterError(
            "two of eps_1, eps_2 and eps_inf must be given, got "
            f"{', '.join(fixed) or 'none'}; leave one out"
        )
    if "eps_2" not in fixed:
        checks.budgets(fixed["eps_inf"], fixed["eps_1"])
    elif fixed["eps_2"] <= fixed.get("eps_1", 0.0):
        raise ParameterError(
            f"eps_2 must be above eps_1 = {fixed['eps_1']!r}, got {fixed['eps_2']!r}; one round "
            "with all others known loses more than a first report alone"
        )
    return fixed


def hold(cls: type[Protocol], fixed: Mapping[str, float], params: Mapping[str, Any]) -> Protocol:
    """The most accurate protocol of this class with two of the numbers fixed."""
    known = cls.__dataclass_fields__.keys()
    if not cls.longitudinal:
        return cls.from_params({**params, "eps": fixed.get("eps_1", fixed.get("eps_2"))})
    if issubclass(cls, LOLOHA) and "eps_2" in fixed:
        return hold_chain(cls, fixed, params)
    if "eps_2" not in fixed or not {"eps_1", "eps_inf"} <= known:
        wanted = {name: eps for name, eps in fixed.items() if name in known}
        return cls.from_params({**params, **wanted})
    return _searched(cls, dict(fixed), dict(params))


def hold_chain(cls: type[Kind], fixed: Mapping[str, float], params: Mapping[str, Any]) -> Kind:
    """The LOLOHA of least V* that holds eps_2 and another number, as `hold`; g is searched for."""
    # A chain over g symbols multiplies lambda(eps) = (e^eps - 1)/(e^eps + g - 1), so
    # lambda(eps_1) = lambda(eps_2) lambda(eps_inf). Source: MATH section 16.
    tried = [(third(g, **fixed), rest) for g, rest in _candidates(cls, params)]
    low, high = SMALLEST_EPS, LARGEST_EPS
    beyond = [[eps for eps in budgets.values() if not low <= eps <= high] for budgets, _ in tried]
    if all(beyond):
        raise ParameterError(
            f"{' and '.join(fixed)} must leave the third budget in [{low:g}, {high:g}], got "
            f"{beyond[-1][0]:.10g}; move one of them"
        )
    made = [
        cls(**{**budgets, **rest})
        for (budgets, rest), outside in zip(tried, beyond, strict=True)
        if not outside
    ]
    return min(made, key=lambda protocol: protocol.noise)


def _candidates(
    cls: type[LOLOHA], params: Mapping[str, Any]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Numbers of symbols to try, each with the other parameters."""
    of_class: Any = cls.g
    if fixed := params.get("g") or of_class:
        yield fixed, params
        return
    k, n = params["k"], params.get("n")
    names = [params["hash"]] if params.get("hash") else [LinearHash.name]
    if not params.get("hash") and n is not None:
        names.append(PrimeHash.name)
    for name in names:
        for g in symbols_tried(name, k):
            if n and not params.get("hash") and not hides_keys(name, k, g, n):
                continue
            yield g, {**params, "hash": name, "g": g}


def symbols_tried(family: str, k: int) -> Iterable[int]:
    """All g worth trying where the loss of the first report is not known yet."""
    if family == LinearHash.name:
        return [g for g in admissible_primes(k) if g <= MOST_TRIED]
    most = min(least_prime(k), MOST_TRIED) if family == PrimeHash.name else MOST_TRIED
    return range(2, most + 1)


def third(g: int, **fixed: float) -> dict[str, float]:
    """eps_1 and eps_inf of a chain over g symbols, from two of eps_1, eps_2, eps_inf."""
    # With u = e^-eps, lambda_1 = lambda_2 lambda_inf solved for e^eps - 1: neither side cancels or
    # overflows for eps in 1e-6..700. Source: MATH section 16.
    # Rounded towards less loss, so that the given budgets are never exceeded.
    if "eps_inf" in fixed:
        u, v = math.exp(-fixed["eps_2"]), math.exp(-fixed["eps_inf"])
        product = math.expm1(-fixed["eps_2"]) * math.expm1(-fixed["eps_inf"])
        eps_1 = math.log1p(product / (u + v + (g - 2) * u * v))
        return {"eps_1": eps_1 * (1 - 1e-13), "eps_inf": fixed["eps_inf"]}
    u, v = math.exp(-fixed["eps_1"]), math.exp(-fixed["eps_2"])
    product = math.expm1(-fixed["eps_1"]) * (1 + (g - 1) * v)
    eps_inf = math.log1p(product / (u * math.expm1(fixed["eps_1"] - fixed["eps_2"])))
    return {"eps_1": fixed["eps_1"], "eps_inf": eps_inf * (1 + 1e-13)}


def _searched(cls: type[Protocol], fixed: dict[str, float], params: dict[str, Any]) -> Protocol:
    """By bisection: eps_2 rises with eps_1 at a fixed eps_inf, and falls as eps_inf rises."""
    target = fixed.pop("eps_2")
    rising = "eps_inf" in fixed
    free = "eps_1" if rising else "eps_inf"
    low, high = (SMALLEST_EPS, fixed["eps_inf"]) if rising else (fixed["eps_1"], LARGEST_EPS)
    best: Protocol | None = None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        try:
            made = cls.from_params({**params, **fixed, free: middle})
        except ParameterError:
            # Not attainable by a second round: take less.
            made = None
        if made is not None and eps_2(made) <= target:
            best = made
            low, high = (middle, high) if rising else (low, middle)
        else:
            low, high = (low, middle) if rising else (middle, high)
    if best is None:
        raise ParameterError(
            f"eps_2 must be attainable by {cls.name} with the other loss fixed, got {target!r}; "
            "raise it"
        )
    return best
