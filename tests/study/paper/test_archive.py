"""A result is there, whole and the right one, or it is not there."""

from pathlib import Path

import pytest

from loloha.study.paper import archive

ROW = {
    "workload": "Syn",
    "contender": "1bitflippm",
    "calibration": "tight",
    "eps_inf": 0.5,
    "alpha": None,
    "run": 3,
    "g": None,
    "hash": None,
    "n": 10,
    "bins": 4,
    "rounds": 2,
    "mse_unbiased": 0.1234567890123456789,
    "mse_clipped": 0.2,
    "mse_last_truth": 0.3,
    "mse_top": 0.4,
    "mean_estimate": 0.25,
    "largest_error": 0.5,
    "rounds_beyond": 0,
    "eps_avg": 1.0,
    "eps_max": 1.0,
    "exposed": 1.0,
    "seconds": 0.1,
    "numpy": "2.4.6",
}


def test_a_result_comes_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run.parquet"
    archive.write(path, ROW, "me")
    assert archive.read(path, "me") == ROW
    assert [file.name for file in path.parent.iterdir()] == ["run.parquet"]


def test_another_identity_is_another_result(tmp_path: Path) -> None:
    archive.write(tmp_path / "run.parquet", ROW, "me")
    assert archive.read(tmp_path / "run.parquet", "you") is None
    assert archive.read(tmp_path / "none.parquet", "me") is None
    assert archive.read(tmp_path / "run.parquet", "me", archive.ATTACK) is None


def test_a_file_cut_short_anywhere_is_no_result(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    archive.write(path, ROW, "me")
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        assert archive.read(path, "me") is None, length


def test_a_changed_byte_is_seen_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    archive.write(path, ROW, "me")
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), 23):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        found = archive.read(path, "me")
        assert found in (None, ROW), place
        refused += found is None
    assert refused > 20


def test_what_a_killed_process_leaves_is_swept(tmp_path: Path) -> None:
    archive.write(tmp_path / "a" / "run.parquet", ROW, "me")
    (tmp_path / "a" / f"run.parquet.17{archive.DRAFT}").write_bytes(b"half")
    assert archive.sweep(tmp_path) == 1
    assert archive.read(tmp_path / "a" / "run.parquet", "me") == ROW


def test_all_results_gather_in_one_file(tmp_path: Path) -> None:
    import pyarrow.parquet

    archive.gather([ROW, {**ROW, "run": 4}], tmp_path / "cells.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "cells.parquet").column("run").to_pylist() == [
        3,
        4,
    ]


@pytest.mark.parametrize("garbage", [b"", b"PAR1", b"not parquet at all"])
def test_garbage_is_no_result(tmp_path: Path, garbage: bytes) -> None:
    (tmp_path / "run.parquet").write_bytes(garbage)
    assert archive.read(tmp_path / "run.parquet", "me") is None
