"""A simulated population in panels: one report a window, errors and windows that hold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.datasets import Dataset
from loloha.errors import ParameterError
from loloha.population import trial
from loloha.population.population import History, due
from loloha.population.trial import Trial
from loloha.server.estimate_table import EstimateTable
from loloha.server.series import series

PROTOCOL = loloha.OLOLOHA(k=8, g=3, eps_inf=4.0, eps_1=2.0)


def drifting(n: int, tau: int, seed: int) -> loloha.datasets.Dataset:
    """Users who move with a chance of 2 % a round, to values of unequal frequency."""
    rng = np.random.default_rng(seed)
    shares = 0.5 ** np.arange(1, 9)
    values = rng.choice(8, size=(n, tau), p=shares / shares.sum())
    moved = rng.random((n, tau)) < 0.02
    for t in range(1, tau):
        values[:, t] = np.where(moved[:, t], values[:, t], values[:, t - 1])
    return loloha.datasets.table(values, domain=range(8))


def test_each_window_holds_one_report_of_each_user() -> None:
    values = np.random.default_rng(1).integers(3, size=(200, 20))
    values[:, 7] = -1
    left = due(History(values, 3), 5, np.random.default_rng(2), first=3).values
    sent = left >= 0
    assert (left[sent] == values[sent]).all()
    rounds = 3 + np.arange(20)
    for row in sent:
        assert len(set((rounds[row] % 5).tolist())) <= 1
        assert row[:7].sum() in (1, 2)
        assert row[8:13].sum() == 1
    sizes = np.bincount([int(rounds[row][0]) % 5 for row in sent if row.any()], minlength=5)
    assert sizes.min() > 15


def test_panels_are_simulated_estimated_and_written() -> None:
    dataset = drifting(30_000, 12, seed=4)
    result = loloha.simulate(PROTOCOL, dataset, every=5, rng=3)
    assert result.every == 5
    assert result.n.sum() == pytest.approx(12 / 5 * 30_000, rel=0.01)
    again = loloha.simulate(PROTOCOL, dataset, every=5, rng=3)
    assert (again.estimates == result.estimates).all()
    assert (result.loss <= PROTOCOL.cap).all()
    assert 0.9 < result.coverage() < 0.99
    frame = result.to_frame(backend="pyarrow")
    means = loloha.rolling(result.observations(), 5, population=5 * int(result.n.max()))
    assert frame["window_estimate"].to_numpy().reshape(12, 8) == pytest.approx(
        np.array([means[t].frequencies for t in range(12)])
    )
    assert frame["window_standard_error"].to_numpy().reshape(12, 8) == pytest.approx(
        np.array([means[t].standard_errors for t in range(12)])
    )
    trial = Trial(result, 0.95, 3)
    metrics = trial.metrics()
    assert metrics["every"] == 5
    assert 0.85 < metrics["window"]["coverage"] <= 1
    # Each user counts once in a window: errors as of one round of all, the sampling beside.
    all_at_once = loloha.variance(PROTOCOL, 30_000, dataset.frequencies().mean(axis=0)).mean()
    assert all_at_once / 3 < metrics["window"]["mse"] < 3 * all_at_once
    assert metrics["expected_mse"] == pytest.approx(metrics["mse"], rel=0.5)
    assert "Any 5 rounds" in metrics["privacy"]["text"]


def test_a_window_holds_values_that_nobody_has() -> None:
    """Their interval begins at their frequency, 0; those that all have, at the other end."""
    values = np.zeros((400, 4), dtype=np.int16)
    dataset = Dataset(values, tuple("abc"), "made", "user", "Made up.")
    trial = Trial(loloha.simulate(loloha.GRR(k=3, eps=40.0), dataset, every=2, rng=1), 0.95, 3)
    assert trial.windows == {"mse": pytest.approx(0.0, abs=1e-9), "coverage": 1.0}


def test_without_a_whole_window_there_is_no_mean_of_one() -> None:
    values = np.zeros((400, 4), dtype=np.int16)
    for rounds, whole in ((1, False), (2, True)):
        dataset = Dataset(values[:, :rounds], tuple("abc"), "made", "user", "Made up.")
        result = loloha.simulate(loloha.GRR(k=3, eps=9.0), dataset, every=2, rng=1)
        assert bool(Trial(result, 0.95, 3).windows) is whole
    with pytest.raises(ParameterError, match="result must be that of a data set"):
        Trial(loloha.simulate(loloha.GRR(k=3, eps=9.0), values, rng=1), 0.95, 3)


def test_one_round_in_one_is_what_it_was() -> None:
    values = np.random.default_rng(1).integers(8, size=(50, 3))
    plain = loloha.simulate(PROTOCOL, values, rng=5)
    same = loloha.simulate(PROTOCOL, values, every=1, rng=5)
    assert (plain.estimates == same.estimates).all()
    assert "window_estimate" not in plain.to_frame().column_names
    for every in (0, True, "3"):
        with pytest.raises(ParameterError, match="every"):
            loloha.simulate(PROTOCOL, values, every=every, rng=5)  # type: ignore[arg-type]


def test_a_population_larger_than_its_rounds_may_be_silent_in_some() -> None:
    values = np.zeros((1, 4), dtype=np.int64)
    result = loloha.simulate(PROTOCOL, values, every=3, rng=1)
    assert sorted(result.n.tolist())[:2] == [0, 0]
    assert result.to_frame().num_rows == 4 * 8


@pytest.mark.parametrize(("rounds", "together"), [(3, False), (4, True)])
def test_rounds_are_estimated_together_from_four_on(rounds: int, together: bool) -> None:
    values = np.arange(30 * rounds, dtype=np.int16).reshape(30, rounds) % 3
    periods = tuple(f"2026-01-{day:02}" for day in range(1, rounds + 1))
    data = Dataset(values, (1, 2, 3), "made", "user", "Made up.", periods)
    result = loloha.simulate(loloha.GRR(k=3, eps=1.0), data, rng=1)
    trial = Trial(result, 0.95, 3)
    assert (trial._estimated is not None) is together


def test_domains_up_to_a_size_are_estimated_together(
    of_numbers: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = of_numbers.result
    for most in (result.estimates.size, result.estimates.size - 1):
        monkeypatch.setattr(trial, "MOST_TOGETHER", most)
        assert (Trial(result, 0.9, 7)._estimated is None) == (most < result.estimates.size)


@pytest.fixture
def of_numbers() -> Trial:
    """Of 40 users with 0, 1 or 4 of 0..4, and nobody in the second of five rounds."""
    values = np.repeat([[0], [1], [1], [4]], 10, axis=0) * np.ones(5, dtype=np.int64)
    values[:, 1] = -1
    dataset = Dataset(values.astype(np.int16), tuple("abcde"), "made", "user", "Made up.")
    protocol = loloha.OneBit(k=5, eps_inf=4.0, eps_1=3.0)
    return Trial(loloha.simulate(protocol, dataset, rng=1), 0.9, 7, (10.0, 2.0, 1.0))


def test_the_truth_of_numbers_is_in_the_units_of_the_range(of_numbers: Trial) -> None:
    numbers = of_numbers.numbers
    assert numbers is not None
    # The mean of 0, 1, 1 and 4 is 1.5; a quarter holds 0, and three quarters at most 1.
    truth = {name: numbers[f"{name}_truth"].tolist() for name in ("mean", "quantile_10")}
    missing = pytest.approx(np.nan, nan_ok=True)
    assert truth["mean"] == [13.0, missing, 13.0, 13.0, 13.0]
    assert truth["quantile_10"] == [10.0, missing, 10.0, 10.0, 10.0]
    assert numbers["quantile_50_truth"][0] == 12.0
    assert numbers["quantile_90_truth"][0] == 18.0
    shown = of_numbers.metrics()["numbers"]
    assert shown["mean_truth"] == [13.0, None, 13.0, 13.0, 13.0]
    assert shown.keys() == numbers.keys()
    plain = loloha.simulate(loloha.GRR(k=5, eps=1.0), of_numbers.dataset, rng=1)
    assert Trial(plain, 0.9, None).numbers is None
    assert Trial(plain, 0.9, None)._number_lines() is None


def test_a_picture_has_mean_and_quantiles_of_rounds_alone_and_together(
    of_numbers: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(trial, "draw_run", lambda *shown, **more: drawn.append((shown, more)))
    monkeypatch.setattr(trial, "save", lambda figure, path: drawn.append(path))
    of_numbers.draw(tmp_path, 3)
    (shown, protocol), more = drawn[0]
    assert (protocol, more["top"], more["level"]) == (of_numbers.protocol, 3, 0.9)
    assert (more["note"], drawn[1]) == (of_numbers.note, tmp_path / "frequencies")
    together = series(of_numbers.result, level=0.9)
    low, high = together.interval()
    assert shown.frequencies is of_numbers.series.frequencies
    for mine, its in ((shown.together.frequencies, together.estimates), (shown.together.lower, low),
                      (shown.together.upper, high)):  # fmt: skip
        np.testing.assert_array_equal(mine, its)
    lines, numbers = more["numbers"], of_numbers.numbers
    assert numbers is not None
    levels = [name for name in numbers if name.endswith("_truth")]
    assert lines.labels == ["mean", *(f"{name.split('_')[1]} % quantile" for name in levels[1:])]
    summary = together.numbers.summary(0.9, (10.0, 2.0, 1.0))
    for column, name in enumerate(name.removesuffix("_truth") for name in levels):
        for end, part in (("", "frequencies"), ("_lower", "lower"), ("_upper", "upper")):
            here, there = getattr(lines, part), getattr(lines.together, part)
            np.testing.assert_array_equal(here[:, column], numbers[f"{name}{end}"])
            np.testing.assert_array_equal(there[:, column], summary[f"{name}{end}"])
        np.testing.assert_array_equal(lines.truth[:, column], numbers[f"{name}_truth"])
    assert lines.together.truth is None


def test_the_files_of_a_run_hold_its_estimates_and_say_what_they_are(
    of_numbers: Trial, tmp_path: Path
) -> None:
    of_numbers.save(tmp_path)
    table = EstimateTable.read(tmp_path / "estimates.parquet")
    result, protocol = of_numbers.result, of_numbers.protocol
    np.testing.assert_array_equal(table.estimate, result.estimates)
    assert (table.n, table.level) == (result.n.tolist(), 0.9)
    assert of_numbers.numbers is not None
    mean = of_numbers.numbers["mean"]
    np.testing.assert_array_equal(table.more["mean"], np.repeat(mean[:, None], 4, axis=1))
    assert table.about["note"] == of_numbers.note
    assert "Made up. OneBit(" in of_numbers.note
    assert "Seed 7." in of_numbers.note
    assert "Seed" not in Trial(result, 0.9, None).note
    assert table.about["parameters"] == {"protocol": protocol.to_dict(), **protocol.numbers}
    again = EstimateTable.read(tmp_path / "estimates.csv")
    np.testing.assert_allclose(again.estimate, table.estimate)
    assert again.label == table.label


def test_values_that_are_panels_already_are_not_thinned_again() -> None:
    values = np.random.default_rng(1).integers(6, size=(40, 12))
    own = np.arange(12) % 3 == np.arange(40)[:, None] % 3
    thinned = np.where(own, values, -1)
    with pytest.raises(ParameterError, match=r"one of 3 already; .*every=1"):
        loloha.simulate(PROTOCOL, thinned, every=3, rng=1)
    assert loloha.simulate(PROTOCOL, thinned, every=1, rng=1).n.sum() == 160
    # One user in two of the three is enough to tell; so is none with two reports.
    thinned[0, 1] = 2
    few = np.where(np.arange(12) == np.arange(40)[:, None] % 12, values, -1)
    for population in (thinned, few):
        assert loloha.simulate(PROTOCOL, population, every=3, rng=1).every == 3
