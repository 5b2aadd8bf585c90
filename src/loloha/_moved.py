"""Names of 0.2.0 that moved: they lead to where things are now, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "attacks": "loloha_lab.attacks",
    "compiled": "loloha.counting.compiled",
    "decode": "loloha.counting.decode",
    "dyadic": "loloha_lab.dyadic",
    "estimate": "loloha.server.estimate",
    "evaluation": "loloha.population.evaluation",
    "frontier": "loloha.planning.frontier",
    "kernels": "loloha.counting.kernels",
    "limits": "loloha.planning.limits",
    "loss": "loloha.privacy.loss",
    "paper": "loloha_lab.paper",
    "prospect": "loloha.planning.prospect",
    "samplers": "loloha.population.samplers",
    "sizing": "loloha.planning.sizing",
    "tally": "loloha.server.tally",
    "sender.device": "loloha.sender.sender",
    "sender.file": "loloha.client.file",
    "sender.fleet": "loloha.population.fleet",
    "server.postprocess": "loloha.postprocess",
    "wire.arrow": "loloha.wire.columns",
    # The rooms of 0.2.0.
    "rules": "loloha",
    "rules.counting.arrays": "loloha.arrays",
    "device": "loloha.sender",
    "device.client": "loloha.client",
    "device.file": "loloha.client.file",
    "device.process": "loloha.client.process",
    "device.rounds": "loloha.client.rounds",
    "device.state": "loloha.client.state",
    "design": "loloha.privacy",
    "design.attributes": "loloha.planning.attributes",
    "design.frontier": "loloha.planning.frontier",
    "design.limits": "loloha.planning.limits",
    "design.planning": "loloha.planning",
    "design.prospect": "loloha.planning.prospect",
    "design.sizing": "loloha.planning.sizing",
    "design.sweep": "loloha.planning.sweep",
    "design.verdict": "loloha.planning.verdict",
    "design.privacy": "loloha.privacy",
    "study": "loloha.population",
    "study.attacks": "loloha_lab.attacks",
    "study.audit": "loloha.audit",
    "study.datasets": "loloha.datasets",
    "study.dyadic": "loloha_lab.dyadic",
    "study.figure": "loloha.figure",
    "study.paper": "loloha_lab.paper",
    "study.population": "loloha.population",
}
"""What a module of 0.2.0 is called now; of several entries that fit, the longest. Gone in 0.4."""


def home(name: str) -> str | None:
    """Where the module ``name`` of 0.2.0 is now; None for one that never was."""
    package, _, rest = name.partition(".")
    known = rest if package == "loloha" else ""
    while known and known not in MOVED:
        known = known.rpartition(".")[0]
    if not known:
        return None
    place = MOVED[known] + rest[len(known) :]
    # A room's module may have had a name of its own before.
    return home(place) or place


def attribute(name: str) -> Any:
    """What ``loloha.name`` led to in 0.2.0, with a warning.

    Raises
    ------
    AttributeError
        If there never was one.
    """
    place = "loloha_lab.dyadic" if name == "DyadicLH" else home(f"loloha.{name}")
    if place is None or "." in name:
        raise AttributeError(f"module 'loloha' has no attribute {name!r}")
    _warn(f"loloha.{name}", place, 4)
    module = importlib.import_module(place)
    return module.DyadicLH if name == "DyadicLH" else module


def _warn(old: str, new: str, level: int) -> None:
    warnings.warn(
        f"{old} is {new} since 0.3, and will go in 0.4", DeprecationWarning, stacklevel=level
    )


class _Finder:
    """Finds a module by its old name, and hands out the one of today.

    Before all others: they would find the file of a moved package's part, and run it a second time.
    """

    def __init__(self, place: str) -> None:
        self.place = place

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        place = home(name)
        if place is None:
            return None
        _warn(name, place, 3)
        return ModuleSpec(name, _Finder(place), is_package=True)  # type: ignore[arg-type]  # a loader by methods

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.place)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # It ran when it was imported; the import system has just renamed its specification.
        module.__spec__ = self.spec


sys.meta_path.insert(0, _Finder)
