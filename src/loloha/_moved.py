"""Names of 0.2.0 that moved: they lead to where things are now, with a DeprecationWarning."""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

MOVED = {
    "attacks": "loloha_lab.attacks",
    "audit.command": "loloha.audit.device",
    "cli.device": "loloha.cli.report",
    "cli.live": "loloha.cli.deployment",
    "cli.fleet": "loloha.cli.load_test",
    "cli.folder": "loloha.cli.results_folder",
    "cli.source": "loloha.cli.input_table",
    "collector.desk": "loloha.collector.read_cache",
    "collector.document": "loloha.collector.openapi",
    "collector.form": "loloha.collector.result_document",
    "collector.guard": "loloha.collector.replay_guard",
    "collector.kept_reports": "loloha.collector.report_archive",
    "collector.label": "loloha.collector.label_search",
    "collector.store.cell": "loloha.collector.store.counts",
    "collector.share": "loloha.collector.quota",
    "collector.together": "loloha.collector.joint_upload",
    "compiled": "loloha.counting.compiled",
    "conform.difference": "loloha.conform.port",
    "conform.documents": "loloha.conform.suite",
    "conform.lives": "loloha.conform.histories",
    "conform.draws": "loloha.conform.suite",
    "datasets.column": "loloha.datasets.arrow_cells",
    "datasets.domain": "loloha.datasets.label_list",
    "datasets.state": "loloha.datasets.us_state",
    "decode": "loloha.counting.decode",
    "dyadic": "loloha_lab.dyadic",
    "estimate": "loloha.server.estimate",
    "engines.guard": "loloha.engines.replay",
    "evaluation": "loloha.population.evaluation",
    "frontier": "loloha.planning.frontier",
    "kernels": "loloha.counting.kernels",
    "law": "loloha.distribution",
    "limits": "loloha.planning.limits",
    "loss": "loloha.privacy.loss",
    "paper": "loloha_lab.paper",
    "paper.contender": "loloha_lab.paper.method",
    "planning.verdict": "loloha.planning.accuracy_check",
    "privacy.statement": "loloha.privacy.plain_words",
    "prospect": "loloha.planning.prospect",
    "samplers": "loloha.population.samplers",
    "sizing": "loloha.planning.sizing",
    "tally": "loloha.server.tally",
    "sender.device": "loloha.sender.sender",
    "sender.file": "loloha.client.file",
    "sender.fleet": "loloha.population.load_generator",
    "server.dyadic": "loloha_lab.dyadic.tally",
    "server.smoothing": "loloha.server.projection",
    "server.postprocess": "loloha.postprocess",
    "wire.arrow": "loloha.wire.columns",
    **{
        f"protocols.{family}": "loloha.protocols.table"
        for family in ("dbitflip", "grr", "hashed", "loloha", "oneshot", "two_round", "unary")
    },
    "protocols.block": "loloha.protocols.rounds",
    # The packages of 0.2.0.
    "rules": "loloha",
    "rules.counting.arrays": "loloha.arrays",
    "rules.hashing.prime": "loloha.hashing.family",
    "rules.hashing.peer": "loloha.hashing.xxhash",
    "rules.dyadic": "loloha_lab.dyadic.protocol",
    "device": "loloha.sender",
    "device.client": "loloha.client",
    "device.consent": "loloha.sender.consent_text",
    "device.dyadic": "loloha_lab.dyadic.client",
    "device.file": "loloha.client.file",
    "device.process": "loloha.client.fork",
    "device.rounds": "loloha.client.answered",
    "device.state": "loloha.client.state",
    "design": "loloha.privacy",
    "design.assignment": "loloha.privacy.labelling",
    "design.attributes": "loloha.planning.attributes",
    "design.dyadic": "loloha_lab.dyadic.guarantee",
    "design.frontier": "loloha.planning.frontier",
    "design.frontier_tables": "loloha_lab.tables.frontier",
    "design.holding": "loloha.planning.holding",
    "design.limits": "loloha.planning.limits",
    "design.pairs": "loloha.privacy.labelling",
    "design.planning": "loloha.planning",
    "design.prospect": "loloha.planning.prospect",
    "design.search": "loloha.planning.sizing",
    "design.sizing": "loloha.planning.sizing",
    "design.sweep": "loloha.planning.sweep",
    "design.verdict": "loloha.planning.accuracy_check",
    "design.privacy": "loloha.privacy",
    "study": "loloha.population",
    "study.attacks": "loloha_lab.attacks",
    "study.attacks.distinct": "loloha.population.distinct",
    "study.audit": "loloha.audit",
    "study.audit.binomial": "loloha.audit.audit",
    "study.audit.program": "loloha.audit.device",
    "study.budget_tables": "loloha_lab.tables.budget",
    "study.datasets": "loloha.datasets",
    "study.dyadic": "loloha_lab.dyadic",
    "study.fleet": "loloha.population.load_generator",
    "study.figure": "loloha.figure",
    "study.figure.axis": "loloha.figure.style",
    "study.paper": "loloha_lab.paper",
    "study.paper.contender": "loloha_lab.paper.method",
    "study.paper.results": "loloha_lab.paper.grid_results",
    "study.paper.table": "loloha_lab.paper.result_table",
    "study.parallel": "loloha.population.archive",
    "study.window_table": "loloha_lab.tables.window",
    "cli.reproduce": "loloha_lab.cli.reproduce",
}
"""New name of each module of 0.2.0; the longest matching entry counts. Gone in 0.4."""
NAMES = {
    "loloha.DyadicLH": "loloha_lab.dyadic",
    "loloha.client.Account": "loloha.client.state",
    "loloha.client.KEPT_ROUNDS": "loloha.client.state:STORED_ROUNDS",
    "loloha.distribution.exact_law": "loloha.distribution:exact_distribution",
    "loloha.planning.Candidate": "loloha.planning.planning",
    "loloha.planning.candidates": "loloha.planning.planning",
    "loloha.planning.prospects": "loloha.planning.planning",
    "loloha.privacy.Area": "loloha.privacy:AUC",
    "loloha.privacy.DyadicExplanation": "loloha_lab.dyadic",
    "loloha.privacy.change_area": "loloha.privacy:change_auc",
    "loloha.privacy.change.change_area": "loloha.privacy:change_auc",
    "loloha.privacy.link_area": "loloha.privacy:link_auc",
    "loloha.privacy.change.link_area": "loloha.privacy:link_auc",
    "loloha.protocols.table.ChosenG": "loloha.protocols.former",
    "loloha.protocols.table.LocalHashing": "loloha.protocols.former",
    "loloha.protocols.table.SymbolChain": "loloha.protocols.former",
}
"""Names that left a module that stayed: the module of today, and a new name. Gone in 0.4."""


def home(name: str) -> str | None:
    """Where the module ``name`` of 0.2.0 is now; None for one that never was."""
    package, _, rest = name.partition(".")
    known = rest if package == "loloha" else ""
    while known and known not in MOVED:
        known = known.rpartition(".")[0]
    if not known:
        return None
    place = MOVED[known] + rest[len(known) :]
    # A module of it may have had a name of its own before.
    return home(place) or place


def attribute(module: str, name: str) -> Any:
    """The object that was ``module.name`` in 0.2.0, with a warning."""
    old = f"{module}.{name}"
    if old in NAMES:
        module, _, new = NAMES[old].partition(":")
        _warn(old, f"{module}.{new or name}", 4)
        return getattr(importlib.import_module(module), new or name)
    place = home(old) if module == "loloha" and "." not in name else None
    if place is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    _warn(old, place, 4)
    return importlib.import_module(place)


def getter(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that names left."""
    return lambda name: attribute(module, name)


def renamed(old: str, new: str) -> Any:
    """An attribute or a method by its name of 0.2.0."""

    def get(self: Any) -> Any:
        _warn(f"{type(self).__name__}.{old}", new, 3)
        return getattr(self, new)

    return property(get)


def keywords(**renamed: str) -> Callable[[Function], Function]:
    """Takes arguments by their names of 0.2.0 too."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old in kwargs.keys() & renamed:
                _warn(f"{function.__name__}({old}=)", f"{renamed[old]}=", 3)
                kwargs[renamed[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return cast("Function", call)

    return decorate


def _warn(old: str, new: str, level: int) -> None:
    warnings.warn(
        f"{old} is {new} since 0.3, and will go in 0.4", DeprecationWarning, stacklevel=level
    )


class _Finder:
    """Finds a module by its old name and returns the new one.

    Before all others: they would find the file of a moved package's part, and run it a second time.
    """

    def __init__(self, old: str, place: str) -> None:
        self.old, self.place = old, place

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        place = home(name)
        if place is None:
            return None
        _warn(name, place, 3)
        return ModuleSpec(name, _Finder(name, place), is_package=True)  # type: ignore[arg-type]  # a loader by methods

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.place)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # It ran when it was imported; the import system has just renamed its specification.
        module.__spec__ = self.spec
        # A submodule must not replace a function of the same name in its package.
        for name, part in list(sys.modules.items()):
            old = f"{self.old}{name.removeprefix(self.place)}"
            if name.startswith(f"{self.place}.") and home(old) == name:
                sys.modules[old] = part


sys.meta_path.insert(0, _Finder)
