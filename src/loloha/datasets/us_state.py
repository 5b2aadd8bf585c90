"""The states whose person files the Census Bureau publishes."""

from __future__ import annotations

from typing import Any, NamedTuple

from loloha.datasets.dataset import shipped
from loloha.errors import ParameterError


class UsState(NamedTuple):
    """A state by its postal code, the number in its file's name, and its full name."""

    code: str
    fips: str
    name: str


STATES = {code: UsState(code, fips, name) for code, fips, name in shipped("us_states.csv")[1:]}


def find_state(state: Any) -> UsState:
    """Find a state by postal code or full name, whatever the case."""
    wanted = state.strip().lower() if isinstance(state, str) else None
    for place in STATES.values():
        if wanted in (place.code.lower(), place.name.lower()):
            return place
    raise ParameterError(
        f"state must be a US postal code or the full name of a state, got {state!r}; for example "
        "state='MT' or state='Montana'"
    )
