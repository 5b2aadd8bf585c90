"""pydantic's errors about input, in this project's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WORDS = {
    "extra_forbidden": "must be left out, there is no such setting",
    "missing": "must be given",
}


def explained(wrong: Mapping[str, Any]) -> str:
    """One of ``errors()``: the name, and what it must be; nothing of what was sent."""
    message = wrong["msg"].removeprefix("Value error, ").replace("Input should", "must")
    message = _WORDS.get(wrong["type"], message)
    *outer, name = wrong["loc"] or ("settings",)
    # For an element of a list, which has an index only.
    name = f"{outer[-1]}[{name}]" if isinstance(name, int) else name
    # For several fields together the message names them.
    return f"{name} {message}" if message.startswith("must ") else f"{name}: {message}"
