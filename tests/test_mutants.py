"""The list of planted bugs fits the sources, so that `make mutants` can be trusted to run."""

import ast
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from planted import PLANTED, Mutant


@cache
def rewritten(path: Path) -> str:
    return ast.unparse(ast.parse(path.read_text())) + "\n"


@pytest.mark.parametrize("number", range(8))
def test_bugs_can_be_planted(number: int, root: Path) -> None:
    for mutant in PLANTED[number::8]:
        path, unsound = mutant.planted((root / "src").resolve())
        assert rewritten(path) != unsound, mutant.bug


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("g - 1", "g", "y = f(g, start='a')"),
        ('start = "a"', "start = b", "y = f(g - 1, start=b)"),
        ("return y", "", "pass"),
        ("x: int\ny = f(g - 1, start='a')", "x: str", "x: str"),
        ("def low(g, *, end=1): ...", "def low(g, *, end=2): ...", "def low(g, *, end=2):"),
    ],
)
def test_code_that_moved_and_was_laid_out_anew_is_found(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    source = "def low(g, *, end=1):\n  x: int\n  y = f((g\n - 1), start='a')  # why\n  return y\n"
    (tmp_path / "elsewhere.py").write_text(source)
    path, unsound = Mutant("bug", "gone.py", old, new, "").planted(tmp_path)
    assert path == tmp_path / "elsewhere.py"
    assert expected in unsound
    sound = ast.unparse(ast.parse(source)).splitlines()
    assert 0 < sum(line not in sound for line in unsound.splitlines()) <= 1


@pytest.mark.parametrize("source", ["a = b - c", "a = b + c\nd = b + c"])
def test_code_that_is_gone_or_stands_twice_is_an_error(tmp_path: Path, source: str) -> None:
    (tmp_path / "loloha").mkdir()
    (tmp_path / "loloha" / "one.py").write_text(source)
    with pytest.raises(LookupError, match="'lost'"):
        Mutant("lost", "one.py", "b + c", "b", "").planted(tmp_path)


def test_the_tests_that_catch_them_exist(root: Path) -> None:
    for mutant in PLANTED:
        files = [word for word in mutant.caught_by.split() if word.endswith(".py")]
        assert files
        assert all((root / "tests" / name).is_file() for name in files)


def alternatives(selection: str) -> Iterator[list[str]]:
    """The words of each alternative after -k."""
    words = shlex.split(selection)
    asked = words[words.index("-k") + 1] if "-k" in words else ""
    for alternative in asked.lower().split(" or "):
        yield [word.strip() for word in alternative.split(" and ")]


def test_each_selection_finds_a_test(request: pytest.FixtureRequest, root: Path) -> None:
    """A test that moved would leave its bug to nobody; nothing is collected twice for this."""
    config = request.config
    if config.option.keyword or any("::" in argument for argument in config.args):
        pytest.skip("run without a selection")
    found: dict[str, list[str]] = {}
    for item in request.session.items:
        name = item.path.relative_to(root / "tests").as_posix()
        found.setdefault(name, []).append(f"{name} {item.name}".lower())
    checked = 0
    for selection in {mutant.caught_by for mutant in PLANTED}:
        files = [word for word in shlex.split(selection) if word.endswith(".py")]
        if found.keys() >= set(files):
            names = [name for file in files for name in found[file]]
            for words in alternatives(selection):
                assert any(all(word in name for word in words) for name in names), selection
                checked += 1
    if not checked:
        pytest.skip("run together with the tests that the bugs name")


def test_no_bug_is_listed_twice() -> None:
    assert len({mutant.bug for mutant in PLANTED}) == len(PLANTED)
