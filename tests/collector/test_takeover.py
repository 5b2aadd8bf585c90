"""One collector a store: a second takes it only once it can serve; held locks stop nobody long."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from collecting import ADMIN, ADMIN_KEY, Clock, campaign, clients, created, messages
from loloha.campaign import Campaign
from loloha.cli import main
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.store.log_queue import LogQueue
from loloha.collector.store.record import Recorder
from loloha.collector.store.tenure import RECENTLY
from loloha.errors import StoreError
from serving import Served, create, get

LINES = "application/x-ndjson"


def send(client: Any, path: str, encoded: list[bytes]) -> Any:
    headers = {"content-type": LINES}
    return client.post(f"{path}/reports", content=b"\n".join(encoded), headers=headers)


@pytest.fixture
def one() -> Campaign:
    return campaign()


def test_a_second_collector_that_fails_leaves_the_store_to_the_first(
    serve: Any, one: Campaign, tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOLOHA_ADMIN_KEY", "LOLOHA_STORE"):
        monkeypatch.delenv(name, raising=False)
    first = serve()
    path = created(first, one)
    sent = messages(one, clients(one, 9), 0)
    (tmp_path / "file").write_text("")
    nowhere = str(tmp_path / "file" / "log")
    with pytest.raises(StoreError, match="keep_reports"):
        serve(keep_reports=nowhere)
    assert send(first, path, sent[:3]).json()["accepted"] == 3
    line = ["serve", "--store", sqlite_url, "--port", "0"]
    assert main([*line, "--keep-reports", nowhere]) == 1
    assert send(first, path, sent[3:6]).json()["accepted"] == 3

    def broken(*_: object) -> None:
        raise StoreError("store must be reachable; try again")

    with monkeypatch.context() as patch:
        for kind, part in ((Store, "seen"), (Recorder, "read_lives"), (LogQueue, "drop")):
            patch.setattr(kind, part, broken)
            with pytest.raises(StoreError):
                serve()
    assert first.get("/healthz").status_code == 200
    assert send(first, path, sent[6:]).json()["accepted"] == 3
    # What could not fail any more takes it over.
    second = serve()
    assert send(first, path, sent).status_code == 503
    assert send(second, path, sent).json()["duplicates"] == 9
    told = first.get("/healthz")
    assert (told.status_code, "taken over" in told.json()["detail"]) == (503, True)


def test_a_store_in_use_a_moment_ago_is_taken_over_with_a_word(
    serve: Any, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    serve()
    assert "took the store over" not in caplog.text
    clock.now += 30
    serve()
    assert "that used it 30 s ago" in caplog.text
    caplog.clear()
    clock.now += 3_600
    serve()
    assert "took the store over" not in caplog.text


@pytest.mark.long
def test_a_collector_that_stopped_is_no_other(
    serve: Any, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    first = serve()
    # The second stops, the first was taken over and has nothing to say any more.
    second = serve()
    clock.now += RECENTLY + 1
    second.__exit__(None, None, None)
    first.__exit__(None, None, None)
    caplog.clear()
    serve()
    assert "took the store over" not in caplog.text


def test_a_collector_that_took_over_and_stopped_at_once_is_no_other(
    serve: Any, clock: Clock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Within a minute its stop left the time of the first one, who was feared again.
    def warned() -> bool:
        found = "took the store over" in caplog.text
        caplog.clear()
        return found

    serve()
    clock.now += 5
    second = serve()
    assert warned()
    second.__exit__(None, None, None)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="keep_reports"):
        serve(keep_reports=str(tmp_path / "file" / "log"))
    clock.now += 1
    # This one never stops.
    serve()
    assert not warned()
    serve()
    assert warned()


def test_whoever_only_looks_takes_nothing_over(
    serve: Any, one: Campaign, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = serve()
    path = created(first, one)
    for line in (["admin", "list"], ["admin", "add"]):
        assert main([*line, "--store", sqlite_url]) == 0
    assert send(first, path, messages(one, clients(one, 2), 0)).json()["accepted"] == 2
    assert capsys.readouterr().out


def test_admin_keys_are_added_listed_and_revoked(
    serve: Any, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    client = serve(admin_key=None)
    body = {"campaign": campaign().to_dict()}

    def run(*line: str) -> str:
        assert main(["admin", *line, "--store", sqlite_url]) == 0
        return capsys.readouterr().out.strip()

    assert run("list") == "no admin keys"
    key = run("add")
    (name,) = [each["name"] for each in json.loads(run("list", "--json"))]
    assert key not in run("list")
    headers = {"Authorization": f"Bearer {key}"}
    assert client.post("/v1/campaigns", json=body, headers=headers).status_code == 201
    assert main(["admin", "revoke", "0" * 12, "--store", sqlite_url]) == 2
    run("revoke", name, "--yes")
    assert client.post("/v1/campaigns", json=body, headers=headers).status_code == 403
    assert run("list", "--json") == "[]"


def test_what_was_taken_over_and_not_used_can_be_given_back(sqlite_url: str) -> None:
    first, second = Store(sqlite_url), Store(sqlite_url)
    with pytest.raises(StoreError):
        first.ping()
    second.give_back()
    first.ping()
    for one in (first, second):
        one.close()


@pytest.mark.postgres
@pytest.mark.parametrize("lock", ["SELECT * FROM writer FOR UPDATE", "LOCK TABLE guard"])
def test_a_held_lock_is_answered_by_503_and_passes(
    postgresql_url: str, clock: Clock, one: Campaign, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    # A held row lock hung uploads for ever, and health said 200.
    monkeypatch.setattr("loloha.collector.store.server.SECONDS_TO_WAIT", 1)
    settings = Settings(store=postgresql_url, admin_key=ADMIN_KEY, rate_limit="")
    engine = sql.create_engine(postgresql_url)
    with Served(settings, clock) as url:
        path = create(url, one)
        sent = messages(one, clients(one, 5), 0)
        with engine.begin() as holder:
            holder.execute(sql.text(lock))
            answer = post(url, path, sent)
            assert answer.status == 503
            assert "retry-after" in answer.headers
            assert raw(url, "/healthz").status == 503
        answer = post(url, path, sent)
        assert answer.json()["accepted"] == 5
        assert raw(url, "/healthz").status == 200
    engine.dispose()


@pytest.mark.postgres
def test_a_commit_that_hangs_shows_in_health_meanwhile(
    postgresql_url: str, clock: Clock, one: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loloha.collector.commit.HANGING_SECONDS", 0.1)
    settings = Settings(store=postgresql_url, admin_key=ADMIN_KEY, rate_limit="")
    engine = sql.create_engine(postgresql_url)
    with Served(settings, clock) as url:
        path = create(url, one)
        sent = messages(one, clients(one, 5), 0)
        with engine.begin() as holder:
            holder.execute(sql.text("SELECT * FROM writer FOR UPDATE"))
            thread = threading.Thread(target=post, args=(url, path, sent))
            thread.start()
            statuses = set()
            while thread.is_alive() and 503 not in statuses:
                statuses.add(raw(url, "/healthz").status)
                time.sleep(0.02)
            assert 503 in statuses
            assert get(url, f"{path}/rounds").json()["rounds"] == []
        thread.join()
        assert raw(url, "/healthz").status == 200
    engine.dispose()


def post(url: str, path: str, encoded: list[bytes]) -> Any:
    from loloha.sender.connection import Connection, _at_once

    with Connection(url, timeout=300) as connection:
        headers = {"Content-Type": LINES}
        return connection._once("POST", f"{path}/reports", b"\n".join(encoded), headers, _at_once)


def raw(url: str, path: str) -> Any:
    from loloha.sender.connection import Connection, _at_once

    with Connection(url, timeout=300) as connection:
        return connection._once("GET", path, None, {}, _at_once)


def test_who_was_taken_over_tells_no_device_that_its_campaign_is_paused(
    serve: Any, one: Campaign
) -> None:
    first = serve()
    path = created(first, one)
    sent = messages(one, clients(one, 4), 0)
    become(first, one, "paused")
    assert send(first, path, sent).status_code == 410
    second = serve()
    become(second, one, "open")
    together = b"[%s]" % sent[0]
    headers = {"content-type": "application/json"}
    # Devices would drop their reports.
    assert send(first, path, sent).status_code == 503
    assert first.post(f"{path}/keys").status_code == 503
    (answer,) = first.post("/v1/reports", content=together, headers=headers).json()["answers"]
    assert answer["status"] == 503
    assert send(second, path, sent).json()["accepted"] == 4


def test_a_state_that_was_changed_while_a_second_collector_started_is_known_to_it(
    serve: Any, one: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = serve()
    path = created(first, one)
    become(first, one, "paused")
    take_over = Store.take_over

    def late(store: Store) -> None:
        become(first, one, "open")
        take_over(store)

    monkeypatch.setattr(Store, "take_over", late)
    second = serve()
    assert second.get(path).json()["state"] == "open"
    assert send(second, path, messages(one, clients(one, 4), 0)).json()["accepted"] == 4


def become(client: Any, one: Campaign, state: str) -> None:
    path = f"/v1/admin/campaigns/{one.fingerprint}/state"
    assert client.put(path, json={"state": state}, headers=ADMIN).status_code == 200
