"""What others hold or compare changes only on purpose: `python -m golden` in tests/ writes it."""

import difflib
import json

import pytest

from golden import FOLDER, GOLDEN, plans


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name == "plans.json")) for name in GOLDEN],
)
def test_nothing_changed_by_accident(name: str) -> None:
    kept = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    made = GOLDEN[name]().splitlines()
    changed = list(difflib.unified_diff(kept, made, "kept", "made", lineterm="", n=2))
    assert not changed, "\n".join(changed[:60])


def test_no_small_plan_changed_by_accident() -> None:
    kept = json.loads((FOLDER / "plans.json").read_text(encoding="utf-8"))
    made = json.loads(plans(2))
    assert made == {asked: kept[asked] for asked in made}
