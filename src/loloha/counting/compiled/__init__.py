"""Loops that NumPy cannot run at full speed, compiled by numba where it is installed.

Each function here is also written in plain NumPy, in the module that calls it; both give the same
numbers, so nothing but time depends on which one runs.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from types import ModuleType

WORTH_LOADING = 1 << 15
"""Elements of work from which loading numba (half a second) pays."""


def compiled(name: str, work: int) -> ModuleType | None:
    """The module ``name`` of this package; None if NumPy is enough, or numba is missing."""
    if work < WORTH_LOADING and f"{__name__}.jit" not in sys.modules:
        return None
    return _load(name)


@cache
def _load(name: str) -> ModuleType | None:
    if not has_numba():
        return None
    return importlib.import_module(f"{__name__}.{name}")


@cache
def has_numba() -> bool:
    """Whether numba is installed (the extra ``fast``)."""
    return importlib.util.find_spec("numba") is not None
