"""PAINS 9: the demo is a test, so that it cannot rot."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

import loloha
from loloha.cli import demo, main
from loloha.cli.results_folder import FILES


def told_truth_and_interval(told: str) -> None:
    """48 % of the users have Chrome on Android: the table's first row."""
    top = next(line for line in told.splitlines() if line.split()[:2] == ["Chrome", "Android"])
    truth, estimate, lower, upper = (float(word) for word in top.split()[2:] if word != "%")
    assert truth == pytest.approx(47.8, abs=0.15)
    assert lower < estimate < upper


def statement(metrics: dict[str, dict[str, object]]) -> str:
    protocol = {**metrics["protocol"], "name": metrics["protocol"]["type"]}
    known = {key: one for key, one in protocol.items() if key not in ("type", "version")}
    return str(loloha.privacy.explain(loloha.protocol(**known)))


def test_demo_ends_with_estimates_statement_picture_and_dashboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn", reason="the collector's extra is not installed")
    # Settings of a collector that runs here are not for the demo's own.
    monkeypatch.setenv("LOLOHA_MINIMUM_COHORT", "1000000")
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--rounds", "2"]) == 0
    told = capsys.readouterr().out
    metrics = json.loads((tmp_path / "loloha-demo" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["data_set"].items() >= {"n": 20_000, "k": 97, "tau": 2}.items()
    assert metrics["data_set"]["source"] == "histogram"
    # What users spent is known to their devices alone.
    assert metrics["eps_avg"] is None
    assert "eps_avg" not in told
    assert statement(metrics) in told
    assert "Round 2025-01-04" in told
    told_truth_and_interval(told)
    *_, counted, page, _, picture = told.splitlines()
    assert counted.startswith("40000 reports counted in ")
    address = re.fullmatch(
        r"Dashboard: (http://127\.0\.0\.1:\d+/)#campaign=[0-9a-f]{64} "
        r"\(stopped by now: --stay keeps it up\)",
        page,
    )
    assert address is not None
    with pytest.raises(URLError):
        urlopen(address[1])
    assert picture == f"Picture: {Path('loloha-demo') / 'frequencies.png'}"
    assert sorted(path.name for path in (tmp_path / "loloha-demo").iterdir()) == sorted(FILES)
    assert (tmp_path / picture.removeprefix("Picture: ")).read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_demo_stays_up_on_demand_and_ctrl_c_stops_it_cleanly(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="the collector's extra is not installed")
    command = [sys.executable, "-m", "loloha", "demo", "--rounds", "1", "--stay"]
    demo = subprocess.Popen(
        [*command, "--json"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert demo.stdout is not None
        lines = []
        for line in demo.stdout:
            lines.append(line)
            if line == "}\n":
                break
        told = json.loads("".join(lines))
        assert told["mode"] == "collector"
        # The results are there before anybody has to stop it.
        assert (tmp_path / "loloha-demo" / "metrics.json").exists()
        url, _, fragment = told["dashboard"].partition("#campaign=")
        estimates = f"{url}v1/campaigns/{fragment}/rounds/0/estimates"
        with urlopen(estimates) as answer:
            shown = json.load(answer)
        assert shown["n"] == told["counted"] == 20_000
        table = (tmp_path / "loloha-demo" / "estimates.csv").read_text(encoding="utf-8")
        header, *rows = (line.split(",") for line in table.splitlines())
        for name in ("estimate", "lower", "upper"):
            place = header.index(f'"{name}"')
            assert [float(row[place]) for row in rows] == pytest.approx(shown[name], abs=1e-12)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(300) == 0
    finally:
        demo.kill()
        demo.wait()
        if demo.stdout is not None:
            demo.stdout.close()
    with pytest.raises(URLError):
        urlopen(url)
    # Nor does it leave its store behind.
    assert [path.name for path in tmp_path.iterdir()] == ["loloha-demo"]


@pytest.mark.long
def test_offline_demo_needs_no_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--rounds", "3", "--offline"]) == 0
    told = capsys.readouterr().out
    metrics = json.loads((tmp_path / "loloha-demo" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["data_set"].items() >= {"n": 20_000, "k": 97, "tau": 3}.items()
    assert statement(metrics) in told
    told_truth_and_interval(told)
    assert told.splitlines()[-1] == f"Picture: {Path('loloha-demo') / 'frequencies.png'}"

    # Again, as people do: it replaces its own results.
    assert main(["demo", "--offline", "--rounds", "2", "--seed", "1", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["seed"], again["mode"]) == (1, "offline")
    assert again["picture"] == str(Path("loloha-demo") / "frequencies.png")


def test_demo_says_why_it_has_no_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_lacking", lambda: "uvicorn")
    assert main(["demo", "--rounds", "1", "--json", "--out", str(tmp_path / "out")]) == 0
    told, said = capsys.readouterr()
    assert json.loads(told)["mode"] == "offline"
    assert "uvicorn is not installed (pip install 'loloha[collector]')" in said


@pytest.mark.parametrize(
    "wrong",
    [
        ["--rounds", "0"],
        ["--rounds", "170"],
        ["--top", "0"],
        ["--level", "2"],
        ["--stay", "--offline"],
    ],
)
def test_demo_refuses_what_it_cannot_show(
    wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *wrong, "--out", str(tmp_path / "out")]) == 2
    assert "error" in capsys.readouterr().err.lower()
    assert list(tmp_path.iterdir()) == []


def test_demo_never_replaces_the_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("work of years")
    assert main(["demo", "--offline", "--out", str(tmp_path)]) == 1
    assert (tmp_path / "thesis.tex").read_text() == "work of years"


def test_a_collector_that_cannot_start_reports_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from loloha.cli import deployment
    from loloha.errors import LolohaError

    # Below a file nobody can make anything, root neither.
    (tmp_path / "file").touch()
    nowhere = str(tmp_path / "file" / "below")
    monkeypatch.setattr(deployment, "TemporaryDirectory", lambda prefix: nullcontext(nowhere))
    wanted = pytest.raises(LolohaError, match="collector must start, it did not: error: ")
    with wanted, deployment.collector():
        pass


def test_a_collector_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """Also when that one is killed, and can stop nothing any more."""
    script = (
        "import time\n"
        "from loloha.cli import deployment\n"
        "with deployment.collector() as running:\n"
        "    print(running.url, flush=True)\n"
        "    time.sleep(600)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        place = urlsplit(parent.stdout.readline().strip())
        assert place.port
        socket.create_connection((str(place.hostname), place.port)).close()
        parent.kill()
    end = time.monotonic() + 300
    while time.monotonic() < end:
        try:
            socket.create_connection((str(place.hostname), place.port)).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.1)
    pytest.fail("the collector outlived whoever started it")
