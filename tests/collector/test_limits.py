"""No request of a stranger may hurt: what is asked for is bounded, counted and refused."""

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import loloha
from collecting import (
    ADMIN,
    ADMIN_KEY,
    HOUR,
    START,
    Clock,
    batch,
    campaign,
    clients,
    created,
    messages,
)
from loloha.campaign import Range
from loloha.collector import rate as rate_module
from loloha.collector import stored_campaign
from loloha.collector.admission import BYTES_A_REQUEST, host_name
from loloha.collector.body import Admitted, Bodies
from loloha.collector.problem import Problem
from loloha.collector.quota import Quota
from loloha.collector.rate import RateLimit, group_of
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.store.admin_key import AdminKeys, name_of
from loloha.collector.store.database import _READERS
from loloha.collector.submission import Submission
from loloha.collector.terms import Terms
from loloha.collector.workers import Workers
from serving import accept_key

LINES = "application/x-ndjson"
EVERYTHING = {"minimum_cohort": 1, "late_seconds": 40 * HOUR}


def scope(host: str) -> Any:
    return {"type": "http", "client": (host, 1), "headers": []}


# -- rates


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "20010db800010002::/64"),
        ("2001:db8:1:2::", "20010db800010002::/64"),
        ("2001:db8:1:3::", "20010db800010003::/64"),
        ("fe80::1%eth0", "fe80000000000000::/64"),
        ("unix", "unix"),
    ],
)
def test_an_ipv6_user_is_one_whatever_address_of_the_64_is_taken(host: str, group: str) -> None:
    assert group_of(scope(host)) == group


def test_addresses_have_their_own_limits_and_work_counts_for_more() -> None:
    rate = RateLimit("10/minute")
    one, other = scope("192.0.2.1"), scope("192.0.2.2")
    assert [rate.allows(one) for _ in range(4)] == [True] * 4
    rate.charge(one, 0.9)
    rate.charge(one, 1000.0)
    assert rate.allows(one)
    assert not rate.allows(one)
    with pytest.raises(Problem) as caught:
        rate.charge(one, 3.0)
    assert caught.value.status_code == 429
    assert rate.allows(other)
    assert rate.allows(one, kind="health")
    RateLimit("").charge(one, 1e9)


def test_a_window_ends_and_nothing_is_remembered_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(rate_module, "monotonic", lambda: now[0])
    rate = RateLimit("2 per 2 minutes")
    seen = []
    for now[0] in (0.0, 1.0, 119.0, 120.0, 130.0, 239.0, 241.0):
        seen.append(rate.allows(scope("192.0.2.1")))
    assert seen == [True, True, False, True, True, False, True]
    for number in range(9):
        rate.allows(scope(f"198.51.100.{number}"))
    now[0] += 1_000.0
    assert rate.allows(scope("192.0.2.2"))
    assert len(rate._windows) == 1


def test_bytes_are_charged_for_before_they_are_decoded(serve: Any) -> None:
    # What could not be decoded cost one request, however long it had taken.
    client = serve(rate_limit="20/minute")
    path = created(client, campaign())
    headers = {"content-type": LINES}
    noise = b"x" * (20 * BYTES_A_REQUEST)
    statuses = [
        client.post(f"{path}/reports", content=noise, headers=headers).status_code for _ in range(3)
    ]
    assert statuses == [200, 429, 429]


def test_every_route_is_limited_and_health_is_apart(serve: Any) -> None:
    client = serve(rate_limit="5/minute")
    path = "/v1/campaigns"
    paths = [path, "/", "/metrics", "/openapi.json", "/nothing", "/assets/x/y", path]
    assert [client.get(one).status_code for one in paths][-2:] == [429, 429]
    assert client.get("/healthz").status_code == 200


def test_a_forwarded_address_is_believed_only_where_somebody_says_so() -> None:
    # 60 of 60 passed a limit of 5 a minute, each under a name of its own.
    assert Settings().trusted_proxies == ""


# -- work


def test_series_of_a_wide_domain_are_cut_to_the_newest_rounds(
    serve: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 24 rounds of 2^22 values took 4.7 GB, for one value too.
    monkeypatch.setattr(stored_campaign, "MOST_WORK", 1 << 13)
    k = 1 << 11
    one = campaign(
        protocol=loloha.BiLOLOHA(k=k, eps_inf=2.0, eps_1=1.0), domain=Range(0, float(k), k)
    )
    client = serve()
    path = created(client, one, terms=EVERYTHING)
    clock.now = START + 5 * HOUR
    some = clients(one, 4)
    for round in range(5):
        sent = b"\n".join(messages(one, some, round))
        client.post(f"{path}/reports", content=sent, headers={"content-type": LINES})
    for query in ("", "?value=1", "?top=3"):
        assert client.get(f"{path}/series{query}").json()["round"] == [3, 4]
    assert client.get(f"{path}/series?last=2").json()["round"] == [1, 2]
    assert client.get(f"{path}/rounds?newest=1").json()["rounds"][0]["round"] == 4
    assert len(client.get(f"{path}/rounds").json()["rounds"]) == 5


def test_a_few_rounds_are_read_without_the_others(store: Store) -> None:
    stored = store.create(campaign(), Terms(late_seconds=40 * HOUR), token=None, now=START)[0]
    some = clients(stored.campaign, 2)
    for round in range(9):
        sent = Submission.of(stored, batch(stored.campaign, messages(stored.campaign, some, round)))
        store.record([sent], START + 9 * HOUR)
    assert [one.number for one in store.rounds(stored, newest=3)] == [6, 7, 8]
    assert [one.number for one in store.rounds(stored, newest=2, last=4)] == [3, 4]
    assert [one.number for one in store.rounds(stored, newest=99, first=7)] == [7, 8]
    assert store.rounds(stored, newest=1, first=20) == []
    other = store.create(campaign("other"), Terms(), token=None, now=START)[0]
    assert store.rounds(other, newest=1) == []


def test_lists_of_campaigns_have_pages(serve: Any) -> None:
    client = serve()
    ones = [campaign(f"campaign {i}") for i in range(7)]
    for one in ones:
        created(client, one)
    known = [one.fingerprint for one in ones]
    found: list[str] = []
    query = "newest=3"
    while True:
        page = client.get(f"/v1/campaigns?{query}").json()
        found = [one["fingerprint"] for one in page["campaigns"]] + found
        if not page["more"]:
            break
        query = f"newest=3&before={found[0]}"
    assert found == known
    assert client.get(f"/v1/campaigns?before={'0' * 64}").json()["campaigns"] == []


def test_work_that_does_not_fit_is_asked_to_come_back() -> None:
    async def run() -> list[Any]:
        workers = Workers("computing", 1, 2)
        go = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait() -> int:
            asyncio.run_coroutine_threadsafe(go.wait(), loop).result()
            return 1

        waiting = [asyncio.ensure_future(workers.run(wait)) for _ in range(5)]
        await asyncio.sleep(0)
        go.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert await workers.run(lambda: 2) == 2
        workers.close()
        return found

    found = asyncio.run(run())
    assert found[:2] == [1, 1]
    assert [one.status_code for one in found[2:]] == [503, 503, 503]


def test_fewer_read_at_once_than_the_store_has_connections(serve: Any) -> None:
    context = serve().app.state.context

    async def most_at_once(run: Any) -> int:
        running: list[int] = []
        most: list[int] = []

        def work() -> None:
            running.append(0)
            most.append(len(running))
            time.sleep(0.02)
            running.pop()

        await asyncio.gather(*(run(work) for _ in range(9)))
        return max(most)

    reading, checking = (asyncio.run(most_at_once(run)) for run in (context.read, context.check))
    assert (reading, checking) == (3, 1)
    assert reading + checking < _READERS


def test_closing_neither_waits_for_running_work_nor_begins_more() -> None:
    async def run() -> list[Any]:
        workers = Workers("computing", 1, 2)
        begun, go = threading.Event(), threading.Event()

        def wait() -> bool:
            begun.set()
            return go.wait(5)

        running, waiting = (asyncio.ensure_future(workers.run(wait)) for _ in range(2))
        while not begun.is_set():
            await asyncio.sleep(0)
        workers.close()
        go.set()
        return await asyncio.gather(running, waiting, return_exceptions=True)

    ended, cancelled = asyncio.run(run())
    assert ended is True  # Not after five seconds, in vain.
    assert isinstance(cancelled, asyncio.CancelledError)


def test_slow_readers_do_not_hold_up_uploads_or_health(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 40 requests for a series stalled one upload for 58 s: all shared one pool of threads.
    client, one = serve(), campaign()
    path = created(client, one, terms=EVERYTHING)
    go = threading.Event()
    honest = Store.tally

    def slow(self: Store, *arguments: Any) -> Any:
        assert go.wait(300)
        return honest(self, *arguments)

    sent = messages(one, clients(one, 300), 0)
    headers = {"content-type": LINES}
    client.post(f"{path}/reports", content=b"\n".join(sent[:10]), headers=headers)
    monkeypatch.setattr(Store, "tally", slow)
    readers = [
        threading.Thread(target=client.get, args=(f"{path}/series?level=0.{60 + i}",))
        for i in range(40)
    ]
    for reader in readers:
        reader.start()
    try:
        answer = client.post(f"{path}/reports", content=b"\n".join(sent), headers=headers)
        assert answer.json()["accepted"] == 290
        assert client.get("/healthz").status_code == 200
    finally:
        go.set()
        for reader in readers:
            reader.join()


# -- bodies


class Hours(asyncio.SelectorEventLoop):
    """A loop whose time passes at once: what is slow here is so on any machine."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


class Sends:
    """A request whose body comes in parts, one after each wait."""

    def __init__(self, *parts: tuple[float, bytes], host: str = "192.0.2.1", **more: str) -> None:
        self.parts = list(parts)
        names = [(name.replace("_", "-").encode(), value.encode()) for name, value in more.items()]
        path = "/v1/campaigns"
        self.admitted = Admitted({**scope(host), "method": "POST", "path": path, "headers": names})

    async def receive(self) -> Any:
        if not self.parts:
            return {"type": "http.request", "body": b"", "more_body": False}
        seconds, part = self.parts.pop(0)
        await asyncio.sleep(seconds)
        return {"type": "http.request", "body": part, "more_body": True}


@contextmanager
def held(request: Sends) -> Iterator[Admitted]:
    try:
        yield request.admitted
    finally:
        request.admitted.release()


async def take(bodies: Bodies, request: Sends, largest: int) -> bytes:
    await bodies.read(request.admitted, request.receive, largest)
    return request.admitted.body


def read(bodies: Bodies, request: Sends, largest: int = 10_000_000) -> bytes | int:
    async def run() -> bytes | int:
        with held(request):
            try:
                return await take(bodies, request, largest)
            except Problem as problem:
                return problem.status_code

    with asyncio.Runner(loop_factory=Hours) as runner:
        return runner.run(run())


def test_a_body_that_drips_is_cut_off() -> None:
    bodies = Bodies(10_000_000)
    assert read(bodies, Sends((0, b"a" * 10), (5, b"b"))) == b"a" * 10 + b"b"
    assert read(bodies, Sends(*[(1, b"x")] * 20)) == 408
    # It may last as long as enough of it comes.
    assert len(read(bodies, Sends(*[(1, b"x" * 20_000)] * 60))) == 1_200_000  # type: ignore[arg-type]
    assert bodies._quota.taken == 0


def test_bodies_of_all_requests_share_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loloha.collector.body.SMALL_BYTES", 10)
    bodies = Bodies(100)

    async def run() -> None:
        with held(first := Sends((0, b"x" * 70))):
            assert len(await take(bodies, first, 100)) == 70
            with held(other := Sends((0, b"y" * 70), host="192.0.2.2")):
                with pytest.raises(Problem) as caught:
                    await take(bodies, other, 100)
                assert caught.value.status_code == 503
            # There is room for a device's report at all times.
            with held(small := Sends((0, b"y" * 10), host="192.0.2.2")):
                assert len(await take(bodies, small, 100)) == 10
        with held(again := Sends((0, b"y" * 70))):
            assert len(await take(bodies, again, 100)) == 70

    asyncio.run(run())
    assert read(bodies, Sends((0, b"z" * 101)), 100) == 413
    assert read(bodies, Sends(content_length="9" * 5_000), 100) == 413
    assert bodies._quota.taken == 0


def test_one_address_does_not_fill_the_queue_of_all() -> None:
    # Eight bodies of 16 MiB whose last byte dripped kept every other upload out for 26 minutes.
    quota = Quota(100, "room must be left; come back")
    with quota.reserve("a") as one, quota.reserve("a") as two, quota.reserve("b") as other:
        # One piece may be large.
        one.grow(60)
        with pytest.raises(Problem, match="room must be left"):
            two.grow(1)
        two.release()
        other.grow(20)
        other.grow(20)
        with pytest.raises(Problem):
            other.grow(1)
    assert (quota.taken, dict(quota._by_address)) == (0, {})
    with quota.reserve(None) as one, quota.reserve(None) as two:
        one.grow(50)
        two.grow(50)
        with pytest.raises(Problem):
            two.grow(1)
    assert quota.taken == 0


def test_an_error_is_no_longer_than_what_is_wrong(serve: Any) -> None:
    client = serve()
    path = created(client, campaign())
    answer = client.get(f"{path}/series?" + "&".join(["value=x"] * 1000))
    assert answer.status_code == 422
    assert len(answer.content) < 1000


# -- what is asked


@pytest.mark.parametrize(
    ("part", "query"),
    [
        ("rounds", "newst=1"),
        ("rounds", "newest=1&newest=2"),
        ("series", "values=1"),
        ("series", "top=1&top=2"),
        ("rounds/0/estimates", "levle=0.9"),
        ("rounds/0/estimates", "format=json&format=csv"),
        ("privacy", "x=1"),
        ("document", "x=1"),
        ("", "x"),
    ],
)
def test_queries_that_would_be_ignored_are_refused(serve: Any, part: str, query: str) -> None:
    client = serve()
    path = created(client, campaign())
    answer = client.get(f"{path}/{part}".rstrip("/") + f"?{query}")
    if query == "x":
        answer = client.get(f"{path}?x=")
    assert answer.status_code == 422
    assert "at most once" in answer.json()["detail"]
    assert client.get(f"{path}/series?value=1&value=2").status_code == 200
    upload = client.post(
        f"{path}/reports?round=1", content=b"[]", headers={"content-type": "application/json"}
    )
    assert upload.status_code == 422


def test_other_hosts_are_not_answered_on_loopback(serve: Any) -> None:
    # A page whose name is made to lead to 127.0.0.1 could read what only this machine may.
    client = serve()
    for name in ("127.0.0.1:8770", "localhost", "LocalHost:1", "[::1]:8770", "[::1]"):
        assert client.get("/v1/campaigns", headers={"host": name}).status_code == 200, name
    for name in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:8770"):
        answer = client.get("/v1/campaigns", headers={"host": name})
        assert answer.status_code == 421, name
        assert answer.headers["content-type"] == "application/problem+json"
    named = serve(allowed_hosts=["Reports.example"])
    assert named.get("/v1/campaigns", headers={"host": "reports.example"}).status_code == 200
    assert named.get("/v1/campaigns", headers={"host": "127.0.0.1"}).status_code == 421
    assert Settings(host="0.0.0.0").hosts is None
    names = {"[::1]:1": "::1", "LocalHost": "localhost", "\xff:2": "\xff", "": ""}
    assert {asked: host_name(asked.encode("latin-1")) for asked in names} == names


def test_a_tag_stands_for_content_and_encoding(
    serve: Any, monkeypatch: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    client, one = serve(), campaign()
    tags = {
        client.get("/", headers={"accept-encoding": encoding}).headers["etag"]
        for encoding in ("gzip", "identity")
    }
    assert len(tags) == 2
    path = created(client, one, terms=EVERYTHING)
    body = b"\n".join(messages(one, clients(one, 5), 0))
    client.post(f"{path}/reports", content=body, headers={"content-type": LINES})
    before = client.get(f"{path}/rounds/0/estimates").headers["etag"]
    series = client.get(f"{path}/series").headers["etag"]
    # A backup with as many other reports stands in its place after a new start.
    database = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    database.execute("UPDATE cell SET counts = ?", (bytes([5] + [0] * 15),))
    database.commit()
    database.close()
    monkeypatch.setattr("loloha.collector.etag._RUN", b"another run")
    again = serve()
    same = {"if-none-match": f"{before}, {series}"}
    assert again.get(f"{path}/rounds/0/estimates", headers=same).status_code == 200
    assert again.get(f"{path}/series", headers=same).status_code == 200


# -- keys


@pytest.mark.parametrize(
    "key", [f"{ADMIN_KEY} ", f" {ADMIN_KEY}", "ключ" * 8, "x" * 513, "a key with\ta tab in it"]
)
def test_keys_that_could_never_match_are_refused_at_the_start(key: str) -> None:
    with pytest.raises(ValueError, match="characters"):
        Settings(admin_key=key)
    Settings(admin_key="x" * 512)


def test_a_key_that_is_revoked_is_refused_at_once(serve: Any) -> None:
    from loloha.collector.secret import hashed

    client = serve(admin_key=None)
    store = client.app.state.context.store
    body = {"campaign": campaign().to_dict()}
    assert client.post("/v1/campaigns", json=body, headers=ADMIN).status_code == 403
    accept_key(store, hashed(ADMIN_KEY), START)
    assert client.post("/v1/campaigns", json=body, headers=ADMIN).status_code == 201
    AdminKeys(store).revoke(name_of(ADMIN_KEY), now=START, even_last=True)
    assert client.post("/v1/campaigns", json=body, headers=ADMIN).status_code == 403


def test_variables_that_look_like_settings_are_named() -> None:
    names = ["LOLOHA_STORE", "LOLOHA_ADMINKEY", "LOLOHA_TOKEN", "PATH", "loloha_x"]
    assert Settings.unknown_variables(names) == ["LOLOHA_ADMINKEY", "loloha_x"]


def test_logs_hold_no_addresses(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="loloha")
    client = serve(rate_limit="1/minute")
    for _ in range(3):
        client.get("/v1/campaigns", headers={"x-forwarded-for": "192.0.2.77"})
    assert "192.0.2.77" not in caplog.text
    assert "testclient" not in caplog.text


def test_an_upload_does_not_wait_for_ever(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from loloha.collector.commit import Committer

    client, one = serve(), campaign()
    path = created(client, one)

    sent = b"\n".join(messages(one, clients(one, 3), 0))
    headers = {"content-type": LINES}
    with monkeypatch.context() as patch:
        # For this one alone: a commit on a busy machine takes longer.
        patch.setattr("loloha.collector.upload.SECONDS_TO_COMMIT", 0.2)
        patch.setattr(Committer, "submit", lambda *_: None)
        answer = client.post(f"{path}/reports", content=sent, headers=headers)
    assert answer.status_code == 503
    assert "retry-after" in answer.headers
    assert client.post(f"{path}/reports", content=sent, headers=headers).json()["accepted"] == 3
