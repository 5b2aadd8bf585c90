"""``loloha reproduce`` says what it did, and refuses what it cannot."""

import json
from pathlib import Path

import pytest

from loloha.cli import main

TINY = ["--users", "30", "--rounds", "2", "--runs", "2", "--eps-inf", "1", "--data-set", "Syn"]


def test_one_part_at_a_small_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    assert main(["reproduce", "fig4", "--out", str(tmp_path), *TINY, "--json"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert found["measured"] == found["cells"] > 0
    assert found["data"] == {"Syn": "synthetic"}
    assert Path(found["report"]).is_file()
    assert f"{found['cells']} of {found['cells']} cells" in told.err
    request.getfixturevalue("undrawn")
    assert main(["reproduce", "fig4", "--out", str(tmp_path), *TINY]) == 0
    assert "0 cells measured" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fig9"], "parts must be among"),
        (["all", "--calibration", "loose"], "calibration must be"),
        (["all", "--jobs", "0"], "jobs must be"),
        (["all", "--runs", "-1"], "runs must be"),
        (["all", "--data-dir", "/nowhere/at/all"], "data-dir must be"),
        (["all", "--data-set", "Nowhere"], "data sets must be"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()
