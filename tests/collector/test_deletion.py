"""What is to go is deleted in batches: cut off after each of them it goes on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sql

from collecting import HOUR, START, batch, become, campaign, clients, created, messages
from loloha.collector.life import GONE
from loloha.collector.store import Store, deletion, log_counts, schema, statement
from loloha.collector.store import store as store_module
from loloha.collector.store.alarms import AlarmStore, Event
from loloha.collector.store.deletion import Deletion
from loloha.collector.store.log_queue import LogQueue
from loloha.collector.store.standing import standings
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import Submission, UploadOutcome
from loloha.collector.terms import Terms
from loloha.engines import RoundTally
from loloha.errors import StoreError
from loloha.server.tally import Tally

NOW = START + 60
TERMS = Terms(late_seconds=HOUR, early_seconds=60, minimum_cohort=1)
MANY = 2 * statement.MOST_ROWS + 1
TABLES = statement.OF_CAMPAIGN
JSON = {"content-type": "application/json"}


class KilledError(Exception):
    """The process ends here."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "sleep", lambda _: None)


def large(store: Store, stored: StoredCampaign, tables: list[sql.Table] = TABLES) -> None:
    """Rows for three batches in each table."""
    texts = {"event": "{}-{}", "kind": "kind {1}", "rule": "rule {1}"}
    numbers = {"campaign_id": stored.id, "round": 0, "count": 1, "tries": 0, "due": 0}

    def content(column: sql.Column[Any], number: int) -> object:
        if isinstance(column.type, sql.Text):
            return texts.get(column.name, "{{}}").format(stored.id, number)
        if isinstance(column.type, sql.LargeBinary):
            return b"\0"
        is_last = column is list(column.table.primary_key)[-1]
        return number if is_last else numbers.get(column.name, number)

    for table in tables:
        rows = [{one.name: content(one, number) for one in table.c} for number in range(MANY)]
        with store.writing() as connection:
            connection.execute(sql.insert(table), rows)


def rows(store: Store, stored: StoredCampaign) -> int:
    with store.database.read() as connection:
        return sum(
            connection.execute(
                sql.select(sql.func.count()).where(table.c.campaign_id == stored.id)
            ).scalar_one()
            for table in TABLES
        )


def upload(stored: StoredCampaign, round: int = 0) -> Submission:
    one = stored.campaign
    return Submission.of(stored, batch(one, messages(one, clients(one, 3), round)))


def accepted(store: Store, sent: Submission) -> int:
    return UploadOutcome.of(store.record([sent], NOW)[0].tolist()).accepted


def ended(store: Store, name: str = "x") -> StoredCampaign:
    stored = store.create(campaign(name=name), TERMS, token=None, now=NOW)[0]
    store.set_state(stored, "closed", NOW)
    return stored


def cut(monkeypatch: pytest.MonkeyPatch, store: Store, *, after: bool) -> None:
    """End the process after the first commit that changes anything, or in the second."""
    write, changed, commits = store.database.write, [False], [0]

    def see(_: Any, cursor: Any, text: str, *__: Any) -> None:
        changed[0] |= text.startswith(("DELETE", "UPDATE")) and cursor.rowcount > 0

    def begin_to_commit(_: Any) -> None:
        commits[0] += changed[0]
        changed[0] = False
        if commits[0] > 1:
            raise KilledError

    @contextmanager
    def last() -> Iterator[Any]:
        with write() as connection:
            yield connection
        if after and commits[0]:
            raise KilledError

    sql.event.listen(store.database.writer, "after_cursor_execute", see)
    sql.event.listen(store.database.writer, "commit", begin_to_commit)
    monkeypatch.setattr(store.database, "write", last)


LONG, POSTGRES = pytest.mark.long, pytest.mark.postgres


@pytest.mark.parametrize(
    ("store_url", "after"),
    [
        ("sqlite", False),
        pytest.param("sqlite", True, marks=LONG),
        pytest.param("postgresql", False, marks=[LONG, POSTGRES]),
        pytest.param("postgresql", True, marks=[LONG, POSTGRES]),
    ],
    indirect=["store_url"],
)
def test_a_deletion_goes_on_wherever_it_was_cut_off(
    store_url: str, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    store = Store(store_url)
    stored, other = ended(store), ended(store, "other")
    large(store, stored)
    large(store, other, [schema.queued, schema.alarm])
    ways: list[Callable[[], object]] = [
        lambda: store.set_state(stored, "deleted", NOW),
        lambda: Deletion(store).finish(),
    ]
    sent, left = upload(stored), []
    while store.life(stored).state != "deleted":
        cut(monkeypatch, store, after=after)
        try:
            # By the same command, and by what a collector does from its start on.
            ways[len(left) % 2]()
        except KilledError:
            left.append(rows(store, stored))
        store.close()
        store = Store(store_url, is_ready=True)
        assert store.life(stored).state in GONE
        assert accepted(store, sent) == 0
        assert store.rounds(stored) == []
        assert not store.create(stored.campaign, TERMS, token=None, now=NOW)[1]
    # The mark, three batches a table, and the end.
    assert len(set(left)) >= 3 * len(TABLES)
    assert left == sorted(left, reverse=True)
    assert rows(store, stored) == 0
    assert rows(store, other) == 2 * MANY
    assert store.by_id([stored.id])[stored.id].secret != stored.secret
    store.close()


def test_others_are_counted_between_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = ended(store)
    other = store.create(campaign(name="other"), TERMS, token=None, now=NOW)[0]
    large(store, stored, [schema.queued])
    uploads = iter([upload(other, round) for round in (0, 1)])
    counts: list[int] = []

    def meanwhile(_: float) -> None:
        if (sent := next(uploads, None)) is not None:
            counts.append(accepted(store, sent))

    monkeypatch.setattr(deletion, "sleep", meanwhile)
    store.set_state(stored, "deleted", NOW)
    assert counts[0] == 3
    assert rows(store, stored) == 0


def test_a_batch_is_bounded_by_bytes_too(store: Store) -> None:
    stored = ended(store)
    place = {"campaign_id": stored.id, "round": 0}
    content = bytes(statement.MOST_BYTES // 2 + 1)
    with store.writing() as connection:
        for number in range(5):
            row = {**place, "segment": number, "reports": content}
            connection.execute(sql.insert(schema.queued), [row])
    delete = statement.delete_batch(schema.queued)
    assert [Deletion(store).one_batch(delete) for _ in range(4)] == [2, 2, 1, 0]


def test_nothing_is_shown_or_sent_of_what_is_being_deleted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = store.create(campaign(), TERMS, token=None, now=NOW)[0]
    assert accepted(store, upload(stored)) == 3
    store.set_state(stored, "closed", NOW)
    alarms = AlarmStore(store)
    alarms.add(stored.id, {"rule": 0}, [Event("one", stored.id, 0, "{}")], 0)
    large(store, stored, [schema.queued])
    assert (store.tally(stored, 0).n, alarms.waiting()) == (3, 1)
    monkeypatch.setattr(store_module, "SECONDS_TO_DELETE", -1.0)
    store.set_state(stored, "deleted", NOW)
    assert store.life(stored).state == "deleting"
    assert rows(store, stored) > MANY
    tally = store.tally(stored, 0)
    assert (tally.n, tally.counts.any(), store.rounds(stored)) == (0, False, [])
    assert (alarms.due(NOW), alarms.waiting(), alarms.newest(stored.id)) == ([], 0, [])
    (stand,) = standings(store, [stored.campaign.fingerprint]).values()
    assert stand.sums.n == 0
    before = rows(store, stored)
    alarms.add(stored.id, {"other": 0}, [Event("two", stored.id, 0, "{}")], 0)
    assert not LogQueue(store).take(lambda *_: pytest.fail("it is on its way out"))
    counted = RoundTally(0, Tally(stored.campaign.protocol), 0, 0, 0)
    with pytest.raises(StoreError, match="deleted there"):
        log_counts.put(store, stored, counted, NOW)
    assert rows(store, stored) == before
    assert not store.note_whole_deletion(stored)
    assert not Deletion(store).finish()
    assert (rows(store, stored), store.life(stored).state) == (0, "deleted")


def test_one_that_takes_long_is_deleting_until_it_is_deleted(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, one = serve(), campaign()
    path = created(client, one)
    become(client, one, "closed")
    store: Store = client.app.state.context.store
    large(store, store.campaign(one.fingerprint), [schema.queued])  # type: ignore[arg-type]
    monkeypatch.setattr(store_module, "SECONDS_TO_DELETE", -1.0)
    assert become(client, one, "deleted")["state"] == "deleting"
    assert client.get(path).json()["state"] == "deleting"
    assert client.get("/v1/campaigns").json()["campaigns"] == []
    sent = messages(one, clients(one, 1), 0)[0]
    told = client.post(f"{path}/reports", content=sent, headers=JSON)
    assert (told.status_code, told.json().get("campaign")) == (410, "ended")
    for state in ("open", "archived"):
        assert "it is deleting" in become(client, one, state, 409)["detail"]
    monkeypatch.undo()
    assert become(client, one, "deleted")["state"] == "deleted"


def test_a_start_goes_on_by_itself(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, one = serve(), campaign()
    path = created(client, one)
    become(client, one, "closed")
    store: Store = client.app.state.context.store
    stored = store.campaign(one.fingerprint)
    assert stored is not None
    large(store, stored, [schema.cell])
    monkeypatch.setattr(store_module, "SECONDS_TO_DELETE", -1.0)
    become(client, one, "deleted")
    client.__exit__(None, None, None)
    again = serve()
    again.__exit__(None, None, None)
    client = serve()
    assert client.get(path).json()["state"] == "deleted"
    assert rows(client.app.state.context.store, stored) == 0


def test_a_guard_of_many_segments_goes_in_batches(store: Store) -> None:
    stored = store.create(campaign(), TERMS, token=None, now=NOW)[0]
    large(store, stored, [schema.guard])
    store.close_rounds(NOW + 9 * HOUR)
    assert rows(store, stored) == MANY - statement.MOST_ROWS
    # What is left guards nothing, and is not looked at by the clock again.
    assert not store.close_rounds(NOW + 9 * HOUR)
    assert Deletion(store).finish(until=0.0)
    assert not Deletion(store).finish()
    assert rows(store, stored) == 0


def test_the_queue_of_a_former_log_is_deleted_in_batches(store: Store) -> None:
    some = [store.create(campaign(name=name), TERMS, token=None, now=NOW)[0] for name in "ab"]
    for one in some:
        large(store, one, [schema.queued])
    commits: list[Any] = []
    sql.event.listen(store.database.writer, "commit", commits.append)
    assert LogQueue(store).drop() == 2 * MANY
    assert len(commits) > 4
    assert [rows(store, one) for one in some] == [0, 0]


def test_old_sums_go_round_by_round(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    terms = Terms(late_seconds=0, early_seconds=0, minimum_cohort=1, keep_days=1)
    stored = store.create(campaign(), terms, token=None, now=NOW)[0]
    some = clients(stored.campaign, 3)
    for round in (0, 1, 30, 31):
        sent = Submission.of(stored, batch(stored.campaign, messages(stored.campaign, some, round)))
        store.record([sent], START + round * HOUR + 1)
    monkeypatch.setattr(deletion, "_MOST_ROUNDS", 1)
    now = START + 26 * HOUR
    seen = []
    while Deletion(store).old_sums(now, until=0.0):
        seen.append([one.number for one in store.rounds(stored)])
        assert all(store.tally(stored, one.number).n == one.n for one in store.rounds(stored))
    assert seen == [[1, 30, 31], [30, 31]]
