"""Cells of tables: index, look-alikes, identities, instants, declared domains."""

import contextlib
import datetime
import uuid
import warnings
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loloha import datasets
from loloha.campaign import Labels, Range
from loloha.datasets import DataError, Dataset, PrivacyWarning
from loloha.errors import DomainError, LolohaError, ParameterError

LONG = pd.DataFrame({"user": ["u", "w", "u"], "round": [0, 0, 1], "value": ["a", "b", "b"]})
ACCENTED = ("caf\u00e9", "cafe\u0301")


def study(source: Any, **options: Any) -> Dataset:
    with pytest.warns(PrivacyWarning):
        return datasets.table(source, **options)


def cells(data: Dataset) -> list[list[Any]]:
    return [[None if i < 0 else data.labels[i] for i in row] for row in data.values.tolist()]


def ways(frame: pd.DataFrame, tmp_path: Path) -> list[Any]:
    """One pandas frame through every way in that keeps its columns."""
    frame.to_parquet(tmp_path / "p.parquet")
    pl.from_pandas(frame.reset_index()).write_parquet(tmp_path / "q.parquet")
    frame.to_csv(tmp_path / "c.csv")
    frame.to_csv(tmp_path / "c.tsv", sep="\t")
    return [
        frame,
        pa.table(frame),
        pl.from_pandas(frame.reset_index()),
        pl.from_pandas(frame.reset_index()).lazy(),
        duckdb.from_arrow(pa.table(frame)),
        tmp_path / "p.parquet",
        tmp_path / "q.parquet",
        tmp_path / "c.csv",
        tmp_path / "c.tsv",
    ]


@pytest.mark.parametrize("name", ["user", "uid"])
def test_a_named_index_is_the_user_and_never_a_value(name: str, tmp_path: Path) -> None:
    pivot = LONG.pivot(index="user", columns="round", values="value").rename_axis(index=name)
    for source in ways(pivot, tmp_path):
        data = study(source)
        assert (data.labels, data.rounds) == (("a", "b"), ("0", "1"))
        assert cells(data) == [["a", "b"], ["b", None]]


def test_an_index_of_any_name_is_the_user_where_pandas_wrote_it(tmp_path: Path) -> None:
    pivot = LONG.pivot(index="user", columns="round", values="value").rename_axis(index="who")
    for source in ways(pivot, tmp_path):
        if isinstance(source, Path) and source.name == "p.parquet":
            assert study(source).labels == ("a", "b")
        assert study(source, user="who").labels == ("a", "b")
    with pytest.raises(DataError, match="user must differ from row to row"):
        datasets.table(pd.concat([pivot, pivot]))


def test_an_index_of_levels_tells_user_and_round_by_name() -> None:
    levels = LONG.set_index(["user", "round"])
    assert cells(study(levels)) == [["a", "b"], ["b", None]]
    assert cells(study(LONG.set_index("user"))) == [["a", "b"], ["b", None]]
    other = levels.rename_axis(index=["who", "when"])
    with pytest.raises(DataError, match=r"user must be one column.*\['who', 'when'\]"):
        datasets.table(other)
    assert cells(study(other, user="who", round="when")) == [["a", "b"], ["b", None]]


def test_an_index_without_a_name_is_row_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"user": ["u", "w"], "r0": ["a", "b"]}, index=["x", "y"])
    frame.to_parquet(tmp_path / "p.parquet")
    for source in (frame, tmp_path / "p.parquet", pl.read_parquet(tmp_path / "p.parquet")):
        assert study(source).rounds == ("r0",)


def test_what_could_be_two_users_is_asked_and_never_a_round() -> None:
    frame = pd.DataFrame(
        {"user": ["u", "w"], "r0": ["a", "b"]}, index=pd.Index([7, 8], name="session")
    )
    with pytest.raises(DataError, match=r"one column.*\['session', 'user'\]"):
        datasets.table(frame)
    assert study(frame, user="user").rounds == ("r0",)
    with pytest.raises(DataError, match=r"\['id', 'user_id'\]"):
        datasets.table(pa.table({"r0": ["a", "b"], "id": [1, 2], "user_id": [1, 2]}))


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (pd.DataFrame([["a", "b"]], columns=["r", "r"]), r"\['r'\] more than once"),
        (
            pl.DataFrame({"r": ["a"]})
            .to_arrow()
            .rename_columns(["r"])
            .append_column("r", pa.array(["b"])),
            r"\['r'\] more than once",
        ),
        (LONG.pivot(index="user", columns="round", values=["value"]), "one level of names, got 2"),
    ],
)
def test_names_that_do_not_tell_columns_apart_are_refused(frame: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        datasets.table(frame)


def test_days_that_pandas_wrote_as_midnights_are_days(tmp_path: Path) -> None:
    days = pd.to_datetime(["2026-01-05", "2026-01-12"])
    frame = pd.DataFrame([["a", "b"]], columns=days)
    assert study(frame).rounds == ("2026-01-05", "2026-01-12")
    hours = pd.DataFrame([["a", "b"]], columns=days + pd.Timedelta(hours=1))
    assert study(hours).rounds == ("2026-01-05 01:00:00", "2026-01-12 01:00:00")


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("1.9\n1.10\n2.0\n", ("1.10", "1.9", "2.0")),
        ("1E2\n100\n10E1\n", ("100", "10E1", "1E2")),
        ("2\n2.0\n", ("2", "2.0")),
        ("0.50\n0.25\n", ("0.25", "0.50")),
        ("1\n01\n", ("01", "1")),
        ("2.0\n3.0\n", (2, 3)),
        ("0.5\n3\n", (0.5, 3)),
    ],
)
def test_text_is_a_number_only_if_it_reads_back(
    text: str, labels: tuple[Any, ...], tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("r0\n" + text)
    assert study(tmp_path / "t.csv").labels == labels


def test_integers_and_a_column_of_floats_with_gaps_are_one_kind(tmp_path: Path) -> None:
    pd.DataFrame({"r0": [2, 3], "r1": [3.0, None]}).to_csv(tmp_path / "t.csv", index=False)
    assert cells(study(tmp_path / "t.csv")) == [[2, 3], [3, None]]


def test_the_labels_of_a_campaign_decide_the_type(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("user,r0,r1\na,1.9,2.0\nb,1.10,1.8\nc,,1.1\n")
    data = datasets.table(
        tmp_path / "t.csv", domain=Labels(("1.9", "1.10", "2.0", "1.8"), other="older")
    )
    assert cells(data) == [["1.9", "2.0"], ["1.10", "1.8"], [None, "older"]]
    with pytest.raises(DomainError, match="got 1 cell outside"):
        datasets.table(tmp_path / "t.csv", domain=Labels(("1.9", "1.10", "2.0", "1.8")))
    parts = datasets.table(tmp_path / "t.csv", domain=Range(1, 2, 10))
    assert parts.values.tolist() == [[9, 9], [1, 8], [-1, 1]]
    (tmp_path / "t.csv").write_text("r0,r1\n1,NA\n2,2.0\n")
    for domain in (Labels((1, 2)), Labels(("1", "2"), "else"), Range(1, 3, 2)):
        assert datasets.table(tmp_path / "t.csv", domain=domain).values.tolist() == [
            [0, -1],
            [1, 1],
        ]
    named = datasets.table(tmp_path / "t.csv", domain=Labels(("NA", "1", "2"), "else"))
    assert cells(named) == [["1", "NA"], ["2", "else"]]


def test_a_campaign_reads_typed_columns_too() -> None:
    table = pa.table({"r0": pa.array([1, 2], pa.int8()), "r1": pa.array([0.3, None], pa.float32())})
    data = datasets.table(table, domain=Labels(("1", "2", "0.3")))
    assert cells(data) == [["1", "0.3"], ["2", None]]
    lists = pa.table({"r0": pa.array([b"\xff", b"a"])})
    assert datasets.table(lists, domain=Labels(("a", "b"), "else")).values.tolist() == [[2], [0]]


@pytest.mark.parametrize("spelling", [*ACCENTED, f" {ACCENTED[0]}", f"{ACCENTED[1]}\t"])
def test_one_label_has_one_spelling(spelling: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"r0": [spelling, "tea"]}, index=pd.Index([1, 2], name="user"))
    for source in ways(frame, tmp_path):
        assert study(source).labels == (ACCENTED[0], "tea")
        assert cells(datasets.table(source, domain=["tea", ACCENTED[1]])) == [
            [ACCENTED[0]],
            ["tea"],
        ]
    with pytest.raises(ParameterError, match="2, 1 of them different"):
        datasets.table(pa.table({"r0": ["a"]}), domain=list(ACCENTED))


def test_a_narrow_float_is_its_shortest_decimal() -> None:
    narrow = pa.table({"r0": pa.array([0.3, 0.1], pa.float32())})
    assert study(narrow).labels == (0.1, 0.3)
    assert cells(datasets.table(narrow, domain=[0.1, 0.3, 0.5])) == [[0.3], [0.1]]
    half = pa.table({"r0": pa.array([np.float16(0.3), None, np.float16(2)], pa.float16())})
    assert study(half).labels == (0.3, 2.0)
    money = pa.table({"r0": pa.array(["0.30", "0.10"]).cast(pa.decimal128(4, 2))})
    assert datasets.table(money, domain=[0.1, 0.3]).values.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    "users",
    [
        ["ann", "ann "],
        ["ann", "\u00a0ann"],
        list(ACCENTED),
    ],
)
def test_a_user_is_one_whatever_surrounds_the_name(users: list[str]) -> None:
    table = {"user": users, "round": [0, 1], "value": ["a", "b"]}
    assert cells(study(pa.table(table))) == [["a", "b"]]
    with pytest.raises(DataError, match="users again in 1 row;"):
        datasets.table(pa.table({"user": users, "r0": ["a", "b"]}))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([" ", "w"]),
        pa.array(["\u2003", "w"]),
        pa.array([float("nan"), 1.0]),
        pa.array([None, "w"]),
        pa.array(["", "w"]).dictionary_encode(),
    ],
)
def test_nobody_is_no_user(column: Any) -> None:
    with pytest.raises(DataError, match=r"got 1 row without a user \(blank, null or nan\)"):
        datasets.table(pa.table({"user": column, "r0": ["a", "b"]}))


def test_a_gap_among_numbered_users_is_nobody_and_a_name_among_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("user,r0\n7,a\nNA,b\n")
    with pytest.raises(DataError, match="got 1 row without a user"):
        datasets.table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("user,r0\nDE,a\nNA,b\n")
    assert study(tmp_path / "t.csv").n == 2


def test_users_with_an_object_for_a_name_are_distinguished_by_it() -> None:
    who = [uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=1)]
    table = {"user": who, "round": [0, 0, 1], "value": ["a", "b", "b"]}
    expected = [["a", "b"], ["b", None]]
    assert cells(study(pd.DataFrame(table))) == expected
    assert cells(study(pa.table({**table, "user": pa.array(who, pa.uuid())}))) == expected
    objects = pl.DataFrame({**table, "user": pl.Series(who, dtype=pl.Object)})
    for source in (objects, objects.lazy(), objects.select(r0="user")):
        with pytest.raises(DataError, match="Python objects"):
            datasets.table(source)


BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = [
    datetime.datetime(2026, 10, 25, 2, tzinfo=BERLIN, fold=0),
    datetime.datetime(2026, 10, 25, 2, tzinfo=BERLIN, fold=1),
    datetime.datetime(2026, 10, 25, 3, tzinfo=BERLIN),
]


def test_an_hour_that_the_clock_shows_twice_is_two_rounds(tmp_path: Path) -> None:
    stamps = pd.to_datetime([at.astimezone(datetime.UTC) for at in NIGHT]).tz_convert(BERLIN)
    frame = pd.DataFrame({"user": 1, "round": stamps, "value": ["a", "b", "a"]})
    pq.write_table(pa.table(frame), tmp_path / "t.parquet")
    polars = pl.from_pandas(frame.assign(round=stamps.tz_convert("Europe/Berlin")))
    for source in (frame, pa.table(frame), tmp_path / "t.parquet", polars):
        data = study(source)
        assert cells(data) == [["a", "b", "a"]]
        assert [at.astimezone(datetime.UTC).hour for at in data.rounds] == [0, 1, 2]  # type: ignore[attr-defined]
    listed = datasets.table(pa.table({"r0": stamps}), domain=NIGHT)
    assert listed.values.tolist() == [[0], [1], [2]]


@pytest.mark.parametrize("zone", ["Mars/Phobos", "+05:30", "UTC", None])
def test_zones_need_not_be_known_here(zone: str | None) -> None:
    at = pa.array([3_600_000_000, 0], pa.timestamp("us", zone))
    data = study(pa.table({"user": [1, 1], "round": at, "value": ["a", "b"]}))
    assert cells(data) == [["b", "a"]]


LAST = 2**63 - 1


@pytest.mark.parametrize(
    "column",
    [
        pa.array([LAST, 0], pa.timestamp("us")),
        pa.array([LAST, 0], pa.timestamp("s", "UTC")),
        pa.array([LAST, 0], pa.timestamp("ns")),
        pa.array([2**31 - 1, 0], pa.int32()).cast(pa.date32()),
        pa.array([253402300800000, 0], pa.date64()),
        pa.array([LAST, 0], pa.duration("s")),
    ],
    ids=lambda column: str(column.type),
)
def test_times_that_python_does_not_have_are_refused(column: Any) -> None:
    for table in (
        pa.table({"r0": column}),
        pa.table({"user": column, "r0": ["a", "b"]}),
        pa.table({"user": [1, 2], "round": column, "value": ["a", "b"]}),
    ):
        with pytest.raises(DataError, match="years 1 to 9999"):
            datasets.table(table)


@pytest.mark.parametrize(
    "cells",
    ["uuid()", "'{}'::JSON", "1::BIGNUM", "INTERVAL 1 DAY", "{'a': 1}", "[1]", "MAP {1: 2}",
     "'infinity'::DATE", "'infinity'::TIMESTAMP", "'-infinity'::TIMESTAMPTZ",
     "DATE '10000-01-01'", "TIME_NS '12:00:00.123456789'", "TIMESTAMP_NS '2026-01-01 00:00:00.1'",
     "'101'::BIT", "1::UHUGEINT", "1::TINYINT", "0.1::FLOAT", "TIMETZ '12:00:00+01'", "NULL"],
)  # fmt: skip
@pytest.mark.parametrize("way", ["relation", "parquet"])
def test_every_type_of_duckdb_is_read_or_refused(cells: str, way: str, tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT {cells} AS r0, 'x' AS r1 UNION ALL SELECT NULL, 'y'")
        source: Any = relation
        if way == "parquet":
            source = tmp_path / "t.parquet"
            try:
                relation.write_parquet(str(source))
            except duckdb.Error:
                pytest.skip("DuckDB does not write this type")
        # Anything but a typed error fails here.
        with warnings.catch_warnings(), contextlib.suppress(LolohaError):
            warnings.simplefilter("ignore", PrivacyWarning)
            datasets.table(source)


def declarations(tmp_path: Path) -> list[Any]:
    kind = pd.CategoricalDtype(["low", "mid", "high", "top"], ordered=True)
    plain = pd.CategoricalDtype(["low", "mid", "high", "top"])
    columns = {"r0": ["high", "low"], "r1": ["low", None]}
    enum = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Enum(list(kind.categories))))
    frame = pd.DataFrame(columns)
    frame.astype(kind).to_parquet(tmp_path / "pandas.parquet")
    enum.write_parquet(tmp_path / "polars.parquet")
    return [
        frame.astype(kind),
        frame.astype(plain),
        pa.table(frame.astype(kind)),
        enum,
        enum.lazy(),
        enum.to_arrow(),
        tmp_path / "pandas.parquet",
        tmp_path / "polars.parquet",
    ]


def test_a_type_that_declares_the_domain_gives_it_and_its_order(tmp_path: Path) -> None:
    for source in declarations(tmp_path):
        data = datasets.table(source)
        assert data.labels == ("low", "mid", "high", "top")
        assert data.values.tolist() == [[2, 0], [0, -1]]
        assert "domain given" in data.provenance
    with duckdb.connect() as connection:
        data = datasets.table(connection.sql("SELECT 'b'::ENUM('c', 'b', 'a') AS r0"))
    assert data.labels == ("c", "b", "a")


def test_categories_that_were_found_in_the_data_are_no_declaration() -> None:
    frame = pd.DataFrame({"r0": ["b", "a"], "r1": ["a", "b"]}, dtype="category")
    assert study(frame).labels == ("a", "b")
    assert study(pl.DataFrame({"r0": ["b", "a"]}, schema={"r0": pl.Categorical})).labels == (
        "a",
        "b",
    )
    assert study(pa.table({"r0": pa.array(["b", "a"]).dictionary_encode()})).labels == ("a", "b")


def test_rounds_keep_the_order_that_their_type_declares() -> None:
    days = pd.CategoricalDtype(["Mon", "Tue", "Wed", "Thu"])
    frame = pd.DataFrame({"user": 1, "round": ["Wed", "Mon", "Tue"], "value": ["a", "b", "c"]})
    assert study(frame.astype({"round": days})).rounds == ("Mon", "Tue", "Wed")
    found = frame.assign(round=pd.Categorical(["r10", "r9", "r1"]))
    assert study(found).rounds == ("r1", "r9", "r10")


@pytest.mark.parametrize(
    "text",
    [
        b"r0,r1\ra,b\rb,a\r",
        b'"r\n0","a;b"\na,b\nb,a\n',
        b"\n\nr0,r1\na,b\nb,a\n",
        b'"' + b"x" * 200_000 + b'",r1\na,b\nb,a\n',
        b"r0," + b"x" * 2_000_000 + b"\na,b\nb,a\n",
        b'r0,r1\n"' + b"x" * 2_000_000 + b'",b\nb,a\n',
    ],
    ids=[
        "carriage returns",
        "quoted header",
        "blank lines",
        "wide quoted",
        "wide name",
        "wide cell",
    ],
)
def test_one_parser_reads_header_and_rows(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(text)
    assert study(tmp_path / "t.csv").values.shape == (2, 2)


@pytest.mark.parametrize(
    "text",
    [
        b"r\xff,r1\na,b\n",
        b"r0,r1\n\xd5,b,c\n",
        b"r0\n\xff\n",
        b"\xff\xfer\x000\x00\n\x00a\x00\n\x00",
        b"",
        b"\n\n",
        b"\x00",
        b"a",
    ],
)
def test_what_is_no_csv_is_refused(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(text)
    with pytest.raises(DataError):
        datasets.table(tmp_path / "t.csv")


@pytest.mark.parametrize("label", [pd.NA, pd.NaT, None, float("nan"), " ", np.datetime64("NaT")])
def test_a_missing_label_is_no_label(label: Any) -> None:
    with pytest.raises(ParameterError, match="none empty"):
        datasets.table(pa.table({"r0": ["a"]}), domain=["a", label])


def test_text_of_a_terminal_that_is_no_utf8_is_refused() -> None:
    with pytest.raises(ParameterError, match="written as UTF-8"):
        datasets.table(pa.table({"r0": ["a"]}), domain=["a", "\udcff"])


@pytest.mark.filterwarnings("ignore")
def test_a_long_table_with_a_further_column_is_no_wide_one() -> None:
    """Columns named round and value are roles, not two rounds; nothing is guessed."""
    table = {
        "user": list(range(12)),
        "round": [1] * 12,
        "value": ["a", "b"] * 6,
        "device": ["x"] * 12,
    }
    with pytest.raises(DataError, match="must be a long or a wide table"):
        datasets.table(pd.DataFrame(table))
    assert datasets.table(pd.DataFrame(table), round="round", value="value").tau == 1
    wide = {name: [str(cell) for cell in column] for name, column in table.items()}
    assert datasets.table(pd.DataFrame(wide), layout="wide", user="user").tau == 3


def test_an_index_without_a_name_is_no_round(tmp_path: Path) -> None:
    frame = pd.DataFrame({"w1": ["a", "b"] * 4, "w2": ["b", "a"] * 4})
    frame.to_csv(tmp_path / "t.csv")
    pd.read_csv(tmp_path / "t.csv").to_csv(tmp_path / "again.csv")
    assert "Unnamed: 0" in (tmp_path / "again.csv").read_text()
    for name in ("t.csv", "again.csv"):
        assert study(tmp_path / name).rounds == ("w1", "w2")
