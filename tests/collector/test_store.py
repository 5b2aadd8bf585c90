"""The store: nothing is counted twice, and what is closed stays closed."""

import dataclasses
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import alembic.autogenerate
import alembic.migration
import numpy as np
import pytest
import sqlalchemy as sql

import loloha
from collecting import HOUR, START, Clock, batch, campaign, clients, expected, messages
from laws import oracle
from laws.variants import example
from loloha.campaign import Campaign, Labels, Range
from loloha.collector.replay_guard import ROW_BYTES
from loloha.collector.store import Round, Store, schema, segment
from loloha.collector.store.counts import (
    CELLS,
    add_parts,
    add_to_part,
    pack_part,
    split,
    unpack_part,
    whole,
)
from loloha.collector.store.database import Database
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import Submission, UploadOutcome, gather
from loloha.collector.terms import Terms
from loloha.errors import ParameterError, StoreError
from loloha.protocols import REGISTRY
from loloha.report import Report
from loloha.rng import SimulationRng
from loloha.wire import Refusal, encode
from loloha.wire.batch import Batch

NOW = START + 60
TERMS = Terms(late_seconds=HOUR, early_seconds=60, minimum_cohort=1)


def entry_of(store: Store, one: Campaign | None = None, terms: Terms = TERMS) -> StoredCampaign:
    return store.create(one or campaign(), terms, token=None, now=NOW)[0]


def record(
    store: Store, entry: StoredCampaign, encoded: list[bytes], now: float = NOW
) -> UploadOutcome:
    submission = Submission.of(entry, batch(entry.campaign, encoded))
    return UploadOutcome.of(store.record([submission], now)[0].tolist())


def counted(receipt: UploadOutcome) -> tuple[int, int, list[tuple[int, Refusal]]]:
    return receipt.accepted, receipt.duplicates, receipt.refused


def test_reports_are_counted_once_whatever_is_sent_again(store: Store) -> None:
    entry = entry_of(store)
    some = clients(entry.campaign, 30)
    sent = messages(entry.campaign, some, 0)
    assert counted(record(store, entry, sent[:20])) == (20, 0, [])
    assert counted(record(store, entry, sent[10:])) == (10, 10, [])
    assert counted(record(store, entry, [*sent, *sent])) == (0, 60, [])
    assert store.tally(entry, 0) == expected(entry.campaign, some, 0)
    assert store.rounds(entry) == [Round(0, 30, 70, {})]


def test_duplicates_within_one_upload_and_across_uploads_of_one_commit(store: Store) -> None:
    entry = entry_of(store)
    some = clients(entry.campaign, 6)
    sent = messages(entry.campaign, some, 0)
    uploads = [sent[:4] + sent[:2], sent[2:]]
    together = [Submission.of(entry, batch(entry.campaign, one)) for one in uploads]
    (submission,), places = gather(together)
    (codes,) = store.record([submission], NOW)
    first, second = (UploadOutcome.of(codes[place].tolist()) for _, place in places)
    assert counted(first) == (4, 2, [])
    assert counted(second) == (2, 2, [])
    with pytest.raises(ValueError, match="a campaign each"):
        store.record(together, NOW)
    assert store.tally(entry, 0) == expected(entry.campaign, some, 0)


def other_answers(entry: StoredCampaign, some: list[Any], round: int) -> list[bytes]:
    """Other reports under the same pseudonyms."""
    from loloha.report import Report
    from loloha.wire import encode

    changed = []
    for one in some:
        report = one.report(0, round=round)
        other = Report(report.key, 1 - report.y)
        changed.append(encode(entry.campaign, other, round=round, reporter=one.reporter(round)))
    return changed


def test_a_different_second_report_is_refused_and_counted_as_conflict(store: Store) -> None:
    # PAINS 17.
    entry = entry_of(store)
    some = clients(entry.campaign, 5)
    record(store, entry, messages(entry.campaign, some, 0))
    receipt = record(store, entry, other_answers(entry, some[:3], 0))
    assert counted(receipt) == (0, 0, [(i, Refusal.CONFLICT) for i in range(3)])
    assert store.tally(entry, 0) == expected(entry.campaign, some, 0)
    (round,) = store.rounds(entry)
    assert (round.n, round.conflicts, round.duplicates, round.refused) == (5, 3, 0, {"conflict": 3})


def test_the_guard_outlives_the_process(store: Store, store_url: str) -> None:
    entry = entry_of(store)
    some = clients(entry.campaign, 20)
    sent = messages(entry.campaign, some, 0)
    for start in range(0, 20, 5):
        record(store, entry, sent[start : start + 5])
    again = Store(store_url)
    found = again.campaign(entry.campaign.fingerprint)
    assert found == entry
    assert counted(record(again, found, sent)) == (0, 20, [])
    assert len(record(again, found, other_answers(entry, some, 0)).refused) == 20
    assert again.tally(found, 0) == expected(entry.campaign, some, 0)
    again.close()


def test_an_older_writer_stops_when_a_newer_one_has_taken_over(
    store: Store, store_url: str
) -> None:
    entry = entry_of(store)
    sent = messages(entry.campaign, clients(entry.campaign, 4), 0)
    record(store, entry, sent[:2])
    newer = Store(store_url)
    newer.take_over(alone=True)
    with pytest.raises(StoreError, match="taken it over"):
        record(store, entry, sent[2:])
    assert counted(record(newer, entry, sent)) == (2, 2, [])
    newer.close()


def test_rounds_take_reports_within_the_tolerance_only(store: Store) -> None:
    entry = entry_of(store)
    some = clients(entry.campaign, 1)

    def sent(round: int, now: float) -> list[tuple[int, Refusal]]:
        return record(store, entry, messages(entry.campaign, some, round), now).refused

    early, late = [(0, Refusal.EARLY)], [(0, Refusal.LATE)]
    assert sent(1, START + HOUR - 61) == early
    assert sent(1, START + HOUR - 60) == []
    assert sent(0, START + 2 * HOUR - 1) == []
    assert sent(0, START + 2 * HOUR) == late
    assert sent(5, START + 2 * HOUR) == early
    assert store.rounds(entry) == [
        # Early and late reports belong to the round in which they arrived.
        Round(0, 1, 0, {"early": 1}),
        Round(1, 1, 0, {}),
        Round(2, 0, 0, {"early": 1, "late": 1}),
    ]


def test_reports_before_the_first_round_are_noted_apart(store: Store) -> None:
    entry = entry_of(store)
    record(store, entry, messages(entry.campaign, clients(entry.campaign, 1), 0), START - 61)
    assert store.rounds(entry) == [Round(-1, 0, 0, {"early": 1})]


def test_what_is_closed_stays_closed_though_the_clock_goes_back(
    store: Store, store_url: str
) -> None:
    entry = entry_of(store)
    some = clients(entry.campaign, 3)
    sent = messages(entry.campaign, some, 0)
    record(store, entry, sent)
    record(store, entry, messages(entry.campaign, some, 2), START + 2 * HOUR)
    with store.database.read() as connection:
        left = connection.execute(sql.select(schema.guard.c.round)).scalars().all()
    assert set(left) == {2}
    again = Store(store_url)
    for one in (record(again, entry, sent, NOW), record(again, entry, sent, NOW)):
        assert one.refused == [(i, Refusal.LATE) for i in range(3)]
    assert again.tally(entry, 0).n == 3
    again.close()


def test_two_campaigns_never_touch_each_other(store: Store) -> None:
    # PAINS 20: the same clients, rounds and pseudonyms in both.
    one = entry_of(store, campaign("one"))
    two = entry_of(store, campaign("two", protocol=loloha.RAPPOR(k=5, eps_inf=2.0, eps_1=1.0)))
    first, second = clients(one.campaign, 8), clients(two.campaign, 5)
    for secret in (first, second):
        for user, client in enumerate(secret):
            state = client._state
            state.before = state.before._replace(secret=user.to_bytes(32))
    together = [
        Submission.of(entry, batch(entry.campaign, messages(entry.campaign, some, 0)))
        for entry, some in ((one, first), (two, second), (one, first))
    ]
    submissions, places = gather(together)
    codes = store.record(submissions, NOW)
    receipts = [UploadOutcome.of(codes[which][place].tolist()) for which, place in places]
    assert [counted(each) for each in receipts] == [(8, 0, []), (5, 0, []), (0, 8, [])]
    assert store.tally(one, 0) == expected(one.campaign, first, 0)
    assert store.tally(two, 0) == expected(two.campaign, second, 0)
    assert store.rounds(one) == [Round(0, 8, 8, {})]
    assert store.rounds(two) == [Round(0, 5, 0, {})]


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_protocol_is_counted_as_its_tally_counts(name: str, sqlite_url: str) -> None:
    protocol = example(name, k=9, **({"b": 4, "d": 2} if name == "dbitflippm" else {}))
    store = Store(sqlite_url)
    entry = entry_of(store, campaign(protocol=protocol, domain=Labels(tuple("abcdefghi"))))
    for one in store.fingerprints():
        assert store.campaign(one) == entry
    some = clients(entry.campaign, 40)
    sent = messages(entry.campaign, some, 0)
    for part in (sent[:7], sent[5:30], sent[30:]):
        record(store, entry, part)
    assert store.tally(entry, 0) == expected(entry.campaign, some, 0)
    store.close()


def test_a_large_table_is_stored_in_the_parts_that_change(store: Store) -> None:
    k = 1 << 20
    large = campaign(protocol=loloha.BiLOLOHA(k=k, eps_inf=2.0, eps_1=1.0), domain=Range(0, k, k))
    entry = entry_of(store, large)
    family = large.protocol.encoding.family
    rng = np.random.default_rng(3)
    n = 200
    keys, ys = family.draw_many(n, rng), rng.integers(0, 2, n)
    upload = Batch(
        np.zeros(n, dtype=np.int8),
        np.arange(n),
        np.zeros(n, dtype=np.int64),
        np.frombuffer(rng.bytes(16 * n), "S16"),
        keys,
        ys,
    )
    store.record([Submission.of(entry, upload)], NOW)
    tally = large.protocol.tally()
    tally.update(keys, ys)
    assert store.tally(entry, 0) == tally
    with store.database.read() as connection:
        sizes = connection.execute(sql.select(sql.func.length(schema.cell.c.counts))).scalars()
        assert set(sizes) == {CELLS}


def test_a_campaign_is_created_once_and_keeps_its_first_terms(store: Store) -> None:
    one, new = store.create(campaign(), TERMS, token=b"t", now=NOW)
    assert new
    again, new = store.create(campaign(), Terms(), token=None, now=NOW + 5)
    assert not new
    assert again == one
    assert store.campaign("0" * 64) is None


def test_guards_that_are_not_in_use_leave_memory_and_come_back(store: Store) -> None:
    store._record.most_rows = 10
    entry = entry_of(store, terms=Terms(late_seconds=10 * HOUR))
    some = clients(entry.campaign, 8)
    now = START + 3 * HOUR
    for _ in range(2):
        for round in range(3):
            record(store, entry, messages(entry.campaign, some, round), now)
            assert len(store._record._guards) == 1
    assert [(one.n, one.duplicates) for one in store.rounds(entry)] == [(8, 8)] * 3


def test_many_small_segments_are_merged_when_they_are_read(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loloha.collector.store.segment.MOST_SEGMENTS", 3)
    entry = entry_of(store)
    sent = messages(entry.campaign, clients(entry.campaign, 9), 0)
    for one in sent[:3]:
        record(store, entry, [one])
    few = Store(store_url)
    assert counted(record(few, entry, sent[:4])) == (1, 3, [])
    few.close()
    assert len(guarded(store)) == 4
    again = Store(store_url)
    assert counted(record(again, entry, sent)) == (5, 4, [])
    assert guarded(again) == [4 * ROW_BYTES, 5 * ROW_BYTES]
    again.close()
    last = Store(store_url)
    assert counted(record(last, entry, sent)) == (0, 9, [])
    last.close()


def guarded(store: Store) -> list[int]:
    """Bytes of each segment."""
    size = sql.func.length(schema.guard.c.rows)
    with store.database.read() as connection:
        return list(connection.execute(sql.select(size).order_by(size)).scalars())


@pytest.mark.parametrize("largest", [3, 5, 100])
def test_whatever_is_written_can_be_read_again_in_bounded_pieces(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    # Rounds of more than 41 million reports: merged they were larger than a value may be.
    monkeypatch.setattr("loloha.collector.store.segment.MOST_SEGMENTS", 3)
    monkeypatch.setattr("loloha.collector.store.segment.LARGEST", largest * ROW_BYTES)
    entry = entry_of(store)
    sent = {round: messages(entry.campaign, clients(entry.campaign, 31), round) for round in (0, 1)}
    now = START + HOUR + 60
    record(store, entry, sent[0][:7], now)
    for one in (*sent[0][7:30], *sent[1][:2]):
        record(store, entry, [one], now)
    for again in range(3):
        other = Store(store_url)
        both = record(other, entry, sent[0][:30] + sent[1][:2], now)
        assert counted(both) == (0, 32, [])
        # What is merged is no larger than a piece; a segment of one commit stays as it is.
        assert all(size <= max(7, largest) * ROW_BYTES for size in guarded(other)), again
        other.close()
    assert len(guarded(store)) <= 2 + -(-32 // largest) + 2
    last = Store(store_url)
    assert counted(record(last, entry, sent[0] + sent[1], now)) == (30, 32, [])
    assert last.tally(entry, 0).n == last.tally(entry, 1).n == 31
    last.close()


def test_only_campaigns_of_which_a_round_is_due_are_looked_at(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each of 5 000 campaigns was parsed every half minute.
    busy, idle = entry_of(store, campaign("busy")), entry_of(store, campaign("idle"))
    entry_of(store, campaign("empty"))
    record(store, busy, messages(busy.campaign, clients(busy.campaign, 2), 0))
    later = messages(idle.campaign, clients(idle.campaign, 2), 1)
    record(store, idle, later, START + HOUR)
    parsed: list[str] = []
    honest = Campaign.from_json

    def noted(*arguments: Any, **more: Any) -> Any:
        one = honest(*arguments, **more)
        parsed.append(one.name)
        return one

    for fresh in (False, True):
        one = Store(store_url) if fresh else store
        monkeypatch.setattr(Campaign, "from_json", noted)
        one.close_rounds(START + HOUR)
        assert sorted(parsed) == ["busy", "idle"]
        parsed.clear()
        for _ in range(3):
            assert not one.close_rounds(START + 2 * HOUR - 1)
        assert parsed == []
        if fresh:
            one.close_rounds(START + 2 * HOUR)
            assert parsed == ["busy"]
            one.close_rounds(START + 3 * HOUR)
            assert parsed == ["busy", "idle"]
            assert guarded(one) == []
            one.close_rounds(START + 99 * HOUR)
            assert len(parsed) == 2
            one.close()
        monkeypatch.undo()
        parsed.clear()


def test_many_campaigns_are_closed_a_few_at_a_time(store: Store) -> None:
    entries = [entry_of(store, campaign(f"n{i}")) for i in range(7)]
    for entry in entries:
        record(store, entry, messages(entry.campaign, clients(entry.campaign, 1), 0))
    # The first look finds out when each is due.
    assert [store.close_rounds(NOW, most=3) for _ in range(4)] == [True, True, False, False]
    left = []
    for _ in range(3):
        more = store.close_rounds(NOW + 9 * HOUR, most=3)
        left.append((more, len(guarded(store))))
    assert left == [(True, 4), (True, 1), (False, 0)]
    record(
        store, entries[0], messages(campaign("n0"), clients(campaign("n0"), 1), 10), NOW + 10 * HOUR
    )
    store.close_rounds(NOW + 12 * HOUR)
    assert guarded(store) == []


def test_migrations_make_the_tables_that_the_code_expects(store: Store) -> None:
    with store.database.write() as connection:
        context = alembic.migration.MigrationContext.configure(connection)
        assert alembic.autogenerate.compare_metadata(context, schema.metadata) == []


def test_a_store_of_a_newer_release_is_refused(store: Store, store_url: str) -> None:
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="newer"):
        Store(store_url)


def test_only_the_owner_can_read_the_file(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    entry_of(store)
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    for file in path.parent.glob("loloha.db*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    store.close()


# -- failures


def test_a_full_disk_leaves_nothing_half_applied_and_passes(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    entry = entry_of(store)
    some = clients(entry.campaign, 400)
    sent = messages(entry.campaign, some, 0)
    record(store, entry, sent[:100])
    with store.database.write() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    def fill() -> None:
        for start in range(100, 400, 100):
            record(store, entry, sent[start : start + 100])

    with pytest.raises(StoreError, match="try again"):
        fill()
    before = store.tally(entry, 0).n
    assert store.tally(entry, 0) == expected(entry.campaign, some[:before], 0)
    with store.database.write() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    assert counted(record(store, entry, sent)) == (400 - before, before, [])
    assert store.tally(entry, 0) == expected(entry.campaign, some, 0)
    store.close()


def test_a_locked_database_is_an_error_that_passes(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loloha.collector.store.server.SECONDS_TO_WAIT", 0.1)
    store = Store(sqlite_url)
    entry = entry_of(store)
    sent = messages(entry.campaign, clients(entry.campaign, 5), 0)
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="try again"):
        record(store, entry, sent)
    # Reading goes on.
    assert store.tally(entry, 0).n == 0
    other.execute("ROLLBACK")
    other.close()
    assert counted(record(store, entry, sent)) == (5, 0, [])
    store.close()


@pytest.mark.postgres
def test_a_lost_connection_is_an_error_that_passes(postgresql_url: str) -> None:
    store = Store(postgresql_url)
    entry = entry_of(store)
    sent = messages(entry.campaign, clients(entry.campaign, 6), 0)
    record(store, entry, sent[:2])
    engine = sql.create_engine(postgresql_url, isolation_level="AUTOCOMMIT")
    kill = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND query LIKE '%guard%' "
        "AND application_name = current_setting('application_name')"
    )

    def lose() -> None:
        with store.database.write() as connection:
            connection.execute(sql.select(schema.guard.c.segment))
            with engine.connect() as other:
                other.execute(sql.text(kill))
            connection.execute(sql.select(schema.guard.c.segment))

    with pytest.raises(StoreError, match="try again"):
        lose()
    engine.dispose()
    assert counted(record(store, entry, sent)) == (4, 2, [])
    store.close()


def test_a_failing_commit_makes_the_guard_be_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The worst case: the commit took place, and the connection broke before it said so.
    entry = entry_of(store)
    some = clients(entry.campaign, 6)
    sent = messages(entry.campaign, some, 0)
    record(store, entry, sent[:2])
    honest = Database.write

    @contextmanager
    def lossy(self: Database) -> Iterator[sql.Connection]:
        with honest(self) as connection:
            yield connection
        raise StoreError("store must be reachable, it is not; try again")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write", lossy)
        with pytest.raises(StoreError):
            record(store, entry, sent[:5])
    assert counted(record(store, entry, sent)) == (1, 5, [])
    assert store.tally(entry, 0) == expected(entry.campaign, some, 0)


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "sqlite:///:memory:", "mysql://a:secret@b/c", "nonsense", "a://"]
)
def test_other_stores_are_refused_without_showing_the_address(url: str) -> None:
    with pytest.raises(ParameterError, match="store must be") as caught:
        Store(url)
    assert "secret" not in str(caught.value)


def test_errors_show_no_parameters(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        Store(f"sqlite:///{tmp_path}/no/such/place.db")
    assert "such" not in str(caught.value)
    assert caught.value.__cause__ is None
    password = "postgresql://u:pass-word@127.0.0.1:1/x"
    assert "pass-word" not in repr(Database(password))
    with pytest.raises(StoreError) as caught:
        Store(password)
    assert "pass-word" not in str(caught.value)


# -- parts of counts


def test_parts_take_the_narrowest_integers() -> None:
    for largest, width in ((0, 1), (255, 1), (256, 2), (1 << 16, 4), (1 << 32, 8)):
        counts = np.array([0, largest, 1], dtype=np.int64)
        packed = pack_part(counts)
        assert len(packed) == 3 * width
        assert (unpack_part(packed, 3) == counts).all()


def test_adding_to_parts_is_adding_to_the_whole() -> None:
    rng = np.random.default_rng(4)
    total = 2 * CELLS + 100
    whole = np.zeros(total, dtype=np.int64)
    parts: dict[int, bytes] = {}
    for _ in range(5):
        cells = np.unique(rng.integers(0, total, 300))
        added = rng.integers(1, 200, len(cells))
        whole[cells] += added
        for number, few, more in split(cells, added):
            parts[number] = add_to_part(parts.get(number), number, few, more, total)
    for number, packed in parts.items():
        part = whole[number * CELLS : (number + 1) * CELLS]
        assert (unpack_part(packed, len(part)) == part).all()


def test_cells_of_linear_hashing_are_those_of_its_tally() -> None:
    protocol = loloha.OLOLOHA(k=50, eps_inf=2.0, eps_1=1.0, g=3)
    rng = np.random.default_rng(5)
    keys = protocol.encoding.family.draw_many(500, rng)
    ys = rng.integers(0, 3, 500)
    cells, added = protocol.encoding.increments(keys, ys)
    tally = protocol.tally()
    tally.update(keys, ys)
    assert (np.flatnonzero(tally.counts) == cells).all()
    assert (tally.counts[cells] == added).all()


def test_rounds_open_and_close_by_the_terms() -> None:
    schedule = campaign().schedule
    terms = Terms(late_seconds=2 * HOUR, early_seconds=0)
    assert terms.open_rounds(schedule, START - 1) == (0, -1)
    assert terms.open_rounds(schedule, START) == (0, 0)
    assert terms.open_rounds(schedule, START + 10 * HOUR) == (8, 10)
    assert terms.open_rounds(schedule, START + 11 * HOUR - 0.5) == (8, 10)
    assert Clock(3.0)() == 3.0


@pytest.mark.parametrize("name", REGISTRY)
def test_any_report_can_be_the_only_one_of_a_commit(store: Store, name: str) -> None:
    # Sees a report that adds to no cell, such as one whose bits are all unset.
    params = {"k": 3, "eps": 1.0, "eps_inf": 2.0, "eps_1": 1.0}
    known = {field.name for field in dataclasses.fields(REGISTRY[name])}
    protocol = REGISTRY[name](**{key: value for key, value in params.items() if key in known})
    entry = entry_of(store, campaign(protocol=protocol, domain=Labels(("a", "b", "c"))))
    key = protocol.client(rng=SimulationRng(0)).report(0, round=0).key
    reports = [Report(key, y) for y in oracle.answers(protocol)]
    counts = protocol.tally()
    for number, report in enumerate(reports):
        counts.add(report)
        sent = encode(entry.campaign, report, round=0, reporter=f"{number:032x}")
        assert counted(record(store, entry, [sent])) == (1, 0, [])
    assert store.tally(entry, 0) == counts


def test_segments_are_read_together_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "LARGEST", 10)
    sizes = [SimpleNamespace(round=r, segment=s, size=n) for r, s, n in
             ((0, 0, 4), (0, 1, 6), (0, 3, 1), (2, 0, 10), (2, 1, 3), (5, 7, 7))]  # fmt: skip
    read = [tuple(ends.values()) for ends in segment._ranges(sizes)]
    assert read == [(0, 0, 0, 1), (0, 3, 0, 3), (2, 0, 2, 0), (2, 1, 5, 7)]
    names = ["first_round", "first_segment", "last_round", "last_segment"]
    assert list(segment._ends(sizes[0], sizes[1])) == names
    assert list(segment._ranges([])) == []


def test_parts_are_added_where_there_are_more_and_make_up_the_whole() -> None:
    total = CELLS + 3
    ends = np.array([1, 2, 300])
    before = {(4, 1): pack_part(ends), (5, 1): pack_part(ends)}
    more = {(4, 1): pack_part(np.array([0, 70_000, 1])), (4, 0): pack_part(np.arange(CELLS))}
    added = add_parts(before, more, total)
    assert added.keys() == more.keys()
    counts = whole([(number, packed) for (_, number), packed in added.items()], total)
    assert counts.tolist() == [*range(CELLS), 1, 70_002, 301]
    assert [len(pack_part(np.array([0, n]))) for n in (255, 256, 65_535, 65_536, 2**32)] == [
        2, 4, 4, 8, 16
    ]  # fmt: skip


def test_a_round_publishes_what_does_not_wait() -> None:
    one = Round(3, 9, 2, {"late": 4, "conflict": 5}, waiting=7)
    assert (one.published, one.conflicts, Round(0).conflicts) == (2, 5, 0)
