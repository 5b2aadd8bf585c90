"""Query parameters: those that a route knows, each once."""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Any

from fastapi import Request  # noqa: TC002 - read by the framework
from pydantic import BeforeValidator

from loloha.collector.problem import Problem

_MANY = {"value"}
_DIGITS = re.compile(r"0|-?[1-9][0-9]{0,18}")


def _digits(text: Any) -> Any:
    # Else "1_0", "00" and " 0" were numbers: several addresses of one thing.
    if isinstance(text, str) and not _DIGITS.fullmatch(text):
        raise ValueError("must be an integer, in digits without zeros in front")
    return text


Whole = Annotated[int, BeforeValidator(_digits)]
"""An integer of a path or query, written in the one way that it has."""


def known_parameters(request: Request) -> None:
    """Refuse what the route would ignore: a misspelt bound would show other rounds in silence."""
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    counts = Counter(name for name, _ in request.query_params.multi_items())
    if set(counts) <= known and all(n == 1 or name in _MANY for name, n in counts.items()):
        return
    some = ", ".join(sorted(known)) or "none"
    raise Problem(422, f"query must hold each of {some} at most once; correct it", kind="invalid")
