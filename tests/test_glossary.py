"""The glossary names what exists, and no page uses a word that it retired."""

import dataclasses
import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [p for p in sorted(DOCS.glob("*.md")) if not p.name.endswith(("-table.md", "-tables.md"))]
NAMES = re.findall(
    r"^\| [^|]+ \| `([^`|]+)` \|", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE
)
# Words of earlier releases that practitioners stumbled on.
RETIRED = re.compile(
    # A member of the collector's JSON is called so until 0.4.
    r"contenders?|withheld(?!: str|=why|`:)|cr(?:y|ies) wolf|table for life|memo table"
    r"|one-round rules|many reports at a time|joint law|held against|told apart"
    # But for the table of old names.
    r"|\bfleets?\b(?!\": \"load-test)"
    # Not those of JavaScript.
    r"|(?-i:\bpromise[sd]?\b)(?! as fs)|\btwins?\b",
    re.IGNORECASE,
)


def found(name: str) -> Any:
    """What a dotted name leads to: a module, an attribute, or a field of a dataclass."""
    parts = name.split(".")
    thing: Any = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], 2):
        if dataclasses.is_dataclass(thing) and part in {f.name for f in dataclasses.fields(thing)}:
            return part
        if not hasattr(thing, part):
            importlib.import_module(".".join(parts[:number]))
        thing = getattr(thing, part)
    return thing


def test_every_name_of_the_glossary_exists() -> None:
    pytest.importorskip("typer", reason="the command line's extra is not installed")
    from typer.main import get_command

    from loloha.cli import app

    assert len(NAMES) > 25
    program: Any = get_command(app)
    for name in NAMES:
        first, *rest = shlex.split(name)
        if rest:
            assert (first, rest[0] in program.commands) == ("loloha", True), name
        else:
            found(name)


def test_a_name_that_does_not_exist_fails() -> None:
    for name in ("loloha.Estimate.frequency", "loloha.nowhere", "loloha.OLOLOHA.eps_3"):
        with pytest.raises((AttributeError, ImportError)):
            found(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_begins_with_its_readers(page: Path) -> None:
    text = re.sub(r"\A---\n.*?\n---\n+", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    if page.name in ("index.md", "cli.md", "api.md"):
        return
    assert re.match(r"# [^\n]+\n\nFor [a-z]", text), "begin with: For READERS: what the page gives"


def test_no_page_and_no_source_uses_a_retired_word() -> None:
    sources = [*ROOT.glob("src/**/*.py"), *ROOT.glob("clients/js/src/*.js")]
    found = {
        path.name: words
        for path in (ROOT / "README.md", *PAGES, *sources)
        # Old names lead on.
        if path.name != "_moved.py"
        and (words := {*RETIRED.findall(path.read_text(encoding="utf-8"))})
    }
    assert found == {}
