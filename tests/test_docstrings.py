"""Public names have numpydoc, commands and routes their help; any other function has one line."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIRECTIVE = re.compile(r"auto(?:function|class|module):: (loloha[\w.]*)")
# What documented functions and attributes return, and a command's own.
RETURNED = {"loloha.audit.audit", "loloha.server.number"}


def _documented() -> set[tuple[str, str]]:
    """Module and first name of everything on the pages of the reference, with what it inherits."""
    found = set()
    for name in DIRECTIVE.findall((ROOT / "docs/api.md").read_text(encoding="utf-8")):
        module, _, last = name.rpartition(".")
        try:
            thing = importlib.import_module(name)
        except ModuleNotFoundError:
            thing = getattr(importlib.import_module(module), last)
        public = (
            [getattr(thing, key) for key in getattr(thing, "__all__", vars(thing))]
            if inspect.ismodule(thing)
            else [thing]
        )
        for part in public:
            for owner in getattr(part, "__mro__", (part,)):
                if hasattr(owner, "__qualname__"):
                    found.add((owner.__module__, owner.__qualname__))
    return found


def _functions(tree: ast.AST, above: str = "") -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _functions(node, f"{above}{node.name}.")
            if not isinstance(node, ast.ClassDef):
                yield f"{above}{node.name}", node


def test_internal_functions_have_one_line() -> None:
    documented, long = _documented(), []
    for path in sorted((ROOT / "src/loloha").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        module = module.removesuffix(".__init__")
        for name, node in _functions(ast.parse(path.read_text(encoding="utf-8"))):
            first = name.partition(".")[0]
            is_command = module.startswith("loloha.cli.") and not name.startswith("_")
            public = (module, first) in documented or module in RETURNED
            # A function within these answers a request: its docstring is in openapi.json.
            is_route = first in ("routes", "_add_operations") and "." in name
            if not (public or is_command or is_route):
                lines = len((ast.get_docstring(node) or "").splitlines())  # type: ignore[arg-type]
                long += [f"{module}:{name}"] * (lines > 1)
    assert len(documented) > 100
    assert long == []


def test_titles_of_sections_stand_alone() -> None:
    wrong = [
        path.name
        for path in sorted((ROOT / "src").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and re.search(r"\S -{4,}|-{4,} +\S", ast.get_docstring(node) or "")
    ]
    assert wrong == []
