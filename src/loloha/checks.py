"""Checks of public parameters, each with an error that says what to do."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Hashable, Mapping
from importlib import import_module
from numbers import Rational, Real
from typing import Any, SupportsIndex

from loloha.errors import DomainError, ExtraError, ParameterError
from loloha.report import LARGEST_ROUND

SMALLEST_EPS, LARGEST_EPS = 1e-6, 700.0

_LONGEST_SHOWN = 80


def shown(value: Any) -> str:
    """A public value as quoted in errors: its repr, shortened."""
    try:
        text = value[:_LONGEST_SHOWN] if isinstance(value, str | bytes) else value
        written = repr(text)
    except ValueError:
        # More digits than Python converts.
        return f"something of type {type(value).__name__}"
    cut = len(written) > _LONGEST_SHOWN or (text is not value and len(text) < len(value))
    return f"{written[:_LONGEST_SHOWN]}..." if cut else written


def integer(name: str, value: Any, low: int, high: int, advice: str) -> int:
    """``value`` as an int in low..high; accepts NumPy integers, refuses bool, floats, strings."""
    if type(value) is int and low <= value <= high:
        return value
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise ParameterError(
            f"{name} must be an integer in {low}..{high}, got {shown(value)}; {advice}"
        )
    return number


def real(name: str, value: Any, low: float, high: float, advice: str) -> float:
    """``value`` as a float in [low, high]; accepts NumPy numbers, refuses bool, strings, nan."""
    # A float of less precision stands for its shortest decimal: ``numpy.float32(0.3)`` for 0.3.
    try:
        plain = isinstance(value, (float, Rational))
        number = float(value if plain else str(value)) if _is_real(value) else math.nan
    except (OverflowError, ValueError):
        number = math.nan
    if not low <= number <= high:
        raise ParameterError(
            f"{name} must be a number in [{low:g}, {high:g}], got {shown(value)}; {advice}"
        )
    return number


def eps(name: str, value: Any) -> float:
    """A privacy parameter in the range where every formula is exact to double precision."""
    return real(name, value, SMALLEST_EPS, LARGEST_EPS, "sensible values lie in 0.1..10")


def budgets(eps_inf: Any, eps_1: Any) -> tuple[float, float]:
    """Bounds on all reports of one value and on the first report: the second is the smaller."""
    eps_inf, eps_1 = eps("eps_inf", eps_inf), eps("eps_1", eps_1)
    if eps_1 >= eps_inf:
        raise ParameterError(
            f"eps_1 must be below eps_inf = {eps_inf!r}, got {eps_1!r}; "
            "the paper uses 0.4 to 0.6 times eps_inf"
        )
    return eps_inf, eps_1


def level(value: Any, name: str = "level", usual: str = "0.95 is usual") -> float:
    """A probability strictly between 0 and 1."""
    number = float(value) if _is_real(value) else math.nan
    # Quantiles of 1 - level and (1 + level) / 2 are taken, which must not round to 1.
    if not (1 - number < 1 and (1 + number) / 2 < 1):
        raise ParameterError(f"{name} must be inside (0, 1), got {shown(value)}; {usual}")
    return number


def round_number(value: Any) -> int:
    """The number of a round, exact in every language."""
    return integer("round", value, 0, LARGEST_ROUND, "count rounds from 0")


def limit(value: Any, least: float, advice: str) -> float | None:
    """A hard limit on a loss, None for one that never binds."""
    number = math.inf if value is None else real("limit", value, least, math.inf, advice)
    return None if number == math.inf else number


def of_campaign(what: str, actual: str | None, wanted: str | None) -> None:
    """Refuse an object that belongs to another campaign than the given one."""
    if None not in (actual, wanted) and actual != wanted:
        raise ParameterError(
            f"{what} must be of campaign {wanted!r}, got those of {actual!r}; give that one"
        )


def counted(number: SupportsIndex, noun: str) -> str:
    """A number of things, in words: "1 round", "2 rounds"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def choice(name: str, value: Any, options: Collection[str]) -> str:
    """``value`` if it is one of ``options``."""
    if not isinstance(value, str) or value not in options:
        raise ParameterError(
            f"{name} must be one of {sorted(options)}, got {shown(value)}; choose one"
        )
    return value


def places(name: str, values: Collection[Any], known: Mapping[Any, int], whose: str) -> list[int]:
    """The bins of values, given as those of ``known``."""
    strangers = sum(not isinstance(value, Hashable) or value not in known for value in values)
    if strangers:
        raise ParameterError(
            f"{name} must be {whose}, got {counted(strangers, 'other')}; correct the list"
        )
    return [known[value] for value in values]


def value(candidate: Any, k: int) -> int:
    """A user's value as an int in 0..k-1; the error shows its type at most, never the value."""
    if type(candidate) is int and 0 <= candidate < k:
        return candidate
    try:
        number = None if isinstance(candidate, bool) else operator.index(candidate)
    except TypeError:
        number = None
    if number is None:
        raise DomainError(
            f"value must be an integer in 0..{k - 1}, got something of type "
            f"{type(candidate).__name__}; map labels to their position in the domain first"
        )
    if not 0 <= number < k:
        raise DomainError(
            f"value must be an integer in 0..{k - 1}, got one outside (not shown: it is private); "
            "check the domain, or map such values to a label for 'other'"
        )
    return number


def finite(number: Any) -> Any:
    """``number``, or None (JSON null) if it is infinite or missing."""
    return None if isinstance(number, float) and not math.isfinite(number) else number


def library(module: str, purpose: str, extra: str) -> Any:
    """Import a library that only some extras install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise missing(error.name or module, purpose, extra) from error


def missing(module: str, purpose: str, extra: str) -> ExtraError:
    """The error that says how to install what is not there."""
    package = module.partition(".")[0]
    return ExtraError(f"{package} must be installed to {purpose}; pip install 'loloha[{extra}]'")


def _is_real(value: Any) -> bool:
    # NumPy registers its timedelta as an integer.
    timely = getattr(getattr(value, "dtype", None), "kind", "") == "m"
    return isinstance(value, Real) and not isinstance(value, bool) and not timely
