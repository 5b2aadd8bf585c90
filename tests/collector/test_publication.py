"""When estimates are shown: never the difference that one report makes, and what is closed goes."""

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sql

import loloha
from collecting import HOUR, START, batch, campaign, clients, created, messages
from loloha import reportlog
from loloha.collector.report_archive import ReportArchive
from loloha.collector.store import Round, Store, schema
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import Submission
from loloha.collector.terms import Terms
from loloha.errors import CampaignError
from loloha.protocols import REGISTRY

NOW = START + 60
LINES = "application/x-ndjson"


def stored_of(store: Store, terms: Terms, **changes: Any) -> StoredCampaign:
    return store.create(campaign(**changes), terms, token=None, now=NOW)[0]


def record(store: Store, stored: StoredCampaign, encoded: list[bytes], now: float = NOW) -> None:
    store.record([Submission.of(stored, batch(stored.campaign, encoded))], now)


def tallied(stored: StoredCampaign, some: list[Any]) -> Any:
    tally = stored.campaign.protocol.tally()
    for one in some:
        tally.add(one.report(0, round=0))
    return tally


# -- steps


def test_two_estimates_differ_by_a_step_at_least(store: Store) -> None:
    # Estimates before and after one upload, differenced, gave the single report.
    stored = stored_of(store, Terms(minimum_cohort=10, publish_every=7))
    some = clients(stored.campaign, 60)
    sent = messages(stored.campaign, some, 0)
    shown = [0]
    for user in range(60):
        record(store, stored, [sent[user]])
        (one,) = store.rounds(stored)
        assert one.n == user + 1
        assert store.tally(stored, 0).n == one.published
        if one.published != shown[-1]:
            assert one.published - shown[-1] >= 7
            assert store.tally(stored, 0) == tallied(stored, some[: one.published])
            shown.append(one.published)
    assert shown == [0, 10, 17, 24, 31, 38, 45, 52, 59]


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_what_waits_is_added_exactly_for_every_protocol(sqlite_url: str, name: str) -> None:
    sizes: dict[str, Any]
    sizes = {"eps_inf": 2.0, "eps_1": 1.0} if REGISTRY[name].longitudinal else {"eps": 1.0}
    if "b" in REGISTRY[name].__dataclass_fields__:
        sizes = {"eps_inf": 2.0, "b": 5, "d": 2}
    store = Store(sqlite_url)
    protocol = loloha.protocol(name, k=5, **sizes)
    stored = stored_of(store, Terms(minimum_cohort=5), protocol=protocol)
    some = clients(stored.campaign, 23)
    for sent in messages(stored.campaign, some, 0):
        record(store, stored, [sent])
    k = protocol.k
    expected = protocol.tally()
    for user, one in enumerate(some[:20]):
        expected.add(one.report(user % k, round=0))
    assert store.tally(stored, 0) == expected
    store.close()


def test_steps_go_on_in_another_process(store: Store, store_url: str) -> None:
    stored = stored_of(store, Terms(minimum_cohort=10))
    some = clients(stored.campaign, 30)
    sent = messages(stored.campaign, some, 0)
    record(store, stored, sent[:14])
    assert store.rounds(stored) == [Round(0, 14)]
    record(store, stored, sent[14:18])
    again = Store(store_url)
    assert again.rounds(stored) == [Round(0, 18, waiting=4)]
    record(again, stored, sent[18:23])
    assert again.rounds(stored)[0].published == 14
    record(again, stored, sent[23:24])
    assert again.rounds(stored)[0].published == 24
    assert again.tally(stored, 0) == tallied(stored, some[:24])
    again.close()


def test_a_failed_commit_leaves_the_step_where_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = stored_of(store, Terms(minimum_cohort=10))
    some = clients(stored.campaign, 25)
    sent = messages(stored.campaign, some, 0)
    record(store, stored, sent[:15])

    def broken(*_: object) -> None:
        raise RuntimeError("a fault")

    with monkeypatch.context() as patch:
        patch.setattr(type(store._record), "_count", broken)
        with pytest.raises(RuntimeError):
            record(store, stored, sent[15:])
    record(store, stored, sent[15:20])
    assert store.rounds(stored) == [Round(0, 20, waiting=5)]
    record(store, stored, sent)
    assert store.tally(stored, 0) == tallied(stored, some)


def test_a_round_can_be_shown_at_its_end_alone(store: Store) -> None:
    terms = Terms(minimum_cohort=5, publish_every=0, late_seconds=0)
    stored = stored_of(store, terms)
    some = clients(stored.campaign, 12)
    record(store, stored, messages(stored.campaign, some, 0))
    assert store.tally(stored, 0).n == 0
    store.close_rounds(NOW)
    assert store.tally(stored, 0).n == 0
    store.close_rounds(NOW + HOUR)
    assert store.tally(stored, 0) == tallied(stored, some)
    assert store.rounds(stored) == [Round(0, 12)]
    # Too few stay unshown for ever.
    record(store, stored, messages(stored.campaign, some[:4], 1), NOW + HOUR)
    store.close_rounds(NOW + 2 * HOUR)
    assert store.rounds(stored)[1] == Round(1, 4, waiting=4)


def test_the_last_reports_of_a_round_are_not_shown_alone(store: Store) -> None:
    stored = stored_of(store, Terms(minimum_cohort=10, late_seconds=0))
    some = clients(stored.campaign, 11)
    sent = messages(stored.campaign, some, 0)
    record(store, stored, sent[:10])
    record(store, stored, sent[10:])
    store.close_rounds(NOW + HOUR)
    assert store.tally(stored, 0) == tallied(stored, some[:10])


def test_http_shows_published_reports_only(serve: Any) -> None:
    client, one = serve(), campaign()
    path = created(client, one, terms={"minimum_cohort": 20, "publish_every": 0})
    some = clients(one, 30)

    def send(encoded: list[bytes]) -> None:
        headers = {"content-type": LINES}
        client.post(f"{path}/reports", content=b"\n".join(encoded), headers=headers)

    sent = messages(one, some, 0)
    send(sent)
    shown = client.get(f"{path}/rounds/0/estimates").json()
    assert (shown["n"], shown["suppressed_because"]) == (30, "not_published")
    assert "estimate" not in shown
    assert client.get(f"{path}/rounds/0/estimates?format=csv").status_code == 409
    assert client.get(f"{path}/series").json()["estimate"] == [None]
    (round,) = client.get(f"{path}/rounds").json()["rounds"]
    assert (round["n"], round["published"], round["shown"]) == (30, 0, False)
    assert client.get(path).json()["terms"]["publish_every"] == 0
    steps = campaign("steps")
    path = created(client, steps, terms={"minimum_cohort": 20})
    sent = messages(steps, clients(steps, 30), 0)
    send(sent[:25])
    first = client.get(f"{path}/rounds/0/estimates")
    assert first.json()["n"] == 25
    send(sent[25:])
    second = client.get(f"{path}/rounds/0/estimates")
    assert second.content == first.content
    assert second.headers["etag"] == first.headers["etag"]
    assert client.get(f"{path}/series").json()["n"] == [25]
    assert client.get(f"{path}/rounds").json()["rounds"][0]["n"] == 30


def test_terms_have_a_private_default() -> None:
    assert Terms(minimum_cohort=40).publish_every == 40
    assert Terms.from_dict({"minimum_cohort": 7}).publish_every == 7
    assert Terms.from_dict(json.loads(Terms(publish_every=0).to_json())).publish_every == 0
    for wrong in (-1, 1.5, True, "1"):
        with pytest.raises(CampaignError, match="publish_every must be"):
            Terms.from_dict({"publish_every": wrong})


# -- closed rounds


def test_pseudonyms_of_closed_rounds_leave_the_files_on_time(sqlite_url: str) -> None:
    # They stayed until somebody's next upload, and in SQLite's log until the collector stopped.
    store = Store(sqlite_url)
    stored = stored_of(store, Terms(late_seconds=0, minimum_cohort=1))
    some = clients(stored.campaign, 50)
    record(store, stored, messages(stored.campaign, some, 0))
    names = [bytes.fromhex(one.reporter(0)) for one in some]
    folder = Path(sqlite_url.removeprefix("sqlite:///")).parent

    def found() -> int:
        files = b"".join(file.read_bytes() for file in folder.glob("loloha.db*"))
        return sum(name in files for name in names)

    assert found() == 50
    store.close_rounds(NOW)
    assert found() == 50
    store.close_rounds(NOW + HOUR)
    assert found() == 0
    store.close()


def test_a_reader_delays_what_leaves_the_files_and_does_not_prevent_it(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    stored = stored_of(store, Terms(late_seconds=0, minimum_cohort=1))
    record(store, stored, messages(stored.campaign, clients(stored.campaign, 5), 0))
    with store.database.read() as reading:
        reading.execute(sql.select(schema.guard.c.rows)).all()
        store.close_rounds(NOW + HOUR)
        assert store._record.has_deleted
    store.close_rounds(NOW + HOUR)
    assert not store._record.has_deleted
    store.close()


@pytest.mark.postgres
def test_closed_rounds_are_freed_in_postgresql(postgresql_url: str) -> None:
    store = Store(postgresql_url)
    stored = stored_of(store, Terms(late_seconds=0, minimum_cohort=1))
    record(store, stored, messages(stored.campaign, clients(stored.campaign, 5), 0))
    store.close_rounds(NOW + HOUR)
    with store.database.read() as connection:
        assert connection.execute(sql.select(schema.guard.c.rows)).all() == []
    assert store._record.has_deleted
    # Also while the one connection that writes is taken.
    with store.writing():
        store.erase()
    assert not store._record.has_deleted
    store.close()


def test_only_the_newest_collector_closes_rounds(store: Store, store_url: str) -> None:
    from loloha.errors import StoreError

    stored = stored_of(store, Terms(late_seconds=0))
    record(store, stored, messages(stored.campaign, clients(stored.campaign, 5), 0))
    newer = Store(store_url)
    newer.take_over(alone=True)
    newer.close()
    with pytest.raises(StoreError, match="taken it over"):
        store.close_rounds(NOW + HOUR)


# -- the log of reports


def test_the_log_of_reports_is_the_owners_and_has_no_order_of_arrival(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir(mode=0o755)
    kept = ReportArchive(folder)
    kept.prepare()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    one = campaign()
    read = batch(one, messages(one, clients(one, 40), 0))
    packed = [
        kept.pack(one, 0, read.reporters[part], read.keys[part], read.ys[part])
        for part in (slice(0, 20), slice(20, 40))
    ]
    stored = StoredCampaign(1, one, Terms(), None, b"", 0)
    kept.deliver(stored, 0, packed)
    (file,) = folder.rglob("*.parquet")
    import pyarrow.parquet as parquet

    names = parquet.read_table(file).column("reporter").to_pylist()
    raw = read.reporters.view(np.uint8).tobytes()
    assert names == sorted(raw[start : start + 16] for start in range(0, len(raw), 16))
    assert reportlog.ReportLog(folder, one).scan().rows == 40


def test_queued_reports_are_deleted_without_a_log(
    serve: Any, tmp_path: Path, sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    kept = ReportArchive(tmp_path / "log")
    store = Store(sqlite_url, keeps=kept.pack)
    stored = stored_of(store, Terms())
    record(store, stored, messages(stored.campaign, clients(stored.campaign, 5), 0))
    store.close()
    client = serve()
    with client.app.state.context.store.database.read() as connection:
        assert connection.execute(sql.select(schema.queued.c.reports)).all() == []
    assert "deleted: 1\n" in caplog.text


def test_an_old_file_that_others_could_read_is_made_private(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    Store(sqlite_url).close()
    path.chmod(0o644)
    store = Store(sqlite_url)
    stored_of(store, Terms())
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.glob("loloha.db*")} == {0o600}
    store.close()
