"""A comparison is that of the simulations it is made from, resumable, and the same on all cores."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas
import pytest

import loloha
from loloha.datasets import Dataset
from loloha.errors import ParameterError
from loloha.population import point
from loloha.population.comparison import Comparison, compare

mpl.use("Agg")
ASKED: dict[str, Any] = {"protocols": ["ololoha", "dbitflippm", "grr"], "eps_inf": [4.0, 2.0]}


def data() -> Dataset:
    values = np.random.default_rng(2).choice(4, (300, 6), p=[0.5, 0.3, 0.1, 0.1]).astype(np.int16)
    return Dataset(values, tuple("abcd"), "made", "user", "Made up.")


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(data(), runs=2, seed=3, **ASKED)


def test_each_run_has_randomness_of_its_own(found: Comparison) -> None:
    assert all(row["mse_standard_error"] > 0 for row in found.rows)


def test_there_is_a_row_for_each_protocol_and_budget(found: Comparison) -> None:
    rows = [(row["protocol"], row["eps_inf"]) for row in found.rows]
    labels = ["ololoha", "dbitflippm d=1", "dbitflippm d=4", "grr"]
    assert rows == [(label, eps) for label in labels for eps in (2.0, 4.0)]
    frame = found.to_frame(backend="pandas")
    assert frame["mse"].tolist() == [row["mse"] for row in found.rows]
    (grr,) = [row for row in found.rows if row["protocol"] == "grr" and row["eps_inf"] == 4.0]
    assert (grr["eps_1"], grr["eps_2"], grr["eps_avg"]) == (2.0, pytest.approx(2.0), 12.0)


def test_protocols_by_name_take_every_budget_and_others_their_own() -> None:
    made = loloha.LGRR(k=4, eps_inf=3.0, eps_1=1.0)
    points = point.points_of(data(), ["l-osue", made, "grr"], (4.0, 2.0, 4.0), 0.25, "tight")
    rows = [(one.label, one.eps_inf, getattr(one.protocol, "eps_1", None)) for one in points]
    assert rows == [
        ("l-osue", 2.0, 0.5), ("l-osue", 4.0, 1.0), ("grr", 2.0, None), ("grr", 4.0, None),
        (repr(made), 3.0, 1.0),
    ]  # fmt: skip
    assert [one.protocol.k for one in points] == [4] * 5


def test_numbers_are_those_of_simulations(found: Comparison) -> None:
    for row in found.rows:
        assert 0.25 < row["mse"] / row["expected_mse"] < 4
        assert row["mse_uniform"] == pytest.approx(
            np.mean((data().frequencies() - 0.25) ** 2), rel=1e-9
        )
        assert 0.8 <= row["coverage"] <= 1
        assert row["eps_avg"] <= row["eps_max"]
    (memo,) = [r for r in found.rows if r["protocol"] == "dbitflippm d=4" and r["eps_inf"] == 4.0]
    # A memoised answer is sent as it is: it differs only where the value does.
    assert memo["change_alarms"] == 0
    assert memo["change_seen"] > 0.9
    # Of every change of all users: fewer reports than are looked at.
    moved = np.diff(data().values, axis=1) != 0
    assert (memo["changes"], memo["stays"]) == (moved.sum(), (~moved).sum())


def test_neither_the_rest_nor_the_order_nor_the_cores_change_a_number(found: Comparison) -> None:
    alone = compare(data(), ["grr"], 4.0, runs=2, seed=3)
    assert alone.rows == found.rows[-1:]
    both = compare(data(), runs=2, seed=3, jobs=2, **ASKED)
    assert both.rows == found.rows
    other = compare(data(), ["grr"], 4.0, runs=2, seed=4)
    assert other.rows[0]["mse"] != alone.rows[0]["mse"]


def test_a_stopped_comparison_goes_on_where_it_was(
    found: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = tmp_path / "runs.ndjson"

    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(data(), runs=2, seed=3, keep=keep, progress=stop, **ASKED)
    told: list[tuple[int, int]] = []
    again = compare(
        data(), runs=2, seed=3, keep=keep, progress=lambda *done: told.append(done), **ASKED
    )
    assert (told[0], told[-1]) == ((5, 16), (16, 16))
    assert again.rows == found.rows
    monkeypatch.setattr(point, "simulate", lambda *_, **__: pytest.fail("simulated"))
    assert compare(data(), runs=2, seed=3, keep=keep, **ASKED).rows == found.rows


def test_other_data_are_simulated_anew(tmp_path: Path) -> None:
    keep = tmp_path / "runs.ndjson"
    first = compare(data(), ["grr"], 2.0, runs=1, keep=keep)
    values = np.array(data().values)
    values[0, 0] = (values[0, 0] + 1) % 4
    other = Dataset(values, tuple("abcd"), "made", "user", "Made up.")
    second = compare(other, ["grr"], 2.0, runs=1, keep=keep)
    assert second.rows[0]["mse_uniform"] != first.rows[0]["mse_uniform"]


def test_a_frame_goes_in_and_comes_back() -> None:
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({f"w{t}": rng.choice(["x", "y", "z"], 60) for t in range(3)})
    with pytest.warns(loloha.datasets.PrivacyWarning):
        found = loloha.compare(frame, ["grr", "ololoha"], [1.0], runs=1)
    shown = found.to_frame()
    assert isinstance(shown, pandas.DataFrame)
    assert shown["mse_standard_error"].isna().all()
    assert "ololoha" in found._repr_html_()
    axes = found.plot("mse_clipped")
    assert [line.get_label() for line in axes.get_lines()] == ["grr", "ololoha", "uniform"]
    wanted = found.plot("coverage").get_lines()[-1]
    assert (wanted.get_label(), set(wanted.get_ydata())) == ("wanted", {0.95})
    with pytest.raises(ParameterError, match="y must be one of"):
        found.plot("seconds")


def test_gaps_are_left_out_of_the_attack() -> None:
    values = np.array([[0, -1, 1]] * 20 + [[1, 0, -1]] * 20, dtype=np.int16)
    gaps = Dataset(values, ("a", "b"), "gaps", "user", "Made up.")
    (row,) = compare(gaps, ["biloloha"], 2.0, runs=1).rows
    assert (row["change_seen"], row["change_alarms"]) == (None, None)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"protocols": ["laplace"]}, "protocols must be"),
        ({"protocols": []}, "protocols and eps_inf must be given"),
        ({"eps_inf": []}, "protocols and eps_inf must be given"),
        ({"eps_inf": [0.0]}, "eps_inf must"),
        ({"alpha": 1.0}, "alpha must be inside"),
        ({"runs": 0}, "runs must be"),
        ({"keep": "no such folder/runs.ndjson"}, "keep must lie in an existing folder"),
        ({"jobs": 0}, "jobs must be"),
        ({"level": 1.0}, "level must be"),
        ({"seed": -1}, "seed must be"),
        ({"calibration": "loose"}, "calibration must be"),
    ],
)
def test_what_cannot_be_compared_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        compare(data(), **wrong)
