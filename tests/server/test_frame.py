"""Frames hold what the result holds, in the kind that was asked for."""

import matplotlib as mpl
import numpy as np
import pandas
import polars
import pyarrow
import pytest

import loloha
from loloha.errors import ParameterError
from loloha.server.estimate_table import COLUMNS
from loloha.server.frame import to_frame, to_html
from loloha.server.tally import Tally

mpl.use("Agg")
KINDS = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "pyarrow": pyarrow.Table}


def counted() -> Tally:
    protocol = loloha.GRR(k=3, eps=2.0)
    tally = protocol.tally()
    tally.update(None, np.array([0, 0, 0, 1, 2, 0]))
    return tally


@pytest.mark.parametrize("backend", [None, *KINDS])
def test_each_kind_of_frame_holds_the_same(backend: str | None) -> None:
    frame = to_frame({"a": np.array([1, 2]), "b": ["x", None], "c": [0.5, np.nan]}, backend)
    assert isinstance(frame, KINDS[backend or "pyarrow"])
    table = pyarrow.table(frame)
    assert table.column_names == ["a", "b", "c"]
    assert table["a"].to_pylist() == [1, 2]
    assert table["b"].to_pylist() == ["x", None]


def test_an_estimate_is_a_frame_of_values() -> None:
    estimate = counted().estimate()
    frame = estimate.to_frame(0.9, labels=["a", "b", "c"], backend="pandas")
    assert tuple(frame) == COLUMNS
    assert frame["label"].tolist() == ["a", "b", "c"]
    assert frame["estimate"].tolist() == estimate.frequencies.tolist()
    assert frame["standard_error"].tolist() == estimate.standard_errors.tolist()
    lower, upper = estimate.interval(0.9)
    assert (frame["lower"].tolist(), frame["upper"].tolist()) == (lower.tolist(), upper.tolist())
    assert frame["n"].tolist() == [6] * 3
    assert tuple(polars.DataFrame(estimate).columns) == COLUMNS
    with pytest.raises(ParameterError, match="labels must be 3"):
        estimate.to_frame(labels=["a"])
    with pytest.raises(ParameterError, match="backend must be"):
        estimate.to_frame(backend="excel")


def test_a_notebook_shows_the_most_frequent_first() -> None:
    page = counted().estimate()._repr_html_()
    rows = page.split("<tbody>")[1].split("<tr>")[1:]
    assert [row.split("<td")[1].split(">")[1].split("<")[0] for row in rows] == ["0", "1", "2"]


def test_one_round_is_a_picture_with_labels_and_intervals() -> None:
    estimate = counted().estimate()
    axes = estimate.plot(0.9, labels=["bus", "$car$", "foot"])
    low, high = estimate.interval(0.9)
    errors = axes.containers[0]
    assert errors.lines[0].get_ydata().tolist() == estimate.frequencies.tolist()
    reaches = np.array([segment[:, 1] for segment in errors.lines[2][0].get_segments()])
    assert reaches == pytest.approx(np.stack([low, high], axis=1))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["bus", "$car$", "foot"]
    assert axes.get_title(loc="left") == "6 reports, 90 % intervals"
    assert estimate.plot(ax=axes) is axes
    with pytest.raises(ParameterError, match="labels must be 3"):
        estimate.plot(labels=["bus"])


def test_an_estimate_prints_as_one_line() -> None:
    assert repr(counted().estimate()) == f"Estimate({loloha.GRR(k=3, eps=2.0)!r}, n=6)"


def test_labels_are_text_never_markup() -> None:
    page = to_html("<i>", ["<b>"], [["<script>", float("nan")]], "<u>")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "–" in page
    for tag in ("<i>", "<b>", "<u>"):
        assert tag not in page
