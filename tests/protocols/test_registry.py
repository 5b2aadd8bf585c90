"""Protocols of installed packages: known everywhere, asked for only where they are needed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loloha.conform import laws
from test_docs import blocks

POINTS = """[loloha.protocols]
m-grr = memoised:MGRR
grr = memoised:MGRR
other = memoised:MGRR
absent = memoised:Absent
no-protocol = memoised:SYMBOLS
"""

EVERYWHERE = """
import json, sys, tempfile, warnings
import numpy as np
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    import loloha
    from loloha.protocols import REGISTRY
    names = list(REGISTRY)
from loloha.collector.store import Store
from loloha.collector.terms import Terms
from loloha.engines import tally
from loloha.reportlog import ReportLog, generate
from loloha.campaign import Campaign, Labels, Schedule
from loloha.wire import encode
from loloha.wire.batch import Reader

protocol = loloha.protocol("m-grr", k=5, eps_inf=3.0)
client = protocol.client()
report = client.report(2, round=0)
restored = loloha.Client.from_dict(json.loads(json.dumps(client.to_dict())))
assert restored.protocol == protocol
campaign = Campaign(name="c", protocol=protocol, domain=Labels(tuple("abcde")),
                    schedule=Schedule(0, 60))
assert Campaign.from_json(campaign.to_json()) == campaign
batch = Reader(campaign).read_json(encode(campaign, report, round=0, reporter=client.reporter(0)))
assert not batch.refusals
folder = tempfile.mkdtemp()
values = np.arange(20)[:, None] % 5
log = ReportLog(folder, protocol)
generate(log, values, rng=1)
counted = [one.tally.n for one in tally(log, engine="local")]
store = Store("sqlite:///" + folder + "/store.db")
terms = Terms(late_seconds=0, early_seconds=0, minimum_cohort=1)
store.create(campaign, terms, token=None, now=0)
store.close()
store = Store("sqlite:///" + folder + "/store.db")
kept = [store.campaign(one).campaign.protocol == protocol for one in store.fingerprints()]
rows = [row.name for row in loloha.plan(5, 1000, 3.0, 1.0).rows]
simulated = int(loloha.simulate(protocol, values, rng=1).n[0])
print(json.dumps({"names": names, "counted": counted, "kept": kept, "rows": rows,
                  "simulated": simulated, "state": client.to_dict(),
                  "warned": [str(one.message) for one in warned]}))
"""

ON_A_DEVICE = """
import sys
from loloha.client import Client
from loloha.protocols import protocol
Client.from_dict(protocol("grr", k=5, eps=1.0).client().to_dict())
print("memoised" in sys.modules, "importlib.metadata" in sys.modules)
"""

WITHOUT = """
import json, sys
import loloha
try:
    loloha.Client.from_dict(json.loads(sys.argv[1]))
except loloha.LolohaError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an installed package: CONTRIBUTING's class, and entry points good and bad."""
    folder = tmp_path_factory.mktemp("site")
    root = Path(__file__).resolve().parents[2]
    steps = (root / "CONTRIBUTING.md").read_text()
    (source,) = (block.text for block in blocks(steps) if "class MGRR" in block.text)
    (folder / "memoised.py").write_text(source)
    info = folder / "loloha_memoised-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loloha-memoised\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    return folder


def environment(*paths: Path) -> dict[str, str]:
    """Variables of a process that imports from these; plugins load longer than its tests run."""
    path = os.pathsep.join(map(str, paths))
    return os.environ | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def run(script: str, *arguments: str, path: Path | None = None) -> str:
    sources = [Path(__file__).resolve().parents[2] / "src", *([path] if path else [])]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment(*sources),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def told(installed: Path) -> Any:
    return json.loads(run(EVERYWHERE, path=installed))


def test_an_installed_protocol_is_known_on_every_path(told: Any) -> None:
    assert told["names"].count("m-grr") == told["rows"].count("m-grr") == 1
    assert told["names"][-1] == "m-grr", "those of this package come first"
    assert told["counted"] == [20]
    assert told["simulated"] == 20
    assert told["kept"] == [True]


def test_what_cannot_be_used_is_left_out_and_named(told: Any) -> None:
    left = {text.split("'")[1]: text for text in told["warned"]}
    assert left.keys() == {"grr", "other", "absent", "no-protocol"}
    assert all("of loloha-memoised is left out" in text for text in left.values())
    assert "AttributeError" in left["absent"]
    assert "not a subclass of loloha.Protocol" in left["no-protocol"]


def test_a_device_with_a_protocol_of_this_package_looks_for_no_other(installed: Path) -> None:
    assert run(ON_A_DEVICE, path=installed).split() == ["False", "False"]


def test_a_state_of_a_protocol_that_is_gone_says_what_to_install(told: Any) -> None:
    said = run(WITHOUT, json.dumps(told["state"]))
    assert said.startswith("StateError")
    assert "'m-grr'" in said
    assert "install" in said
    assert "damaged" not in said


def test_the_command_line_knows_it(installed: Path) -> None:
    command = "import sys; from loloha.cli import main; sys.exit(main(sys.argv[1:]))"
    listed = json.loads(
        run(
            f"import warnings; warnings.simplefilter('ignore'); {command}",
            "protocols",
            "--json",
            path=installed,
        )
    )
    assert {"m-grr", "grr"} <= {row["name"] for row in listed}


@pytest.mark.long
def test_the_conformance_suite_tries_it(installed: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    script = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    suite = str(root / "tests" / "test_conformance.py")
    chosen = "m-grr and (is_a_value or first_report_loses)"
    quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning"]
    said = run(script, suite, "-k", chosen, *quiet, path=installed)
    assert int(said.split(" passed")[0].split()[-1]) >= 3, said


def own_tests(folder: Path) -> Any:
    """The tests that CONTRIBUTING gives a package, run where only the two packages are."""
    steps = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text()
    (source,) = (block.text for block in blocks(steps) if "laws.check" in block.text)
    (folder / "test_memoised.py").write_text(source)
    sources = Path(__file__).resolve().parents[2] / "src"
    quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "test_memoised.py", *quiet],
        env=environment(sources, folder),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_package_passes_the_laws_that_ship(installed: Path) -> None:
    done = own_tests(installed)
    assert done.returncode == 0, done.stdout
    assert f"{len(laws.LAWS)} passed" in done.stdout


def test_its_broken_copy_does_not(installed: Path, tmp_path: Path) -> None:
    """Channels with twice the loss that was asked for, under the same promises."""
    for part in installed.glob("loloha_memoised-*"):
        shutil.copytree(part, tmp_path / part.name)
    sound = (installed / "memoised.py").read_text()
    twice = "first_channel=lambda p: symbol_channel(2 * p.eps_inf, p.k)"
    broken = sound.replace("of_values, SYMBOLS", f"of_values, SYMBOLS._replace({twice})")
    broken = broken.replace("@dataclass", "from loloha.channels import symbol_channel\n@dataclass")
    assert broken != sound
    (tmp_path / "memoised.py").write_text(broken)
    said = own_tests(tmp_path).stdout
    failed = {name for name in laws.LAWS if f"FAILED test_memoised.py::test_law[{name}]" in said}
    assert failed == {
        "the_first_report_loses_what_is_realised",
        "all_reports_of_a_value_lose_what_its_memo_loses",
        # The variance that is stated is that of what was asked for.
        "support_has_the_stated_chances",
    }, said
