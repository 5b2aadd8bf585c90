"""A result is there, whole and the right one, or it is not there."""

import json
import math
import sys
from pathlib import Path

import pytest

from loloha.errors import ExtraError
from loloha.population.archive import Archive, measure_each

ROW = {
    "data_set": "Syn",
    "protocol": "1bitflippm",
    "eps_inf": 0.5,
    "alpha": None,
    "run": 3,
    "mse": 0.1234567890123456789,
    "mse_top": 5e-324,
    "exposed": 1.0,
    "numpy": "2.4.6",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "results.ndjson"
    kept = Archive(path)
    kept.keep("a/run00", "me", ROW)
    kept.keep("a/run01", "me", {**ROW, "run": 1})
    return path


def test_a_result_comes_back_exactly(path: Path) -> None:
    assert Archive(path).find("a/run00", "me") == ROW
    Archive(path).keep("b", "me", {"mse": math.nan})
    found = Archive(path).find("b", "me")
    assert found is not None
    assert math.isnan(found["mse"])
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_results_of_0_2_have_current_columns(path: Path) -> None:
    before = {"workload": "Syn", "method": "ololoha", "mse_unbiased": 0.1, "mse_expected": 0.2}
    Archive(path).keep("old", "me", before)
    today = {"data_set": "Syn", "protocol": "ololoha", "mse": 0.1, "expected_mse": 0.2}
    assert Archive(path).find("old", "me") == today


def test_another_identity_is_another_result(path: Path) -> None:
    kept = Archive(path)
    assert kept.find("a/run00", "you") is None
    assert "a/run00" in kept
    assert kept.find("none", "me") is None
    assert "none" not in kept


def test_a_result_of_one_name_is_not_that_of_another(path: Path) -> None:
    first, second = path.read_text().splitlines()
    (_, *one), (name, *_) = json.loads(first), json.loads(second)
    path.write_text(json.dumps([name, *one]))
    assert Archive(path).find(name, "the identity of another name") is None


def test_the_newest_result_counts(path: Path) -> None:
    Archive(path).keep("a/run00", "me", {**ROW, "exposed": 0.5})
    assert Archive(path).find("a/run00", "me") == {**ROW, "exposed": 0.5}


def test_cut_short_anywhere_the_whole_lines_stay_and_the_next_is_added(path: Path) -> None:
    whole = path.read_bytes()
    first = whole.index(b"\n")
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        kept = Archive(path)
        assert (kept.find("a/run00", "me") == ROW) is (length >= first), length
        assert (kept.find("a/run01", "me") is None) is (length < len(whole) - 1), length
        kept.keep("new", "me", {"run": 7})
        kept.keep("newer", "me", {"run": 8})
        again = Archive(path)
        assert again.find("new", "me") == {"run": 7}, length
        assert again.find("newer", "me") == {"run": 8}, length
        assert (again.find("a/run00", "me") == ROW) is (length >= first), length


def test_a_changed_byte_is_seen_or_changes_nothing(path: Path) -> None:
    whole = path.read_bytes()
    refused = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        kept = Archive(path)
        found = kept.find("a/run00", "me"), kept.find("a/run01", "me")
        assert found[0] in (None, ROW), place
        assert found[1] in (None, {**ROW, "run": 1}), place
        refused += None in found
    assert refused > len(whole) * 0.9


@pytest.mark.parametrize(
    "garbage", [b"", b"PAR1", b"\xff\xfe", b"[[[], 2, 3]", b"3", b"{}", b"[" * 99_999, b"[1,2]"]
)
def test_garbage_is_no_result(path: Path, garbage: bytes) -> None:
    path.write_bytes(garbage + b"\n" + path.read_bytes())
    assert Archive(path).find("a/run00", "me") == ROW
    path.write_bytes(garbage)
    assert Archive(path).find("a/run00", "me") is None


def test_one_process_goes_through_tasks_in_order_and_needs_no_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert list(measure_each(str, [3, 1, 2], 1)) == ["3", "1", "2"]
    # Nor does the only task of several processes.
    assert list(measure_each(str, [3], 2)) == ["3"]
    with pytest.raises(ExtraError, match="joblib must be installed"):
        list(measure_each(str, [3, 1], 2))
