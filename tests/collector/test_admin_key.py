"""Admin keys: label, dates, last use; drawn, rotated and revoked, in the store and over HTTP."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from collecting import ADMIN, ADMIN_KEY, START, Clock, campaign
from loloha.cli import main
from loloha.collector.secret import hashed
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.store.admin_key import DAY, AdminKeys, LastKeyError, name_of
from loloha.errors import CampaignError, ParameterError
from serving import Served, accept_key

KEYS = "/v1/admin/keys"


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def listed(client: Any, key: str = ADMIN_KEY) -> dict[str, Any]:
    answer = client.get(KEYS, headers=bearer(key))
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return {one["label"]: one for one in answer.json()["keys"]}


def test_only_the_hash_is_stored_and_dates_are_known(store: Store) -> None:
    keys = AdminKeys(store)
    secret, drawn = keys.draw("of Ann", now=START + 0.5, days=2)
    assert (drawn.name, drawn.created, drawn.used) == (name_of(secret), START, None)
    assert drawn.expires == START + 2 * DAY
    assert (drawn.is_valid(START + 2 * DAY - 1), drawn.is_valid(START + 2 * DAY)) == (True, False)
    assert keys.all() == [drawn]
    with store.database.read() as connection:
        (row,) = connection.execute(sql.text("SELECT * FROM admin_key"))
    assert secret.encode() not in row
    assert secret not in map(str, row)
    assert secret not in repr(drawn) + json.dumps(drawn.to_dict())
    for wrong in ({"label": "a" * 101}, {"label": "a\nb"}, {"days": 0}, {"days": 1 << 20}):
        with pytest.raises((CampaignError, ParameterError), match=next(iter(wrong))):
            keys.draw(now=START, **wrong)  # type: ignore[arg-type]
    assert keys.all() == [drawn]


def test_the_last_use_is_written_once_an_hour(store: Store) -> None:
    keys = AdminKeys(store)
    keys.draw(now=START)
    for now, used in ((START + 5, 5), (START + 3604, 5), (START + 3605, 3605), (START, 0)):
        keys.note_use(keys.all()[0], now)
        assert keys.all()[0].used == START + used


def test_a_rotated_key_has_its_label_and_as_long_a_life(store: Store) -> None:
    keys = AdminKeys(store)
    _, old = keys.draw("of Ann", now=START, days=30)
    _, other = keys.draw("other", now=START)
    secret, new = keys.rotate(old.name, now=START + DAY)
    assert (new.name, new.label, new.expires) == (name_of(secret), "of Ann", START + 31 * DAY)
    assert keys.all() == [other, new]
    _, replaced = keys.rotate(other.name, now=START + DAY)
    assert replaced.expires is None
    with pytest.raises(ParameterError, match="key must be one of the list"):
        keys.rotate(other.name, now=START)


def test_a_clock_that_is_set_back_makes_no_key_valid_again(store: Store) -> None:
    keys = AdminKeys(store)
    keys.draw("short", now=START, days=1)
    _, last = keys.draw("last", now=START)
    store.see(START + DAY)
    assert [one.label for one in keys.all() if one.is_valid(START)] == ["last"]
    with pytest.raises(LastKeyError):
        keys.revoke(last.name, now=START)
    # One that is drawn meanwhile has its days.
    _, late = keys.draw("late", now=START, days=1)
    _, later = keys.rotate(late.name, now=START)
    assert [late.expires, later.expires] == [START + 2 * DAY] * 2
    assert later in [one for one in keys.all() if one.is_valid(START)]


def test_the_last_valid_one_goes_only_on_purpose(store: Store) -> None:
    keys = AdminKeys(store)
    _, expired = keys.draw("expired", now=START, days=1)
    _, last = keys.draw("last", now=START)
    now = START + DAY
    with pytest.raises(LastKeyError, match="nobody creates, pauses or ends"):
        keys.revoke(last.name, now=now)
    # One that is no longer valid is not the last.
    keys.revoke(expired.name, now=now)
    assert [one.label for one in keys.all()] == ["last"]
    keys.revoke(last.name, now=now, even_last=True)
    assert keys.all() == []


def test_of_two_who_revoke_at_once_one_keeps_the_last(store: Store) -> None:
    for _ in range(10):
        keys = AdminKeys(store)
        for one in keys.all():
            keys.revoke(one.name, now=START, even_last=True)
        pair = [keys.draw(f"key {i}", now=START)[1].name for i in range(2)]
        with ThreadPoolExecutor(2) as both:
            ended = [both.submit(AdminKeys(store).revoke, name, now=START) for name in pair]
        assert [type(one.exception()) for one in ended].count(LastKeyError) == 1
        assert len(keys.all()) == 1


def test_over_http_keys_are_drawn_used_rotated_and_revoked(serve: Any, clock: Clock) -> None:
    client = serve(admin_key=None)
    store = client.app.state.context.store
    accept_key(store, hashed(ADMIN_KEY), clock.now, "first")
    body = {"campaign": campaign().to_dict()}
    answer = client.post(KEYS, json={"label": "of Ann", "days": 1}, headers=ADMIN)
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    key, known = answer.json()["key"], answer.json()["known"]
    assert (known["name"], known["used"]) == (name_of(key), None)
    assert client.post("/v1/campaigns", json=body, headers=bearer(key)).status_code == 201
    assert listed(client)["of Ann"]["used"] is not None
    assert key not in client.get(KEYS, headers=ADMIN).text
    rotated = client.post(f"{KEYS}/{known['name']}/rotate", headers=ADMIN).json()
    assert client.post("/v1/campaigns", json=body, headers=bearer(key)).status_code == 403
    second = bearer(rotated["key"])
    assert client.post("/v1/campaigns", json=body, headers=second).status_code == 200
    first = listed(client)["first"]["name"]
    clock.now += DAY
    assert client.get(KEYS, headers=second).status_code == 403
    refused = client.delete(f"{KEYS}/{first}", headers=ADMIN)
    assert refused.status_code == 409
    assert "loloha admin add" in refused.json()["detail"]
    assert set(listed(client)) == {"first", "of Ann"}
    gone = client.delete(f"{KEYS}/{rotated['known']['name']}", headers=ADMIN)
    assert gone.status_code == 204
    done = client.delete(f"{KEYS}/{first}?even_last=true", headers=ADMIN)
    assert done.status_code == 204
    assert client.get(KEYS, headers=ADMIN).status_code == 403


def test_only_an_admin_sees_or_changes_them(serve: Any) -> None:
    client = serve()
    for method, path in (
        ("GET", KEYS),
        ("POST", KEYS),
        ("POST", f"{KEYS}/abc/rotate"),
        ("DELETE", f"{KEYS}/abc"),
    ):
        more = {"json": {}} if (method, path) == ("POST", KEYS) else {}
        assert client.request(method, path, **more).status_code == 401
        assert client.request(method, path, headers=bearer("x"), **more).status_code == 403
        answer = client.request(method, path, headers=ADMIN, **more)
        assert answer.status_code == (404 if "abc" in path else 200 if method == "GET" else 201)
    wrong = client.post(KEYS, json={"days": 0}, headers=ADMIN)
    assert (wrong.status_code, wrong.json()["type"]) == (422, "urn:loloha:problem:key")
    # With a key in the settings none of the store is the last.
    (name,) = [one["name"] for one in client.get(KEYS, headers=ADMIN).json()["keys"]]
    assert client.delete(f"{KEYS}/{name}", headers=ADMIN).status_code == 204
    assert client.get(KEYS, headers=ADMIN).json() == {"keys": [], "has_setting": True}


def test_the_command_asks_the_store_or_a_collector(
    tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    address = f"sqlite:///{tmp_path / 'store'}"

    def run(*line: str, status: int = 0) -> tuple[str, str]:
        assert main(["admin", *line]) == status
        told = capsys.readouterr()
        return told.out.strip(), told.err

    beside = ("--store", address)
    key, said = run("add", "--key-label", "of Ann", *beside)
    assert name_of(key) in said
    with Served(Settings(store=address), clock) as url:
        monkeypatch.setenv("LOLOHA_ADMIN_KEY", key)
        there = ("--collector", url)
        (known,) = json.loads(run("list", *there, "--json")[0])
        assert (known["name"], known["label"]) == (name_of(key), "of Ann")
        assert "of Ann" in run("list", *there)[0]
        second, _ = run("add", "--days", "1", *there)
        rotated, _ = run("rotate", name_of(second), *there)
        assert second not in run("list", *beside)[0]
        run("revoke", name_of(rotated), *there)
        # Where nobody can be asked the last one stays.
        _, said = run("revoke", name_of(key), *there, status=2)
        assert "loloha serve" in said
        run("revoke", name_of(key), *there, "--yes")
        _, said = run("list", *there, status=1)
        assert "LOLOHA_ADMIN_KEY" in said
    assert run("list", *beside)[0] == "no admin keys"
    _, said = run("list", *beside, *there, status=2)
    assert "--collector" in said
