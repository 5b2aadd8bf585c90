"""``loloha export`` writes every round that a collector shows, however many it shows at a time."""

from pathlib import Path
from typing import Any, Self

import pyarrow.csv
import pyarrow.parquet
import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

from loloha.cli import export, main
from loloha.errors import ParameterError
from loloha.server.estimate_table import COLUMNS, EstimateTable


class Shown:
    """A collector that shows at most two rounds of a series and three of the rounds at a time."""

    def __init__(self, rounds: list[int]) -> None:
        self.have = rounds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _within(self, first: int, last: int, most: int) -> list[int]:
        return [one for one in self.have if first <= one <= last][-most:]

    def rounds(self, first: int, newest: int, last: int = 1 << 40) -> list[dict[str, Any]]:
        # A round in which all was refused has no reports.
        return [{"round": t, "n": 0 if t % 5 == 4 else 9} for t in self._within(first, last, 3)]

    def series(self, first: int, last: int, newest: int, level: float) -> dict[str, Any]:
        shown = [t for t in self._within(first, last, 2) if t % 5 != 4]
        return {
            "campaign": "c", "level": level, "value": [0, 1], "label": ["a", "b"],
            "round": shown, "n": [9] * len(shown),
            "start": [f"2026-01-{t + 1:02}T00:00:00Z" for t in shown],
            "estimate": [None if t == 3 else [t / 100, float("nan")] for t in shown],
            "standard_error": [None if t == 3 else [0.01, float("nan")] for t in shown],
            "lower": [None if t == 3 else [0.001, None] for t in shown],
            "upper": [None if t == 3 else [0.25, float("nan")] for t in shown],
        }  # fmt: skip


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loloha.sender.collector.Collector", lambda url: Shown(list(range(11))))


def test_all_rounds_are_written_in_order(shown: None, tmp_path: Path) -> None:
    for name, read in (("s.csv", pyarrow.csv.read_csv), ("s.parquet", pyarrow.parquet.read_table)):
        out = tmp_path / name
        assert main(["export", "https://host/v1/campaigns/f", "--out", str(out)]) == 0
        table = read(out)
        assert table.column_names == list(COLUMNS)
        # Rounds 4 and 9 have no reports, round 3 is suppressed.
        there = [0, 1, 2, 5, 6, 7, 8, 10]
        assert table["round"].to_pylist() == [t for t in there for _ in range(2)]
        if out.suffix == ".parquet":
            assert table["start"].to_pylist()[-1] == "2026-01-11T00:00:00Z"
        assert table["estimate"].to_pylist()[:3] == [0.0, None, 0.01]
        assert table["lower"].to_pylist()[1:3] == [None, 0.001]
        assert table["upper"].to_pylist()[1:3] == [None, 0.25]


def test_rounds_that_are_suppressed_are_counted(
    shown: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for first, said in ((0, "to be shown: 1 round"), (5, "")):
        out = tmp_path / f"{first}.csv"
        assert main(["export", "u", "--out", str(out), "--first", str(first)]) == 0
        err = capsys.readouterr().err
        assert said in err if said else not err


def test_only_later_rounds(shown: None, tmp_path: Path) -> None:
    out = tmp_path / "s.parquet"
    assert main(["export", "u", "--out", str(out), "--first", "7"]) == 0
    assert set(pyarrow.parquet.read_table(out)["round"].to_pylist()) == {7, 8, 10}


def test_nothing_is_overwritten_or_invented(
    shown: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "s.csv"
    out.write_text("mine")
    assert main(["export", "u", "--out", str(out)]) == 1
    assert out.read_text() == "mine"
    assert main(["export", "u", "--out", str(out), "--force"]) == 0
    assert main(["export", "u", "--out", str(tmp_path / "s.xlsx")]) == 2
    assert main(["export", "u", "--out", str(tmp_path / "t.csv"), "--first", "11"]) == 1
    assert not (tmp_path / "t.csv").exists()
    assert "shows none" in " ".join(capsys.readouterr().err.split())
    assert export.NEWEST <= 1000


def test_a_series_of_no_round_is_an_empty_frame() -> None:
    nothing = Shown([]).series(0, 9, 9, 0.95)
    assert EstimateTable.from_series(nothing).to_frame().num_rows == 0


def test_a_series_of_0_2_says_what_to_update() -> None:
    before = {"campaign": "c", "values": [0], "begins": [], "frequencies": []}
    with pytest.raises(ParameterError, match="update a collector"):
        EstimateTable.from_series(before)
