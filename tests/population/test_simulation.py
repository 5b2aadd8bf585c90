"""A simulated data set keeps its labels, dates and truth, as a frame, a picture and a page."""

import datetime
import warnings
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas
import polars
import pytest

import loloha
from loloha.datasets import Dataset
from loloha.errors import ParameterError
from loloha.server.estimate_table import COLUMNS

mpl.use("Agg")
DAYS = [datetime.date(2026, 3, day) for day in range(1, 4)]
LABELS = ["bus", "car", "<b>"]


def dataset(n: int = 400, backend: str | None = None) -> Dataset:
    rng = np.random.default_rng(4)
    values = rng.choice(3, size=(n, 3), p=[0.6, 0.3, 0.1]).astype(np.int16)
    values[:40, 1] = -1
    return Dataset(values, tuple(LABELS), "made", "user", "Made up.", tuple(DAYS), backend)


@pytest.fixture(scope="module")
def result() -> Any:
    return loloha.simulate(loloha.OLOLOHA(k=3, eps_inf=4.0, eps_1=2.0), dataset(), rng=1)


def test_values_and_data_set_give_the_same_estimates(result: Any) -> None:
    bare = loloha.simulate(result.protocol, dataset().values, rng=1)
    assert (bare.estimates == result.estimates).all()
    assert bare.rounds == [0, 1, 2]
    assert bare.labels == [0, 1, 2]
    assert bare.truth is None
    assert np.isnan(bare.coverage())
    assert "truth" not in bare.to_frame(backend="pandas")


def test_the_frame_has_a_row_for_each_round_and_label(result: Any) -> None:
    frame = result.to_frame(0.9, backend="pandas")
    assert tuple(frame) == (*COLUMNS, "truth")
    assert len(frame) == 9
    assert frame["start"].tolist() == [str(day) for day in DAYS for _ in LABELS]
    assert frame["label"].tolist() == LABELS * 3
    assert frame["n"].tolist() == [400] * 3 + [360] * 3 + [400] * 3
    wide = frame.pivot(index="round", columns="value", values="truth").to_numpy()
    assert (wide == dataset().frequencies()).all()
    tally = result.tallies[1].estimate()
    middle = frame[frame["round"] == 1]
    assert middle["estimate"].tolist() == tally.frequencies.tolist()
    assert middle["standard_error"].tolist() == tally.standard_errors.tolist()
    for name, end in zip(("lower", "upper"), tally.interval(0.9), strict=True):
        assert middle[name].to_numpy() == pytest.approx(end, rel=1e-12)


def test_frames_come_back_in_the_kind_they_went_in() -> None:
    columns = {"w1": ["a", "b", "a"], "w2": ["b", "b", "a"]}
    for kind in (pandas.DataFrame, polars.DataFrame):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", loloha.datasets.PrivacyWarning)
            data = loloha.datasets.table(kind(columns))
        found = loloha.simulate(loloha.GRR(k=2, eps=1.0), data, rng=0)
        assert isinstance(found.to_frame(), kind)
        assert list(found.to_frame()["start"]) == ["w1", "w1", "w2", "w2"]


def test_a_round_with_nobody_has_no_numbers() -> None:
    values = np.array([[0, -1], [1, -1]], dtype=np.int16)
    data = Dataset(values, ("a", "b"), "gap", "user", "Made up.")
    found = loloha.simulate(loloha.GRR(k=2, eps=1.0), data, rng=0)
    frame = found.to_frame(backend="pandas")
    assert (
        frame.loc[frame["round"] == 1, ["truth", "estimate", "standard_error", "lower"]]
        .isna()
        .all()
        .all()
    )
    assert 0 <= found.coverage() <= 1
    found._repr_html_()
    found.plot()


def test_a_protocol_of_another_domain_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"k of the protocol must be that of the data set, 3"):
        loloha.simulate(loloha.GRR(k=4, eps=1.0), dataset(), rng=0)


def test_buckets_are_labelled_by_their_ends() -> None:
    data = loloha.datasets.syn(n=50, k=12, tau=2, rng=0)
    found = loloha.simulate(loloha.DBitFlipPM(k=12, eps_inf=1.0, b=4, d=2), data, rng=0)
    assert found.labels == ["0 … 2", "3 … 5", "6 … 8", "9 … 11"]
    assert found.truth.sum(axis=1) == pytest.approx(1)


def test_the_plot_shows_labels_dates_and_numbers(result: Any) -> None:
    axes = result.plot(top=2)
    shown = {text.get_text() for text in axes.get_legend().get_texts()}
    assert shown == {"bus", "car"}
    assert [text.get_text() for text in axes.get_xticklabels()] == [str(day) for day in DAYS]
    drawn = np.asarray(axes.get_lines()[0].get_ydata(), dtype=float)
    assert (drawn == result.estimates[:, 0]).all()
    assert result.plot(ax=axes) is axes
    with pytest.raises(ParameterError, match="top must be"):
        result.plot(top=0)


def test_midnights_are_shown_as_days(result: Any) -> None:
    midnights = tuple(datetime.datetime.combine(day, datetime.time()) for day in DAYS)
    data = replace(dataset(), rounds=midnights)
    found = loloha.simulate(result.protocol, data, rng=1)
    assert found.rounds == list(midnights)
    ticks = [text.get_text() for text in found.plot().get_xticklabels()]
    assert ticks == [str(day) for day in DAYS]
    assert "in round 2026-03-03," in found._repr_html_()


def test_a_notebook_page_tells_labels_and_hides_markup(result: Any) -> None:
    page = result._repr_html_()
    assert "2026-03-03" in page
    assert "bus" in page
    assert "<b>" not in page
