"""Cells, labels and files that one program writes and another misreads: read right, or refused."""

import io
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest

from loloha import datasets
from loloha.campaign import Labels, Range
from loloha.campaign.domain import domain_from_plain
from loloha.campaign.scalar import skeleton
from loloha.datasets import DataError, csv
from loloha.errors import CampaignError, DomainError

pytestmark = pytest.mark.filterwarnings("ignore::loloha.datasets.PrivacyWarning")
DECIMALS = [pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(10, 2), pa.decimal256(40, 2)]


@pytest.mark.parametrize("kind", DECIMALS, ids=str)
def test_decimals_of_every_width_are_numbers(kind: Any) -> None:
    cells = pa.array([Decimal("1.50"), Decimal("2.00"), None], kind)
    packed = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), cells)
    for column in (cells, packed):
        found = datasets.table(pa.table({"r0": column, "r1": column}))
        assert found.labels == (Decimal("1.50"), Decimal("2.00"))
        assert found.values.tolist() == [[0, 0], [1, 1], [-1, -1]]


def test_runs_are_their_cells() -> None:
    column = pa.compute.run_end_encode(pa.array(["a", "a", "b", None]))
    assert datasets.table(pa.table({"r": column})).values.ravel().tolist() == [0, 0, 1, -1]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_floats_that_are_several_users_or_rounds_are_refused(kind: Any) -> None:
    largest = 1 << {16: 11, 32: 24, 64: 53}[kind.bit_width]
    for first, fits in ((largest - 2, True), (largest, False), (-largest, False)):
        ids = pa.array(np.array([first, first + 1], {16: "f2", 32: "f4", 64: "f8"}[kind.bit_width]))
        for column in (ids, ids.dictionary_encode()):
            for role in ("user", "round"):
                others = {"user": ["a", "b"], "round": ["1", "2"], "value": ["x", "y"]}
                table = pa.table({**others, role: column})
                if fits:
                    assert datasets.table(table).n == 2
                    continue
                with pytest.raises(DataError, match=f"{role} must be text, integers or floats"):
                    datasets.table(table)


@pytest.mark.parametrize("cell", [np.array(0.5), np.array(0.5, "f4"), np.array(0.5, object)])
def test_an_array_of_no_dimension_is_its_scalar(cell: Any) -> None:
    assert Range(0, 1, 10, "other").index(cell) == 5
    assert Labels(("0.5", "1"), "other").index(cell) == 0


@pytest.mark.parametrize("cell", [np.array([0.5]), [0.5], {}, object(), 1j])
def test_what_is_no_value_is_refused_and_never_other(cell: Any) -> None:
    for domain in (Range(0, 1, 10, "other"), Labels(("0.5", "1"), "other")):
        with pytest.raises(DomainError, match="value must be text, a number"):
            domain.index(cell)


def test_bytes_are_text_in_a_range_too() -> None:
    assert Range(0, 1, 10, "other").index(b"0.5") == 5
    assert Range(0, 1, 10, "other").index(b"\xff") is None


@pytest.mark.parametrize("zero", [-0.0, np.float32(-0.0), Decimal("-0.0"), np.array(-0.0)])
def test_there_is_one_zero(zero: Any, tmp_path: Path) -> None:
    assert Labels((0, 1)).index(zero) == 0
    assert Labels(("-0.0", "0")).index(zero) == 1
    assert Range(0, 1, 10).index(zero) == 0
    found = datasets.table(pa.table({"r": [float(zero), 0.0, 1.5, float(zero)]}))
    assert list(map(str, found.labels)) == ["0.0", "1.5"]
    file = tmp_path / "t.csv"
    for text in ("-0.0", "-0"):
        file.write_text(f"r\n{text}\n{text.removeprefix('-')}\n1.5\n")
        assert datasets.table(file).values.ravel().tolist() == [0, 0, 1]


ALIKE = [
    ("a", "a\ufe0f"), ("\u2764", "\u2764\ufe0f"), ("e\u0301", "e\u0301\u034f"), ("fi", "\ufb01"),
    ("1", "\uff11"), ("a", "\u0430"), ("o", "\u03bf"), ("a", "a\u3164"), ("x", "\u3164"),
    ("-1", "\u22121"), ("it's", "it\u2019s"), ("1-2", "1\u20132"),
    ("a", "a\U000e0101"), ("ab", "a\u180bb"), ("caf\u00e9", "c\u0430f\u00e9"),
]  # fmt: skip


@pytest.mark.parametrize("labels", ALIKE, ids=ascii)
def test_labels_that_look_alike_are_refused(labels: tuple[str, str]) -> None:
    with pytest.raises(CampaignError, match="labels must look different"):
        Labels(labels)
    with pytest.raises(CampaignError, match="labels must look different"):
        Labels(labels[:1], other=labels[1])
    for options in ({}, {"domain": list(labels)}):
        with pytest.raises(DataError, match="labels must look different"):
            datasets.table(np.array([labels, labels[::-1]]), **options)
    # What was agreed before stays readable.
    assert domain_from_plain(list(labels), None).k == 2


@pytest.mark.parametrize("invisible", "\u200d\u200b\u00ad\u2060\ufeff\u061c\0\a\x1f\x84")
def test_joiners_are_seen_by_nobody(invisible: str) -> None:
    with pytest.raises(DataError, match="labels must look different"):
        datasets.table(np.array([["ab", f"a{invisible}b"]]))
    with pytest.raises(CampaignError, match="printable"):
        Labels(("ab", f"a{invisible}b"))


@pytest.mark.parametrize("labels", [("a", "A"), ("\u00e9", "e"), ("\u5de6", "\u53f3"), ("0", "O")])
def test_labels_that_look_different_stay(labels: tuple[str, str]) -> None:
    assert Labels(labels).k == datasets.table(np.array([labels])).k == 2
    assert len(set(map(skeleton, labels))) == 2


@pytest.mark.parametrize("inner", ["a\r\nb", "a\rb", "a\r\n\r\nb", "a\n\rb"])
@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_no_cell_changes_where_arrow_cuts_the_file(
    monkeypatch: pytest.MonkeyPatch, inner: str, newline: str
) -> None:
    monkeypatch.setattr(csv, "LARGEST_ROW", 512)
    for place in range(512 - len(inner) - 4, 512 + 2):
        head = f"user,r0{newline}"
        row = f'1,"{"y" * (place - len(head) - 5 - len(newline))}"{newline}'
        text = f'{head}{row}2,"{inner}"{newline}' + f"3,z{newline}" * 40
        table = csv.read_csv(lambda text=text: io.BytesIO(text.encode()))  # type: ignore[misc]
        assert table["r0"].to_pylist()[1:] == [inner, *["z"] * 40]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.xlsx", b"PK\x03\x04", "save its sheet as CSV"),
        ("t.ods", b"PK\x03\x04", "save its sheet as CSV"),
        ("t.csv", b"PK\x03\x04rest", "save its sheet as CSV"),
        ("t.csv", b"\xd0\xcf\x11\xe0", "save its sheet as CSV"),
        ("t.csv", b"PAR1", "name it .parquet"),
        ("t.csv", b"\x1f\x8b\x08", "name it .csv.gz"),
        ("t.csv", b"sep=;\r\nuser;r0\r\na;x\r\n", "a line sep=.*delete that line"),
        ("t.csv", b"\xef\xbb\xbfSEP=,\nuser,r0\na,x\n", "a line sep=.*delete that line"),
        ("t.csv", b'"sep=;"\nuser;r0\na;x\n', "a line sep=.*delete that line"),
        ("t.json", b"[]", "convert it"),
        ("t.zip", b"PK", "unpack it"),
    ],
)
def test_files_of_other_programs_say_what_to_do(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=says):
        datasets.table(tmp_path / name)


def test_a_column_may_be_called_sep(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sep=a,sep\nx,y\ny,x\n")
    assert datasets.table(tmp_path / "t.csv").tau == 2


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_names_of_files_need_not_be_utf8(tmp_path: Path, suffix: str) -> None:
    import gzip

    path = Path(os.fsdecode(bytes(tmp_path) + b"/\xff" + suffix.encode()))
    if suffix == ".parquet":
        with path.open("wb") as file:
            pa.parquet.write_table(pa.table({"r": ["a", "b"]}), file)
    else:
        text = b"r\na\nb\n"
        path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    assert datasets.table(path).k == 2
