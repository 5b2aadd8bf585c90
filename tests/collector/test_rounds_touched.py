"""Rounds that uploads touch cost something: no upload, and no address, holds up the others."""

from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

import loloha
from collecting import HOUR, START, batch, campaign, clients, messages
from laws.variants import PAIRWISE
from loloha.campaign import Labels
from loloha.collector import commit, commit_cost, queue
from loloha.collector.commit import Committer
from loloha.collector.metric import Metrics
from loloha.collector.store import Store
from loloha.collector.submission import SmallUpload, Submission, UploadOutcome
from loloha.collector.terms import Terms
from loloha.errors import StoreError
from loloha.rng import SimulationRng
from loloha.wire import encode, text
from loloha.wire.batch import Reader


class AtOnce:
    """Calls in the committer's own thread, where an event loop would be woken."""

    @staticmethod
    def call_soon_threadsafe(call: Any, *arguments: Any) -> None:
        call(*arguments)


def spread(entry: Any, users: int, rounds: int, *, seed: int = 0) -> list[bytes]:
    """Reports of some users, each in every one of the rounds."""
    some = clients(entry.campaign, users, seed=seed)
    return [one for round in range(rounds) for one in messages(entry.campaign, some, round)]


def many_rounds(store: Store, open: int = 60, **changes: Any) -> Any:
    one = campaign(**changes)
    return store.create(one, Terms(late_seconds=open * HOUR), token=None, now=START)[0]


class Watched:
    """A store that notes what each commit holds: reports and rounds."""

    def __init__(self, store: Store, now: float) -> None:
        self.store, self.now = store, now
        self.commits: list[tuple[int, int]] = []

    def record(self, submissions: Any, _: float) -> Any:
        rounds = {(one.stored.id, r) for one in submissions for r in one.batch.rounds.tolist()}
        self.commits.append((sum(one.size for one in submissions), len(rounds)))
        return self.store.record(submissions, self.now)


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> int:
    """Rounds of a narrow campaign that one piece may touch, made small."""
    narrow = commit_cost.ROUND_WORK + commit_cost.PART_WORK
    monkeypatch.setattr(queue, "FEW_REPORTS", 100)
    monkeypatch.setattr(queue, "LARGEST_PIECE", 5 * narrow)
    monkeypatch.setattr(commit, "MOST_AT_ONCE", 11 * narrow)
    return 5


def committer_of(store: Any, now: float = START, largest_queue: int = 10**6) -> Committer:
    return Committer(
        store, clock=lambda: now, metrics=Metrics(), largest_queue=largest_queue, tidy=bool
    )


def run(store: Watched, waiting: list[tuple[Any, str | None]]) -> list[UploadOutcome]:
    """What becomes of uploads that wait, each from an address, once the committer starts."""
    committer = committer_of(store, now=0.0)
    futures = []
    for upload, address in waiting:
        future: Future[UploadOutcome] = Future()
        committer.submit(commit.Job(upload, future, AtOnce, address))  # type: ignore[arg-type]
        futures.append(future)
    committer.start()
    committer.stop()
    return [future.result(10) for future in futures]


@pytest.mark.parametrize("small", [False, True])
def test_no_commit_touches_many_rounds_whatever_an_upload_holds(
    sqlite_url: str, bounded: int, small: bool
) -> None:
    # 85 KB, one report in each of 501 open rounds, held up everybody for seconds.
    store = Store(sqlite_url)
    entry = many_rounds(store)
    sent = spread(entry, 1, 43)
    noise = [b"{}", b"[]"]
    mixed = b"\n".join([noise[0], *sent, noise[1], sent[0]])
    upload: Any = SmallUpload(entry, *text.lines(mixed))
    if not small:
        upload = Submission.of(entry, entry.reader.read_lines(mixed))
    watched = Watched(store, START + 50 * HOUR)
    (receipt,) = run(watched, [(upload, None)])
    assert receipt == UploadOutcome.of([1, *[0] * 43, 1, -1])
    assert len(watched.commits) == 5
    assert max(rounds for _, rounds in watched.commits) <= 2 * bounded
    assert sum(size for size, _ in watched.commits) == 46
    assert [one.n for one in store.rounds(entry) if one.n] == [1] * 43
    # Malformed reports count once, in the round in which they arrived.
    assert store.rounds(entry)[-1].refused == {"malformed": 2}
    store.close()


def test_an_upload_is_cut_only_if_its_work_is_more_than_a_piece_may_be(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    entry = many_rounds(store)
    upload = Submission.of(entry, batch(entry.campaign, spread(entry, 2, 3)))
    ((name, piece, places),) = upload.pieces(upload.work)
    assert (name, piece, places) == (None, upload, slice(None))
    pieces = list(upload.pieces(upload.work - 1))
    assert None not in [name for name, _, _ in pieces]
    assert sorted(place for _, _, places in pieces for place in places.tolist()) == [*range(6)]
    store.close()


def test_uploads_in_the_same_rounds_share_what_touching_them_costs(
    sqlite_url: str, bounded: int
) -> None:
    store = Store(sqlite_url)
    entry = many_rounds(store)
    uploads = [
        Submission.of(entry, batch(entry.campaign, spread(entry, 1, 40, seed=seed)))
        for seed in range(12)
    ]
    watched = Watched(store, START + 50 * HOUR)
    told = run(watched, [(upload, f"192.0.2.{i}") for i, upload in enumerate(uploads)])
    assert [receipt.accepted for receipt in told] == [40] * 12
    assert sum(rounds for _, rounds in watched.commits) == 40
    store.close()


def test_addresses_take_turns_whatever_one_of_them_has_sent(sqlite_url: str, bounded: int) -> None:
    store = Store(sqlite_url)
    entry, other = many_rounds(store), many_rounds(store, name="other")
    flood = [
        Submission.of(entry, batch(entry.campaign, spread(entry, 1, 50, seed=seed)[i:]))
        for i, seed in enumerate(range(8))
    ]
    honest = Submission.of(other, batch(other.campaign, spread(other, 101, 1)))
    done: list[str] = []
    watched = Watched(store, START + 50 * HOUR)
    committer = committer_of(watched, now=0.0)
    for name, upload in [*(("flood", one) for one in flood), ("honest", honest)]:
        future: Future[UploadOutcome] = Future()
        future.add_done_callback(lambda _, name=name: done.append(name))  # type: ignore[misc]
        committer.submit(commit.Job(upload, future, AtOnce, name))  # type: ignore[arg-type]
    committer.start()
    committer.stop()
    assert done == ["honest", *["flood"] * 8]
    store.close()


def test_a_piece_that_fails_fails_its_upload_and_no_other(
    sqlite_url: str, bounded: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(sqlite_url)
    entry, other = many_rounds(store), many_rounds(store, name="other")
    sent = spread(entry, 1, 30)
    upload = Submission.of(entry, batch(entry.campaign, sent))
    watched = Watched(store, START + 50 * HOUR)
    honest, calls = store.record, iter(range(99))

    def lossy(submissions: Any, now: float) -> Any:
        if next(calls) == 1:
            raise StoreError("store must be writable, got a full disk; mend that")
        return honest(submissions, now)

    with monkeypatch.context() as patch:
        patch.setattr(store, "record", lossy)
        committer = committer_of(watched, now=0.0)
        lost, kept = Future[UploadOutcome](), Future[UploadOutcome]()
        committer.submit(commit.Job(upload, lost, AtOnce, "a"))  # type: ignore[arg-type]
        committer.start()
        with pytest.raises(StoreError):
            lost.result(10)
        late = Submission.of(other, batch(other.campaign, spread(other, 1, 30)))
        committer.submit(commit.Job(late, kept, AtOnce, "b"))  # type: ignore[arg-type]
        assert kept.result(10).accepted == 30
        committer.stop()
    # What was counted of it is a duplicate when it is sent again.
    (again,) = run(watched, [(upload, None)])
    assert (again.accepted, again.duplicates, again.refused) == (20, 10, [])
    store.close()


def test_one_address_takes_a_quarter_of_the_queue(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    one = campaign()
    entry, _ = store.create(one, Terms(), token=None, now=START)
    sent = messages(one, clients(one, 12), 0)
    committer = committer_of(store, largest_queue=16)

    def add(address: str, count: int) -> None:
        upload = Submission.of(entry, batch(one, sent[:count]))
        committer.submit(commit.Job(upload, Future(), AtOnce, address))  # type: ignore[arg-type]

    add("a", 3)
    add("a", 1)
    with pytest.raises(StoreError, match="room"):
        add("a", 1)
    add("b", 12)
    with pytest.raises(StoreError, match="room"):
        add("c", 1)
    committer.start()
    committer.stop()
    store.close()


@pytest.mark.parametrize("variant", PAIRWISE, ids=str)
def test_work_grows_with_rounds_and_counts_every_cell_that_is_touched(variant: Any) -> None:
    protocol = variant.build()
    encoding = protocol.encoding
    spans = [commit_cost.upload_work(encoding, list(range(n))) for n in (0, 1, 2, 30)]
    assert spans[0] == 0 < spans[1]
    assert spans[2] - spans[1] >= commit_cost.ROUND_WORK
    assert spans[3] >= 29 * commit_cost.ROUND_WORK + 30
    some = [protocol.client(rng=SimulationRng(user)) for user in range(20)]
    sent = [
        encode(
            protocol_campaign(protocol), one.report(0, round=0), round=0, reporter=one.reporter(0)
        )
        for one in some
    ]
    batch = Reader(protocol_campaign(protocol)).read_lines(b"\n".join(sent))
    for rows in [[row] for row in range(20)] + [list(range(20))]:
        few = batch.take(np.array(rows))
        cells, added = encoding.increments(few.keys, few.ys)
        whole = np.zeros(encoding.cells, dtype=np.int64)
        encoding.count(whole, few.keys, few.ys)
        assert (np.flatnonzero(whole) == cells).all()
        assert (whole[cells] == added).all()
        assert len(cells) <= encoding.span * len(rows)


def work(encoding: Any, reports: int, rounds: int) -> int:
    """Of a commit of so many reports in so many rounds."""
    of_round = int(commit_cost.round_work(encoding, reports))
    return reports * commit_cost.report_work(encoding) + rounds * of_round


def protocol_campaign(protocol: Any) -> Any:
    labels = Labels(tuple(map(str, range(protocol.k))))
    return campaign(protocol=protocol, domain=labels)


@pytest.mark.parametrize("k", [8, 1 << 14])
def test_cutting_loses_no_row_and_keeps_their_order(k: int) -> None:
    rng = np.random.default_rng(3)
    for protocol in (loloha.GRR(k=k, eps=1.0), loloha.OUE(k=k, eps=1.0)):
        encoding = protocol.encoding
        for rounds in (rng.integers(0, 300, 2000), np.full(30_000, 7), np.zeros(0, dtype=np.int64)):
            pieces = list(commit_cost.cut(encoding, rounds, 10_000))
            rows = np.concatenate([few for _, few in pieces]) if pieces else np.zeros(0)
            assert sorted(rows.tolist()) == list(range(len(rounds)))
            for round in set(rounds.tolist()):
                mine = rows[rounds[rows] == round]
                assert (np.diff(mine) > 0).all()
            for _, few in pieces:
                touched = len(set(rounds[few].tolist()))
                cost = work(encoding, len(few), touched)
                assert cost <= 2 * 10_000 + work(encoding, 1, 1)


def test_who_does_not_fit_into_a_commit_is_the_first_of_the_next(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that passed its turn waited for ever behind others whose uploads left it no room.
    store = Store(sqlite_url)
    one = campaign()
    entry, _ = store.create(one, Terms(), token=None, now=START)
    sent = messages(one, clients(one, 58), 0)
    shared = commit_cost.ROUND_WORK + commit_cost.PART_WORK
    monkeypatch.setattr(commit, "MOST_AT_ONCE", shared + 10)
    done: list[str] = []
    committer = committer_of(store)
    for name, size in [
        ("a", 3),
        ("b", 3),
        ("c", 3),
        ("late", 4),
        *[("a", 3), ("b", 3), ("c", 3)] * 5,
    ]:
        few, sent = sent[:size], sent[size:]
        future: Future[UploadOutcome] = Future()
        future.add_done_callback(lambda _, name=name: done.append(name))  # type: ignore[misc]
        upload = Submission.of(entry, batch(one, few))
        committer.submit(commit.Job(upload, future, AtOnce, name))  # type: ignore[arg-type]
    committer.start()
    committer.stop()
    assert sorted(done[:3]) == ["a", "b", "c"]
    assert done[3] == "late"
    store.close()
