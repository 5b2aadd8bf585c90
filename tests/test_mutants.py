"""The list of planted bugs fits the sources, so that `make mutants` can be trusted to run."""

import ast
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from planted import PLANTED, Mutant


@pytest.mark.parametrize("mutant", PLANTED, ids=lambda mutant: mutant.bug)
def test_a_bug_can_be_planted(mutant: Mutant, root: Path) -> None:
    source = (root / "src" / "loloha" / mutant.file).read_text()
    assert source.count(mutant.old) == 1
    changed = source.replace(mutant.old, mutant.new)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


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
