"""What importing the library costs: applications embed the client."""

import json
import subprocess
import sys

import pytest

PROBE = """
import json, sys
before = set(sys.modules)
{statement}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded_by(statement: str) -> set[str]:
    """Modules that ``statement`` loads in a fresh interpreter."""
    run = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", PROBE.format(statement=statement)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout))


def foreign(modules: set[str]) -> set[str]:
    """Those that belong neither to Python nor to us."""
    ours = sys.stdlib_module_names | {"loloha"}
    return {name for name in modules if name.partition(".")[0] not in ours}


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("import loloha", id="library"),
        pytest.param("from loloha.client import Client", id="client"),
        pytest.param(
            "from loloha.client import Client; import loloha.protocols as registry", id="protocols"
        ),
    ],
)
def test_loads_only_the_standard_library(statement: str) -> None:
    loaded = loaded_by(statement)
    assert "loloha" in loaded
    assert foreign(loaded) == set()


def test_a_report_needs_only_the_standard_library() -> None:
    loaded = loaded_by(
        "import loloha; loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0).client().report(42, round=0)"
    )
    assert foreign(loaded) == set()


def test_the_probe_sees_numpy() -> None:
    assert "numpy" in foreign(loaded_by("import numpy"))
