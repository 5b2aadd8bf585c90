"""Tables written by pyarrow, pandas, polars and DuckDB are read exactly, or refused in one line.

A few examples by default; LOLOHA_FUZZ=20000 is the long run.
"""

import contextlib
import csv
import datetime
import os
import tempfile
import unicodedata
import uuid
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from loloha import datasets
from loloha.campaign import Labels, Range
from loloha.datasets import DataError
from loloha.errors import LolohaError

FUZZ = settings(
    max_examples=int(os.environ.get("LOLOHA_FUZZ", "20")),
    deadline=None,
    # By default the same tables each time; the long run looks for new ones.
    derandomize="LOLOHA_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
ZONES = (None, "UTC", "Europe/Berlin", "America/St_Johns", "+05:30", "Mars/Phobos")
WORDS = st.text(max_size=4) | st.sampled_from(
    ["a", "a ", "\u00e9", "e\u0301", "1", "1.0", "1.10", "1E2", "01", "NA", "nan", "null", " ",
     "\u00a0", "True", "inf", "-0", "a,b", 'a"b', "a\nb", "#N/A", "2026-01-05", "\ufeff"]
)  # fmt: skip
SPANS = st.integers(-(2**62), 2**62) | st.integers(-5, 5).map(lambda n: n * 10**9)


def ints(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(low, high) | st.integers(max(low, -3), 3)


def floats(width: Any) -> st.SearchStrategy[float]:
    return st.floats(width=width) | st.sampled_from([0.5, 1.0, 2.0, -0.0])


KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "string": (pa.string(), WORDS),
    "large_string": (pa.large_string(), WORDS),
    "string_view": (pa.string_view(), WORDS),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), WORDS),
    "bool": (pa.bool_(), st.booleans()),
    "null": (pa.null(), st.none()),
    "date32": (pa.date32(), st.dates()),
    "binary": (pa.binary(), st.binary(max_size=3)),
    "fixed": (pa.binary(2), st.binary(min_size=2, max_size=2)),
    "decimal": (pa.decimal128(8, 2), st.decimals(-99999, 99999, places=2)),
    "wide decimal": (pa.decimal256(40, 0), st.integers(-(10**39), 10**39).map(Decimal)),
    "half": (pa.float16(), floats(16).map(np.float16)),
    "float": (pa.float32(), floats(32)),
    "double": (pa.float64(), floats(64)),
    "time32": (pa.time32("s"), st.times().map(lambda at: at.replace(microsecond=0))),
    "time64": (pa.time64("us"), st.times()),
    "list": (pa.list_(pa.int8()), st.lists(st.integers(0, 3), max_size=2)),
    "struct": (pa.struct({"a": pa.int8()}), st.fixed_dictionaries({"a": st.integers(0, 3)})),
    **{f"int{bits}": (getattr(pa, f"int{bits}")(), ints(bits, True)) for bits in (8, 16, 32, 64)},
    **{
        f"uint{bits}": (getattr(pa, f"uint{bits}")(), ints(bits, False)) for bits in (8, 16, 32, 64)
    },
}
RAW: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    **{f"at {unit} {zone}": (pa.timestamp(unit, zone), SPANS)
       for unit in ("s", "ms", "us", "ns") for zone in ZONES},
    **{f"for {unit}": (pa.duration(unit), SPANS) for unit in ("s", "ms", "us", "ns")},
    "date64": (pa.date64(), st.integers(-(10**6), 10**7).map(lambda day: day * 86_400_000)),
    "time64 ns": (pa.time64("ns"), st.integers(0, 86_399_999).map(lambda ms: ms * 10**6)),
}  # fmt: skip


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    """An array of some type that Arrow has, nulls included."""
    name = draw(st.sampled_from([*KINDS, *RAW, "uuid", "bool8", "json", "runs", "interval"]))
    rows = draw(st.integers(1, 6))

    def cells(strategy: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(st.none() | strategy, min_size=rows, max_size=rows))

    if name in KINDS:
        kind, strategy = KINDS[name]
        return pa.array(cells(strategy), kind)
    if name in RAW:
        kind, strategy = RAW[name]
        wide = pa.int64()
        return pa.array(cells(strategy), wide).cast(kind if name != "date64" else pa.date64())
    if name == "uuid":
        return pa.array(cells(st.uuids().map(lambda one: one.bytes)), pa.uuid())
    if name == "bool8":
        storage = pa.array(cells(st.integers(0, 1)), pa.int8())
        return pa.ExtensionArray.from_storage(pa.bool8(), storage)
    if name == "json":
        return pa.ExtensionArray.from_storage(pa.json_(), pa.array(cells(WORDS), pa.string()))
    if name == "runs":
        return pc.run_end_encode(pa.array(cells(WORDS), pa.string()))
    return pa.array(cells(st.tuples(*3 * [st.integers(0, 3)])), pa.month_day_nano_interval())


def said(cell: Any, kind: pa.DataType) -> Any:
    """What a person says who sees the cell, None for nothing; written without our own rules."""
    if cell is None:
        return None
    if isinstance(cell, bool | np.bool_):
        return ("truth", bool(cell))
    if isinstance(cell, str):
        text = unicodedata.normalize("NFC", cell).strip()
        return ("text", text) if text else None
    if isinstance(cell, uuid.UUID):
        return ("text", str(cell))
    if isinstance(cell, float | np.floating):
        narrow = np.float32(cell) if kind == pa.float32() else cell
        return None if np.isnan(narrow) else ("number", Decimal(str(narrow)))
    if isinstance(cell, int | Decimal | np.integer):
        return ("number", Decimal(cell))
    if isinstance(cell, datetime.datetime):
        zoned = cell.tzinfo is not None
        return ("instant" if zoned else "time", cell.astimezone(datetime.UTC) if zoned else cell)
    return (type(cell).__name__, cell)


def told(label: Any) -> Any:
    """A label as `said` would."""
    return said(label, pa.float64())


def ways(array: pa.Array, folder: Path, name: str) -> Any:
    """The column through one library after the other, where it can hold it."""
    plain = pa.table({name: array, "user": pa.array(range(len(array)))})
    yield "pyarrow", plain
    with contextlib.suppress(Exception):
        pq.write_table(plain, folder / "a.parquet")
        yield "parquet", folder / "a.parquet"
    with contextlib.suppress(Exception):
        yield "pandas", plain.to_pandas()
    with contextlib.suppress(Exception):
        yield "pandas on arrow", plain.to_pandas(types_mapper=pd.ArrowDtype)
    with contextlib.suppress(BaseException):
        frame = pl.from_arrow(plain)
        yield "polars", frame
        frame.write_parquet(folder / "p.parquet")
        yield "polars parquet", folder / "p.parquet"
    with contextlib.suppress(Exception), duckdb.connect() as connection:
        relation = connection.from_arrow(plain)
        yield "duckdb", relation
        relation.write_parquet(str(folder / "d.parquet"))
        yield "duckdb parquet", folder / "d.parquet"


def load(source: Any, **options: Any) -> Any:
    """The data set, or the typed error that refused it; anything else fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return datasets.table(source, **options)
        except LolohaError as error:
            refused = error
    assert ";" in str(refused)
    return refused


def arrow_of(source: Any) -> pa.Table | None:
    """What the library itself says that it wrote."""
    try:
        if isinstance(source, Path):
            return pq.ParquetFile(source).read()
        return pa.table(source)
    except Exception:  # noqa: BLE001 (then there is nothing to compare with)
        return None


def people(table: pa.Table, name: str) -> list[Any] | None:
    """What a person sees in a column, None where even Python cannot show it."""
    try:
        column = table[name]
        kind = column.type
        if isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.bool8":
            return [said(None if cell is None else bool(cell), kind) for cell in column.to_pylist()]
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("us", kind.tz and "UTC"))
        return [said(cell, kind) for cell in column.to_pylist()]
    except (ArithmeticError, ValueError, TypeError, pa.ArrowException):
        return None


@FUZZ
@given(columns())
def test_values_are_what_a_person_says(array: pa.Array) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for way, source in ways(array, Path(folder), "r0"):
            table = None if way == "duckdb" else arrow_of(source)
            data = load(source, user="user")
            if isinstance(data, LolohaError) or table is None:
                continue
            expected = people(table, "r0")
            assert expected is not None, (way, table.schema)
            held = [None if i < 0 else told(data.labels[i]) for i in data.values[:, 0].tolist()]
            assert held == expected, (way, table.schema)


@FUZZ
@given(columns())
def test_users_are_whom_a_person_tells_apart(array: pa.Array) -> None:
    rounds = range(len(array))
    with tempfile.TemporaryDirectory() as folder:
        for way, source in ways(array, Path(folder), "who"):
            table = None if way == "duckdb" else arrow_of(source)
            if table is None:
                load(source)
                continue
            table = table.select(["who"])
            table = table.append_column("round", pa.array(rounds, pa.int64()))
            table = table.append_column("value", pa.array([f"v{t % 2}" for t in rounds]))
            data = load(table, user="who", domain=["v0", "v1"], layout="long")
            expected = people(table, "who")
            if isinstance(data, LolohaError):
                continue
            assert expected is not None
            assert None not in expected, way
            order = list(dict.fromkeys(expected))
            assert data.n == len(order), (way, table.schema)
            for row, who in enumerate(expected):
                assert data.values[order.index(who), row] == row % 2


@FUZZ
@given(
    st.sampled_from([zone for zone in ZONES if zone not in (None, "Mars/Phobos")]),
    st.lists(st.integers(0, 26_000), min_size=1, max_size=8, unique=True),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_rounds_are_instants(zone: str, hours: list[int], unit: str) -> None:
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    start = 1_735_689_600
    at = pa.array([(start + 1800 * hour) * per for hour in hours]).cast(pa.timestamp(unit, zone))
    value = pa.array([f"v{i % 2}" for i in range(len(hours))])
    with tempfile.TemporaryDirectory() as folder:
        for way, source in ways(at, Path(folder), "round"):
            table = None if way == "duckdb" else arrow_of(source)
            if table is None:
                continue
            if "polars" in way and zone == "+05:30":
                continue
            table = table.select(["round"])
            table = table.append_column("user", pa.array([0] * len(hours)))
            table = table.append_column("value", value)
            data = load(table, domain=["v0", "v1"])
            assert not isinstance(data, LolohaError), (way, data)
            assert data.tau == len(hours), way
            expected = [i % 2 for _, i in sorted(zip(hours, range(len(hours)), strict=True))]
            assert data.values[0].tolist() == expected
            stamps = [moment.timestamp() for moment in data.rounds]
            assert stamps == [start + 1800 * hour for hour in sorted(hours)]


@FUZZ
@given(st.data(), st.integers(1, 5), st.integers(1, 3))
def test_cells_of_a_csv_are_one_label_if_they_are_one_text(
    data: st.DataObject, rows: int, tau: int
) -> None:
    words = WORDS.filter(lambda text: "\x00" not in text and "\r" not in text)
    numerals = st.sampled_from(["1", "2", "1.0", "2.0", "1.5", "1.50", "NA", ""])
    cell = data.draw(st.sampled_from([words, numerals, words | numerals]))
    held = data.draw(st.lists(st.lists(cell, min_size=tau, max_size=tau), min_size=rows,
                              max_size=rows))  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(["user", *(f"r{t}" for t in range(tau))])
            writer.writerows([u, *row] for u, row in enumerate(held))
        found = load(path)
    if isinstance(found, LolohaError):
        return
    for u, row in enumerate(held):
        for t, text in enumerate(row):
            index = found.values[u, t]
            clean = unicodedata.normalize("NFC", text).strip()
            if index < 0:
                assert clean in ("", "NA", "NaN", "nan", "null")
                continue
            label = found.labels[index]
            if isinstance(label, str):
                assert label == clean
            else:
                # A number reads back as the text, up to the ".0" of a column with gaps.
                assert str(label) == clean or f"{label}.0" == clean


@FUZZ
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode()),
       st.sampled_from(["t.csv", "t.tsv", "t.csv.gz", "t.parquet"]))  # fmt: skip
def test_files_of_any_bytes_are_read_or_refused(content: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        load(path)
        load(pa.table({"r0": ["a", "b"]}), domain=path)


@FUZZ
@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=8))
def test_damaged_parquet_is_refused(place: int, noise: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        pq.write_table(pa.table({"user": ["u", "w"], "r0": ["secret-7351", "b"]}), path)
        content = bytearray(path.read_bytes())
        start = place % len(content)
        content[start : start + len(noise)] = noise
        path.write_bytes(content)
        found = load(path)
        if isinstance(found, LolohaError):
            assert "secret-7351" not in str(found)


@FUZZ
@given(columns(), st.booleans())
def test_a_campaign_reads_a_cell_as_a_device_would(array: pa.Array, ranged: bool) -> None:
    # Arrow's own scalar cannot be shown in a zone that is not known here; its column is, in UTC.
    assume("Mars" not in str(array.type))
    domain: Any = Range(-3, 3, 6, "else") if ranged else Labels(("a", "1", "2.5", "\u00e9"), "else")
    data = load(pa.table({"r0": array}), domain=domain)
    if isinstance(data, LolohaError):
        return
    for row, index in enumerate(data.values[:, 0].tolist()):
        cell = array[row]
        if array.type == pa.float32():
            cell = np.float32(np.nan if cell.as_py() is None else cell.as_py())
        if index == -1:
            with pytest.raises(LolohaError, match="missing or blank"):
                domain.index(cell)
        else:
            place = domain.index(cell)
            assert index == (domain.k - 1 if place is None else place)


def test_a_message_of_another_library_is_never_passed_on() -> None:
    with pytest.raises(DataError) as caught:
        datasets.table(pd.DataFrame({"r0": ["secret-7351", 5, object()]}))
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_oracle_tells_the_hour_that_comes_twice() -> None:
    night = [
        datetime.datetime(2026, 10, 25, 2, tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)
        for fold in (0, 1)
    ]
    assert night[0] == night[1]
    assert said(night[0], None) != said(night[1], None)
