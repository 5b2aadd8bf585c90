"""No result is lost for a picture, a full disk behind stdout, or a setting of the environment."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loloha import GRR
from loloha.cli import main
from loloha.cli.results_folder import FILES

RUN = ["--protocol", "grr", "--eps", "2", "--seed", "1", "--force"]


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"u{i},{'abc'[i % 3]},{'abc'[i % 2]}" for i in range(60)]
    Path("t.csv").write_text("\n".join(["user,r0,r1", *rows]))
    numbers = [f"u{i},{i * 7.5},{i * 3.25}" for i in range(60)]
    Path("n.csv").write_text("\n".join(["user,r0,r1", *numbers]))
    return tmp_path


def ended(*line: str, stdout: Any = subprocess.PIPE, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "loloha", *line],
        stdout=stdout, stderr=subprocess.PIPE, check=False, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_loses_nothing(there: Path) -> None:
    lines = (["--version"], ["protocols"], ["run", "t.csv", *RUN, "--out", "out", "--json"])
    with Path("/dev/full").open("wb") as full:
        for line in lines:
            end = ended(*line, stdout=full)
            said = end.stderr.decode().splitlines()
            assert end.returncode == 1
            assert said[-1].startswith("error: ")
            assert said[-1].count("output") == 1
            assert "Traceback" not in end.stderr.decode()
    assert {path.name for path in Path("out").iterdir()} == set(FILES)


@pytest.mark.long
def test_settings_of_the_environment_are_no_matter(there: Path) -> None:
    odd = {"MPLBACKEND": "xx", "COLUMNS": "1", "NO_COLOR": "1", "LANG": "C", "LC_ALL": "C",
           "TZ": "No/Where", "TERM": "odd", "PYTHONIOENCODING": "ascii"}  # fmt: skip
    end = ended("run", "t.csv", *RUN, "--out", "out", "--json", **odd)
    assert end.returncode == 0, end.stderr
    assert len(json.loads(end.stdout)["files"]) == len(FILES)


def test_results_stay_where_a_picture_fails(
    there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("a library of pictures")

    monkeypatch.setattr("loloha.population.trial.draw_run", fail)
    monkeypatch.setattr("loloha.population.comparison.Comparison.plot", fail)
    assert main(["run", "t.csv", *RUN, "--out", "out", "--json"]) == 0
    printed = capsys.readouterr()
    assert "picture could not be drawn (ValueError)" in printed.err
    assert [Path(name).name for name in json.loads(printed.out)["files"]] == [*FILES[:3]]
    compared = ["compare", "t.csv", "--protocol", "grr", "--runs", "1", "--jobs", "1"]
    assert main([*compared, "--out", "c"]) == 0
    assert "picture could not be drawn" in capsys.readouterr().err
    assert Path("c/comparison.parquet").exists()


def test_stderr_that_takes_nothing_loses_no_result(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/null").open() as closed:  # not open for writing
        monkeypatch.setattr(sys, "stderr", closed)
        assert main(["run", "t.csv", *RUN, "--out", "out"]) == 0


def test_numbers_fall_into_parts_of_a_range(
    there: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = ["--range", "0", "500", "--bins", "5"]
    assert main(["run", "n.csv", *RUN, "--out", "out"]) == 1
    assert "(--range and --bins)" in capsys.readouterr().err
    assert main(["run", "n.csv", *RUN, "--out", "out", *parts, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data_set"]["k"] == 5
    compared = ["compare", "n.csv", "--protocol", "grr", "--runs", "1", "--jobs", "1", *parts]
    assert main([*compared, "--json"]) == 0
    Path("p.json").write_text(json.dumps(GRR(k=5, eps=2.0).to_dict()))
    made = ["log", "generate", "n.csv", "--campaign", "p.json", "--out", "log", "--seed", "1"]
    assert main([*made, *parts]) == 0
    capsys.readouterr()
    for wrong in (["--bins", "5"], [*parts, "--domain", "a,b"], ["--range", "0", "1"]):
        assert main(["run", "n.csv", *RUN, "--out", "out", *wrong]) == 2
        assert "--range LOW HIGH and --bins" in capsys.readouterr().err
    assert main(["run", "syn", *RUN, "--out", "out", *parts]) == 2
    assert "it is for files" in capsys.readouterr().err
