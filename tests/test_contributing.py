"""The protocol of CONTRIBUTING, added word for word, gets every law and every path."""

from pathlib import Path

import pytest

from mutants import PASSED, Copy
from test_docs import blocks

# What iterates the registry, but for the vectors: those are CONTRIBUTING's fourth step.
LAWS = "test_conformance.py wire/test_wire.py"
SUITES = (
    f"{LAWS} population/test_exact_population.py population/test_generation.py "
    "collector/test_store.py engines/test_engines.py planning/test_planning.py"
)


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Copy:
    """Sources and tests, with the class in a file of its own and one line in the registry."""
    steps = (root / "CONTRIBUTING.md").read_text()
    (source,) = (block.text for block in blocks(steps) if "class MGRR" in block.text)
    copy = Copy(tmp_path)
    assert copy.holds_what_is_imported()
    home = tmp_path / "src" / "loloha" / "protocols"
    copy.write(home / "memoised.py", source)
    rows = (home / "table.py").read_text()
    changed = rows + "\nfrom loloha.protocols.memoised import MGRR\n\nOWN += (MGRR,)\n"
    copy.write(home / "table.py", changed)
    return copy


@pytest.mark.parametrize(
    ("suites", "least"), [(LAWS, 40), pytest.param(SUITES, 50, marks=pytest.mark.long)]
)
def test_a_protocol_that_is_added_as_written_passes_everything(
    copy: Copy, suites: str, least: int
) -> None:
    outcome = copy.test(f"{suites} -k 'm-grr or MGRR'")
    assert outcome.code == PASSED, outcome.output
    assert int(outcome.output.split(" passed")[0].split()[-1]) > least, outcome.output
