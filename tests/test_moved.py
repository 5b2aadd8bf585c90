"""Names of 0.2.0 lead to the modules of today: the same objects, and one warning each."""

import importlib
import subprocess
import sys

import pytest

from loloha._moved import MOVED, home

PARTS = {
    "loloha.rules.errors": "loloha.errors",
    "loloha.rules.protocols.loloha": "loloha.protocols.loloha",
    "loloha.rules.campaign.scalar": "loloha.campaign.scalar",
    "loloha.rules.dyadic": "loloha_lab.dyadic",
    "loloha.rules.wire.arrow": "loloha.wire.columns",
    "loloha.device.agreement": "loloha.sender.agreement",
    "loloha.design.change.bits": "loloha.privacy.change.bits",
    "loloha.attacks.filtering": "loloha_lab.attacks.filtering",
    "loloha.study.datasets.column": "loloha.datasets.column",
    "loloha.study.samplers.bit": "loloha.population.samplers.bit",
}
"""Modules of packages that moved, by their names then and now."""


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
