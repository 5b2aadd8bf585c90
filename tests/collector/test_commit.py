"""The thread that commits: uploads share a transaction, and nothing that waits is lost."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import sleep
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from collecting import HOUR, START, batch, campaign, clients, messages
from loloha.collector import commit, commit_cost, queue
from loloha.collector.commit import Committer
from loloha.collector.metric import Metrics
from loloha.collector.queue import Upload
from loloha.collector.store import Store
from loloha.collector.store.database import translated
from loloha.collector.submission import SmallUpload, Submission, UploadOutcome, gather
from loloha.collector.terms import Terms
from loloha.collector.upkeep import Upkeep
from loloha.errors import StoreError
from loloha.wire import text


class Slow:
    """A store that waits to be told before it commits."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.go = threading.Event()
        self.busy = threading.Event()
        self.commits: list[int] = []
        self.sizes: list[int] = []

    def record(self, submissions: Any, now: float) -> Any:
        self.busy.set()
        assert self.go.wait(300)
        self.commits.append(len(submissions))
        self.sizes.append(sum(each.size for each in submissions))
        return self.store.record(submissions, now)


class AtOnce:
    """Calls in the committer's own thread, where an event loop would be woken."""

    @staticmethod
    def call_soon_threadsafe(call: Callable[..., None], *arguments: Any) -> None:
        call(*arguments)


def submit(committer: Committer, upload: Upload) -> Future[UploadOutcome]:
    future: Future[UploadOutcome] = Future()
    committer.submit(commit.Job(upload, future, AtOnce))
    return future


def committer_of(store: Any, tidy: Callable[[], Any] = bool) -> Committer:
    return Committer(
        store, clock=lambda: START + 60, metrics=Metrics(), largest_queue=30, tidy=tidy
    )


def test_uploads_that_arrive_together_share_a_commit(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    slow = Slow(store)
    one = campaign()
    entry, _ = store.create(one, Terms(late_seconds=HOUR), token=None, now=START)
    sent = messages(one, clients(one, 12), 0)
    committer = committer_of(slow)
    committer.start()
    first = submit(committer, SmallUpload(entry, *text.messages(sent[0])))
    assert slow.busy.wait(300)
    more = [submit(committer, SmallUpload(entry, *text.messages(each))) for each in sent[:8]]
    large = submit(committer, Submission.of(entry, batch(one, sent[6:])))
    assert not any(future.done() for future in (first, *more, large))
    with pytest.raises(StoreError, match="room"):
        submit(committer, Submission.of(entry, batch(one, sent * 3)))
    slow.go.set()
    committer.stop()
    assert slow.commits == [1, 1]
    assert first.result() == UploadOutcome.of([0])
    # The small uploads come first: of what both hold, one is accepted.
    codes = [-1, 0, 0, 0, 0, 0, 0, 0]
    assert [future.result() for future in more] == [UploadOutcome.of([code]) for code in codes]
    assert large.result() == UploadOutcome.of([-1, -1, 0, 0, 0, 0])
    assert store.rounds(entry)[0].n == 12
    with pytest.raises(StoreError):
        submit(committer, SmallUpload(entry, [], bytearray()))
    store.close()


def test_small_uploads_and_large_ones_take_turns(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Devices waited behind everything that relays, or attackers, had sent before them.
    monkeypatch.setattr(queue, "FEW_REPORTS", 2)
    monkeypatch.setattr(commit, "MOST_AT_ONCE", commit_cost.ROUND_WORK + commit_cost.PART_WORK + 4)
    store = Store(sqlite_url)
    slow = Slow(store)
    one = campaign()
    entry, _ = store.create(one, Terms(late_seconds=HOUR), token=None, now=START)
    sent = messages(one, clients(one, 22), 0)
    committer = committer_of(slow)
    large = [Submission.of(entry, batch(one, sent[4 * i : 4 * i + 4])) for i in range(4)]
    small = [SmallUpload(entry, *text.messages(each)) for each in sent[16:]]
    futures = [submit(committer, each) for each in (*large, *small)]
    slow.go.set()
    committer.start()
    committer.stop()
    assert [future.result().accepted for future in futures] == [4] * 4 + [1] * 6
    assert slow.sizes == [4, 4, 2, 4, 4, 4]
    store.close()


def test_a_failing_store_fails_the_uploads_and_no_later_ones(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(sqlite_url)
    one = campaign()
    entry, _ = store.create(one, Terms(late_seconds=HOUR), token=None, now=START)
    upload = Submission.of(entry, batch(one, messages(one, clients(one, 3), 0)))
    committer = committer_of(store)
    committer.start()

    def broken(*_: object) -> None:
        raise StoreError("store must be reachable; try again")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "record", broken)
        for _ in range(3):
            with pytest.raises(StoreError):
                submit(committer, upload).result(10)
        assert committer.failing
    assert committer.failing
    assert submit(committer, upload).result(10).accepted == 3
    assert not committer.failing
    assert [one.message for one in caplog.records] == [
        "reports are not counted: store must be reachable; try again",
        "reports are counted again",
    ]
    committer.stop()
    store.close()


@pytest.mark.parametrize("fault", [IntegrityError, DataError, None])
def test_what_one_upload_breaks_fails_no_other_of_its_commit(
    sqlite_url: str, fault: type[DBAPIError] | None
) -> None:
    """Where the store takes what it is given, and this one cannot be written."""
    store, one = Store(sqlite_url), campaign()
    entry, _ = store.create(one, Terms(late_seconds=HOUR), token=None, now=START)
    sent = messages(one, clients(one, 5), 0)
    slow, wrong = Slow(store), Submission.of(entry, batch(one, sent[1:3]))
    honest = slow.record

    def record(submissions: Any, now: float) -> Any:
        if any(wrong.batch.reporters[0] in each.batch.reporters for each in submissions):
            with translated():
                # As the driver of a database says it, or a fault of ours.
                raise fault("", (), Exception()) if fault else RuntimeError
        return honest(submissions, now)

    slow.record = record  # type: ignore[method-assign]
    committer = committer_of(slow)
    committer.start()
    first = submit(committer, Submission.of(entry, batch(one, sent[:1])))
    assert slow.busy.wait(300)
    bad = submit(committer, wrong)
    others = [submit(committer, Submission.of(entry, batch(one, [each]))) for each in sent[3:]]
    slow.go.set()
    with pytest.raises(StoreError if fault else RuntimeError):
        bad.result(60)
    assert [each.result(60).accepted for each in (first, *others)] == [1, 1, 1]
    committer.stop()
    store.close()


def test_health_stays_bad_until_a_write_succeeds(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Half a minute after the last upload it was good again, the disk still full.
    monkeypatch.setattr(commit, "PROBE_SECONDS", 0.01)
    store = Store(sqlite_url)
    full = threading.Event()
    probes = threading.Semaphore(0)

    def tidy() -> None:
        probes.release()
        if full.is_set():
            raise StoreError("store must be writable, got a full disk; mend that")

    def await_probes(count: int) -> None:
        for _ in range(count):
            assert probes.acquire(timeout=300)

    committer = committer_of(store, tidy)
    full.set()
    committer.start()
    # Nobody has sent anything: it is known from a write of its own.
    await_probes(5)
    assert committer.failing
    with pytest.raises(StoreError, match="full disk"):
        committer.must_work()
    full.clear()
    for _ in range(60_000):
        if not committer.failing:
            break
        sleep(0.005)
    committer.must_work()
    committer.stop()
    told = [record.message for record in caplog.records if record.name == commit.__name__]
    assert told == [
        "reports are not counted: store must be writable, got a full disk; mend that",
        "reports are counted again",
    ]
    store.close()


@pytest.mark.parametrize("error", [OSError("a full disk"), ValueError("a damaged log")])
def test_tidying_happens_at_start_and_end_and_may_fail(sqlite_url: str, error: Exception) -> None:
    # A log of reports that somebody had damaged ended the thread: nothing was counted any more.
    store = Store(sqlite_url)
    one = campaign()
    entry, _ = store.create(one, Terms(late_seconds=HOUR), token=None, now=START)
    times = []

    def tidy() -> None:
        times.append(1)
        raise error

    committer = committer_of(store, tidy)
    committer.start()
    sent = messages(one, clients(one, 1), 0)[0]
    counted = submit(committer, SmallUpload(entry, *text.messages(sent)))
    assert counted.result(timeout=300) == UploadOutcome.of([0])
    committer.stop()
    assert len(times) == 2
    store.close()


def test_gathering_keeps_every_upload_in_its_place(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    ones = [campaign("a"), campaign("b")]
    entries = [store.create(one, Terms(), token=None, now=START)[0] for one in ones]
    sent = [messages(one, clients(one, 4), 0) for one in ones]

    def few(which: int, *parts: bytes) -> SmallUpload:
        return SmallUpload(entries[which], *text.lines(b"\n".join(parts)))

    uploads = [
        few(0, sent[0][0], b"{}"),
        few(1, sent[1][0]),
        Submission.of(entries[0], batch(ones[0], sent[0][1:])),
        few(0),
        few(0, b"[]", sent[0][3], sent[1][3]),
    ]
    submissions, places = gather(uploads)
    assert [each.size for each in submissions] == [8, 1]
    codes = [each.batch.codes for each in submissions]
    found = [UploadOutcome.of(codes[which][part].tolist()) for which, part in places]
    malformed, foreign = 1, 3
    wanted = [[0, malformed], [0], [0, 0, 0], [], [malformed, 0, foreign]]
    assert found == [UploadOutcome.of(one) for one in wanted]
    assert np.concatenate(codes).tolist().count(0) == 6
    store.close()


class Waits:
    """A condition that notes until when it is waited for, and whether that is over."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

    def wait_for(self, is_over: Callable[[], bool], seconds: float) -> None:
        self.seen.append((is_over(), pytest.approx(seconds)))


def test_uploads_gather_until_the_next_commit_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    committer = committer_of(None)
    waits = committer._arrived = Waits()  # type: ignore[assignment]
    monkeypatch.setattr(commit, "monotonic", lambda: 100.0)
    committer._pace_of_commits = commit.Pace(99, 1.0, 7)
    for began, waiting, stopping in ((99.6, 6, 0), (99.0, 7, 0), (98.0, 0, 1), (100.0, 8, 1)):
        monkeypatch.setattr(committer, "_waiting", lambda waiting=waiting: waiting)
        committer._stopping = bool(stopping)
        committer._gather(began, 1)
    assert waits.seen == [(False, 0.6), (True, 0.0), (True, 0.0), (True, 1.0)]


def test_uploads_gather_for_a_while_after_a_commit_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(commit, "sleep", slept.append)
    committer = committer_of(None)
    for reports in (1, commit.FEW_REPORTS - 1, commit.FEW_REPORTS, 10**6):
        committer._gather(0.0, reports)
    # A device that reports alone waits no longer than it would notice.
    assert slept == [0.002, 0.002]


def test_what_gathers_is_asked_of_the_reports_of_the_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The committer's own loop, of one commit: it began at 40 and had 12 + 30 reports."""
    monkeypatch.setattr(commit, "monotonic", lambda: 40.0)
    committer = committer_of(None)
    parts: Any = [SimpleNamespace(upload=SimpleNamespace(size=size)) for size in (12, 30)]
    taken, written, gathered = [parts, []], [], []
    committer._stopping = True
    monkeypatch.setattr(committer, "_take", lambda *, wait: taken.pop(0))
    monkeypatch.setattr(committer, "_write", written.append)
    monkeypatch.setattr(committer, "_gather", lambda *given: gathered.append(given))
    committer._run()
    assert (written, gathered) == ([parts], [(40.0, 42)])


@pytest.mark.parametrize(
    ("tidy", "fails"),
    [(None, True), (lambda: None, False), (lambda: 1 / 0, True)],
    ids=["nothing to tidy", "written", "a fault of its own"],
)
def test_tidying_tells_of_the_store_where_it_has_written(
    tidy: Callable[[], None] | None, fails: bool
) -> None:
    committer = committer_of(None, tidy)
    committer._failed = StoreError("the disk is full")
    assert committer._run_tidy() is False
    assert committer.failing is fails


def test_a_commit_that_hangs_or_failed_is_no_health(monkeypatch: pytest.MonkeyPatch) -> None:
    committer = committer_of(None)
    assert not committer.failing
    committer._began = 5.0
    for now, hangs in ((10.0, False), (10.1, True)):
        monkeypatch.setattr(commit, "monotonic", lambda now=now: now)
        assert committer.failing is hangs
    with pytest.raises(StoreError, match="a commit hangs"):
        committer.must_work()
    committer._failed = StoreError("the disk is full")
    assert committer.failing
    assert committer._pause == 5.0
    with pytest.raises(StoreError, match="the disk is full"):
        committer.must_work()
    committer._failed, committer._began = None, 1e9
    committer.must_work()
    assert committer._pause == 30.0


def test_a_piece_brings_what_others_have_for_its_round() -> None:
    """A round that is locked is written once; pieces without a name are taken by turns."""

    def large(name: str, pieces: list[Any]) -> Any:
        job = SimpleNamespace(name=name, address=name, size=1, waits=True, cut=lambda: None)
        job.future, job.pieces = Future(), {piece: (piece, None) for piece in pieces}
        return job

    class Takes:
        def __init__(self, capacity: int) -> None:
            self.capacity, self.seen = capacity, list[Any]()

        def put(self, job: Any, upload: Any, places: Any) -> bool:
            if not self.capacity:
                return False
            self.capacity -= 1
            self.seen.append((job.name, upload))
            return True

    for capacity, pieces, seen, left in (
        (3, {"a": [0, 1], "b": [1, 0]}, [("a", 0), ("b", 0), ("b", 1)], ["a"]),
        (9, {"a": [0, 1], "b": [1, 0]}, [("a", 0), ("b", 0), ("b", 1), ("a", 1)], []),
        (9, {"a": [None, 2], "b": [None]}, [("a", None), ("b", None), ("a", 2)], []),
        (1, {"a": [0], "b": [0]}, [("a", 0)], ["b"]),
    ):
        committer, taken = committer_of(None), Takes(capacity)
        for name, own in pieces.items():
            committer._large.append(large(name, own))
        committer._take_pieces(taken)  # type: ignore[arg-type]
        assert taken.seen == seen
        assert [job.name for job in committer._large] == left  # type: ignore[attr-defined]


def test_uploads_that_nobody_waits_for_are_dropped() -> None:
    committer = committer_of(None)
    job: Any = SimpleNamespace(address="a", size=7, waits=True, future=Future(), pieces={})
    job.future.cancel()
    committer._large.append(job)
    committer._take_pieces(SimpleNamespace(capacity=9))  # type: ignore[arg-type]
    assert not committer._large
    assert committer._waiting() == 0


def test_upkeep_tells_once_that_it_fails_and_that_it_works_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A bug is told each time, with its trace."""
    full, bug = OSError(28, "a full disk", "a path"), ZeroDivisionError("a value")
    outcomes = iter([full, full, None, bug, bug, None, None])

    def work() -> bool:
        if (error := next(outcomes)) is not None:
            raise error
        return True

    upkeep = Upkeep(work, "rounds", Metrics())
    assert [upkeep.run() for _ in range(7)] == [False, False, True, False, False, True, True]
    told = [(record.getMessage(), record.exc_info is not None) for record in caplog.records]
    what, again = "no longer on time: rounds", ("on time again: rounds", False)
    assert told == [
        (f"{what}: a full disk", False), again, (what, True), (what, True), again,
    ]  # fmt: skip
