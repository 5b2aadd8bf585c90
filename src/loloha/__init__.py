"""Private monitoring of evolving frequencies under local differential privacy.

Names load on first use: ``import loloha`` is cheap, and a device that only uses `Client` never
loads anything outside the standard library.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loloha.design import limits, privacy
    from loloha.design.planning import plan
    from loloha.design.sizing import plan_for
    from loloha.design.sweep import sweep
    from loloha.device.client import Client
    from loloha.errors import LolohaError
    from loloha.rules.dyadic import DyadicLH
    from loloha.rules.protocols import (
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
    from loloha.rules.report import Report
    from loloha.server import postprocess
    from loloha.server.estimate import Estimate, variance
    from loloha.server.mean import mean
    from loloha.server.tally import Tally
    from loloha.study import datasets
    from loloha.study.comparison import compare
    from loloha.study.population import simulate

__version__ = "0.2.1"

# Documented names of modules, and the room that each lives in: `loloha.client` is
# `loloha.device.client`, the same module under both names.
_ROOMS = {
    "rules": "campaign channels checks encodings hashing law protocols report rng",
    "rules.counting": "arrays compiled decode kernels",
    "device": "client sender",
    "server": "estimate postprocess tally",
    "design": "frontier limits loss planning privacy prospect sizing",
    "study": "attacks datasets dyadic evaluation figure paper population samplers",
}
_MODULES = {name: f"{room}.{name}" for room, names in _ROOMS.items() for name in names.split()} | {
    "sender.connection": "device.connection",
    "sender.device": "device.sender",
    "sender.file": "device.file",
    "sender.fleet": "study.fleet",
    "wire.arrow": "wire.columns",
}
_NAMES = {
    "Client": "client",
    "DyadicLH": "rules.dyadic",
    "Estimate": "estimate",
    "LolohaError": "errors",
    "Protocol": "protocols",
    "Report": "report",
    "Tally": "tally",
    "compare": "study.comparison",
    "mean": "server.mean",
    "plan": "planning",
    "plan_for": "sizing",
    "sweep": "design.sweep",
    "protocol": "protocols",
    "simulate": "population",
    "variance": "estimate",
}

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
    "DyadicLH",
    "Estimate",
    "LolohaError",
    "Protocol",
    "Report",
    "Tally",
    "compare",
    "datasets",
    "limits",
    "mean",
    "plan",
    "plan_for",
    "postprocess",
    "privacy",
    "protocol",
    "simulate",
    "sweep",
    "variance",
]
# All others are protocols.
_NAMES |= dict.fromkeys(set(__all__) - _NAMES.keys() - _MODULES.keys(), "protocols")


class _Documented:
    """Finds a module by its documented name, and hands out the one that lives in its room."""

    def __init__(self, home: str) -> None:
        self.home = home

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, rest = name.partition(".")
        if package != __name__:
            return None
        head = ".".join(rest.split(".")[:2])
        for known in (head, head.partition(".")[0]):
            if known in _MODULES:
                home = f"{__name__}.{_MODULES[known]}{rest[len(known) :]}"
                return ModuleSpec(name, _Documented(home))  # type: ignore[arg-type]  # a loader by methods
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.home)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # It ran when it was imported; the import system has just renamed its specification.
        module.__spec__ = self.spec


sys.meta_path.insert(0, _Documented)


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        home = _NAMES[name]
        found = getattr(importlib.import_module(f"{__name__}.{_MODULES.get(home, home)}"), name)
        globals()[name] = found
        return found
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'loloha' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
