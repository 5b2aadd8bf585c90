"""PAINS 9: the demo is a test, so that it cannot rot."""

import json
from pathlib import Path

import pytest

import loloha
from loloha.cli import main
from loloha.cli.folder import FILES


def test_demo_ends_with_estimates_statement_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--rounds", "3"]) == 0
    told = capsys.readouterr().out
    metrics = json.loads((tmp_path / "loloha-demo" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["dataset"].items() >= {"n": 45_222, "k": 96, "tau": 3}.items()
    assert metrics["dataset"]["source"] == "histogram"
    protocol = loloha.protocol(
        **{
            "name": metrics["protocol"]["type"],
            **{
                key: one
                for key, one in metrics["protocol"].items()
                if key not in ("type", "version")
            },
        }
    )
    assert str(loloha.privacy.explain(protocol)) in told
    assert "Top values in round 2" in told
    # 40 hours are worked by 47 % of the people: the picture's first panel, the table's first row.
    top = next(line for line in told.splitlines() if line.split()[:1] == ["40"])
    truth, estimate, lower, upper = (float(word) for word in top.split()[1:] if word != "%")
    assert truth == pytest.approx(47.2, abs=0.05)
    assert lower < estimate < upper
    assert told.splitlines()[-1] == f"Picture: {Path('loloha-demo') / 'frequencies.png'}"
    assert sorted(path.name for path in (tmp_path / "loloha-demo").iterdir()) == sorted(FILES)
    picture = (tmp_path / "loloha-demo" / "frequencies.png").read_bytes()
    assert picture.startswith(b"\x89PNG")

    # Again, as people do: it replaces its own results.
    assert main(["demo", "--rounds", "2", "--seed", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seed"] == 1
    assert told["picture"] == str(Path("loloha-demo") / "frequencies.png")


@pytest.mark.parametrize("wrong", [["--rounds", "0"], ["--top", "0"], ["--level", "2"]])
def test_demo_refuses_what_it_cannot_show(
    wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *wrong, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_demo_never_replaces_the_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("work of years")
    assert main(["demo", "--out", str(tmp_path)]) == 1
    assert (tmp_path / "thesis.tex").read_text() == "work of years"
