"""What a user spends on a campaign and on its successor is said where that is created."""

import json
from pathlib import Path

import pytest

import loloha
from collecting import campaign
from loloha.cli import main
from loloha.sender import explain_all

OLD = campaign("hours", protocol=loloha.LGRR(k=5, eps_inf=2.0, eps_1=1.0))
LINE = [
    "campaign", "create", "hours 2", "--protocol", "biloloha", "--eps-inf", "2", "--eps-1", "1",
    "--domain", "a,b,c", "--start", "2026-01-01T00:00:00Z",
]  # fmt: skip


def test_it_is_shown_at_its_creation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "old.json"
    file.write_bytes(OLD.to_json())
    line = [*LINE, "--successor-of", str(file)]
    assert main(line) == 0
    out, err = capsys.readouterr()
    text = "After hours: what was spent there stays spent, and these losses add to it."
    assert text in err
    # Both values never change: e^(2 + 2); five values and two cells of 2 each.
    assert "at most e^4 = 54.6; at most 14 can be spent in all" in " ".join(err.split())
    assert json.loads(out)["name"] == "hours 2"
    assert main([*line, "--json"]) == 0
    assert text in json.loads(capsys.readouterr().out)["successor_of"]
    (tmp_path / "same.json").write_text(out)
    assert main([*LINE, "--successor-of", str(tmp_path / "same.json")]) == 2
    assert main([*LINE, "--successor-of", "0" * 64]) == 1


def test_a_device_says_it_before_its_user_agrees() -> None:
    fresh = campaign("fresh", protocol=loloha.GRR(k=5, eps=1.0))
    (line,) = set(explain_all([OLD], after=[OLD]).splitlines()) - set(
        explain_all([OLD]).splitlines()
    )
    assert line.startswith("- After hours: ")
    assert line.endswith("at most 20 can be spent in all.")
    assert "no bound for ever" in explain_all([OLD], after=[fresh]).splitlines()[-3]
