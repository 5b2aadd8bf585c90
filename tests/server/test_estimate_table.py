"""One set of columns for estimates, whoever made them: tables concatenate and join."""

import json
from itertools import product
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import loloha
from loloha.datasets import Dataset
from loloha.errors import ParameterError
from loloha.server import estimate_table as tables
from loloha.server.estimate_table import COLUMNS, EstimateTable
from loloha.server.frame import written

SERIES: dict[str, Any] = {
    "campaign": "c", "level": 0.95, "value": [0, 1], "label": ["a", "b"], "round": [0, 1, 2],
    "start": ["2026-01-05", "2026-01-06", "2026-01-07"], "n": [3, 4, 5],
    **{name: [[0.5, None], None, [0.1, 0.2]] for name in tables.NUMBERS},
}  # fmt: skip


def simulation() -> Any:
    values = np.array([[0, 1], [1, 1], [1, 0], [0, 0]], dtype=np.int16)
    data = Dataset(values, (1, 2), "made", "user", "Made up.", ("2026-01-05", "2026-01-06"))
    return loloha.simulate(loloha.GRR(k=2, eps=1.0), data, rng=1)


def every() -> list[Any]:
    """Of a simulation, of one round without and with a campaign, and of what a collector shows."""
    found = simulation()
    estimate = found.tallies[0].estimate()
    named = estimate.table(labels="ab", round=7, start="2026-01-12", campaign="c")
    return [found, estimate, named, EstimateTable.from_series(SERIES)]


def test_tables_of_every_origin_have_one_schema() -> None:
    frames = [pyarrow.table(one) for one in every()]
    for frame in frames:
        assert frame.column_names[: len(COLUMNS)] == list(COLUMNS)
    whole = pyarrow.concat_tables([frame.select(COLUMNS) for frame in frames])
    assert whole.num_rows == 4 + 2 + 2 + 4
    assert len(polars.concat([polars.DataFrame(frame.select(COLUMNS)) for frame in frames])) == 12


def test_tables_join_on_when_and_what() -> None:
    found = simulation().to_frame(backend="polars")
    shown = EstimateTable.from_series(SERIES).to_frame("polars")
    assert len(found.join(shown, on=["round", "value"])) == 2
    assert len(found.join(shown, on=["start", "value"])) == 2
    merged = found.to_pandas().merge(shown.to_pandas(), on=["start", "value"])
    assert merged["estimate_y"].isna().tolist() == [False, True]


def test_a_suppressed_round_has_no_rows_and_what_is_unknown_is_null() -> None:
    frame = EstimateTable.from_series(SERIES).to_frame("pandas")
    assert isinstance(frame, pandas.DataFrame)
    assert frame["round"].tolist() == [0, 0, 2, 2]
    assert frame["n"].tolist() == [3, 3, 5, 5]
    assert frame["label"].tolist() == ["a", "b"] * 2
    assert frame["upper"].isna().tolist() == [False, True, False, False]


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_pieces_are_the_whole(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [pyarrow.table(one) for one in every()]
    monkeypatch.setattr(tables, "ROWS", rows)
    for one, wanted in zip(every(), whole, strict=True):
        assert pyarrow.table(one).equals(wanted)
    pieces = list(EstimateTable.from_series(SERIES).pieces())
    assert max(piece.num_rows for piece in pieces) <= max(rows, 1)
    assert pieces[0].num_rows == 0


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_hold_the_rows_once(form: str) -> None:
    table = EstimateTable.from_series({**SERIES, "parameters": {"g": 2}})
    body = b"".join(written(table.pieces(), form))
    if form == "csv":
        assert body.count(b'"campaign"') == 1
        assert body.count(b"\n") == 1 + 4
        return
    read = pyarrow.parquet.read_table(pyarrow.BufferReader(body))
    assert read.equals(table.to_frame())
    assert json.loads(read.schema.metadata[b"loloha"])["parameters"] == {"g": 2}


def test_chosen_bins_are_rows_of_the_whole() -> None:
    protocol = loloha.DBitFlipPM(k=6, eps_inf=2.0, b=6, d=2)
    values = np.arange(60, dtype=np.int16)[:, None] % 6
    estimate = loloha.simulate(protocol, values, rng=2).tallies[0].estimate()
    assert len(set(estimate.eligible.tolist())) > 1
    chosen = np.array([4, 0, 5])
    for simultaneous, labels in product((False, True), ("abcdef", None)):
        whole = estimate.table(labels=labels, simultaneous=simultaneous).to_frame()
        some = estimate.table(labels=labels, bins=chosen, simultaneous=simultaneous).to_frame()
        assert some.equals(whole.take(chosen))
    with pytest.raises(ParameterError, match="labels must be 6"):
        estimate.table(labels="ab")
