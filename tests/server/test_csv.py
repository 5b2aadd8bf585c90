"""No text of a CSV is a formula, and a program can read every label back."""

import csv
import io
import re
from pathlib import Path

import pyarrow as pa
import pytest

import loloha
from loloha.server.frame import write_csv

LABELS = [
    '=HYPERLINK("http://x","y")', "+1+cmd", "@SUM(1)", "-1+1", "\tx", "\rx", "'=a", "''-b",
    "a", "", "'a", "a=b", "é=1", "-1", "+2.5", "12", "=", "-", None,
]  # fmt: skip


def read_back(cell: str) -> str:
    """As docs/http.md says."""
    return cell[1:] if re.match("'+[=+\\-@\t\r]", cell) else cell


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
def test_texts_are_no_formulas_and_come_back(kind: str) -> None:
    labels = pa.chunked_array(
        [LABELS], pa.large_string() if kind == "large_string" else pa.string()
    )
    if kind == "dictionary":
        labels = labels.dictionary_encode()
    numbers = [-1.5] * len(LABELS)
    sink = io.BytesIO()
    write_csv(pa.table({"label": labels, "estimate": numbers}), sink)
    rows = list(csv.reader(io.StringIO(sink.getvalue().decode(), newline="")))
    assert rows[0] == ["label", "estimate"]
    cells = [row[0] for row in rows[1:]]
    assert [read_back(cell) for cell in cells] == [label or "" for label in LABELS]
    assert {row[1] for row in rows[1:]} == {"-1.5"}
    for cell in cells:
        assert cell[:1] not in tuple("=+-@\t\r") or re.fullmatch(r"[+-][0-9.]+", cell)


def test_no_other_place_writes_csv_of_labels() -> None:
    # The paper's tables hold names of protocols and numbers, and no label.
    found = [
        path.name
        for path in Path(loloha.__path__[0]).rglob("*.py")
        if path.parent.name != "paper"
        and re.search(r"csv\.write_csv|csv\.(Dict)?[wW]riter\(|to_csv\(", path.read_text("utf-8"))
    ]
    assert found == ["frame.py"]
