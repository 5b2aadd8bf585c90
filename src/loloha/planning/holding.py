"""Any two of the three numbers eps_1, eps_2 and eps_inf, for every protocol; the third follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loloha import checks
from loloha.checks import LARGEST_EPS, SMALLEST_EPS
from loloha.errors import ParameterError
from loloha.privacy.transcript import eps_2
from loloha.protocols import Protocol
from loloha.protocols.loloha import Memoising

_STEPS = 60


def check_held(**given: float | None) -> dict[str, float]:
    """The two numbers that are given, checked.

    Raises
    ------
    ParameterError
        If not two of them are given, one is out of range, or no protocol can hold both.
    """
    held = {name: checks.eps(name, eps) for name, eps in given.items() if eps is not None}
    if len(held) != 2:
        raise ParameterError(
            "of eps_1, eps_2 and eps_inf two must be given, got "
            f"{', '.join(held) or 'none'}; leave one out"
        )
    if "eps_2" not in held:
        checks.budgets(held["eps_inf"], held["eps_1"])
    elif held["eps_2"] <= held.get("eps_1", 0.0):
        raise ParameterError(
            f"eps_2 must be above eps_1 = {held['eps_1']!r}, got {held['eps_2']!r}; raise it"
        )
    return held


def hold(cls: type[Protocol], held: Mapping[str, float], params: Mapping[str, Any]) -> Protocol:
    """The protocol of this class that holds two numbers at least accuracy lost.

    Parameters
    ----------
    cls : type of Protocol
    held : mapping
        What `check_held` gives.
    params : mapping
        All other parameters.

    Raises
    ------
    ParameterError
        If it cannot hold both, whatever the third number is.
    """
    known = cls.__dataclass_fields__.keys()
    if not cls.longitudinal:
        return cls.from_params({**params, "eps": held.get("eps_1", held.get("eps_2"))})
    if issubclass(cls, Memoising):
        return cls.holding(**held, **params)
    if "eps_2" not in held or not {"eps_1", "eps_inf"} <= known:
        wanted = {name: eps for name, eps in held.items() if name in known}
        return cls.from_params({**params, **wanted})
    return _searched(cls, dict(held), dict(params))


def _searched(cls: type[Protocol], held: dict[str, float], params: dict[str, Any]) -> Protocol:
    """By bisection: eps_2 rises with eps_1 at a fixed eps_inf, and falls as eps_inf rises."""
    target = held.pop("eps_2")
    rising = "eps_inf" in held
    free = "eps_1" if rising else "eps_inf"
    low, high = (SMALLEST_EPS, held["eps_inf"]) if rising else (held["eps_1"], LARGEST_EPS)
    found: Protocol | None = None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        try:
            made = cls.from_params({**params, **held, free: middle})
        except ParameterError:
            # Beyond what a second round can reach: towards less of it.
            made = None
        if made is not None and eps_2(made) <= target:
            found = made
            low, high = (middle, high) if rising else (low, middle)
        else:
            low, high = (low, middle) if rising else (middle, high)
    if found is None:
        raise ParameterError(
            f"eps_2 must be within reach of {cls.name} with the other number held, got {target!r}; "
            "raise it"
        )
    return found
