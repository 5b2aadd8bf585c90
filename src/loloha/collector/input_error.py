"""Errors of pydantic about an input, in the words of this project's errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WORDS = {
    "extra_forbidden": "must be left out, there is no such setting",
    "missing": "must be given",
}


def explained(wrong: Mapping[str, Any]) -> str:
    """One of ``errors()``: the name, and what it must be; nothing of what was sent."""
    name = str(wrong["loc"][-1]) if wrong["loc"] else "settings"
    message = wrong["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
    return f"{name} {_WORDS.get(wrong['type'], message)}"
