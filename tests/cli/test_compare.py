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
    said = capsys.readouterr().out
    assert "Always answering 'uniform'" in said
    assert "pages" in said


def test_what_cannot_be_compared_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "syn", "--protocol", "laplace"]) == 2
    assert "protocols must be" in " ".join(capsys.readouterr().err.split())
