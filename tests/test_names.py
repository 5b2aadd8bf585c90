"""A class name says one thing, and so does the name of a module."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loloha.cli.application import COMMANDS

SOURCES = Path(__file__).resolve().parents[1] / "src"
Names = dict[Path, list[tuple[str, Any]]]

# Named after what they are of, a module of the same name elsewhere: the sampler of an encoding, the
# loops of a module, the picture of a result, a table of the docs, a protocol beside the registry.
NAMED_AFTER = {
    "loloha.population.samplers",
    "loloha.counting.compiled",
    "loloha.figure",
    "loloha_lab.tables",
    "loloha_lab.dyadic",
}


@pytest.fixture(scope="module")
def names() -> Names:
    """Each name that a module gives, and where."""
    return {
        path.relative_to(SOURCES): [*_names(ast.parse(path.read_text(encoding="utf-8")))]
        for path in sorted(SOURCES.rglob("*.py"))
    }


def test_no_class_name_stands_twice(names: Names) -> None:
    places = defaultdict(list)
    for path, named in names.items():
        for name, node in named:
            if isinstance(node, ast.ClassDef):
                places[name].append(str(path))
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


def test_names_say_what_they_hold_not_how_it_came(names: Names) -> None:
    """`one` is a number, beside `zero` or `two`."""
    wrong = set()
    for path, named in names.items():
        verbs = {"found", "told", "said", "held"}
        if not {"zero", "two"} & {name for name, _ in named}:
            verbs.add("one")
        wrong |= {f"{path}:{node.lineno} {name}" for name, node in named if name in verbs}
    assert wrong == set()


# Words of our own for what the field has a word for: pmf or distribution, likelihood ratio, AUC,
# eligible users, stored or memoised, width or capacity, factory method, guarantee, method, copy,
# accuracy check.
JARGON = {
    "kept", "law", "odds", "area", "reach", "room", "door", "promise", "entrant", "contender",
    "twin", "verdict",
}  # fmt: skip
# A law is a property that all protocols have; the verdict is a member of 0.2.0's JSON.
ALLOWED = {("conform", "law"), ("errors.py", "law"), ("collector", "verdict")}


def test_names_are_words_of_the_field(names: Names) -> None:
    wrong = set()
    for where, named in names.items():
        for identifier in {where.stem, *(name for name, _ in named)}:
            words = {word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+", identifier)}
            jargon = (words | {word.removesuffix("s") for word in words}) & JARGON
            if any((where.parts[1], word) not in ALLOWED for word in jargon):
                wrong.add(f"{where} {identifier}")
    assert wrong == set()


def test_names_of_tests_are_words_of_the_field() -> None:
    """A law, which protocols obey, is one."""
    wrong = set()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8")):
            words = {word.removesuffix("s") for word in name.split("_")}
            if words & (JARGON - {"law"}):
                wrong.add(f"{path.name} {name}")
    assert wrong == set()


def _names(tree: ast.AST) -> Iterator[tuple[str, Any]]:
    """Each name that a module gives, but for attributes that lead on from one of release 0.2.0."""
    renamed = {
        id(node.targets[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "_moved.renamed"
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                if id(node) not in renamed:
                    yield name, node
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node
            case ast.AsyncFunctionDef(name=name):
                yield name, node
