"""The page of admins: who gets in and for how long, whose forms count, and what they do."""

import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from browsing import browser, listening
from collecting import ADMIN_KEY, HOUR, START, Clock, become, campaign, clients, created, messages
from dashboards import hostile
from loloha.campaign import Schedule
from loloha.collector.admin.campaign_card import MOST_SHOWN, ago
from loloha.collector.admin.form_guard import PLAIN, SECURE
from loloha.collector.admin.view import POLICY
from loloha.collector.life import MEANS, following
from loloha.collector.secret import hashed
from loloha.collector.store import schema, store
from loloha.collector.store.admin_key import DAY, LAST, AdminKeys
from loloha.collector.store.admin_session import AdminSession, AdminSessions
from loloha.errors import StoreError
from loloha.wire import Refusal

Serve = Callable[..., Any]
OWN = {"origin": "http://127.0.0.1"}
WRONG = "key must be a valid admin key; try another."
FORM = {"content-type": "application/x-www-form-urlencoded"}
IDLE_SECONDS, LONGEST_SECONDS, MOST = 1_800, 28_800, 100
"""How long a session lasts, and how many do."""


def log_in(client: Any, key: str = ADMIN_KEY, **headers: str) -> Any:
    return client.post(
        "/admin/login", data={"key": key}, headers={**OWN, **headers}, follow_redirects=False
    )


def token(client: Any) -> str:
    (found,) = {*re.findall(r'name="token" value="([0-9a-f]{64})"', client.get("/admin/").text)}
    return str(found)


def send(client: Any, path: str, **fields: str) -> Any:
    data = {"token": token(client), **fields}
    return client.post(f"/admin/{path}", data=data, headers=OWN, follow_redirects=False)


def keys_of(client: Any) -> AdminKeys:
    return AdminKeys(client.app.state.context.store)


def sessions_of(client: Any) -> AdminSessions:
    return AdminSessions(client.app.state.context.store)


def rows_of(client: Any) -> list[Any]:
    """What the store has of sessions."""
    with client.app.state.context.store.database.read() as connection:
        return list(connection.execute(sql.select(schema.admin_session)))


def cookie_of(answer: Any) -> tuple[str, str, set[str]]:
    """Name, value and what else is said of the cookie."""
    first, *rest = answer.headers["set-cookie"].split("; ")
    name, _, value = first.partition("=")
    return name, value, {one.lower() for one in rest}


# -- sessions


def test_the_cookie_is_hidden_from_scripts_other_sites_and_other_paths(serve: Serve) -> None:
    client = serve()
    answer = log_in(client)
    assert (answer.status_code, answer.headers["location"]) == (303, "./")
    name, value, more = cookie_of(answer)
    # Without a path it is for that of the form: /admin, wherever a proxy shows it.
    assert (name, more) == (PLAIN, {"httponly", "samesite=strict", f"max-age={IDLE_SECONDS}"})
    assert ADMIN_KEY not in value
    assert hashed(ADMIN_KEY).hex() not in value
    assert client.get("/admin/").status_code == 200
    assert [one.path for one in client.cookies.jar] == ["/admin"]
    for headers, base in (({"origin": "https://127.0.0.1"}, ""), ({}, "https://127.0.0.1")):
        sent = client.post(
            f"{base}/admin/login",
            data={"key": ADMIN_KEY},
            headers={**OWN, "sec-fetch-site": "same-origin", **headers},
            follow_redirects=False,
        )
        name, value, more = cookie_of(sent)
        assert (name, "secure" in more) == (SECURE, True)
        again = client.get("/admin/", headers={"cookie": f"{name}={value}"})
        assert (again.status_code, cookie_of(again)[0]) == (200, SECURE)


def test_a_session_ends_when_it_is_idle_and_when_it_is_old(serve: Serve, clock: Clock) -> None:
    client, began = serve(), clock.now
    idle = {"cookie": f"{PLAIN}={cookie_of(log_in(client))[1]}"}
    log_in(client)
    clock.now += IDLE_SECONDS - 1
    answer = client.get("/admin/")
    assert answer.status_code == 200
    # Each page lets it live on, and no longer than in all.
    while clock.now + IDLE_SECONDS <= began + LONGEST_SECONDS:
        clock.now += IDLE_SECONDS - 1
        assert client.get("/admin/").status_code == 200
    clock.now = began + LONGEST_SECONDS - 1
    assert client.get("/admin/").status_code == 200
    clock.now += 1
    ended = client.get("/admin/")
    assert ended.status_code == 401
    assert "has ended" in ended.text
    clock.now = began + IDLE_SECONDS
    assert client.get("/admin/", headers=idle).status_code == 401
    # Of a clock that has gone back nobody knows how long ago it was.
    clock.now = began - HOUR
    assert client.get("/admin/", headers=idle).status_code == 401


def test_sessions_that_have_ended_are_deleted_and_the_others_are_bounded(
    serve: Serve, clock: Clock
) -> None:
    client = serve()
    (key,) = client.portal.call(client.app.state.context.admin_keys)
    sessions = sessions_of(client)
    first, *_ = [sessions.begin(key, clock.now) for _ in range(3)]
    clock.now += IDLE_SECONDS - 1
    assert sessions.find(first.secret, [key], clock.now) == first
    clock.now += 1
    sessions.begin(key, clock.now)
    assert len(rows_of(client)) == 2
    clock.now += 1
    newer = [sessions.begin(key, clock.now) for _ in range(MOST)]
    assert len(rows_of(client)) == MOST
    assert sessions.find(first.secret, [key], clock.now) is None
    assert all(sessions.find(one.secret, [key], clock.now) for one in newer)


@pytest.mark.parametrize("how", ["revoked", "rotated", "expired", "unset"])
def test_a_session_ends_with_its_key(serve: Serve, clock: Clock, how: str) -> None:
    client = serve(admin_key=ADMIN_KEY if how == "unset" else None)
    keys = keys_of(client)
    keys.draw("another", now=clock.now)
    secret, key = keys.draw("mine", now=clock.now, days=1)
    clock.now += DAY - 10
    log_in(client, ADMIN_KEY if how == "unset" else secret)
    assert client.get("/admin/").status_code == 200
    cookie = {"cookie": f"{PLAIN}={client.cookies[PLAIN]}"}
    fields = {"token": token(client), "label": "", "days": ""}
    if how == "unset":
        client = serve(admin_key="another admin key of the tests")
    else:
        {
            "revoked": lambda: keys.revoke(key.name, now=clock.now),
            "rotated": lambda: keys.rotate(key.name, now=clock.now),
            "expired": lambda: setattr(clock, "now", clock.now + 10),
        }[how]()
    assert client.get("/admin/", headers=cookie).status_code == 401
    before = len(keys_of(client).all())
    assert client.post("/admin/add", data=fields, headers={**OWN, **cookie}).status_code == 401
    assert len(keys_of(client).all()) == before


def test_no_other_cookie_is_valid(serve: Serve) -> None:
    client = serve()
    good = cookie_of(log_in(client))[1]
    form = token(client)
    wrong = ["", ".", "x" * 5000, "ä", good[:-1], good + "0", good.swapcase(), form, '"\\377"']
    for one in wrong:
        headers = {"cookie": f"{PLAIN}={one}".encode("latin-1")}
        answer = client.get("/admin/", headers=headers)
        assert answer.status_code == 401, one
        assert "Administration" not in answer.text
    assert client.get("/admin/", headers={"cookie": f"{PLAIN}={good}"}).status_code == 200


def test_no_session_can_be_made_of_all_that_the_store_has(serve: Serve, clock: Clock) -> None:
    client = serve()
    secret, _ = keys_of(client).draw("mine", now=clock.now)
    cookies = [cookie_of(log_in(client, key))[1] for key in (secret, ADMIN_KEY, ADMIN_KEY)]
    keys = client.portal.call(client.app.state.context.admin_keys)
    cells = {cell for row in rows_of(client) for cell in row if isinstance(cell, bytes)}
    # Two sessions of one key have nothing in common.
    assert len(cells) == 2 * len(cookies)
    of_setting = hashed(ADMIN_KEY)
    assert not cells & {of_setting, hashed(of_setting.hex()), *map(str.encode, cookies)}
    with client.app.state.context.store.database.read() as connection:
        tables = (connection.execute(sql.select(one)) for one in schema.metadata.tables.values())
        cells = {cell for rows in tables for row in rows for cell in row if isinstance(cell, bytes)}
    cells |= {hmac.digest(*two, "sha256") for two in product(cells, [*cells, b"form", b"key"])}
    texts = {text for one in cells for text in (one.hex(), one.decode("latin-1"))}
    texts |= {urlsafe_b64encode(one).rstrip(b"=").decode() for one in cells}
    find = sessions_of(client).find
    assert [text for text in texts if find(text, keys, clock.now)] == []
    assert all(find(cookie, keys, clock.now) for cookie in cookies)
    assert not [one for one in cookies if one in repr(AdminSession(keys[0], one))]


def test_a_session_outlives_a_restart_and_no_copy_of_it_a_logout(serve: Serve) -> None:
    client = serve()
    log_in(client)
    cookie = {"cookie": f"{PLAIN}={client.cookies[PLAIN]}"}
    other = {"cookie": f"{PLAIN}={cookie_of(log_in(serve()))[1]}"}
    assert serve().get("/admin/", headers=cookie).status_code == 200
    fields = {"token": token(client), "label": "", "days": ""}
    out = send(client, "logout")
    assert (out.status_code, out.headers["location"]) == (303, "login")
    assert not client.cookies
    assert client.get("/admin/").status_code == 401
    assert client.get("/admin/", headers=cookie).status_code == 401
    assert client.post("/admin/add", data=fields, headers={**OWN, **cookie}).status_code == 401
    assert keys_of(client).all() == []
    # Nobody else is logged out.
    assert client.get("/admin/", headers=other).status_code == 200


def test_a_logout_that_fails_says_so(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    client = serve()
    log_in(client)
    fields = {"token": token(client)}

    def fail(*_: object) -> None:
        raise StoreError("store must be reachable")

    monkeypatch.setattr(AdminSessions, "end", fail)
    out = client.post("/admin/logout", data=fields, headers=OWN, follow_redirects=False)
    assert (out.status_code, "set-cookie" in out.headers) == (503, False)


def test_a_page_is_shown_where_its_use_cannot_be_noted(
    serve: Serve, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve()
    log_in(client)
    clock.now += IDLE_SECONDS - 1

    def fail(*_: object) -> None:
        raise StoreError("store must be writable")

    monkeypatch.setattr(client.app.state.context.store.database, "write", fail)
    assert client.get("/admin/").status_code == 200
    clock.now += 1
    assert client.get("/admin/").status_code == 401


@pytest.mark.postgres
def test_collectors_of_one_database_share_sessions(
    serve: Serve, postgresql_url: str, clock: Clock
) -> None:
    one, other = (serve(store=postgresql_url, admin_key=None) for _ in range(2))
    secret, key = keys_of(one).draw(now=clock.now)
    keys_of(one).draw(now=clock.now)
    made = campaign()
    path = {"fingerprint": made.fingerprint, "to": "paused"}
    body = {"campaign": made.to_dict()}
    bearer = {"authorization": f"Bearer {secret}"}
    assert one.post("/v1/campaigns", json=body, headers=bearer).status_code == 201
    log_in(one, secret)
    fields = {"token": token(one), **path}
    cookie = {"cookie": f"{PLAIN}={one.cookies[PLAIN]}"}
    done = other.post(
        "/admin/state", data=fields, headers={**OWN, **cookie}, follow_redirects=False
    )
    assert (done.status_code, done.headers["location"]) == (303, "./?done=paused")
    # What the other has done shows at once.
    assert '<span class="state paused">' in one.get("/admin/").text
    values = [cookie_of(log_in(one, secret))[1] for _ in range(2)]
    gone, kept = ({"cookie": f"{PLAIN}={value}"} for value in values)
    form = {"token": AdminSession(key, values[0]).form_token}
    assert other.post("/admin/logout", data=form, headers={**OWN, **gone}).status_code == 200
    assert one.get("/admin/", headers=gone).status_code == 401
    assert one.get("/admin/", headers=kept).status_code == 200
    keys_of(other).revoke(key.name, now=clock.now)
    assert one.get("/admin/", headers=kept).status_code == 401


def test_whatever_is_wrong_with_a_key_the_answer_is_the_same(serve: Serve, clock: Clock) -> None:
    client = serve()
    keys = keys_of(client)
    revoked, key = keys.draw(now=clock.now)
    keys.revoke(key.name, now=clock.now, even_last=True)
    expired, _ = keys.draw(now=clock.now, days=1)
    clock.now += DAY
    answers = set()
    for wrong in ("unknown", revoked, expired, "", "x" * 600, "ä\x00", hashed(ADMIN_KEY).hex()):
        answer = log_in(client, wrong)
        assert "set-cookie" not in answer.headers
        answers.add((answer.status_code, answer.text))
    ((status, text),) = answers
    assert status == 403
    assert WRONG in text


def test_attempts_to_log_in_are_few(serve: Serve) -> None:
    client = serve()
    assert [log_in(client, "wrong").status_code for _ in range(11)] == [403] * 10 + [429]
    answer = log_in(client)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
    # A look at the form is no attempt.
    assert client.get("/admin/login").status_code == 200


def test_a_login_is_a_use_of_the_key(serve: Serve, clock: Clock) -> None:
    client = serve(admin_key=None)
    secret, _ = keys_of(client).draw(now=clock.now)
    log_in(client, secret)
    assert keys_of(client).all()[0].used == clock.now
    clock.now += 1000
    client.get("/admin/")
    clock.now += 1000
    client.get("/admin/")
    clock.now += 1700
    client.get("/admin/")
    assert keys_of(client).all()[0].used == clock.now


# -- forms


def test_forms_of_other_pages_change_nothing(serve: Serve) -> None:
    client = serve(allowed_origins=["https://app.example", "*"])
    one = campaign()
    created(client, one)
    log_in(client)
    own = {"token": token(client), "fingerprint": one.fingerprint, "to": "paused"}
    strangers: list[dict[str, str]] = [
        {}, {"origin": "null"}, {"origin": "https://app.example"},
        {"origin": "http://127.0.0.1:81"}, {"origin": "http://127.0.0.1.evil.example"},
        {**OWN, "sec-fetch-site": "cross-site"}, {**OWN, "sec-fetch-site": "same-site"},
        {**OWN, "sec-fetch-site": "none"},
    ]  # fmt: skip
    for stranger in strangers:
        answer = client.post("/admin/state", data=own, headers=stranger)
        assert (answer.status_code, "form must come from" in answer.text) == (403, True), stranger
        assert log_in(client, **{"origin": "", **stranger}).status_code == 403
    for forged in ("", "0" * 64, own["token"].upper(), "ä"):
        answer = client.post("/admin/state", data={**own, "token": forged}, headers=OWN)
        assert (answer.status_code, "of this session" in answer.text) == (403, True), forged
    without = {name: value for name, value in own.items() if name != "token"}
    assert client.post("/admin/state", data=without, headers=OWN).status_code == 403
    # Nor does the form of another session, of the same key.
    log_in(client)
    assert client.post("/admin/state", data=own, headers=OWN).status_code == 403
    assert become(client, one, "open")["state"] == "open"
    behind_a_proxy = {"origin": "https://reports.example", "sec-fetch-site": "same-origin"}
    assert log_in(client, **behind_a_proxy).status_code == 303


def test_an_admin_key_in_a_header_opens_no_page(serve: Serve) -> None:
    client = serve()
    bearer = {"authorization": f"Bearer {ADMIN_KEY}", **OWN}
    assert client.get("/admin/", headers=bearer).status_code == 401
    fields = {"label": "", "days": ""}
    assert client.post("/admin/add", data=fields, headers=bearer).status_code == 401
    log_in(client)
    # And a session no call of the API.
    assert client.get("/v1/admin/keys").status_code == 401


def test_no_answer_is_cached_or_framed(serve: Serve) -> None:
    client = serve(allowed_origins=["https://app.example"])
    made = campaign()
    created(client, made)
    answers = [client.get("/admin/login"), client.get("/admin/"), log_in(client, "wrong")]
    answers += [log_in(client), client.get("/admin/"), client.get("/admin/nothing")]
    answers += [client.get(f"/admin/state?fingerprint={made.fingerprint}&to=closed")]
    answers += [send(client, "add", label="a", days=""), send(client, "logout")]
    for answer in answers:
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-credentials" not in answer.headers
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\son\w+=", answer.text)
    assert "frame-ancestors 'none'" in POLICY
    assert "unsafe" not in POLICY
    page = client.get("/admin/login").text
    for each in re.findall(r'(?:src|href)="\.\./(assets[^"]+)"', page):
        assert client.get(f"/{each}").status_code == 200


def test_methods_that_are_not_there_are_answered_so(serve: Serve) -> None:
    client = serve()
    there = {
        "": "GET", "/": "GET", "/login": "GET, POST", "/logout": "POST", "/add": "POST",
        "/state": "GET, POST", "/rotate": "GET, POST", "/revoke": "GET, POST",
    }  # fmt: skip
    for path, allowed in there.items():
        for method in ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"):
            answer = client.request(method, f"/admin{path}")
            assert (answer.status_code, answer.headers["allow"]) == (405, allowed), (path, method)
    for method in ("GET", "POST"):
        assert client.request(method, "/admin/nothing").status_code == 404
    led = client.get("/admin", follow_redirects=False)
    assert (led.status_code, led.headers["location"]) == (307, "admin/")
    assert not [path for path in client.get("/openapi.json").json()["paths"] if "/admin/" in path
                and not path.startswith("/v1/")]  # fmt: skip


def test_without_sums_it_answers_as_the_api_does(serve: Serve, tmp_path: Path) -> None:
    one = campaign()
    other = serve()
    created(other, one)
    log_in(other)
    fields = {"token": token(other), "fingerprint": one.fingerprint, "to": "paused"}
    headers = {**OWN, "cookie": f"{PLAIN}={other.cookies[PLAIN]}"}
    client = serve(append_only=str(tmp_path / "log"))
    for answer in (
        log_in(client),
        client.get("/admin/", headers=headers),
        client.post("/admin/state", data=fields, headers=headers),
    ):
        assert answer.status_code == 501
        assert "ask the one with the dashboard" in unescape(answer.text)


# -- what it shows and does


def test_it_shows_how_campaigns_stand(serve: Serve, clock: Clock) -> None:
    client = serve()
    one = campaign()
    path = created(client, one, terms={"keep_days": 400, "minimum_cohort": 1})
    ending = campaign("ending", schedule=Schedule(START, HOUR, 1, START + 10 * HOUR))
    created(client, ending)
    sent = messages(one, clients(one, 3), 0)
    lines = {"content-type": "application/x-ndjson"}
    early = messages(one, clients(one, 2), 50)
    for some in (sent, sent[:2], early):
        client.post(f"{path}/reports", content=b"\n".join(some), headers=lines)
    log_in(client)
    clock.now += 3 * HOUR
    log_in(client)
    shown = unescape(client.get("/admin/").text)
    assert re.findall(r"<dt>Reports</dt><dd>(\d+)", shown) == ["0", "3"]
    assert re.findall(r"<dt>Newest report</dt><dd>([^<]+)", shown) == ["none yet", "3 hours ago"]
    assert f'2 <span class="soft">{Refusal.EARLY} 2</span>' in shown
    assert re.findall(r"<dt>Duplicates</dt><dd>(\d+)", shown) == ["0", "2"]
    assert "2026-01-01 10:00<" in shown
    assert "no end date" in shown
    assert "sums for 400 days" in shown
    # One that its document ends is closed, whatever the store says.
    clock.now = START + 10 * HOUR
    log_in(client)
    assert '<span class="state closed">' in client.get("/admin/").text


def test_each_act_is_explained_before_and_done_after(serve: Serve) -> None:
    client, one = serve(), campaign()
    created(client, one)
    log_in(client)
    state = "open"
    for to in ("paused", "open", "paused", "closed", "archived", "deleted"):
        home = client.get("/admin/").text
        offered = re.findall(r"state\?fingerprint=[0-9a-f]+&amp;to=(\w+)", home)
        assert offered == following(state), state  # type: ignore[arg-type]
        asked = client.get(f"/admin/state?fingerprint={one.fingerprint}&to={to}")
        assert asked.status_code == 200
        assert MEANS[to] in unescape(asked.text)  # type: ignore[index]
        fields = {"fingerprint": one.fingerprint, "to": to}
        if to == "deleted":
            for wrong in ("", one.name, one.fingerprint, "0" * 8):
                assert send(client, "state", **fields, short=wrong).status_code == 422
            assert send(client, "state", **fields).status_code == 422
            fields["short"] = one.fingerprint[:8]
        done = send(client, "state", **fields)
        assert (done.status_code, done.headers["location"]) == (303, f"./?done={to}")
        assert 'role="status"' in client.get(f"/admin/?done={to}").text
        state = to
        kept = "sums are deleted" not in client.get("/admin/").text
        assert kept == (to != "deleted"), to
    for to, status in (("open", 409), ("nothing", 422), ("", 422)):
        answer = send(client, "state", fingerprint=one.fingerprint, to=to)
        assert answer.status_code == status
    assert send(client, "state", fingerprint="0" * 64, to="paused").status_code == 404
    assert send(client, "state", to="paused").status_code == 422
    assert client.get("/admin/state?to=open").status_code == 422
    assert client.get("/admin/?done=<script>").text.count("<script") == 1


def test_a_long_deletion_is_shown_and_can_be_ordered_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, one = serve(), campaign()
    path = created(client, one)
    lines = {"content-type": "application/x-ndjson"}
    sent = b"\n".join(messages(one, clients(one, 3), 0))
    client.post(f"{path}/reports", content=sent, headers=lines)
    become(client, one, "closed")
    log_in(client)
    fields = {"fingerprint": one.fingerprint, "to": "deleted", "short": one.fingerprint[:8]}
    monkeypatch.setattr(store, "SECONDS_TO_DELETE", -1.0)
    going = send(client, "state", **fields).headers["location"]
    home = client.get(f"/admin/{going}").text
    assert ("is being deleted" in home, "<dd>3</dd>" in home) == (True, False)
    assert re.findall(r"amp;to=(\w+)", home) == ["deleted"]
    monkeypatch.undo()
    assert send(client, "state", **fields).headers["location"] == "./?done=deleted"


def test_keys_are_drawn_rotated_and_revoked(serve: Serve, clock: Clock) -> None:
    client = serve(admin_key=None)
    first, mine = keys_of(client).draw("first", now=clock.now)
    log_in(client, first)
    assert LAST in unescape(client.get("/admin/").text)
    for wrong in ({"days": "0"}, {"days": "x"}, {"days": "1.5"}, {"label": "a" * 101}):
        answer = send(client, "add", **{"label": "", "days": "", **wrong})
        assert answer.status_code == 422, wrong
    answer = send(client, "add", label=" of Ann ", days="30")
    (secret,) = re.findall(r'aria-label="The key">([^<]+)<', answer.text)
    known = {one.label: one for one in keys_of(client).all()}["of Ann"]
    assert (known.sha256, known.expires) == (hashed(secret), clock.now + 30 * DAY)
    assert secret not in client.get("/admin/").text
    assert client.get(f"/admin/rotate?name={known.name}").status_code == 200
    (rotated,) = re.findall(
        r'aria-label="The key">([^<]+)<', send(client, "rotate", name=known.name).text
    )
    (other,) = [one for one in keys_of(client).all() if one.label == "of Ann"]
    assert other.sha256 == hashed(rotated)
    assert "logged out" not in client.get(f"/admin/revoke?name={other.name}").text
    assert send(client, "revoke", name=other.name).headers["location"] == "./?done=revoked"
    for path in ("rotate", "revoke"):
        assert client.get(f"/admin/{path}?name={other.name}").status_code == 404
        assert send(client, path, name=other.name).status_code == 404
    # The last one, which is the key of this session, too.
    assert "you will be logged out" in client.get(f"/admin/revoke?name={mine.name}").text
    refused = send(client, "revoke", name=mine.name)
    assert refused.status_code == 409
    assert LAST in unescape(refused.text)
    assert 'name="even_last" value="true"' in refused.text
    assert len(keys_of(client).all()) == 1
    assert send(client, "revoke", name=mine.name, even_last="true").status_code == 303
    assert client.get("/admin/").status_code == 401
    assert keys_of(client).all() == []


def test_names_and_labels_are_text(serve: Serve, clock: Clock) -> None:
    client = serve()
    evil = "\"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;"
    one = campaign(evil)
    created(client, one)
    _, key = keys_of(client).draw(evil, now=clock.now)
    secret, _ = keys_of(client).draw(evil[::-1], now=clock.now)
    log_in(client, secret)
    pages = ["", f"state?fingerprint={one.fingerprint}&to=closed", f"rotate?name={key.name}",
             f"revoke?name={key.name}"]  # fmt: skip
    for page in pages:
        text = client.get(f"/admin/{page}").text
        assert "<img src=x" not in text
        assert text.count("<script") == 1
        assert evil in unescape(text)
    answer = send(client, "add", label=evil, days="")
    assert evil in unescape(answer.text)
    assert answer.text.count("<script") == 1


def test_older_campaigns_are_a_page_on(serve: Serve) -> None:
    client = serve()
    for n in range(MOST_SHOWN + 1):
        created(client, campaign(f"campaign {n}"))
    log_in(client)
    first = client.get("/admin/").text
    assert first.count('class="panel campaign"') == MOST_SHOWN
    (older,) = re.findall(r'href="\./(\?before=[0-9a-f]{64})"', first)
    second = client.get(f"/admin/{older}").text
    assert second.count('class="panel campaign"') == 1
    assert "campaign 0" in second


def test_ages_are_in_the_largest_unit() -> None:
    shown = {0: "less than a minute ago", 60: "1 minute ago", 7199: "1 hour ago",
             172_800: "2 days ago", -5: "less than a minute ago"}  # fmt: skip
    assert {seconds: ago(seconds) for seconds in shown} == shown


# -- in a browser


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Any]:
    with listening(tmp_path, Clock(START + 60)) as site, browser() as started:
        yield site, started


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False])
def test_a_campaign_is_ended_by_keyboard_alone(shown: Any, scripts: bool) -> None:
    site, started = shown
    made = hostile()
    site.create(made)
    context = started.new_context(
        viewport={"width": 390, "height": 844}, java_script_enabled=scripts, color_scheme="dark"
    )
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith(site.url) or wrong.append(asked.url))
    page.goto(f"{site.url}/admin/login")
    page.keyboard.type(ADMIN_KEY)
    page.keyboard.press("Enter")
    for verb in ("Close", "Delete"):
        act = page.get_by_role("link", name=f"{verb} …").first
        act.focus()
        page.keyboard.press("Enter")
        page.get_by_role("heading", name=f"{verb} a campaign?").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        if verb == "Delete":
            page.get_by_role("textbox").focus()
            page.keyboard.type(made.fingerprint[:8])
            page.keyboard.press("Enter")
        else:
            page.get_by_role("button", name="Close it").focus()
            page.keyboard.press("Enter")
        page.get_by_role("status").wait_for()
    assert page.locator(".state.deleted").count() == 1
    cookies = context.cookies()
    assert [(one["httpOnly"], one["sameSite"], one["path"]) for one in cookies] == [
        (True, "Strict", "/admin")
    ]
    if scripts:
        assert (
            page.evaluate("document.cookie + localStorage.length + sessionStorage.length") == "00"
        )
    page.get_by_role("button", name="Log out").click()
    page.goto(f"{site.url}/admin/")
    assert page.get_by_label("Admin key").count() == 1
    # The last answer is 401, as it should be.
    assert [one for one in wrong if "401" not in one] == []
    context.close()
