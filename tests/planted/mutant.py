"""Bugs to plant one by one, each with the tests that must see it; `mutants.py` runs them."""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """A bug: where the sources hold ``old``, an expression or statements, they are to hold ``new``.

    Syntax trees are compared, so comments, quotes and line breaks are free. What no longer stands
    once in its file, below src/loloha, is looked for in all sources.
    """

    bug: str
    file: str
    old: str
    new: str
    caught_by: str
    """Arguments of pytest, below tests/."""

    def planted(self, sources: Path) -> tuple[Path, str]:
        """The file that gets the bug, and its text then."""
        old, new = _parts(self.old, self.new)
        home = (sources / "loloha" / self.file).resolve()
        for files in ([home] if home.is_file() else [], sources.rglob("*.py")):
            texts = {path: path.read_text() for path in files}
            trees = {path: ast.parse(text) for path, text in texts.items() if _may_hold(text, old)}
            found = [(path, place) for path in trees for place in _places(trees[path], old)]
            if len(found) == 1:
                ((path, (node, field, start)),) = found
                _put(new, node, field, slice(start, start + len(old)))
                return path, ast.unparse(trees[path]) + "\n"
        raise LookupError(
            f"{self.file}, or all sources, must hold the old code of {self.bug!r} once"
        )


def _parts(old: str, new: str) -> tuple[list[Any], list[Any]]:
    """Both texts as one expression, one argument with its name, or any number of statements."""
    parts = [ast.parse(textwrap.dedent(text)).body for text in (old, new)]
    if all(len(part) == 1 and isinstance(part[0], ast.Expr) for part in parts):
        return [parts[0][0].value], [parts[1][0].value]
    return parts[0], parts[1]


def _may_hold(text: str, wanted: list[Any]) -> bool:
    """Whether all names are there: much faster than to read the syntax of every file."""
    nodes = [node for part in wanted for node in ast.walk(part)]
    names = {getattr(node, "id", None) or getattr(node, "attr", None) for node in nodes}
    return names - {None} <= {*re.findall(r"\w+", text)}


def _places(tree: ast.AST, wanted: list[Any]) -> Iterator[tuple[Any, str, int]]:
    """Where these stand one after another: the node above, its field, and the index in a list."""
    for node in ast.walk(tree):
        for field, child in ast.iter_fields(node):
            children = child if isinstance(child, list) else [child]
            for start in range(len(children) - len(wanted) + 1):
                if _same(children[start : start + len(wanted)], wanted):
                    yield node, field, start


def _same(one: Any, other: Any) -> bool:
    """Whether two trees are equal; a function whose body is ``...`` is compared by its head."""
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, ast.keyword) and isinstance(other, ast.Assign):
        return _same(ast.Name(one.arg), other.targets[0]) and _same(one.value, other.value)
    if type(one) is not type(other) or not isinstance(one, ast.AST):
        return type(one) is type(other) and one == other
    if _is_head(other):
        fields = ["name", "args", "returns"]
    else:
        # Whether a name is read or written is known from where it stands.
        fields = [field for field in one._fields if field != "ctx"]
    return all(_same(getattr(one, field), getattr(other, field)) for field in fields)


def _is_head(node: Any) -> bool:
    return isinstance(node, ast.FunctionDef) and ast.unparse(node.body[0]) == "..."


def _put(new: list[Any], node: Any, field: str, where: slice) -> None:
    """Replace what was found."""
    if not isinstance(getattr(node, field), list):
        setattr(node, field, new[0])
        return
    (first, *_) = found = getattr(node, field)[where]
    if isinstance(first, ast.keyword):
        new = [ast.keyword(new[0].targets[0].id, new[0].value)]
    elif new and _is_head(new[0]):
        first.args = new[0].args
        new = found
    getattr(node, field)[where] = new or [ast.Pass()]


CLIENT, HASHING, CHANNELS = (
    "client/test_client.py",
    "hashing/test_hashing.py",
    "channels/test_channels.py",
)
TALLY, PROTOCOLS, ENCODINGS = (
    "server/test_tally.py",
    "protocols/test_protocols.py",
    "encodings/test_encodings.py",
)


def law(name: str) -> str:
    """The conformance suite's law of this name, on all variants."""
    return f"test_conformance.py -k {name}"


POPULATION_LAW, POPULATION = "population/test_exact_population.py", "population/test_population.py"
DRAWS = "population/samplers/test_draws.py"
