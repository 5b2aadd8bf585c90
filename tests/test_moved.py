"""Names of 0.2.0 lead to the modules of today: the same objects, and one warning each."""

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import loloha
from loloha._moved import MOVED, NAMES, home
from loloha.protocols import REGISTRY
from loloha.rng import SimulationRng

PARTS = {
    "loloha.rules.errors": "loloha.errors",
    "loloha.rules.protocols.loloha": "loloha.protocols.table",
    "loloha.rules.campaign.scalar": "loloha.campaign.scalar",
    "loloha.rules.dyadic": "loloha_lab.dyadic.protocol",
    "loloha.study.population": "loloha.population.population",
    "loloha.rules.wire.arrow": "loloha.wire.columns",
    "loloha.device.agreement": "loloha.sender.agreement",
    "loloha.design.change.bits": "loloha.privacy.change.bits",
    "loloha.attacks.filtering": "loloha_lab.attacks.filtering",
    "loloha.study.datasets.column": "loloha.datasets.arrow_cells",
    "loloha.study.samplers.bit": "loloha.population.samplers.bit",
}
"""Modules of packages that moved, by their names then and now."""
NAMES_OF_0_2 = (Path(__file__).parent / "releases" / "names-0.2.0.txt").read_text().split()
"""Every module of 0.2.0 that has a successor, and what its API reference documented."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("old", [*(f"loloha.{name}" for name in MOVED), *PARTS])
def test_an_old_name_is_the_module_of_today(old: str) -> None:
    new = home(old)
    assert new is not None
    assert PARTS.get(old, new) == new
    today = importlib.import_module(new)
    assert importlib.import_module(old) is today
    assert (today.__name__, today.__spec__ and today.__spec__.name) == (new, new)


@pytest.mark.parametrize("old", ["loloha.attacks", "loloha.sender.file", "loloha.wire.arrow"])
def test_whoever_imports_an_old_name_is_warned_once(old: str) -> None:
    # As a user runs a script: only warnings that point to the script itself are shown.
    script = f"import {old}\nimport {old}"
    run = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )
    warned = [line for line in run.stderr.splitlines() if "DeprecationWarning" in line]
    expected = f"DeprecationWarning: {old} is {home(old)} since 0.3, and will go in 0.4"
    assert warned == [f"<string>:1: {expected}"]


def found(path: str) -> Any:
    """A module, or what is in one."""
    try:
        return importlib.import_module(path)
    except ImportError:
        module, _, name = path.rpartition(".")
        return getattr(found(module), name)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_name_of_0_2_0_is_still_found() -> None:
    assert len(NAMES_OF_0_2) > 500
    for path in NAMES_OF_0_2:
        assert found(path) is not None, path


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_old_import_changes_nothing_in_the_package_of_today() -> None:
    """A package may have a function and a module of one name: it offers the function."""
    script = """
import importlib, sys
import loloha
from loloha._moved import home
for name in sys.argv[1:]:
    package, _, part = home(name).rpartition(".")
    before = vars(importlib.import_module(package)).get(part)
    importlib.import_module(name)
    assert before is None or vars(sys.modules[package])[part] is before, name
"""
    names = [
        name
        for name in NAMES_OF_0_2
        if isinstance(found(name), ModuleType) and "." in (home(name) or "")
    ]
    assert "loloha.study.audit.audit" in names
    subprocess.run([sys.executable, "-W", "ignore", "-c", script, *names], check=True)


@pytest.mark.parametrize("old", NAMES)
def test_a_name_that_left_its_module_is_found_there_with_a_warning(old: str) -> None:
    module, _, name = old.rpartition(".")
    today, _, new = NAMES[old].partition(":")
    with pytest.warns(DeprecationWarning, match=f"{old} is {today}.{new or name} since") as said:
        old_one = getattr(importlib.import_module(module), name)
    assert [one.filename for one in said] == [__file__]
    assert old_one is getattr(importlib.import_module(today), new or name)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_groups_of_0_2_0_have_the_classes_that_they_had() -> None:
    groups = {name: found(name) for name in NAMES_OF_0_2 if "protocols" in name}
    held = {
        (name.rpartition(".")[2], cls.name)
        for name, group in groups.items()
        if name.rpartition(".")[2] in {"SymbolChain", "LocalHashing", "ChosenG", "TwoRound"}
        for cls in REGISTRY.own.values()
        if issubclass(cls, group)
    }
    lolohas, hashed = {"biloloha", "ololoha"}, {"blh", "olh"}
    expected = {
        "SymbolChain": lolohas | {"l-grr"},
        "LocalHashing": lolohas | hashed,
        "ChosenG": {"olh", "ololoha"},
        "TwoRound": lolohas | {"l-grr", "rappor", "l-osue", "l-oue", "l-soue"},
    }
    # New since.
    held.discard(("TwoRound", "onebit"))
    assert held == {(group, name) for group, names in expected.items() for name in names}


def test_a_name_is_public_or_moved() -> None:
    assert not {*loloha.__all__, *loloha._MODULES} & MOVED.keys()


def test_old_names_of_attributes_and_arguments_are_taken_with_a_warning() -> None:
    protocol = loloha.OLOLOHA(k=5, eps_inf=2.0, eps_1=1.0)
    tally = protocol.tally()
    tally.add(protocol.client(rng=SimulationRng(1)).report(2, round=0))
    simulation = loloha.simulate(protocol, [[0, 1], [2, 3]], rng=1)
    plan = loloha.plan(5, 900, 2.0, 1.0, objective="round")
    had: Callable[[], Any]
    for had, has in (
        (lambda: tally.reach().tolist(), tally.eligible().tolist()),
        (lambda: tally.estimate().reach.tolist(), tally.eligible().tolist()),
        (lambda: simulation.reach.tolist(), simulation.eligible.tolist()),
        (lambda: loloha.variance(protocol, 9, reach=3), loloha.variance(protocol, 9, eligible=3)),
        (lambda: plan.weigh, "round"),
        (lambda: plan.held, plan.budgets),
        (lambda: loloha.plan(5, 900, 2.0, 1.0, weigh="round").objective, "round"),
    ):
        with pytest.warns(
            DeprecationWarning, match=r" is (eligible|objective|budgets)=? since 0.3"
        ) as said:
            assert had() == has
        assert [one.filename for one in said] == [__file__]
