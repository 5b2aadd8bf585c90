"""Private monitoring of evolving frequencies under local differential privacy.

Names load on first use: ``import loloha`` is cheap, and a device that only uses `Client` never
loads anything outside the standard library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from loloha import _moved

if TYPE_CHECKING:
    from loloha import datasets, postprocess, privacy
    from loloha.client import Client
    from loloha.errors import LolohaError
    from loloha.planning.planning import plan
    from loloha.planning.sizing import plan_for
    from loloha.planning.sweep import sweep
    from loloha.population.comparison import compare
    from loloha.population.population import simulate
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
        OneBit,
        Protocol,
        protocol,
    )
    from loloha.report import Report
    from loloha.server.estimate import Estimate, variance
    from loloha.server.mean import mean
    from loloha.server.panel import rolling
    from loloha.server.series import series
    from loloha.server.tally import Tally

__version__ = "0.3.0"

_HOMES = {
    "Client": "client",
    "Estimate": "server.estimate",
    "LolohaError": "errors",
    "Report": "report",
    "Tally": "server.tally",
    "compare": "population.comparison",
    "mean": "server.mean",
    "plan": "planning.planning",
    "plan_for": "planning.sizing",
    "rolling": "server.panel",
    "series": "server.series",
    "simulate": "population.population",
    "sweep": "planning.sweep",
    "variance": "server.estimate",
}
"""The module of each public name; those that are not here are protocols or modules."""
_MODULES = (
    "audit",
    "campaign",
    "channels",
    "checks",
    "client",
    "collector",
    "conform",
    "datasets",
    "encodings",
    "engines",
    "errors",
    "figure",
    "hashing",
    "planning",
    "population",
    "postprocess",
    "privacy",
    "protocols",
    "report",
    "reportlog",
    "rng",
    "sender",
    "server",
    "wire",
)

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
    "OneBit",
    "Protocol",
    "Report",
    "Tally",
    "compare",
    "datasets",
    "mean",
    "plan",
    "plan_for",
    "postprocess",
    "privacy",
    "protocol",
    "rolling",
    "series",
    "simulate",
    "sweep",
    "variance",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in __all__:
        home = importlib.import_module(f"{__name__}.{_HOMES.get(name, 'protocols')}")
        globals()[name] = public = getattr(home, name)
        return public
    return _moved.attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
