"""A class name says one thing."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src"


def test_no_class_name_stands_twice() -> None:
    places = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(SOURCES)))
    assert len(places) > 200
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
