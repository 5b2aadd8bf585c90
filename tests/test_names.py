"""A class name says one thing, and so does the name of a module."""

import ast
from collections import defaultdict
from pathlib import Path

from loloha.cli.application import COMMANDS

SOURCES = Path(__file__).resolve().parents[1] / "src"

# Named after what they are of, a module of the same name elsewhere: the sampler of an encoding, the
# loops of a module, the picture of a result, a table of the docs, a protocol beside the registry.
NAMED_AFTER = {
    "loloha.population.samplers",
    "loloha.counting.compiled",
    "loloha.figure",
    "loloha_lab.tables",
    "loloha_lab.dyadic",
}


def test_no_class_name_stands_twice() -> None:
    places = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(SOURCES)))
    assert len(places) > 200
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_module_name_stands_twice() -> None:
    commands = {getattr(one, "__name__", "") or one.info.name for one in COMMANDS}
    places = defaultdict(set)
    for path in SOURCES.rglob("*.py"):
        package = ".".join(path.relative_to(SOURCES).parent.parts)
        command = package == "loloha.cli" and path.stem in commands
        # In each package, `base` is what the others of it derive from.
        if path.stem not in ("__init__", "base") and package not in NAMED_AFTER and not command:
            places[path.stem].add(package)
    assert len(places) > 200
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_names_say_what_they_hold_not_how_it_came() -> None:
    verbs = {"found", "told", "said", "held"}
    # Of release 0.2.0, columns of tables of the docs, and those who have a value beside the rest.
    kept = {
        "planning/recommendation.py", "planning/sizing.py", "privacy/shuffling.py",
        "server/total.py", "dyadic/simulation.py", "paper/execution.py", "tables/budget.py",
        "tables/coverage.py", "promises/window_error.py", "store/copy.py", "store/owner.py",
    }  # fmt: skip
    wrong = set()
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    pass
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    pass
                case _:
                    continue
            if name in verbs and "/".join(path.parts[-2:]) not in kept:
                wrong.add(f"{path.relative_to(SOURCES)}:{node.lineno} {name}")
    assert wrong == set()
