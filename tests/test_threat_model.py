"""Every test that the threat model names is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NAMED = re.findall(
    r"`(tests/[\w/]+\.py)::(test_\w+)`", (ROOT / "docs" / "threat-model.md").read_text()
)


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_what_holds_an_attack_is_tested(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_names_a_test() -> None:
    rows = [
        line
        for line in (ROOT / "docs" / "threat-model.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith(("| attack", "| event"))
    ]
    assert len(rows) > 20
    assert [row for row in rows if "`tests/" not in row] == []
