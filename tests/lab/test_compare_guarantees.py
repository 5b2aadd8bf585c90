"""``loloha compare-guarantees`` writes a table and a figure, and refuses what it cannot."""

import json
from pathlib import Path

import pytest

from loloha.cli import main


@pytest.mark.long
def test_a_quick_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["compare-guarantees", "--quick", "--data-set", "Browsers", "--runs", "2"]
    assert main([*line, "--out", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert sum(row["guarantee"] == "whole transcript" for row in rows) == 2 * 11
    assert all((row["mse"] is None) == (row["expected_mse"] is None) for row in rows)
    assert {row["error"] for row in rows} == {"round", "mean of 30"}
    page = (tmp_path / "guarantees-table.md").read_text(encoding="utf-8")
    assert page.startswith("**Where LOLOHA loses")
    assert page.count("| whole transcript | Browsers |") == 11
    assert {path.suffix for path in tmp_path.iterdir()} == {".md", ".png", ".svg"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--data-set", "Nowhere"], "data sets must be among"),
        (["--runs", "1"], "runs must be"),
        (["--data-dir", "nowhere"], "data-dir must be a folder"),
    ],
)
def test_what_cannot_be_done_is_refused(
    options: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare-guarantees", *options, "--out", str(tmp_path / "out")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
