"""``loloha compare`` tells what `loloha.compare` found, and goes on where it was."""

import json
from pathlib import Path

import pyarrow.parquet
import pytest

from loloha.cli import main


def test_a_table_is_compared_saved_and_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "pages.csv"
    rows = [f"u{i},{'abc'[i % 3]},{'abc'[i % 2]}" for i in range(60)]
    table.write_text("\n".join(["user,mon,tue", *rows]))
    out = tmp_path / "out"
    asked = ["compare", str(table), "--protocol", "grr", "--protocol", "ololoha", "--eps-inf", "2",
             "--runs", "2", "--jobs", "1", "--domain", "a,b,c", "--out", str(out)]  # fmt: skip
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["protocol"] for row in found["rows"]] == ["grr", "ololoha"]
    assert {path.name for path in out.iterdir()} == {
        "comparison.csv", "comparison.parquet", "comparison.png", "comparison.svg", "runs.ndjson",
    }  # fmt: skip
    saved = pyarrow.parquet.read_table(out / "comparison.parquet")
    assert saved["mse"].to_pylist() == [row["mse"] for row in found["rows"]]
    kept = (out / "runs.ndjson").read_bytes()
    assert main(asked) == 0
    assert (out / "runs.ndjson").read_bytes() == kept
    said = capsys.readouterr()
    assert "Always answering 'uniform'" in said.out
    assert "pages" in said.out
    assert "4 runs" in said.err
    # Of another table, or with another seed, nothing there is replaced unasked.
    before = (out / "comparison.csv").read_bytes()
    table.write_text("\n".join(["user,mon,tue", *rows[1:]]))
    assert main(asked) == 1
    assert "--force" in capsys.readouterr().err
    assert (out / "comparison.csv").read_bytes() == before
    assert main([*asked, "--force"]) == 0
    assert (out / "comparison.csv").read_bytes() != before
    assert not set((out / "runs.ndjson").read_bytes().splitlines()) & set(kept.splitlines())


def test_an_interrupted_comparison_says_how_to_continue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("loloha.population.comparison.measure_each", interrupt)
    assert main(["compare", "browsers", "--runs", "1", "--out", str(tmp_path / "out")]) == 130
    assert "runs.ndjson" in capsys.readouterr().err


def test_what_cannot_be_compared_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "syn", "--protocol", "laplace"]) == 2
    assert "protocols must be" in " ".join(capsys.readouterr().err.split())
