"""The list of planted bugs fits the sources, so that `make mutants` can be trusted to run."""

import ast
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


def test_no_bug_is_listed_twice() -> None:
    assert len({mutant.bug for mutant in PLANTED}) == len(PLANTED)
