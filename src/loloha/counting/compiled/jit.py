"""The decorator that compiles all loops of this package."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

_log = logging.getLogger(__name__)


class _Compiling(event.Listener):  # type: ignore[misc, unused-ignore]
    """Logs once that machine code is made, not where it is read from the disk."""

    def __init__(self) -> None:
        self._has_told = False

    def on_start(self, event: Any) -> None:
        if not self._has_told:
            _log.info("compiling loops for this machine, the first time only: up to a minute")
        self._has_told = True

    def on_end(self, event: Any) -> None: ...


_register: Any = event.register
_register("numba:compile", _Compiling())


def njit(function: Callable[..., Any]) -> Any:
    """Compile on first use, outside the interpreter lock, and keep the machine code on disk."""
    # Where no folder can be written to, it is compiled anew in every process.
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # numba has no writable cache folder.
        return numba.njit(**options)(function)


@njit
def reciprocal(g: int) -> tuple[int, int]:
    """s and f such that r // g == r * f >> s for 0 <= r < 2^31, all within int64."""
    # f is 2^s / g rounded up; its error times r stays below 1/g (Granlund and Montgomery 1994).
    bits = 0
    while 1 << bits < g:
        bits += 1
    return 31 + bits, ((1 << (31 + bits)) + g - 1) // g
