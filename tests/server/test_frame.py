"""Frames hold what the result holds, in the kind that was asked for."""

import io
import sys
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow import parquet

import loloha
from loloha.errors import ExtraError, ParameterError
from loloha.server.estimate_table import COLUMNS
from loloha.server.frame import Framed, normal_quantile, to_frame, to_html, written
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


class Pairs(Framed):
    """Records that are not numbers alone."""

    def records(self) -> list[dict[str, Any]]:
        return [{"label": "a", "n": 1}, {"label": 2, "n": 1 << 70}]


def test_records_are_a_table_and_columns_of_several_types_are_text() -> None:
    rows = [{"label": "a", "n": "1"}, {"label": "2", "n": str(1 << 70)}]
    assert Pairs().to_frame().to_pylist() == pyarrow.table(Pairs()).to_pylist() == rows
    assert isinstance(Pairs().to_frame(backend="polars"), polars.DataFrame)


def test_without_a_library_of_frames_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExtraError, match=r"pyarrow must be installed to make a frame.*cli"):
        to_frame({"a": [1]})


@pytest.mark.parametrize("tables", [0, 1, 3])
def test_tables_are_written_as_one_file(tables: int) -> None:
    schema = pyarrow.schema({"a": pyarrow.int64(), "b": pyarrow.string()})
    parts = [pyarrow.table([range(t), ["x"] * t], schema=schema) for t in range(tables)]
    rows = [row for part in parts for row in part.to_pylist()]
    text = b"".join(written(iter(parts), "csv")).decode()
    assert text.splitlines() == [*['"a","b"'] * bool(parts), *(f'{r["a"]},"x"' for r in rows)]
    (file,) = written(iter(parts), "parquet")
    if not tables:
        assert file == b""
        return
    read = parquet.ParquetFile(io.BytesIO(file))
    assert read.read().to_pylist() == rows
    # A part without rows is no row group.
    assert read.num_row_groups == max(0, tables - 1)


def test_quantiles_are_those_of_the_normal_distribution() -> None:
    assert normal_quantile(0.975) == pytest.approx(1.959963984540054, rel=1e-12)
    assert normal_quantile(0.025) == pytest.approx(-normal_quantile(0.975), rel=1e-12)


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


def test_numbers_are_short_and_what_is_missing_a_dash() -> None:
    cells = [0.123456, np.float64(123456), 12345678, np.float64("nan"), None, "0.123456"]
    page = to_html("", ["a"], [cells], "")
    shown = [cell.split(">")[1].split("<")[0] for cell in page.split("<td")[1:]]
    assert shown == ["0.1235", "1.235e+05", "12345678", "–", "–", "0.123456"]


def test_labels_are_text_never_markup() -> None:
    page = to_html("<i>", ["<b>"], [["<script>", float("nan")]], "<u>")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "–" in page
    for tag in ("<i>", "<b>", "<u>"):
        assert tag not in page
