"""Query parameters: those that a route knows, each once."""

from __future__ import annotations

from collections import Counter

from fastapi import Request  # noqa: TC002 - read by the framework

from loloha.collector.problem import Problem

_MANY = {"value"}


def known_parameters(request: Request) -> None:
    """Refuse what the route would ignore: a misspelt bound would show other rounds in silence.

    Raises
    ------
    Problem
        422 for a parameter that the route does not know, or that is there twice.
    """
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    counts = Counter(name for name, _ in request.query_params.multi_items())
    if set(counts) <= known and all(n == 1 or name in _MANY for name, n in counts.items()):
        return
    some = ", ".join(sorted(known)) or "none"
    raise Problem(422, f"query must hold each of {some} at most once; correct it", kind="invalid")
