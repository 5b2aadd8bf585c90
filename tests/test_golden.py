"""What others hold or compare changes only on purpose: `python -m golden` in tests/ writes it."""

import difflib

import pytest

from golden import FOLDER, GOLDEN


@pytest.mark.parametrize("name", GOLDEN)
def test_nothing_changed_by_accident(name: str) -> None:
    kept = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    made = GOLDEN[name]().splitlines()
    changed = list(difflib.unified_diff(kept, made, "kept", "made", lineterm="", n=2))
    assert not changed, "\n".join(changed[:60])
