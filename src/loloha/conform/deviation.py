"""How the answer of a port differs from the one of this library."""

from __future__ import annotations

import math
from typing import Any

Difference = tuple[str, str | None]
"""What was checked, and how the port differs; None where it does not."""


def differs(got: Any, wanted: Any, answer: Any = None) -> str | None:
    """How an answer differs; None if it does not."""
    if got == wanted and isinstance(got, bool) is isinstance(wanted, bool):
        return None
    return f"expected {_short(wanted)}, got {_short(got if answer is None else answer)}"


def is_off(got: Any, wanted: float | None) -> str | None:
    """How a loss differs by more than logarithms do between languages; None if it does not."""
    if wanted is None or not isinstance(got, (int, float)):
        return differs(got, wanted)
    if math.isclose(got, wanted, rel_tol=1e-12):
        return None
    return f"expected {wanted}, got {_short(got)}"


def _short(plain: Any) -> str:
    shown = str(plain)
    return shown if len(shown) <= 300 else shown[:300] + " ..."
