"""A user's own table: layouts, types of labels, domains, and every way it can be unusable."""

import bz2
import datetime
import decimal
import gzip
import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import duckdb
import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loloha import datasets
from loloha.campaign.domain import Range
from loloha.campaign.scalar import alike, clean
from loloha.datasets import DataError, Dataset, ExtraError, PrivacyWarning, label, layout
from loloha.errors import DomainError, ParameterError

SECRET = "secret-7351"
LONG = {"user": ["u", "u", "w"], "round": [1, 0, 0], "value": ["b", "a", "b"]}


def study(source: Any, **options: Any) -> Dataset:
    """Load with the domain read off the data, whose warning a test of its own is about."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", UserWarning)
        found = datasets.table(source, **options)
    assert PrivacyWarning in [one.category for one in seen]
    return found


def cells(data: Dataset) -> list[list[Any]]:
    """Labels by user and round, None where there is no report."""
    return [[None if i < 0 else data.labels[i] for i in row] for row in data.values.tolist()]


def csv(tmp_path: Path, text: str, name: str = "table.csv") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    "rounds",
    [
        ("5.1.2026", "12.1.2026", "2.2.2026"),
        ("1/5/2026", "12/29/2025"),
        ("5-1-26", "12-1-26"),
        ("5.1.", "2.2."),
        ("01/2026", "12/2025"),
        ("Jan 2026", "December 2025"),
        ("5 Jan", "2 Feb, 2026"),
        ("12/29/2025 00:00", "1/5/2026 00:00"),
        ("06.12.2025 08:00", "05.01.2026 08:00"),
        ("Mon 5 Jan 2026", "Thu 8 Jan 2026"),
        ("KW50/2025", "KW1/2026"),
        ("week 50, 2025", "week 1, 2026"),
        ("Q4 2025", "Q1 2026"),
        ("Monday", "Tuesday"),
        ("9 AM", "1 PM"),
        ("2026-01-05T00:00+01:00", "2026-01-04T23:30+00:00"),
    ],
)
def test_rounds_that_are_dates_without_order_are_refused(rounds: tuple[str, ...]) -> None:
    long = {"user": ["u"] * len(rounds), "round": list(rounds), "value": ["a", "b", "a"]}
    long["value"] = long["value"][: len(rounds)]
    with pytest.raises(DataError, match="rounds must sort by time"):
        datasets.table(pd.DataFrame(long))
    ordered = pd.Categorical(rounds, categories=rounds, ordered=True)
    assert study(pd.DataFrame({**long, "round": ordered})).rounds == rounds


@pytest.mark.parametrize(
    "rounds",
    [
        ("2026-01-05", "2026-02-02"),
        ("2026/1/5", "2026/1/12"),
        ("v1.2.3", "v1.2.10"),
        ("week 2", "week 10"),
        ("20260105", "20260112"),
        ("2026Q1", "2026Q2"),
        ("2026-W09", "2026-W10"),
        ("2026-01-05 08:00:00Z", "2026-01-05 20:00:00Z"),
        ("may", "x"),
        ("after", "before"),
        ("w1 d2", "w2 d1"),
    ],
)
def test_rounds_that_sort_are_taken(rounds: tuple[str, str]) -> None:
    """Without a word where their order is their text's; with a warning where it is a guess."""
    long = {"user": ["u", "u"], "round": rounds[::-1], "value": ["a", "b"]}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert datasets.table(pd.DataFrame(long), domain=["a", "b"]).rounds == rounds
    is_guess = rounds[0] in ("may", "after", "w1 d2")
    assert [str(one.message)[:24] for one in seen] == ["rounds are sorted as text"[:24]] * is_guess


def test_times_that_are_taken_for_values_bring_a_warning() -> None:
    """Columns of labels that no other has; fewer than ten reports tell nothing."""

    def told(table: dict[str, list[str]]) -> list[str]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            datasets.table(pd.DataFrame(table))
        return [str(one.message) for one in seen if "no other column" in str(one.message)]

    weeks = ["w1", "w2"] * 6
    values = {"r1": ["a", "b", "c"] * 4, "r2": ["a", "c", "a"] * 4}
    assert not told(values)
    assert "['week']" in told({"week": weeks, **values})[0]
    assert not told({"week": weeks[:9], "r1": values["r1"][:9]})


def test_words_for_a_missing_value_that_become_labels_bring_a_warning(tmp_path: Path) -> None:
    """Once each, in any case, and nothing else of the cells; not where the domain is given."""
    file = csv(tmp_path, f"user,page\nann,{SECRET}\nbob,NA\ncy,n/a\ndee,na\neve,None\n")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        data = datasets.table(file)
    assert data.k == 5
    assert [one.category for one in seen] == [PrivacyWarning, UserWarning]
    assert "include NA, N/A, None, which" in str(seen[1].message)
    assert not any(SECRET in str(one.message) for one in seen)
    datasets.table(csv(tmp_path, "user,page\nann,a\nbob,NA\n"), domain=["a", "NA"])
    assert cells(study(csv(tmp_path, "user,page\nann,1\nbob,NA\ncy,2\n"))) == [[1], [None], [2]]


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["a", "b", "-1"], "-1"),
        ([0, 5, -1], "-1"),
        ([-2, 5, -1], ""),
        ([number / 8 for number in range(40)], "loloha.campaign.Range"),
        ([number / 8 for number in range(20)], ""),
        (list(range(40)), ""),
    ],
)
def test_labels_that_may_be_gaps_or_measurements_bring_a_warning(
    cells: list[Any], says: str
) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        datasets.table(pa.table({"r0": cells * 2}))
    told = [str(one.message) for one in seen if one.category is UserWarning]
    assert len(told) == bool(says)
    assert all(says in one for one in told)


def test_a_wide_table_has_a_row_a_user_and_a_column_a_round() -> None:
    data = study(pa.table({"Mon": ["b", "a", None], "Tue": ["a", "", "c"]}))
    assert data.labels == ("a", "b", "c")
    assert data.rounds == ("Mon", "Tue")
    assert data.values.tolist() == [[1, 0], [0, -1], [-1, 2]]
    assert (data.source, data.name) == ("user", "table")
    assert data.provenance == (
        "User table 'table', domain read off the data (n = 3, k = 3, tau = 2)."
    )


@pytest.mark.parametrize("first", ["user", "User_ID", "uid", "id", "userid"])
def test_a_first_column_that_names_users_is_no_round(first: str) -> None:
    assert study(pa.table({first: [7, 8], "r0": [1, 2]})).rounds == ("r0",)


def test_a_column_of_users_can_be_named_and_stand_anywhere() -> None:
    data = study(pa.table({"r0": [1, 2], "who": ["x", "y"], "r1": [2, 2]}), user="who")
    assert data.rounds == ("r0", "r1")


def test_columns_without_a_name_are_left_out(tmp_path: Path) -> None:
    data = study(csv(tmp_path, ",r0,r1,\n0,a,b,\n1,b,b,\n"))
    assert cells(data) == [["a", "b"], ["b", "b"]]


def test_a_long_table_is_known_by_its_columns() -> None:
    data = study(pa.table(LONG))
    assert cells(data) == [["a", "b"], ["b", None]]
    assert data.rounds == (0, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"layout": "long"},
        {"value": "value"},
        {"round": "round"},
        {"user": "user", "round": "round", "value": "value"},
    ],
)
def test_a_long_table_with_more_columns_is_long_if_its_columns_are_named(
    options: dict[str, str],
) -> None:
    data = study(pa.table(LONG | {"country": ["MT", "MT", "DE"]}), **options)
    assert cells(data) == [["a", "b"], ["b", None]]


def test_columns_of_a_long_table_can_have_any_name() -> None:
    table = pa.table({"at": [1, 0], "what": ["a", "b"], "who": [5, 5], "user": [1, 1]})
    data = study(table, user="who", round="at", value="what")
    assert cells(data) == [["b", "a"]]


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        ([10, 9, -1], (-1, 9, 10)),
        (["r10", "r9", "r1"], ("r1", "r9", "r10")),
        (["2024-10-02", "2024-09-30", "2024-10-01"], ("2024-09-30", "2024-10-01", "2024-10-02")),
        ([2.5, 1.0, 2.0], (1.0, 2.0, 2.5)),
        (["x01", "x1", "x"], ("x", "x01", "x1")),
        (
            [datetime.date(2024, 2, 1), datetime.date(2023, 12, 31), datetime.date(2024, 1, 1)],
            (datetime.date(2023, 12, 31), datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)),
        ),
    ],
)
def test_rounds_come_in_their_natural_order(rounds: list[Any], expected: tuple[Any, ...]) -> None:
    table = pa.table({"user": [0, 0, 0], "round": rounds, "value": [1, 2, 3]})
    assert study(table).rounds == expected


def test_numbered_rounds_of_a_csv_are_sorted_as_numbers(tmp_path: Path) -> None:
    data = study(csv(tmp_path, "user,round,value\nu,10,a\nu,9,b\n"))
    assert data.rounds == (9, 10)
    assert cells(data) == [["b", "a"]]


@pytest.mark.parametrize(
    ("rounds", "gaps"),
    [
        (["2026-01-05", "2026-01-12", "2026-01-26", "2026-02-02"], 1),
        (["2026-01-05", "2026-01-12", "2026-01-19"], 0),
        (["2026-01-01", "2026-02-01", "2026-03-01"], 0),
        (["2025-11", "2025-12", "2026-03"], 1),
        (["2026-01-05 08:00", "2026-01-05 09:00", "2026-01-05 11:00", "2026-01-05 14:00"], 2),
        ([datetime.date(2023, 1, 1), datetime.date(2024, 1, 1), datetime.date(2026, 1, 1)], 1),
        ([1, 2, 5], 1),
        ([20260130, 20260131, 20260201], 0),
        ([202611, 202612, 202701], 0),
        (["2026-W01", "2026-W02", "2026-W05"], 1),
        (["before", "after"], 0),
        ([7], 0),
    ],
)
@pytest.mark.parametrize("layout", ["long", "wide"])
def test_rounds_that_seem_to_be_missing_are_counted(
    rounds: list[Any], gaps: int, layout: str
) -> None:
    values = ["a", "b", "a", "b"][: len(rounds)]
    table: dict[str, list[Any]] = {str(each): ["a", "b"] for each in rounds}
    if layout == "long":
        table = {"user": [0] * len(rounds), "round": rounds, "value": values}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        datasets.table(pa.table(table), domain=["a", "b"], layout=layout)
    said = [text for each in caught if "steps between" in (text := str(each.message))]
    assert len(said) == (gaps > 0)
    assert all(f"{gaps} of {len(rounds) - 1} steps" in text for text in said)


def test_a_missing_round_that_is_added_blank_is_a_round_without_reports() -> None:
    rounds = ["2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26"]
    table = {"user": [0] * 4, "round": rounds, "value": ["a", None, "a", "b"]}
    data = datasets.table(pa.table(table), domain=["a", "b"])
    assert data.reports.tolist() == [1, 0, 1, 1]


def test_a_report_given_twice_counts_once_and_a_gap_contradicts_nothing() -> None:
    table = {"user": [0, 0, 0, 1], "round": [0, 0, 0, 0], "value": ["a", None, "a", "b"]}
    assert cells(study(pa.table(table))) == [["a"], ["b"]]


def test_two_values_for_a_user_and_round_are_refused_by_number() -> None:
    users, values = [0, 0, 1, 1, 1], [SECRET, "b", "a", "a", "b"]
    for rows, says in ((5, "3 rows repeat a user"), (2, "1 row repeats a user")):
        table = {"user": users[:rows], "round": [0] * rows, "value": values[:rows]}
        with pytest.raises(DataError, match=says) as caught:
            datasets.table(pa.table(table))
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([3, 1]), (1, 3)),
        (pa.array([3, 1], pa.uint8()), (1, 3)),
        (pa.array([0.5, -1.0]), (-1.0, 0.5)),
        (pa.array([2.0, float("nan"), 1.0, None]), (1, 2)),
        (pa.array([True, False]), (False, True)),
        (pa.array(["10", "9"]), ("10", "9")),
        (pa.array(["b", "a"], pa.string_view()), ("a", "b")),
        (pa.array(["b", "a"]).dictionary_encode(), ("a", "b")),
        (pa.array([b"b", b"a"]), (b"a", b"b")),
        (pa.array([datetime.date(2024, 1, 2), datetime.date(2023, 1, 2)]),
         (datetime.date(2023, 1, 2), datetime.date(2024, 1, 2))),
        (pa.array([2 * 10**9, 10**9], pa.timestamp("ns", "UTC")),
         (datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC),
          datetime.datetime(1970, 1, 1, 0, 0, 2, tzinfo=datetime.UTC))),
        (pa.array([2000, 1000], pa.time64("ns")),
         (datetime.time(microsecond=1), datetime.time(microsecond=2))),
        (pa.array([2000, 1000], pa.duration("ns")),
         (datetime.timedelta(microseconds=1), datetime.timedelta(microseconds=2))),
        (pa.array([decimal.Decimal("1.5"), decimal.Decimal("0.5")]),
         (decimal.Decimal("0.5"), decimal.Decimal("1.5"))),
    ],
    ids=str,
)  # fmt: skip
def test_labels_keep_the_type_of_their_column(column: Any, expected: tuple[Any, ...]) -> None:
    data = study(pa.table({"r0": column}))
    assert data.labels == expected
    assert list(map(type, data.labels)) == list(map(type, expected))


def test_integers_and_floats_compare_by_value() -> None:
    data = study(pa.table({"r0": [1, 2], "r1": [2.0, None], "r2": pa.nulls(2)}))
    assert data.labels == (1, 2)
    assert cells(data) == [[1, 2, None], [2, None, None]]
    assert study(pa.table({"r0": [1, 2], "r1": [2.5, 1.0]})).labels == (1, 2, 2.5)
    exact = study(pa.table({"r0": [2**53 + 1], "r1": [float(2**53)]}))
    assert exact.labels == (2**53, 2**53 + 1)


def test_truth_is_not_the_number_1() -> None:
    table = pa.table({"r0": [True, False], "r1": [1, 0]})
    with pytest.raises(DataError, match="one kind, got numbers and true/false"):
        datasets.table(table)
    with pytest.raises(DomainError, match="got 2 cells outside"):
        datasets.table(table, domain=[0, 1])
    assert cells(datasets.table(table, domain=[0, 1, True, False])) == [[True, 1], [False, 0]]


def test_a_csv_of_plain_numbers_has_numbers_for_labels(tmp_path: Path) -> None:
    file = csv(tmp_path, "user,r0,r1\nu,10,NA\nv, 9,\nw,2.0,nan\n")
    data = study(file)
    assert data.labels == (2, 9, 10)
    assert cells(data) == [[10, None], [9, None], [2, None]]
    assert study(csv(tmp_path, "r0,r1\n1,2.5\n1e-05,2\n")).labels == (1e-05, 1, 2, 2.5)


@pytest.mark.parametrize("code", ["007", "+7", "1e3", "1.10", "x", "7" * 19, "1_0", "٣"])
def test_one_code_in_a_csv_makes_every_label_text(tmp_path: Path, code: str) -> None:
    data = study(csv(tmp_path, f"r0,r1\n10,{code}\n9,NA\n"))
    assert data.labels == tuple(sorted(["10", code, "9", "NA"]))


INFINITE = ["inf", "-INF", "+Infinity", "1e999", "-1E400", "NAN", "-nan", "nan(ind)", "\u221e"]


@pytest.mark.parametrize("number", INFINITE)
def test_numbers_of_a_csv_that_are_not_finite_are_refused(tmp_path: Path, number: str) -> None:
    """As labels, of a list too, and as rounds; among words they are words."""
    for text, options in (
        (f"r0,r1\n10,{number}\n2.50,NA\n", {}),
        (f"user,round,value\na,1,x\na,{number},y\n", {}),
    ):
        with pytest.raises(DataError, match="numbers must be finite, got 1 that"):
            study(csv(tmp_path, text), **options)
    listed = tmp_path / "labels.txt"
    listed.write_text(f"10\n9\n{number}\n", encoding="utf-8")
    with pytest.raises(DataError, match="numbers must be finite, got 1 that"):
        study(csv(tmp_path, "r0,r1\n10,9\n9,9\n"), domain=listed)
    words = study(csv(tmp_path, f"r0,r1\n10,{number}\n9,ten\n"))
    assert set(words.labels) == {"10", number, "9", "ten"}
    agreed = Range(0, 10, 2)
    with pytest.raises(DomainError, match=r"got 1 cell outside .each must be a number from 0 to"):
        study(csv(tmp_path, f"r0,r1\n10,{number}\n9,2\n"), domain=agreed)


FLOATS = np.array([[1.5, 2.0], [math.inf, 2.0], [1.5, 1.5]])


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (FLOATS, {}),
        (-FLOATS.astype(np.float32), {}),
        (FLOATS, {"domain": [1.5, 2.0, math.inf]}),
        (
            pd.DataFrame({"r0": pd.Categorical(FLOATS[:, 0]), "r1": pd.Categorical(FLOATS[:, 0])}),
            {},
        ),
        (pa.table({"user": [1, 1], "round": FLOATS[:2, 0], "value": ["x", "y"]}), {}),
        (pa.table({"user": FLOATS[:, 0] + [0, 0, 1], "r1": [1, 2, 1]}), {}),
    ],
)
def test_numbers_that_are_not_finite_are_no_label_round_or_user(
    source: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(DataError, match=r"finite|told from"):
        study(source, **options)


def test_text_in_a_csv_loses_the_blanks_around_it(tmp_path: Path) -> None:
    data = study(csv(tmp_path, "r0, r1\nred, red\n blue,\n"))
    assert cells(data) == [["red", "red"], ["blue", None]]


@pytest.mark.parametrize(
    "text", ["r0;r1\n1,5;a\nb;a\n", "r0\tr1\n1,5\ta\nb\ta\n", '\ufeffr0,r1\r\n"1,5",a\r\nb,a\r\n']
)
def test_delimiters_and_marks_of_other_programs_are_understood(tmp_path: Path, text: str) -> None:
    data = study(csv(tmp_path, text))
    assert data.rounds == ("r0", "r1")
    assert cells(data) == [["1,5", "a"], ["b", "a"]]


def test_quoted_cells_can_span_lines(tmp_path: Path) -> None:
    assert study(csv(tmp_path, 'r0\n"a\nb"\nc\n')).labels == ("a\nb", "c")


@pytest.mark.parametrize(
    "text",
    [
        'r0,r1\na,b\nb,"a\na,b\nb,a\n',
        'r0,r1\na,b\nb,"a',
        'r0,r1\na,b\nb,"a"",b\n',
        'r0\r\na\r\n"b\r\na\r\n',
        'r0,r1\na,b\nb,"a\n,,end of the file\n',
    ],
    ids=["last column", "last line", "doubled", "one column", "its own end"],
)
def test_a_quote_that_is_never_closed_takes_no_row_with_it(tmp_path: Path, text: str) -> None:
    """In the last column it made one cell of all that follows, and their users were gone."""
    with pytest.raises(DataError, match="closed"):
        datasets.table(csv(tmp_path, text))


def test_quotes_inside_of_a_cell_are_its_own(tmp_path: Path) -> None:
    data = study(csv(tmp_path, 'r0,r1\n5",a "b\n"5""",a "b'))
    assert cells(data) == [['5"', 'a "b'], ['5"', 'a "b']]


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_utf_16_without_its_mark_is_no_csv(tmp_path: Path, coding: str) -> None:
    """Its single column had labels with a NUL before and after each letter."""
    file = tmp_path / "t.csv"
    file.write_bytes("r0\na\nb\n".encode(coding))
    with pytest.raises(DataError, match="UTF-16"):
        datasets.table(file)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_csv_files_may_be_compressed(tmp_path: Path, suffix: str, pack: Any) -> None:
    file = tmp_path / f"t.csv{suffix}"
    file.write_bytes(pack(b"r0\na\nb\n"))
    assert study(file).labels == ("a", "b")
    file.write_bytes(b"r0\na\nb\n")
    with pytest.raises(DataError, match="compressed as its suffix says"):
        datasets.table(file)
    file.write_bytes(pack(b"r0\n" + bytes(range(48, 58)) * 10**4)[:-20])
    with pytest.raises(DataError, match="must be a CSV"):
        datasets.table(file)


def test_parquet_is_read_with_its_types(tmp_path: Path) -> None:
    file = tmp_path / "settings.parquet"
    pq.write_table(pa.table(LONG), file)
    data = study(str(file))
    assert cells(data) == [["a", "b"], ["b", None]]
    assert data.name == "settings"
    assert study(file, name="other").name == "other"


def frames() -> list[Any]:
    columns = {"r0": ["a", "b"], "r1": ["b", None]}
    frame = pl.DataFrame(columns)
    return [
        pytest.param(pa.table(columns), id="pyarrow"),
        pytest.param(pa.table(columns).to_reader(), id="stream"),
        pytest.param(pd.DataFrame(columns), id="pandas"),
        pytest.param(pd.DataFrame(columns, dtype="category"), id="categories"),
        pytest.param(pd.DataFrame(columns, index=["x", "y"]), id="pandas-index"),
        pytest.param(frame, id="polars"),
        pytest.param(frame.cast(pl.Categorical), id="polars-categories"),
        pytest.param(frame.lazy(), id="polars-lazy"),
        pytest.param(narwhals.from_native(frame), id="narwhals"),
        pytest.param(narwhals.from_native(frame.lazy()), id="narwhals-lazy"),
        pytest.param(duckdb.from_arrow(pa.table(columns)), id="duckdb"),
        pytest.param(np.array([["a", "b"], ["b", ""]]), id="numpy"),
        pytest.param(np.array([["a", "b"], ["b", None]], dtype=object), id="numpy-object"),
    ]


@pytest.mark.parametrize("frame", frames())
def test_any_frame_is_understood(frame: Any) -> None:
    data = study(frame)
    assert data.values.tolist() == [[0, 1], [1, -1]]
    assert data.labels == ("a", "b")


def test_a_frame_without_an_arrow_stream_goes_through_narwhals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(pd.DataFrame, "__arrow_c_stream__")
    assert cells(study(pd.DataFrame({"r0": ["a", "b"]}, index=[5, 3]))) == [["a"], ["b"]]


def test_a_named_index_of_pandas_is_a_column() -> None:
    frame = pd.DataFrame({"r0": [1.0, None], "r1": [2, 3]}, index=pd.Index(["x", "y"], name="who"))
    data = study(frame, user="who")
    assert cells(data) == [[1, 2], [None, 3]]


def test_a_given_domain_fixes_the_index_and_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = datasets.table(pa.table({"r0": ["b", "b"]}), domain=["c", "b", "a"])
    assert data.labels == ("c", "b", "a")
    assert data.values.tolist() == [[1], [1]]
    assert "domain given" in data.provenance


@pytest.mark.parametrize(
    "domain",
    [
        (1, 2, 3),
        range(1, 4),
        np.arange(1, 4),
        pd.Series([1, 2, 3]),
        pl.Series([1, 2, 3]),
        pa.array([1, 2, 3]),
        [1.0, 2.0, 3.0],
        iter([1, 2, 3]),
    ],
    ids=lambda domain: type(domain).__name__,
)
def test_a_domain_can_be_any_ordered_list(domain: Any) -> None:
    data = datasets.table(pa.table({"r0": [3, 1]}), domain=domain)
    assert data.values.tolist() == [[2], [0]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("domain.json", json.dumps([3, 1, 2])),
        ("domain.json", json.dumps({"labels": [3, 1, 2], "name": "x"})),
        ("domain.txt", "3\n 1 \n\n2\n"),
        ("domain", "3\n1\n2"),
        ("domain.csv", "meaning,label\nmost,3\nleast,1\nmiddle,2\n"),
        ("domain.csv", "Label ;meaning\n3;most\n1;least\n2;middle\n"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "typed"])
def test_a_domain_can_come_from_a_file(tmp_path: Path, name: str, content: str, kind: str) -> None:
    source = csv(tmp_path, "r0\n1\n2\n") if kind == "csv" else pa.table({"r0": [1, 2]})
    domain = csv(tmp_path, content, name)
    for path in (domain, str(domain)):
        data = datasets.table(source, domain=path)
        assert data.labels == (3, 1, 2)
        assert data.values.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.csv", "page,week\na,b\nb,a\n"),
        ("d.csv", "user\nu1\nu2\n"),
        ("d.csv", "red\ngreen\nblue\n"),
        ("d.txt", "user,page\nu1,a\nu2,b\n"),
    ],
)
def test_a_table_is_no_list_of_labels(tmp_path: Path, name: str, content: str) -> None:
    with pytest.raises(DataError, match="a column named label") as caught:
        datasets.table(pa.table({"r0": ["a", "b"]}), domain=csv(tmp_path, content, name))
    assert "u1" not in str(caught.value)


def test_a_domain_of_text_keeps_a_csv_text(tmp_path: Path) -> None:
    file = csv(tmp_path, "r0\n1\nNA\n")
    assert cells(datasets.table(file, domain=["1", "NA"])) == [["1"], ["NA"]]
    assert cells(datasets.table(file, domain=[1, 2])) == [[1], [None]]
    mixed = datasets.table(file, domain=[1, "NA"])
    assert cells(mixed) == [[1], ["NA"]]
    typed = datasets.table(pa.table({"r0": ["1"]}), domain=csv(tmp_path, "1\n2\n", "d.txt"))
    assert typed.labels == ("1", "2")


def test_dates_are_found_by_their_text(tmp_path: Path) -> None:
    day = datetime.date(2024, 1, 2)
    file = csv(tmp_path, "r0\n2024-01-02\n")
    assert cells(datasets.table(file, domain=[day, datetime.date(2024, 1, 3)])) == [[day]]
    listed = csv(tmp_path, "2024-01-02\n2024-01-03\n", "days.txt")
    assert cells(datasets.table(pa.table({"r0": [day]}), domain=listed)) == [["2024-01-02"]]


def test_cells_outside_the_domain_are_counted_and_not_shown() -> None:
    table = pa.table({"r0": ["a", SECRET, "b"], "r1": [SECRET, "a", None]})
    with pytest.raises(DomainError, match=r"got 2 cells outside;.*on_unknown='missing'") as caught:
        datasets.table(table, domain=["a", "b"])
    assert SECRET not in str(caught.value)
    data = datasets.table(table, domain=["a", "b"], on_unknown="missing")
    assert cells(data) == [["a", None], [None, "a"], ["b", None]]


def test_a_domain_of_another_kind_is_distinguished() -> None:
    with pytest.raises(
        DomainError, match=r"2 cells outside \(text, where the domain has numbers\)"
    ):
        datasets.table(pa.table({"r0": ["1", "2", None]}), domain=[1, 2])


def test_the_warning_points_at_the_caller_and_says_what_a_deployment_needs() -> None:
    with pytest.warns(PrivacyWarning, match="public list") as seen:
        datasets.table(pa.table({"r0": ["a", "b"]}))
    assert seen[0].filename == __file__


TABLE = pa.table({"r0": ["a", "b"], "r1": ["a", "b"]})


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        (TABLE, {"layout": "tall"}, "layout must be one of"),
        (TABLE, {"on_unknown": "drop"}, "on_unknown must be one of"),
        (TABLE, {"user": "who"}, r"user must be one of \['r0', 'r1'\], got 'who'"),
        (TABLE, {"round": "week"}, "round must be one of"),
        (TABLE, {"layout": "wide", "value": "r0"}, "left out for a wide table"),
        (
            TABLE,
            {"layout": "long"},
            "this looks like a long table; name its columns with user= and round= and value=",
        ),
        (TABLE, {"user": "r0", "round": "r0", "value": "r1"}, "three columns"),
        (pa.table({f"c{i}": [1] for i in range(10)}), {"user": "x"}, "and 2 more"),
        (TABLE, {"domain": ["a"]}, "at least two labels"),
        (TABLE, {"domain": ["a", "a", "b"]}, "3, 2 of them different"),
        (TABLE, {"domain": ["a", None]}, "none empty"),
        (TABLE, {"domain": ["a", ""]}, "none empty"),
        (TABLE, {"domain": [1.0, float("nan")]}, "none empty"),
        (TABLE, {"domain": [["a"], ["b"]]}, "hashable"),
        (TABLE, {"domain": {"a", "b"}}, "fixed order.*got set"),
        (TABLE, {"domain": 3}, "got int"),
    ],
)
def test_bad_arguments_are_refused(source: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        datasets.table(source, **options)


ZONES = ((0, None), (1, "UTC"))


def long(**columns: list[Any]) -> Any:
    return pa.table(LONG | columns)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (pa.table({"r0": pa.array([], pa.string())}), "got 0 rows of 1 column;"),
        (pa.table({}), "got 0 rows of 0 columns"),
        (pa.table([[1], [2]], names=["a", "a"]), r"column names must differ, got \['a'\]"),
        (pa.table({"user": [1, 2]}), "column for each round"),
        (pa.table({" ": [1, 2]}), "got 2 rows of 0 columns"),
        (pa.table({"user": [1, 2, 1], "r0": [1, 2, 3]}), "users again in 1 row;"),
        (pa.table({"user": ["x", ""], "r0": [1, 2]}), "got 1 row without"),
        (pa.table({"r0": ["a", "a"]}), "two different labels, got 1"),
        (pa.table({"r0": pa.nulls(2)}), "two different labels, got 0"),
        (pa.table({"r0": ["a"], "r1": [1]}), "one kind, got numbers and text"),
        (pa.table({"r0": [[1], [2]]}), "column of list"),
        (
            pa.table({f"r{i}": pa.array([i], pa.timestamp("s", zone)) for i, zone in ZONES}),
            "got times and times with a zone",
        ),
        (pa.table({"r0": pa.array([1, 2], pa.timestamp("ns"))}), "whole microseconds"),
        (long(user=["x", None, "y"]), "got 1 row without"),
        (long(user=pa.nulls(3)), "got 3 rows without"),
        (long(round=[1, None, 2]), "round must be filled in every row, got 1 row "),
        (pd.DataFrame({"r0": [SECRET, 1]}), "hold one type, of those that Arrow has"),
        (np.array([1, 2]), "two dimensions.*got 1"),
        (np.zeros((2, 2, 2)), "two dimensions.*got 3"),
        (np.array([[1 + 2j]]), "hold one type, of those that Arrow has"),
        (3, "got int"),
        (None, "got NoneType"),
        ([[1, 2]], "got list"),
    ],
)
def test_unusable_tables_are_refused(source: Any, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        datasets.table(source)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_table_without_a_single_report_is_refused() -> None:
    with pytest.raises(DataError, match="at least one report"):
        datasets.table(pa.table({"r0": [None, ""]}), domain=["a", "b"])
    with pytest.raises(DataError, match="at least one report"):
        datasets.table(pa.table({"r0": ["x"]}), domain=["a", "b"], on_unknown="missing")


def test_too_many_rounds_for_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "LARGEST_MATRIX", 3)
    with pytest.raises(DataError, match="at most 3 cells, got 2 x 2; group times"):
        datasets.table(pa.table(LONG))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.csv", b"", "header line"),
        ("t.csv", b"\n\n", "header line"),
        ("t.csv", b"r0,r1\n", "got 0 rows"),
        ("t.csv", b"r0,r0\n1,2\n", "column names must differ"),
        ("t.csv", b"r0,r1\nsecret-7351\n1,2,3\n4,5\n", "2 rows with another number"),
        ("t.csv", b"r0\nsecret-7351\xff\n", "CSV in UTF-8"),
        ("t.csv", b"\xff\xfer\x000\x00", "got UTF-16; save it as CSV UTF-8"),
        ("t.parquet", b"PAR1 but not really", "must be a Parquet file"),
        ("t.xlsx", b"PK", "must be a CSV or Parquet file"),
    ],
)
def test_unusable_files_are_refused(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        datasets.table(file)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("d.json", "{", "readable UTF-8 file"),
        ("d.json", '{"values": [1, 2]}', "JSON list"),
        ("d.json", '"ab"', "JSON list"),
        ("d.csv", "", "header line"),
        ("d.txt", "one", "at least two labels"),
    ],
)
def test_unusable_files_of_a_domain_are_refused(
    tmp_path: Path, name: str, content: str, says: str
) -> None:
    with pytest.raises((DataError, ParameterError), match=says):
        datasets.table(TABLE, domain=csv(tmp_path, content, name))


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"existing file, got .*nowhere\.csv"):
        datasets.table(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="existing file"):
        datasets.table(tmp_path)
    with pytest.raises(DataError, match="readable UTF-8 file"):
        datasets.table(TABLE, domain=tmp_path / "nowhere.txt")


@pytest.mark.parametrize(
    ("module", "source"), [("pyarrow", TABLE), ("narwhals", pl.LazyFrame({"r0": ["a", "b"]}))]
)
def test_without_a_library_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, source: Any
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ExtraError, match=rf"{module} must be installed.*loloha\[cli\]"):
        datasets.table(source)


LABELS = st.one_of(
    st.lists(st.text().map(clean).filter(bool), min_size=2, max_size=6, unique=True).filter(
        lambda labels: not alike(labels)
    ),
    st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=6, unique=True),
    st.lists(st.dates(), min_size=2, max_size=6, unique=True),
)


@settings(max_examples=40)
@given(st.data(), LABELS, st.integers(1, 5), st.integers(1, 4), st.booleans())
def test_wide_to_long_and_back_changes_nothing(
    data: st.DataObject, labels: list[Any], n: int, tau: int, shuffled: bool
) -> None:
    cell = st.none() | st.sampled_from(labels)
    held = data.draw(st.lists(st.lists(cell, min_size=tau, max_size=tau), min_size=n, max_size=n))
    if not any(value is not None for row in held for value in row):
        held[0][0] = labels[0]
    kind = pa.scalar(labels[0]).type
    wide = pa.table({f"r{t}": pa.array([row[t] for row in held], type=kind) for t in range(tau)})
    first = datasets.table(wide, domain=labels)
    assert cells(first) == held
    rows = [(u, f"r{t}", held[u][t]) for u in range(n) for t in range(tau)]
    if shuffled:
        # Users stay in order of appearance, so only rows of one user change places.
        rows.sort(key=lambda row: (row[0], data.draw(st.integers(0, 9))))
    users, rounds, values = zip(*rows, strict=True)
    long_table = pa.table({"user": users, "round": rounds, "value": pa.array(values, type=kind)})
    second = datasets.table(long_table, domain=labels)
    assert np.array_equal(first.values, second.values)
    assert first.rounds == second.rounds
    back = pa.table(
        {str(name): [row[t] for row in cells(second)] for t, name in enumerate(second.rounds)},
        schema=wide.schema,
    )
    assert back.equals(wide)


@given(st.lists(st.integers(-(10**17), 10**17) | st.floats(-1e9, 1e9), min_size=2, unique=True))
def test_plain_numbers_are_read_as_what_they_are(numbers: list[float]) -> None:
    for number in numbers:
        parsed = label.parse(repr(number))
        assert parsed == number
        assert isinstance(parsed, int) == float(number).is_integer()


def test_work_on_labels_grows_with_the_domain_and_not_with_the_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handled = 0
    original = label.is_missing

    def counting(content: Any) -> bool:
        nonlocal handled
        handled += 1
        return original(content)

    monkeypatch.setattr(label, "is_missing", counting)
    values = np.random.default_rng(1).integers(96, size=(20_000, 12), dtype=np.int16)
    assert np.array_equal(study(values).values, values)
    assert 96 <= handled <= 4 * 96
