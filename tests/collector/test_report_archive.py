"""The log of reports: each in exactly one file, durable before it is forgotten, whatever fails."""

import errno
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sql

from collecting import HOUR, START, Clock, batch, campaign, clients, created, messages
from loloha import reportlog
from loloha.collector.report_archive import ReportArchive
from loloha.collector.store import Store, schema
from loloha.collector.store.log_queue import LogQueue
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import Submission
from loloha.collector.terms import Terms
from loloha.errors import StoreError

NOW = START + 60


@pytest.fixture
def kept(tmp_path: Path) -> ReportArchive:
    one = ReportArchive(tmp_path / "log")
    one.prepare()
    return one


@pytest.fixture
def opened(store_url: str, kept: ReportArchive) -> Iterator[list[Store]]:
    """Stores over one database; the last is the one that writes."""
    stores = [Store(store_url, keeps=kept.pack)]
    yield stores
    for store in stores:
        store.close()


def taken(store: Store, count: int) -> StoredCampaign:
    """The campaign, after reports of some new users."""
    stored, _ = store.create(campaign(), Terms(), token=None, now=NOW)
    record(store, stored, count)
    return stored


def record(store: Store, stored: StoredCampaign, count: int) -> None:
    encoded = messages(stored.campaign, clients(stored.campaign, count), 0)
    store.record([Submission.of(stored, batch(stored.campaign, encoded))], NOW)


def logged(kept: ReportArchive, stored: StoredCampaign) -> int:
    """Rows of the log, all files of which are whole."""
    contents = reportlog.ReportLog(kept.folder, stored.campaign).scan()
    contents.must_be_clean()
    return contents.rows


def waiting(store: Store) -> int:
    with store.database.read() as connection:
        return int(connection.scalar(sql.select(sql.func.count()).select_from(schema.queued)) or 0)


class Broken(Exception):
    """What fails after the file is there."""


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_reports_that_came_after_a_failure_do_not_take_the_written_ones_along(
    opened: list[Store], store_url: str, kept: ReportArchive, restarted: bool, times: int
) -> None:
    # The file was there, the store could not forget: the next file held those reports again.
    def half(*what: Any) -> None:
        kept.deliver(*what)
        raise Broken

    stored = taken(opened[-1], 10)
    for again in range(1, times + 1):
        with pytest.raises(Broken):
            LogQueue(opened[-1]).take(half)
        if restarted:
            opened.append(Store(store_url, keeps=kept.pack))
        assert logged(kept, stored) == 10
        taken(opened[-1], 7)
        assert waiting(opened[-1]) == 1 + again
    LogQueue(opened[-1]).take(kept.deliver)
    LogQueue(opened[-1]).take(kept.deliver)
    assert logged(kept, stored) == opened[-1].rounds(stored)[0].n == 10 + 7 * times
    assert waiting(opened[-1]) == 0


FEW = {(0, 5), (700, 2)}


@pytest.mark.parametrize(
    ("limit", "failing"),
    [
        pytest.param(*case, marks=[pytest.mark.long] * (case not in FEW))
        for case in itertools.product([0, 700, 1 << 20], [0, 1, 2, 5])
    ],
)
def test_reports_of_many_rounds_are_logged_once_whatever_fails_on_the_way(
    opened: list[Store], store_url: str, kept: ReportArchive, monkeypatch: pytest.MonkeyPatch,
    limit: int, failing: int,
) -> None:  # fmt: skip
    # A file a round, each with two commits of its own, held up uploads for seconds.
    monkeypatch.setattr("loloha.collector.store.log_queue.MOST_DELIVERED", limit)
    terms, late = Terms(late_seconds=9 * HOUR), NOW + 9 * HOUR
    names = ("a", "b")
    entries = [opened[-1].create(campaign(name), terms, token=None, now=NOW)[0] for name in names]

    def more(seed: int) -> None:
        for stored in entries:
            for round in range(4):
                some = clients(stored.campaign, 3, seed=seed)
                read = batch(stored.campaign, messages(stored.campaign, some, round))
                opened[-1].record([Submission.of(stored, read)], late)

    calls = iter(range(10_000))

    def fails(*what: Any) -> None:
        # Before or after the file is there.
        here = next(calls)
        if here == failing:
            raise OSError(errno.EIO, "Input/output error")
        kept.deliver(*what)
        if here == failing + 1:
            raise Broken

    more(0)
    for again in range(3):
        with suppress(Broken, OSError):
            while LogQueue(opened[-1]).take(fails):
                pass
        more(100 + 10 * again)
        opened.append(Store(store_url, keeps=kept.pack))
    while LogQueue(opened[-1]).take(kept.deliver):
        pass
    assert waiting(opened[-1]) == 0
    assert [logged(kept, stored) for stored in entries] == [4 * 4 * 3] * 2


def test_a_log_that_fails_for_one_campaign_is_tried_again_whole(
    opened: list[Store], kept: ReportArchive
) -> None:
    (store,) = opened

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    stored = taken(store, 10)
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            LogQueue(store).take(full)
        stored = taken(store, 5)
    LogQueue(store).take(kept.deliver)
    LogQueue(store).take(kept.deliver)
    assert logged(kept, stored) == 25


def test_names_are_durable_before_the_store_forgets(
    opened: list[Store], kept: ReportArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The file alone was synced: a cut of power could lose its name, and the store had forgotten.
    (store,) = opened
    events: list[tuple[str, Path]] = []
    sync, replace, make = os.fsync, Path.replace, os.mkdir

    def synced(handle: int) -> None:
        sync(handle)
        events.append(("synced", Path(f"/proc/self/fd/{handle}").readlink()))

    def renamed(path: Path, target: Path) -> Path:
        events.append(("named", Path(target)))
        return replace(path, target)

    def made(path: Any, *rest: Any, **more: Any) -> None:
        make(path, *rest, **more)
        events.append(("named", Path(path)))

    stored = taken(store, 10)
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("open files have no names here")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", synced)
        patch.setattr(Path, "replace", renamed)
        patch.setattr(os, "mkdir", made)
        with pytest.raises(Broken):
            LogQueue(store).take(
                lambda *what: (kept.deliver(*what), (_ for _ in ()).throw(Broken))[0]
            )
    names = [(place, path) for place, (what, path) in enumerate(events) if what == "named"]
    assert [path.name.partition("=")[0] for _, path in names[:2]] == ["campaign", "round"]
    assert names[-1][1].suffix == ".parquet"
    for place, path in names:
        assert ("synced", path.parent) in events[place:], path
    files = [place for place, (what, path) in enumerate(events) if path.suffix == ".partial"]
    assert files
    assert files[0] < names[-1][0]
    assert logged(kept, stored) == 10


@pytest.mark.parametrize("call", range(6))
@pytest.mark.parametrize("place", ["write", "flush"])
def test_a_full_disk_leaves_nothing_of_a_file(
    kept: ReportArchive, monkeypatch: pytest.MonkeyPatch, place: str, call: int
) -> None:
    # What filled the disk stayed there, hidden and for good, and one more came each half minute.
    from loloha.reportlog import writer

    calls = iter(range(1000))
    whole = getattr(writer._HashingFile, place)

    def full(self: Any, *data: Any) -> Any:
        if next(calls) >= call:
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(self, *data)

    one = campaign()
    read = batch(one, messages(one, clients(one, 40), 0))
    packed = [kept.pack(one, 0, read.reporters, read.keys, read.ys)]
    stored = StoredCampaign(1, one, Terms(), None, b"", 0)
    with monkeypatch.context() as patch:
        patch.setattr(writer._HashingFile, place, full)
        try:
            kept.deliver(stored, 0, packed)
        except OSError:
            found = [path for path in kept.folder.rglob("*") if path.is_file()]
            assert found == []
        else:
            assert next(calls) <= call
    kept.deliver(stored, 0, packed)
    assert logged(kept, stored) == 40


def test_no_round_is_seen_where_the_file_of_another_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = campaign()
    read = batch(one, messages(one, clients(one, 40), 0))
    names = read.reporters.view(np.uint8).reshape(-1, 16)
    log = reportlog.ReportLog(tmp_path, one)
    sync, calls = os.fsync, iter(range(100))

    def fails(handle: int) -> None:
        if stat.S_ISREG(os.fstat(handle).st_mode) and next(calls) == 1:
            raise OSError(errno.EIO, "Input/output error")
        sync(handle)

    monkeypatch.setattr(os, "fsync", fails)
    writer = log.writer()
    for round in range(3):
        writer.write(round, names, read.keys, read.ys)
    with pytest.raises(OSError, match="Input"):
        writer.close()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_a_killed_collector_left_unfinished_is_deleted(kept: ReportArchive) -> None:
    folder = kept.folder / "campaign=0" / "round=0"
    folder.mkdir(parents=True)
    (folder / ".0123456789abcdef.partial").write_bytes(b"PAR1")
    (folder / "other.partial").write_bytes(b"")
    kept.prepare()
    assert [path.name for path in folder.iterdir()] == ["other.partial"]


def test_an_unwritable_log_holds_no_round_open_and_is_logged_once(
    serve: Any, tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    client, one = serve(keep_reports=str(tmp_path / "log")), campaign()
    path = created(client, one)
    lines = {"content-type": "application/x-ndjson"}
    sent = b"\n".join(messages(one, clients(one, 20), 0))
    assert client.post(f"{path}/reports", content=sent, headers=lines).status_code == 200
    context = client.app.state.context
    clock.now += 1000 * HOUR

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ReportArchive, "deliver", full)
        for _ in range(3):
            context._open.log.run()
        health = client.get("/healthz")
        assert health.status_code == 503
        assert "No space left" in health.json()["detail"]
        assert str(tmp_path) not in health.text
    context._open.committer._tidy.run()
    with context.store.database.read() as connection:
        assert connection.execute(sql.select(schema.guard.c.rows)).all() == []
    context._open.log.run()
    assert client.get("/healthz").status_code == 200
    told = [record.getMessage() for record in caplog.records if "on time" in record.getMessage()]
    assert [word for text in told for word in ("No space", "again") if word in text] == [
        "No space",
        "again",
    ]
    assert reportlog.ReportLog(tmp_path / "log", one).scan().rows == 20


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_of_a_store_that_is_gone_takes_no_report(
    sqlite_url: str, serve: Any, replaced: bool
) -> None:
    # Receipts were given for reports in a file that had been deleted.
    client, one = serve(), campaign()
    path = created(client, one)
    lines = {"content-type": "application/x-ndjson"}
    sent = messages(one, clients(one, 9), 0)
    first = client.post(f"{path}/reports", content=sent[0], headers=lines)
    assert first.json()["accepted"] == 1
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    whole = file.read_bytes()
    file.unlink()
    if replaced:
        file.write_bytes(whole)
    refused = client.post(f"{path}/reports", content=sent[1], headers=lines)
    assert refused.status_code == 503
    health = client.get("/healthz")
    assert health.status_code == 503
    assert str(file.parent) not in refused.text + health.text


def test_a_store_whose_file_was_moved_back_goes_on(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    stored = taken(store, 3)
    away = file.rename(file.with_suffix(".away"))
    with pytest.raises(StoreError, match="deleted or replaced"):
        record(store, stored, 3)
    away.rename(file)
    store.ping()
    record(store, stored, 3)
    # Whether a failing commit took place is not known: here it did.
    assert store.rounds(stored)[0].n == 9
    store.close()
