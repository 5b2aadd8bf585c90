"""Panels beside population and budget division: measured errors are the stated ones."""

import sys
from pathlib import Path

import numpy as np
import pytest

from loloha_lab.tables import division

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_each_way_errs_as_expected() -> None:
    values = division.drifting(3000, 12, k=16, rng=1)
    ways = division.mean_of_runs(
        [division.compared(values, 16, 6, 2.0, seed=seed) for seed in range(4)]
    )
    assert [one.way.every for one in ways] == [6, 6, 1, 1, 1]
    for one in ways:
        # About 4 x 12 x 16 squares a number, those of rounds in all ways not independent.
        assert one.round == pytest.approx(one.expected_round, rel=0.4)
        assert one.window == pytest.approx(one.expected_window, rel=0.6)
        assert one.reports == pytest.approx(one.way.reports)


def test_a_missed_goal_is_reported() -> None:
    values = division.drifting(3000, 12, k=16, rng=1)
    ways = division.compared(values, 16, 6, 2.0, seed=0)
    assert not {"one report in a window", "loss of any window"} & {*division.missed(ways)}
    worse = [ways[0]._replace(window=1.0, reports=2.0), *ways[1:]]
    assert len(division.missed(worse)) >= 3


def test_users_drift_and_move() -> None:
    values = division.drifting(2000, 40, rng=3)
    moved = (values[:, 1:] != values[:, :-1]).mean()
    assert 0.01 < moved < 0.021
    assert division.frequencies(values, 96).sum(axis=1) == pytest.approx(np.ones(40))


@pytest.mark.long
def test_the_table_is_current(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``python -m loloha_lab.tables.division > docs/panels-table.md`` writes it again."""
    monkeypatch.setattr(sys, "argv", ["division"])
    assert division.main() == 0
    assert capsys.readouterr().out == (DOCS / "panels-table.md").read_text(encoding="utf-8")
