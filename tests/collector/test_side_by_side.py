"""Several collectors on one PostgreSQL: each report once, whichever of them it reaches."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sql

from collecting import ADMIN, ADMIN_KEY, HOUR, START, Clock, batch, campaign, clients, expected
from collecting import messages as encoded
from loloha.campaign import Campaign
from loloha.collector.report_archive import ReportArchive
from loloha.collector.settings import Settings
from loloha.collector.store import Store, schema
from loloha.collector.store.log_queue import LogQueue
from loloha.collector.store.statement import EPOCH_ALONE
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import Submission, UploadOutcome
from loloha.collector.terms import Terms
from loloha.errors import StoreError
from loloha.sender.connection import Connection, _at_once
from loloha.wire import Refusal
from serving import Served, create
from torture import scratch_store

pytestmark = pytest.mark.postgres

NOW = START + 60
TERMS = Terms(late_seconds=0, minimum_cohort=1)


@pytest.fixture
def pair(postgresql_url: str) -> Iterator[tuple[Store, Store]]:
    """Two collectors' stores over one database."""
    both = Store(postgresql_url), Store(postgresql_url)
    yield both
    for one in both:
        one.close()


@pytest.fixture
def stored(pair: tuple[Store, Store]) -> StoredCampaign:
    return pair[0].create(campaign(), TERMS, token=None, now=NOW)[0]


def record(store: Store, stored: StoredCampaign, sent: list[bytes], now: float = NOW) -> Any:
    submission = Submission.of(stored, batch(stored.campaign, sent))
    receipt = UploadOutcome.of(store.record([submission], now)[0].tolist())
    return receipt.accepted, receipt.duplicates, {*receipt.reasons}


def test_a_retry_is_a_duplicate_whichever_collector_it_reaches(
    pair: tuple[Store, Store], stored: StoredCampaign
) -> None:
    some = clients(stored.campaign, 40)
    sent = encoded(stored.campaign, some, 0)
    other = encoded(stored.campaign, clients(stored.campaign, 40, seed=1000), 0)
    first, second = pair
    assert record(first, stored, sent[:10]) == (10, 0, set())
    # What it reads now it remembers, and what the first counts after that it has to see.
    assert record(second, stored, sent[:20]) == (10, 10, set())
    assert record(first, stored, sent[5:30]) == (10, 15, set())
    assert record(second, stored, sent) == (10, 30, set())
    assert record(first, stored, sent) == (0, 40, set())
    changed = [_other(each) for each in sent]
    for one in pair:
        assert record(one, stored, changed) == (0, 0, {Refusal.CONFLICT})
        assert one.tally(stored, 0) == expected(stored.campaign, some, 0)
    assert record(second, stored, other) == (40, 0, set())
    (round,) = first.rounds(stored)
    assert (round.n, round.duplicates, round.conflicts) == (80, 95, 80)


def _other(sent: bytes) -> bytes:
    """The contrary, by the same reporter."""
    message = json.loads(sent)
    message["y"] = {"00": "01", "01": "00"}[message["y"]]
    return json.dumps(message).encode()


def test_segments_that_another_has_merged_are_known_already(
    pair: tuple[Store, Store], stored: StoredCampaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loloha.collector.store.segment.MOST_SEGMENTS", 3)
    first, second = pair
    some = clients(stored.campaign, 12)
    sent = encoded(stored.campaign, some, 0)
    for place in range(6):
        assert record(first, stored, [sent[place]]) == (1, 0, set())
    # Reads all of them, and writes one instead.
    assert record(second, stored, sent[:9]) == (3, 6, set())
    assert record(first, stored, sent) == (3, 9, set())
    (guard,) = first._record._guards.values()
    assert len(guard.guard) == 12
    assert first.tally(stored, 0) == expected(stored.campaign, some, 0)


def test_reports_wait_together_and_are_published_together(pair: tuple[Store, Store]) -> None:
    terms = Terms(late_seconds=0, minimum_cohort=1, publish_every=10)
    stored, _ = pair[0].create(campaign("waits"), terms, token=None, now=NOW)
    some = clients(stored.campaign, 14)
    sent = encoded(stored.campaign, some, 0)
    shown = []
    for place in range(14):
        record(pair[place % 2], stored, [sent[place]])
        (round,) = pair[0].rounds(stored)
        shown.append((round.n, round.published))
    one = Store(str(pair[0].database.url.render_as_string(hide_password=False)))
    alone, _ = one.create(campaign("waits alone"), terms, token=None, now=NOW)
    others = encoded(alone.campaign, clients(alone.campaign, 14), 0)
    for place in range(14):
        record(one, alone, [others[place]])
        (round,) = one.rounds(alone)
        assert shown[place] == (round.n, round.published)
    one.close()


def test_many_threads_of_two_collectors_count_each_report_once(
    pair: tuple[Store, Store], stored: StoredCampaign
) -> None:
    another, _ = pair[1].create(campaign("another"), TERMS, token=None, now=NOW)
    some = clients(stored.campaign, 60)
    sent = {one.id: encoded(one.campaign, some, 0) for one in (stored, another)}

    def work(number: int) -> int:
        store, accepted = pair[number % 2], 0
        for step in range(12):
            start = (7 * step + 5 * number) % 60
            few = [
                Submission.of(one, batch(one.campaign, sent[one.id][start : start + 9]))
                for one in ((stored, another), (another, stored))[number // 2 % 2]
            ]
            codes = store.record(few, NOW)
            accepted += sum(int((each == 0).sum()) for each in codes)
        return accepted

    with ThreadPoolExecutor(4) as pool:
        accepted = sum(pool.map(work, range(4)))
    assert accepted == 120
    for one in (stored, another):
        assert pair[0].tally(one, 0) == expected(one.campaign, some, 0)


def waits(url: str, lock: str, work: Callable[[], Any]) -> Any:
    """What comes of work that goes on only once a lock is given back."""
    engine = sql.create_engine(url)
    with ThreadPoolExecutor(1) as pool, engine.connect() as holder:
        holder.execute(sql.text(lock))
        future = pool.submit(work)
        with pytest.raises(TimeoutError):
            future.result(0.5)
        holder.rollback()
        outcome = future.result(10)
    engine.dispose()
    return outcome


@pytest.mark.parametrize("kind", ["commit", "close", "pause", "copy"])
def test_a_commit_and_what_closes_its_round_exclude_each_other(
    kind: str, pair: tuple[Store, Store], stored: StoredCampaign, postgresql_url: str
) -> None:
    # The second wrote last, and has nothing to note.
    record(pair[1], stored, encoded(stored.campaign, clients(stored.campaign, 3), 0))
    work: dict[str, Callable[[], Any]] = {
        "commit": lambda: record(
            pair[1], stored, encoded(stored.campaign, clients(stored.campaign, 5), 0)
        ),
        "close": lambda: pair[1].close_rounds(NOW + HOUR),
        "pause": lambda: pair[1].set_state(stored, "paused", NOW),
        "copy": lambda: pair[1].take_over(alone=True),
    }
    # As a commit of the first holds it.
    lock = "SELECT * FROM campaign FOR NO KEY UPDATE"
    if kind == "copy":
        lock = "SELECT * FROM writer FOR KEY SHARE"
    waits(postgresql_url, lock, work[kind])


def test_a_report_that_comes_as_its_round_is_closed_is_counted_or_refused(
    pair: tuple[Store, Store], stored: StoredCampaign
) -> None:
    leader, other = pair
    some = clients(stored.campaign, 6)
    sent = encoded(stored.campaign, some, 0)
    assert record(other, stored, sent[:4]) == (4, 0, set())
    leader.close_rounds(NOW + HOUR)
    # By the other's clock the round is open still, and its guard is in memory.
    assert record(other, stored, sent) == (0, 0, {Refusal.LATE})
    assert other._record._guards == {}
    assert other.tally(stored, 0) == expected(stored.campaign, some[:4], 0)


def test_what_another_has_written_is_closed_on_time_though_it_is_gone(
    pair: tuple[Store, Store], stored: StoredCampaign
) -> None:
    leader, other = pair
    sent = encoded(stored.campaign, clients(stored.campaign, 2), 0)
    leader.close_rounds(NOW)
    record(other, stored, sent)
    other.close()
    for now, left in ((NOW, 1), (START + HOUR - 1, 1), (START + HOUR, 0)):
        leader.close_rounds(now)
        with leader.database.read() as connection:
            rows = connection.execute(sql.select(schema.guard.c.round)).all()
        assert len(rows) == left


def wait_until(holds: Callable[[], bool]) -> None:
    patience = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < patience
        time.sleep(0.01)


def test_one_leads_until_it_leaves_or_its_session_ends(
    pair: tuple[Store, Store], postgresql_url: str
) -> None:
    first, second = pair
    assert (first.leads(), second.leads(), first.leads()) == (True, False, True)
    engine = sql.create_engine(postgresql_url, isolation_level="AUTOCOMMIT")
    end = sql.text(
        "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid) "
        "WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' "
        "AND application_name = current_setting('application_name')"
    )
    with engine.connect() as connection:
        assert connection.execute(end).scalars().all() == [True]
    # The server ends a session some time after it was told to.
    wait_until(second.leads)
    assert not first.leads()
    second.see(NOW)
    second.leave()
    wait_until(first.leads)
    # The first goes on, so that the store is in use.
    assert first.used(NOW) is not None
    first.leave()
    assert second.used(NOW) is None
    engine.dispose()


def test_collectors_of_two_schemas_lead_both(postgresql_url: str) -> None:
    with scratch_store("postgresql") as other:
        stores = [Store(postgresql_url), Store(other)]
        assert [one.leads() for one in stores] == [True, True]
        for one in stores:
            one.close()


def test_probes_at_the_same_time_are_no_failures(
    pair: tuple[Store, Store], stored: StoredCampaign
) -> None:
    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            list(pool.map(Store.probe, pair))
    with pair[0].database.read() as connection:
        assert connection.execute(sql.select(schema.guard.c.round)).all() == []


def test_a_campaign_that_both_create_is_new_to_one(pair: tuple[Store, Store]) -> None:
    gate = threading.Barrier(2)

    def make(store: Store) -> tuple[StoredCampaign, bool]:
        gate.wait()
        return store.create(one, TERMS, token=None, now=NOW)

    for number in range(5):
        one = campaign(f"n{number}")
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(make, pair))
        assert sorted(new for _, new in results) == [False, True]
        assert results[0][0] == results[1][0]


def test_a_state_is_seen_by_the_next_commit_of_another(
    pair: tuple[Store, Store], stored: StoredCampaign
) -> None:
    first, second = pair
    sent = encoded(stored.campaign, clients(stored.campaign, 4), 0)
    assert record(second, stored, sent[:2]) == (2, 0, set())
    first.set_state(stored, "paused", NOW)
    assert second.life(stored).state == "open"
    assert record(second, stored, sent) == (0, 0, {Refusal.LATE})
    assert second.life(stored).state == "paused"
    first.set_state(stored, "open", NOW)
    assert record(second, stored, sent) == (2, 2, set())
    assert second.life(stored).state == "open"
    second.set_state(stored, "paused", NOW)
    first.set_state(stored, "closed", NOW)
    first.set_state(stored, "deleted", NOW)
    assert record(second, stored, sent) == (0, 0, {Refusal.LATE})
    assert second.rounds(stored) == []


def test_two_that_deliver_at_once_write_each_report_into_one_file(
    postgresql_url: str, tmp_path: Any
) -> None:
    kept = ReportArchive(tmp_path / "log")
    kept.prepare()
    pair = [Store(postgresql_url, keeps=kept.pack) for _ in range(2)]
    stored, _ = pair[0].create(campaign(), TERMS, token=None, now=NOW)
    sent = encoded(stored.campaign, clients(stored.campaign, 9), 0)
    record(pair[0], stored, sent[:3])
    files: list[tuple[bytes, ...]] = []

    def second(stored: StoredCampaign, round: int, packed: list[bytes]) -> None:
        files.append(tuple(packed))

    def first(stored: StoredCampaign, round: int, packed: list[bytes]) -> None:
        files.append(tuple(packed))
        # It was taken for dead: the second writes the same file again, then another one.
        record(pair[1], stored, sent[3:6])
        LogQueue(pair[1]).take(second)
        with pytest.raises(StoreError):
            LogQueue(pair[1]).take(broken)

    def broken(stored: StoredCampaign, round: int, packed: list[bytes]) -> None:
        record(pair[0], stored, sent[6:])
        raise StoreError("store must be reachable; try again")

    LogQueue(pair[0]).take(first)
    for _ in range(3):
        LogQueue(pair[1]).take(second)
    assert files[0] == files[1]
    assert [len(one) for one in files] == [1, 1, 1, 1]
    assert len(set(files)) == 3
    for one in pair:
        one.close()


def test_a_collector_of_a_release_that_writes_alone_is_stopped(postgresql_url: str) -> None:
    old = Store(postgresql_url)
    stored, _ = old.create(campaign(), TERMS, token=None, now=NOW)
    with old.database.write() as connection:
        # As 0.2.0 left it.
        connection.exec_driver_sql("DROP VIEW loloha_estimates")
        connection.exec_driver_sql(
            "ALTER TABLE campaign DROP COLUMN state, DROP COLUMN last_writer,"
            " DROP COLUMN newest_report"
        )
        connection.exec_driver_sql(
            "ALTER TABLE admin_key DROP COLUMN label, DROP COLUMN created,"
            " DROP COLUMN used, DROP COLUMN expires"
        )
        connection.exec_driver_sql(
            "DROP TABLE estimated_round, estimate, admin_session, alarm, alarm_mark"
        )
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0002'")
    with ThreadPoolExecutor(1) as pool:
        with old.database.write() as connection:
            # As each transaction of 0.2.0 begins; the migration waits for it.
            connection.execute(EPOCH_ALONE)
            starting = pool.submit(Store, postgresql_url)
            blocked = "pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            waiting = sql.text(f"SELECT count(*) FROM pg_locks WHERE {blocked}")
            while not connection.scalar(waiting):
                assert not starting.done()
                time.sleep(0.01)
            connection.exec_driver_sql("UPDATE campaign SET token = NULL")
        new = starting.result()
    with pytest.raises(StoreError, match="taken it over"):
        old.set_state(stored, "paused", NOW)
    assert record(new, stored, encoded(stored.campaign, clients(stored.campaign, 2), 0))[0] == 2
    Store(postgresql_url).close()
    new.set_state(stored, "paused", NOW)
    for one in (old, new):
        one.close()


# -- over HTTP


@pytest.fixture
def urls(postgresql_url: str, clock: Clock) -> Iterator[list[str]]:
    settings = Settings(store=postgresql_url, admin_key=ADMIN_KEY, rate_limit="")
    with Served(settings, clock) as first, Served(settings, clock) as second:
        yield [first, second]


def ask(url: str, method: str, path: str, body: bytes | None = None, **headers: str) -> Any:
    with Connection(url, timeout=60) as connection:
        return connection._once(method, path, body, headers, _at_once)


def test_what_is_made_through_one_is_there_at_the_other_at_once(urls: list[str]) -> None:
    first, second = urls
    json_type = {"Content-Type": "application/json"}
    for number in range(3):
        one = campaign(f"n{number}")
        # Strangers make it look, which must keep nobody from finding what is new.
        assert ask(second, "GET", f"/v1/campaigns/{'0' * 64}").status == 404
        path = create(first, one)
        sent = encoded(one, clients(one, 6), 0)
        answers = [
            ask(url, "POST", f"{path}/reports", sent[0], **json_type) for url in (second, first)
        ]
        assert [answer.status for answer in answers] == [200, 200]
        assert [answer.json()["duplicates"] for answer in answers] == [0, 1]
        for state, status in (("paused", 410), ("open", 200), ("paused", 410), ("closed", 410)):
            change(first, one, state)
            for body, type in ((sent[1], json_type), (b"\n".join(sent), LINES)):
                answer = ask(second, "POST", f"{path}/reports", body, **type)
                assert (answer.status, state) == (status, state)
            together = ask(second, "POST", "/v1/reports", b"[%s]" % sent[2], **json_type)
            assert together.json()["answers"][0]["status"] == status
            assert ask(second, "GET", path).json()["state"] == state
        assert ask(second, "GET", f"{path}/rounds").json()["rounds"][0]["n"] == 6


LINES = {"Content-Type": "application/x-ndjson"}


def change(url: str, one: Campaign, state: str) -> None:
    path = f"/v1/admin/campaigns/{one.fingerprint}/state"
    body = json.dumps({"state": state}).encode()
    answer = ask(url, "PUT", path, body, **ADMIN, **{"Content-Type": "application/json"})
    assert answer.status == 200
    assert answer.json()["state"] == state
