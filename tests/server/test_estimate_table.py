"""One set of columns for estimates, whoever made them: tables concatenate and join."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from pyarrow import csv

import loloha
from loloha.datasets import Dataset
from loloha.errors import MergeError, ParameterError
from loloha.server import estimate_table as tables
from loloha.server.estimate_table import COLUMNS, EstimateTable
from loloha.server.frame import written
from loloha.server.observations import Observations

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


def test_what_is_written_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = simulation()
    series = found.observations()
    monkeypatch.chdir(tmp_path)
    for name, write in (("~.parquet", pyarrow.parquet.write_table), ("file:a.csv", csv.write_csv)):
        rows = pyarrow.table(found)
        shuffled = rows.take([3, 0, 2, 1])
        write(shuffled, tmp_path / name)
        table = EstimateTable.read(Path(name))
        assert table.to_frame().select(COLUMNS).equals(rows.select(COLUMNS))
        read = Observations.of_table(table, found.protocol)
        assert read.rounds == list(series.rounds)
        assert (read.n.tolist(), read.start) == ([4, 4], ["2026-01-05", "2026-01-06"])
        assert read.estimates == pytest.approx(series.estimates)
        assert read.eligible.tolist() == [[4, 4], [4, 4]]
    (tmp_path / "none.csv").write_bytes(b"")
    for name in ("none.csv", "missing.parquet"):
        with pytest.raises(ParameterError, match=r"must be a \.csv or \.parquet file"):
            EstimateTable.read(tmp_path / name)


def test_rows_that_are_no_table_of_single_rounds_are_refused() -> None:
    rows = pyarrow.table(simulation())
    other = rows.set_column(0, "campaign", pyarrow.array(["a", "a", "a", "b"]))
    for wrong, said in (
        (rows.drop_columns(["upper", "n"]), "they lack n, upper;"),
        (rows.append_column("unbiased", rows["estimate"]), "got a series"),
        (rows.slice(0, 0), "of one campaign"),
        (other, "of one campaign"),
        (rows.slice(0, 3), "every value once in each round"),
        (rows.take([0, 1, 2, 2]), "every value once in each round"),
        (rows.take([0, 0, 2, 2, 3, 1]), "every value once in each round"),
        (rows.take([0, 1, 2, 3, 0, 1]), "every value once in each round"),
    ):
        with pytest.raises(ParameterError, match=said):
            EstimateTable.from_rows(wrong)
    with pytest.raises(ParameterError, match="it lacks n, upper;"):
        EstimateTable.from_series({k: v for k, v in SERIES.items() if k not in ("n", "upper")})


def test_tables_of_the_same_values_are_joined_round_by_round() -> None:
    one = EstimateTable.from_series(SERIES)
    later = {"round": [3, 4, 5], "n": [7, 8, 9]}
    other = EstimateTable.from_series(SERIES | later)
    joined = EstimateTable.joined([one, other])
    assert joined.to_frame().equals(pyarrow.concat_tables([one.to_frame(), other.to_frame()]))
    assert (joined.round, joined.n) == ([0, 1, 2, 3, 4, 5], [3, 4, 5, 7, 8, 9])
    means = replace(one, more={"mean": [1, 2, 3], "bound": [0, 0, 0]})
    both = EstimateTable.joined([means, replace(other, more={"mean": [4, 5, 6]})])
    assert both.more == {"mean": [1, 2, 3, 4, 5, 6]}
    with pytest.raises(ParameterError, match="must have the same values"):
        EstimateTable.joined([one, EstimateTable.from_series(SERIES | {"value": [0, 2]})])


def test_a_table_is_observed_by_the_protocol_that_it_names() -> None:
    protocol, peer = loloha.GRR(k=2, eps=1.0), loloha.GRR(k=2, eps=2.0)
    table = EstimateTable.from_series(SERIES)
    named = replace(table, about={"parameters": {"protocol": protocol.to_dict()}})
    for seen in (Observations.of_table(table, protocol), Observations.of(named)):
        assert seen.protocol == protocol
        assert seen.n.tolist() == [3, 0, 5]
        assert np.isnan(seen.estimates).tolist() == [[False, True], [True, True], [False, False]]
        assert (seen.labels, seen.campaign) == (["a", "b"], "c")
    with pytest.raises(MergeError, match="must be that of the estimates"):
        Observations.of_table(named, peer)
    unseen = [None, None, None]
    for wrong, said in (
        (table, "protocol must be known"),
        (replace(named, value=[1, 0]), "must have all 2 values"),
        (replace(named, round=[0, None, 2]), "must be of single rounds"),
        (replace(named, estimate=unseen), "must hold estimates, got none"),
    ):
        with pytest.raises(ParameterError, match=said):
            Observations.of(wrong)


def test_of_suppressed_thresholds_the_mean_is_observed() -> None:
    protocol = loloha.OneBit(k=3, eps_inf=2.0, eps_1=1.0)
    rows: dict[str, Any] = {name: [[0.5, np.nan], None, [0.5, 0.25]] for name in tables.NUMBERS}
    table = EstimateTable.from_series(SERIES | rows)
    table = replace(table, more={"mean": [[14.0, 14.0], None, [20.0, 20.0]]})
    seen = Observations.of_table(table, protocol, (10.0, 5.0, "units"))
    assert seen.protocol == replace(protocol, target="mean")
    assert seen.estimates == pytest.approx(np.array([[0.4], [np.nan], [1.0]]), nan_ok=True)
    assert (seen.labels, seen.n.tolist(), seen.eligible.tolist()) == (
        None,
        [3, 0, 5],
        [[3], [0], [5]],
    )
    for without, scale in ((replace(table, more={}), (10.0, 5.0, "units")), (table, None)):
        with pytest.raises(ParameterError, match="every threshold, or the mean"):
            Observations.of_table(without, protocol, scale)
