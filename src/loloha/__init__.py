"""Private monitoring of evolving frequencies under local differential privacy.

Names load on first use: ``import loloha`` is cheap, and a device that only uses `Client` never
loads anything outside the standard library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loloha import datasets, postprocess, privacy
    from loloha.client import Client
    from loloha.errors import LolohaError
    from loloha.estimate import Estimate, variance
    from loloha.planning import plan
    from loloha.population import simulate
    from loloha.protocols import (
        BLH,
        GRR,
        LGRR,
        LOSUE,
        LOUE,
        LSOUE,
        OLH,
        OLOLOHA,
        OUE,
        RAPPOR,
        SUE,
        BiLOLOHA,
        DBitFlipPM,
        Protocol,
        protocol,
    )
    from loloha.report import Report
    from loloha.tally import Tally

__version__ = "0.1.0"

_HOMES = {
    "Client": "client",
    "Estimate": "estimate",
    "LolohaError": "errors",
    "Protocol": "protocols",
    "Report": "report",
    "Tally": "tally",
    "plan": "planning",
    "protocol": "protocols",
    "simulate": "population",
    "variance": "estimate",
} | dict.fromkeys(
    (
        "BLH",
        "BiLOLOHA",
        "DBitFlipPM",
        "GRR",
        "LGRR",
        "LOSUE",
        "LOUE",
        "LSOUE",
        "OLH",
        "OLOLOHA",
        "OUE",
        "RAPPOR",
        "SUE",
    ),
    "protocols",
)
_MODULES = ("datasets", "postprocess", "privacy")

__all__ = [
    "BLH",
    "GRR",
    "LGRR",
    "LOSUE",
    "LOUE",
    "LSOUE",
    "OLH",
    "OLOLOHA",
    "OUE",
    "RAPPOR",
    "SUE",
    "BiLOLOHA",
    "Client",
    "DBitFlipPM",
    "Estimate",
    "LolohaError",
    "Protocol",
    "Report",
    "Tally",
    "datasets",
    "plan",
    "postprocess",
    "privacy",
    "protocol",
    "simulate",
    "variance",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = importlib.import_module(f"loloha.{_HOMES[name]}")
        found = getattr(home, name)
        globals()[name] = found
        return found
    if name in _MODULES:
        return importlib.import_module(f"loloha.{name}")
    raise AttributeError(f"module 'loloha' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
