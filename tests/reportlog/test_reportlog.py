"""The Arrow form and the files: what is written comes back, and nothing else is read."""

import errno
import json
import os
import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loloha import LGRR, BiLOLOHA, DBitFlipPM
from loloha.errors import ParameterError, WireError
from loloha.report import LARGEST_ROUND
from loloha.reportlog import FORMAT, VERSION, ReportLog, from_arrow, schema, to_arrow

PROTOCOL = BiLOLOHA(k=11, eps_inf=2.0, eps_1=1.0)
OTHER = BiLOLOHA(k=11, eps_inf=2.0, eps_1=1.5)


def same(left: Any, right: Any) -> bool:
    return (left is None and right is None) or bool(np.array_equal(left, right))


class Named:
    """As much of a campaign as a log needs."""

    protocol = PROTOCOL
    fingerprint = "ab" * 32


def test_arrays_survive_the_round_trip(protocol, draw):
    reports = draw(protocol, 100, 1)
    for rounds in (3, np.arange(100)):
        batch = to_arrow(protocol, *reports.arrays, rounds=rounds)
        for data in (batch, pa.Table.from_batches([batch[:40], batch[40:]])):
            assert all(map(same, from_arrow(protocol, data), reports.arrays))
        assert all(map(same, from_arrow(protocol, batch[10:20]), reports[10:20].arrays))
    assert all(len(array) == 0 for array in from_arrow(protocol, batch[:0]) if array is not None)


def test_files_survive_the_round_trip(protocol, draw, make_log):
    reports = draw(protocol, 100, 2)
    log = make_log(protocol, (7, reports))
    contents = log.scan()
    contents.must_be_clean()
    (file,) = contents.rounds[7]
    assert (file.rows, contents.rows, list(contents.rounds)) == (100, 100, [7])
    table = pq.read_table(file.path, partitioning=None)
    assert table.schema.equals(schema(protocol, round=7))
    assert all(map(same, from_arrow(protocol, table), reports.arrays))


def test_files_are_whole_before_they_are_durable(
    draw: Any, make_log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, sync = [], os.fsync

    def note(file: int) -> None:
        synced.append(os.fstat(file).st_size)
        sync(file)

    monkeypatch.setattr(os, "fsync", note)
    log = make_log(PROTOCOL, (0, draw(PROTOCOL, 100, 1)))
    (file,) = log.scan().rounds[0]
    assert file.path.stat().st_size in synced


def test_the_schema_is_signed_integers_and_binary_only(protocol):
    for field in schema(protocol):
        kind = field.type.value_type if pa.types.is_fixed_size_list(field.type) else field.type
        assert kind in (pa.int32(), pa.int64()) or pa.types.is_fixed_size_binary(kind)
        assert not field.nullable


def test_metadata_say_format_version_campaign_protocol_and_round():
    said = json.loads(schema(Named(), round=5).metadata[b"loloha"])
    assert said == {
        "format": FORMAT,
        "version": VERSION,
        "campaign": Named.fingerprint,
        "protocol": PROTOCOL.to_dict(),
        "round": 5,
    }
    assert "round" not in json.loads(schema(PROTOCOL).metadata[b"loloha"])


@pytest.mark.parametrize("round", [-1, LARGEST_ROUND + 1, 1.0, True, None])
def test_a_round_is_a_whole_number(round, draw):
    with pytest.raises((ParameterError, WireError), match="round"):
        to_arrow(PROTOCOL, *draw(PROTOCOL, 1, 0).arrays, rounds=round)
    with pytest.raises(WireError, match="rounds"):
        to_arrow(PROTOCOL, *draw(PROTOCOL, 1, 0).arrays, rounds=[round])


def test_reporters_can_be_bytes(draw):
    reports = draw(PROTOCOL, 3, 0)
    listed = [row.tobytes() for row in reports.reporters]
    batch = to_arrow(PROTOCOL, listed, reports.keys, reports.ys, rounds=0)
    assert same(from_arrow(PROTOCOL, batch)[0], reports.reporters)


@pytest.mark.parametrize(
    "reporters",
    [[b"short"] * 3, [bytes(16)] * 2, np.zeros((3, 15), np.uint8), np.zeros((3, 16), np.int64)],
)
def test_odd_reporters_are_refused(reporters, draw):
    reports = draw(PROTOCOL, 3, 0)
    with pytest.raises(WireError, match="reporters must"):
        to_arrow(PROTOCOL, reporters, reports.keys, reports.ys, rounds=0)


def test_reports_out_of_range_are_not_written(draw):
    reports = draw(PROTOCOL, 3, 0)
    with pytest.raises(WireError, match="got 1 out of range"):
        to_arrow(PROTOCOL, reports.reporters, reports.keys, np.array([0, 1, 2]), rounds=0)


def columns(**changed: Any) -> pa.RecordBatch:
    good = {"reporter": pa.array([bytes(16)] * 2, pa.binary(16)),
            "key": pa.array([1, 2], pa.int32()), "y": pa.array([0, 1], pa.int32())}  # fmt: skip
    return pa.RecordBatch.from_pydict({k: v for k, v in (good | changed).items() if v is not None})


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"y": None}, "'y' must be there once"),
        ({"y": pa.array([0, 1], pa.int64())}, "with type int32"),
        ({"y": pa.array([0, 1], pa.uint32())}, "with type int32"),
        ({"y": pa.array([0, None], pa.int32())}, "no nulls, got 1"),
        ({"reporter": pa.array([bytes(15)] * 2, pa.binary(15))}, "'reporter' must be there"),
    ],
)
def test_foreign_columns_are_refused(changed, says):
    assert len(from_arrow(PROTOCOL, columns())[0]) == 2
    with pytest.raises(WireError, match=says):
        from_arrow(PROTOCOL, columns(**changed))


def test_a_list_may_call_its_element_otherwise_but_holds_no_null():
    protocol = DBitFlipPM(k=11, eps_inf=2.0, b=10, d=2)
    reporter = pa.array([bytes(16)], pa.binary(16))
    good = pa.array([[3, 8]], pa.list_(pa.field("item", pa.int32()), 2))
    _, keys, ys = from_arrow(protocol, pa.table({"reporter": reporter, "y": good}))
    assert (keys.tolist(), ys.tolist()) == ([[1, 4]], [[0b01]])
    bad = pa.table({"reporter": reporter, "y": pa.array([[3, None]], good.type)})
    with pytest.raises(WireError, match="no nulls"):
        from_arrow(protocol, bad)


# -- files that must not be read


def the_file(log: ReportLog) -> Path:
    (path,) = log.folder.rglob("*.parquet")
    return path


def rewritten(path: Path, table: pa.Table) -> None:
    """A file that keeps its digest right and changes what is in it."""
    pq.write_table(table, path)
    path.rename(path.with_name(sha256(path.read_bytes()).hexdigest()[:32] + ".parquet"))


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def cast_key(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    rewritten(path, table.set_column(1, pa.field("key", pa.int64(), nullable=False),
                                     table["key"].cast(pa.int64())))  # fmt: skip


def without_metadata(path: Path) -> None:
    rewritten(path, pq.read_table(path, partitioning=None).replace_schema_metadata({}))


def newer_version(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    said = json.loads(table.schema.metadata[b"loloha"]) | {"version": VERSION + 1}
    rewritten(path, table.replace_schema_metadata({b"loloha": json.dumps(said).encode()}))


def truncated_with_a_true_name(path: Path) -> None:
    content = path.read_bytes()[:-20]
    path.write_bytes(content)
    path.rename(path.with_name(sha256(content).hexdigest()[:32] + ".parquet"))


def no_json(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    rewritten(path, table.replace_schema_metadata({b"loloha": b"no JSON"}))


def to_another_round(path: Path) -> None:
    target = path.parent.with_name("round=8")
    target.mkdir()
    path.rename(target / path.name)


def into_a_folder_below(path: Path) -> None:
    (path.parent / "day=1").mkdir()
    path.rename(path.parent / "day=1" / path.name)


def round_written_otherwise(path: Path) -> None:
    path.parent.rename(path.parent.with_name("round=07"))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: flip(path, 30), "damaged"),
        (lambda path: flip(path, -1), "damaged"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "damaged"),
        (lambda path: path.write_bytes(path.read_bytes() + b"x"), "damaged"),
        (lambda path: path.write_bytes(b""), "damaged"),
        (lambda path: path.rename(path.with_name("reports.parquet")), "damaged"),
        (lambda path: path.rename(path.with_suffix(".csv")), "foreign"),
        (without_metadata, "foreign"),
        (newer_version, "foreign"),
        (no_json, "foreign"),
        (truncated_with_a_true_name, "damaged"),
        (cast_key, "mixed"),
        (to_another_round, "mixed"),
        (into_a_folder_below, "foreign"),
        (round_written_otherwise, "foreign"),
    ],
)
def test_a_spoilt_file_is_refused_and_counted(spoil, reason, draw, make_log):
    log = make_log(PROTOCOL, (7, draw(PROTOCOL, 10, 0)))
    spoil(the_file(log))
    contents = log.scan()
    assert {why: len(paths) for why, paths in contents.refused.items()} == {reason: 1}
    assert contents.rows == 0
    with pytest.raises(WireError, match=re.escape(f"got 1 {reason}, the first is")):
        contents.must_be_clean()


def test_a_file_of_another_campaign_is_foreign(draw, make_log):
    log = make_log(PROTOCOL, (7, draw(PROTOCOL, 10, 0)))
    other = make_log(OTHER, (7, draw(OTHER, 10, 0)), name="other")
    shutil.copy(the_file(other), log.round_folder(7))
    assert list(log.scan().refused) == ["foreign"]
    assert log.scan().rows == 10


def test_a_named_pipe_is_foreign_and_not_waited_for(draw, make_log):
    log = make_log(PROTOCOL, (7, draw(PROTOCOL, 10, 0)))
    os.mkfifo(log.round_folder(7) / f"{'0' * 32}.parquet")
    assert list(log.scan().refused) == ["foreign"]
    assert log.scan().rows == 10


def test_campaigns_lie_beside_each_other(draw, make_log):
    make_log(OTHER, (7, draw(OTHER, 9, 0)))
    log = make_log(PROTOCOL, (7, draw(PROTOCOL, 10, 0)))
    assert log.scan().rows == 10


def test_a_log_without_the_campaign_is_an_error(draw, make_log):
    log = make_log(OTHER, (7, draw(OTHER, 9, 0)))
    with pytest.raises(WireError, match="has 1 of others"):
        ReportLog(log.root, PROTOCOL).scan()


def test_unverified_reading_still_checks_what_files_say(draw, make_log):
    log = make_log(PROTOCOL, (7, draw(PROTOCOL, 10, 0)))
    flip(the_file(log), 30)
    assert log.scan(verify=False).rows == 10
    without_metadata(the_file(log))
    assert list(log.scan(verify=False).refused) == ["foreign"]


def test_only_the_rounds_asked_for_are_looked_at(draw, make_log):
    log = make_log(PROTOCOL, *((t, draw(PROTOCOL, 10 + t, t)) for t in (0, 2, 10)))
    assert list(log.scan().rounds) == [0, 2, 10]
    assert log.scan(rounds=[2, 5]).rows == 12


def test_hidden_files_and_empty_rounds_are_no_reports(draw, make_log):
    log = make_log(PROTOCOL, (7, draw(PROTOCOL, 10, 0)), (8, draw(PROTOCOL, 1, 0)[:0]))
    (log.folder / "_SUCCESS").touch()
    (log.round_folder(7) / ".x.partial").touch()
    log.round_folder(9).mkdir()
    contents = log.scan()
    contents.must_be_clean()
    assert {t: sum(file.rows for file in files) for t, files in contents.rounds.items()} == {
        7: 10, 8: 0, 9: 0,
    }  # fmt: skip


# -- writing


def test_nothing_is_visible_before_the_end(draw, make_log):
    log = make_log(PROTOCOL)
    with log.writer() as writer:
        writer.write(1, *draw(PROTOCOL, 10, 0).arrays)
        assert log.scan().rows == 0
        writer.write(1, *draw(PROTOCOL, 10, 1).arrays)
    assert log.scan().rows == 20


def test_an_error_leaves_nothing_behind(draw, make_log):
    log = make_log(PROTOCOL)
    writer = log.writer()
    writer.write(1, *draw(PROTOCOL, 10, 0).arrays)
    writer.__exit__(KeyboardInterrupt, None, None)
    assert [path for path in log.root.rglob("*") if path.is_file()] == []
    # Nor a round, which would count as one of no reports.
    assert not log.scan().rounds


def test_a_full_disk_leaves_no_round(draw, make_log, monkeypatch):
    log = make_log(PROTOCOL)
    make = Path.mkdir

    def full(self, *arguments, **more):
        if self.name == "round=2":
            raise OSError(errno.ENOSPC, "full")
        make(self, *arguments, **more)

    monkeypatch.setattr(Path, "mkdir", full)
    writer = log.writer()
    for round in range(4):
        writer.write(round, *draw(PROTOCOL, 10, 0).arrays)
    with pytest.raises(OSError, match="full"):
        writer.close()
    assert not log.scan().rounds


def test_the_same_reports_are_the_same_file(draw, make_log):
    reports = draw(LGRR(k=11, eps_inf=2.0, eps_1=1.0), 10, 0)
    protocol = LGRR(k=11, eps_inf=2.0, eps_1=1.0)
    log = make_log(protocol, (1, reports), (1, reports))
    assert log.scan().rows == 10


def test_contents_are_listed_without_reading_them(draw, make_log):
    log = make_log(
        PROTOCOL, (0, draw(PROTOCOL, 5, 1)), (0, draw(PROTOCOL, 3, 2)), (4, draw(PROTOCOL, 6, 3))
    )
    contents = log.scan()
    assert (contents.rows, contents.largest_round) == (14, 8)
    names = {t: frozenset(file.path.name for file in of) for t, of in contents.rounds.items()}
    assert log.names() == names
    assert log.names(rounds=[4, 9]) == {4: names[4]}
    assert ReportLog(log.folder.parent / "none", PROTOCOL).names() == {}
    assert {f"{digest}.parquet" for digest in contents.digests(0)} == names[0]
    assert contents.digests(7) == []


def test_a_file_is_late_that_was_written_after_the_last_second_of_its_round(draw, make_log):
    log = make_log(
        PROTOCOL, (0, draw(PROTOCOL, 5, 1)), (0, draw(PROTOCOL, 3, 2)), (4, draw(PROTOCOL, 6, 3))
    )
    contents = log.scan()
    paths = [file.path for of in contents.rounds.values() for file in of]
    for path, when in zip(paths, (1000, 1001, 5001), strict=True):
        os.utime(path, (when, when))
    assert contents.in_time(lambda round: 5001) is contents
    kept = contents.in_time(lambda round: 1000 * (round + 1))
    assert [[file.path for file in of] for of in kept.rounds.values()] == [paths[:1], []]
    assert kept.refused == {"late": tuple(paths[1:])}
