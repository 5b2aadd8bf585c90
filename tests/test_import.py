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


def test_what_a_user_is_shown_before_agreeing_needs_only_the_standard_library() -> None:
    loaded = loaded_by(
        "from loloha import OLOLOHA\n"
        "from loloha.campaign import Campaign, Labels, Schedule\n"
        "from loloha.sender import Collector, Sender, explain_all\n"
        "rules = OLOLOHA(k=2, eps_inf=2.0, eps_1=1.0)\n"
        "domain, hourly = Labels(('a', 'b')), Schedule(0, 3600)\n"
        "asked = Campaign(name='Hours', protocol=rules, domain=domain, schedule=hourly)\n"
        "text = explain_all([asked], limit=4.0)\n"
        "assert 'e^1 = 2.718' in text and 'e^2 = 7.389' in text and 'at most 4' in text, text"
    )
    assert foreign(loaded) == set()


def test_the_probe_sees_numpy() -> None:
    assert "numpy" in foreign(loaded_by("import numpy"))
