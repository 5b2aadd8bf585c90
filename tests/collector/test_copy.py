"""A copy of a store is whole or no store at all, wherever it was cut off, both ways."""

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from collecting import HOUR, START, batch, campaign, clients, messages
from loloha.cli import main
from loloha.collector.store import Store, schema
from loloha.collector.store import copy as copying
from loloha.collector.store.admin_session import AdminSessions
from loloha.collector.store.copy import copy
from loloha.collector.store.database import Database
from loloha.collector.store.tenure import RECENTLY
from loloha.collector.submission import Submission, UploadOutcome
from loloha.collector.terms import Terms
from loloha.errors import StoreError
from serving import accept_key

NOW = START + 60
TERMS = Terms(late_seconds=HOUR, early_seconds=60, minimum_cohort=1)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql_url"))
    return f"sqlite:///{tmp_path / 'copy.db'}"


@pytest.fixture
def source(sqlite_url: str) -> str:
    filled(sqlite_url)
    return sqlite_url


def filled(url: str) -> list[bytes]:
    """Two campaigns, with sums, a guard, keys, and what waits for a log; reports of the second."""
    store = Store(url, keeps=lambda *_: b"kept")
    for name in ("first", "second"):
        stored = store.create(campaign(name=name), TERMS, token=b"t" * 32, now=NOW)[0]
        some = clients(stored.campaign, 20)
        for part in range(4):
            sent = messages(stored.campaign, some[: 5 * part + 5], 0)
            store.record([Submission.of(stored, batch(stored.campaign, sent))], NOW)
    store.close_rounds(NOW)
    for key in (b"\xff" * 32, b"\0" * 32):
        AdminSessions(store).begin(accept_key(store, key, START), NOW)
    store.close()
    return sent


def content(url: str) -> dict[str, list[Any]]:
    database = Database(url)
    with database.read() as connection:
        found = {
            table.name: sorted(map(tuple, connection.execute(sql.select(table))))
            for table in schema.metadata.sorted_tables
            if table not in (schema.writer, schema.admin_session)
        }
    database.close()
    return found


def test_a_copy_has_every_row_and_counts_on(sqlite_url: str, target: str) -> None:
    source, sent, shares = sqlite_url, filled(sqlite_url), list[float]()
    rows = copy(source, target, progress=shares.append)
    assert content(target) == content(source)
    assert all(rows[name] for name in ("campaign", "outcome", "guard", "kept", "admin_key"))
    assert shares == sorted(shares)
    assert shares[-1] == 1
    store = Store(target)
    stored = store.campaign(campaign(name="second").fingerprint)
    assert stored is not None
    again = Submission.of(stored, batch(stored.campaign, sent))
    outcome = UploadOutcome.of(store.record([again], NOW)[0].tolist())
    assert (outcome.accepted, outcome.duplicates) == (0, 20)
    # Admins log in there again.
    with store.database.read() as connection:
        assert connection.execute(sql.select(schema.admin_session)).all() == []
    # The next campaign has a number of its own.
    assert store.create(campaign(name="third"), TERMS, token=None, now=NOW)[1]
    store.close()


def test_there_and_back(source: str, target: str, tmp_path: Path) -> None:
    back = f"sqlite:///{tmp_path / 'back.db'}"
    copy(source, target)
    copy(target, back)
    assert content(back) == content(source)


def test_what_is_cut_off_half_way_goes_on_with_the_rest(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_BYTES_AT_ONCE", 1)
    whole, begun = content(source), sql.insert
    some = iter(range(sum(map(len, whole.values())) // 2))

    def insert(table: Any) -> Any:
        if next(some, None) is None:
            raise StoreError("killed")
        return begun(table)

    with monkeypatch.context() as patch:
        patch.setattr(copying.sql, "insert", insert)
        with pytest.raises(StoreError, match="killed"):
            copy(source, target)
    copy(source, target)
    assert content(target) == whole


@pytest.mark.long
def test_what_is_cut_off_anywhere_is_no_store_and_goes_on(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_BYTES_AT_ONCE", 1)
    whole, begun, write = content(source), sql.insert, []
    for cut in count():
        done = iter(range(cut))

        def insert(table: Any, done: Iterator[int] = done) -> Any:
            if next(done, None) is None:
                raise StoreError("killed")
            write.append(table.name)
            return begun(table)

        with monkeypatch.context() as patch:
            patch.setattr(copying.sql, "insert", insert)
            if len(write) + cut >= sum(map(len, whole.values())):
                break
            with pytest.raises(StoreError, match="killed"):
                copy(source, target)
        with pytest.raises(StoreError, match="not finished"):
            Store(target)
        with pytest.raises(StoreError, match="not finished"):
            Store(target, take_over=False)
    # So far each row was written once, however often it was cut off.
    copy(source, target)
    assert content(target) == whole
    Store(target).close()


def cut_off(source: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(copying, "_differs", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            copy(source, target)


def test_what_was_begun_from_another_state_begins_again(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(source, target, monkeypatch)
    store = Store(source)
    stored = store.create(campaign(name="later"), TERMS, token=None, now=NOW)[0]
    sent = messages(stored.campaign, clients(stored.campaign, 3), 0)
    store.record([Submission.of(stored, batch(stored.campaign, sent))], NOW)
    store.close()
    copy(source, target)
    assert content(target) == content(source)


@pytest.mark.long
def test_a_key_that_is_added_meanwhile_is_not_lost(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(source, target, monkeypatch)
    store = Store(source, take_over=False)
    accept_key(store, b"\x01" * 32, START)
    store.close()
    with pytest.raises(StoreError, match="emptied: copy again"):
        copy(source, target)
    copy(source, target)
    assert content(target) == content(source)


def test_a_collector_that_begins_meanwhile_is_noticed(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    differs = copying._differs

    def begin(*arguments: Any) -> bool:
        Store(source).close()
        return differs(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(copying, "_differs", begin)
        with pytest.raises(StoreError, match="stop that one"):
            copy(source, target)
    with pytest.raises(StoreError, match="not finished"):
        Store(target)
    copy(source, target)
    assert content(target) == content(source)


def test_a_collector_stops_to_write(source: str, target: str) -> None:
    running = Store(source)
    running.see(time.time())
    with pytest.raises(StoreError, match="must not be in use"):
        copy(source, target)
    running.see(time.time() - RECENTLY - 1, even_earlier=True)
    copy(source, target)
    with pytest.raises(StoreError, match="taken it over"):
        running.create(campaign(name="late"), TERMS, token=None, now=NOW)
    running.close()


def test_only_a_new_store_is_filled(source: str, target: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="in use already"):
        copy(source, source)
    other = Store(target)
    other.close()
    with pytest.raises(StoreError, match="in use already"):
        copy(source, target)
    assert not content(target)["campaign"]
    nowhere = tmp_path / "nowhere.db"
    with pytest.raises(StoreError, match="no such file"):
        copy(f"sqlite:///{nowhere}", f"sqlite:///{tmp_path / 'never.db'}")
    assert not nowhere.exists()
    assert not (tmp_path / "never.db").exists()


def test_the_command(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    assert main(["store", "copy", source, target]) == 0
    assert "2 campaigns" in capsys.readouterr().err
    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
    assert content(target) == content(source)
    assert main(["store", "copy", source, target]) == 1
    assert "in use already" in capsys.readouterr().err
