"""A round whose files come one by one: the tally of all of them, and only new ones are read."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from logs import draw_reports, kind, protocol
from loloha import BiLOLOHA
from loloha.engines import growing, make_engine
from loloha.engines.growing import GrowingRound
from loloha.protocols import Protocol
from loloha.reportlog import ReportLog

__all__ = ["kind", "protocol"]


def segments(rules: Protocol, n: int, seed: int) -> list[Any]:
    """Parts of a round with retries and contradictions, within parts and across them."""
    rng = np.random.default_rng(seed)
    reports, others = (draw_reports(rules, n, seed + one) for one in (0, 1))
    others.reporters = reports.reporters
    # Some pseudonyms begin alike and differ.
    reports.reporters[: n // 8, :8] = reports.reporters[n // 8 : n // 8 * 2, :8]
    parts = []
    for _ in range(9):
        rows = rng.integers(0, n, size=n // 4)
        parts.append((reports if rng.random() < 0.7 else others)[rows])
    return parts


def file_of(log: ReportLog, reports: Any) -> Any:
    with log.writer() as writer:
        writer.write(0, *reports.arrays)
        (path,) = writer.close()
    (found,) = [one for one in log.scan().rounds[0] if one.path == path]
    return found


def same(grown: GrowingRound, log: ReportLog, *, guard: bool = True) -> None:
    (batch,) = make_engine("local").tally(log, log.scan(), guard=guard)
    mine = grown.tallied(0)
    assert (mine.tally.counts == batch.tally.counts).all()
    assert mine.tally.n == batch.tally.n
    assert (mine.duplicates, mine.conflicts, mine.invalid) == (
        batch.duplicates, batch.conflicts, batch.invalid
    )  # fmt: skip


@pytest.mark.parametrize("largest", [pytest.param(1 << 24, marks=pytest.mark.long), 50])
def test_after_each_file_it_is_the_tally_of_all(
    kind: Protocol, largest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "LARGEST_RUN", largest)
    log = ReportLog(tmp_path / "log", kind)
    grown = GrowingRound(kind, guard=True, folder=tmp_path / "seen")
    trusted = GrowingRound(kind, guard=False, folder=tmp_path / "none")
    for reports in segments(kind, 120, 5):
        file = file_of(log, reports)
        grown.add([file])
        trusted.add([file])
        same(grown, log)
        again = GrowingRound.resumed(
            grown.tallied(0), grown.files, grown.runs, guard=True, folder=tmp_path / "seen"
        )
        assert again is not None
        grown.forget()
        grown = again
    same(trusted, log, guard=False)
    assert grown.tallied(0).conflicts > 0
    assert not (tmp_path / "none").exists()
    at_once = GrowingRound(kind, guard=True, folder=tmp_path / "once")
    with monkeypatch.context() as patch:
        patch.setattr(growing, "CHUNK_BYTES", 4000)
        at_once.add(log.scan().rounds[0])
    same(at_once, log)
    # Nothing that was merged stays.
    at_once.forget()
    assert {path.name for path in (tmp_path / "once").iterdir()} == set(at_once.runs)
    told = at_once.tallied(0), at_once.files, at_once.runs
    lost = tmp_path / "once" / at_once.runs[0]
    whole = lost.read_bytes()
    # Changed, of whole rows too few, or gone.
    for damaged in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[:-12], None):
        lost.unlink() if damaged is None else lost.write_bytes(damaged)
        assert GrowingRound.resumed(*told, guard=True, folder=tmp_path / "once") is None


def test_files_are_counted_in_chunks_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece that does not fit beside others begins a chunk, however large it is."""
    protocol = BiLOLOHA(k=3, eps_inf=2.0, eps_1=1.0)
    monkeypatch.setattr(growing, "row_bytes", lambda encoding: 10)
    monkeypatch.setattr(growing, "CHUNK_BYTES", 69)
    monkeypatch.setattr(
        growing, "pieces_of", lambda file: [SimpleNamespace(rows=rows) for rows in file.pieces]
    )
    chunks: list[list[tuple[int, int]]] = []

    def count(chunk: list[tuple[int, Any]]) -> None:
        chunks.append([(number, piece.rows) for number, piece in chunk])

    kept: Any = SimpleNamespace(files=[], _rows=0, _add=count)
    kept._total = SimpleNamespace(protocol=protocol)
    sizes = [[3, 3], [], [3, 9], [1, 4, 1, 1]]
    files: Any = [SimpleNamespace(path=i, rows=sum(own), pieces=own) for i, own in enumerate(sizes)]
    GrowingRound.add(kept, files)
    assert chunks == [[(0, 3), (0, 3)], [(2, 3)], [(2, 9)], [(3, 1), (3, 4), (3, 1)], [(3, 1)]]
    assert (kept.files, kept._rows) == ([0, 1, 2, 3], 25)


def test_runs_that_nobody_knows_are_deleted(tmp_path: Path) -> None:
    growing.tidy(tmp_path / "none", {"a"})
    for name in "abc":
        (tmp_path / name).touch()
    growing.tidy(tmp_path, {"b", "d"})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_runs_are_merged_with_those_of_about_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of at most twice the rows and one more, and none beyond the largest: here 12."""
    monkeypatch.setattr(growing, "LARGEST_RUN", 12)
    grown = GrowingRound(BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0), guard=True, folder=tmp_path)
    seen = []
    for number, rows in enumerate((8, 3, 1, 4, 5, 1, 0)):
        starts = np.sort(np.random.default_rng(number).integers(0, 99, rows).astype(np.uint64))
        grown._remember(starts, np.full(rows, number, np.uint32))
        seen.append([run.rows for run in grown._runs])
    assert seen == [[8], [8, 3], [12], [12, 4], [12, 9], [12, 9, 1], [12, 9, 1]]
    largest, small, last = grown._runs
    assert set(largest.files.tolist()) == {0, 1, 2}
    assert (np.diff(largest.starts.astype(int)) >= 0).all()
    assert (small.files.tolist().count(3), small.files.tolist().count(4)) == (4, 5)
    assert last.files.tolist() == [5]


def test_a_run_that_stays_as_it_is_keeps_its_file(tmp_path: Path) -> None:
    """Of a single row, and then of files in which no row is valid: merged with nothing."""
    grown = GrowingRound(BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0), guard=True, folder=tmp_path)
    grown._remember(np.array([7], np.uint64), np.array([0], np.uint32))
    grown._remember(np.array([], np.uint64), np.array([], np.uint32))
    grown.forget()
    assert [run.is_whole for run in grown._runs] == [True]
    grown._remember(np.array([7, 9], np.uint64), np.array([1, 1], np.uint32))
    grown.forget()
    assert [run.rows for run in grown._runs] == [3]
    assert [path.name for path in tmp_path.iterdir()] == grown.runs
