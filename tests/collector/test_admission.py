"""Every way in passes the same guards: routes of today, and those that nobody has written yet."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import loloha
from collecting import ADMIN, ADMIN_KEY, Clock, campaign, clients, created, messages
from loloha.campaign import Labels
from loloha.collector import admission, joint_upload, result_document
from loloha.collector.admin.form_guard import FORM, LARGEST_FORM, LOGIN, PLAIN
from loloha.collector.admission import (
    LARGEST_UNREAD,
    MEDIA,
    MOST_HEADER_BYTES,
    TOGETHER,
    require_short_headers,
)
from loloha.collector.body import PAGES, Admitted
from loloha.collector.middleware import Application, take_off
from loloha.collector.problem import Problem
from loloha.collector.rate import RateLimit
from loloha.collector.secret import hashed
from loloha.collector.service import create_app
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.store.admin_session import AdminSession, AdminSessions
from loloha.collector.terms import Terms

JSON = {"content-type": "application/json"}
READS = {"GET", "HEAD", "OPTIONS"}


class Asked:
    """One request to an application, and its answer."""

    def __init__(self, app: Any, method: str, path: str, body: bytes = b"", **headers: str) -> None:
        names = {"host": "127.0.0.1", **headers}
        raw, _, query = path.partition("?")
        self.scope = {
            "type": "http", "method": method, "path": raw, "raw_path": raw.encode(),
            "query_string": query.encode(), "client": ("192.0.2.1", 1), "http_version": "1.1",
            "root_path": "", "scheme": "http", "server": ("127.0.0.1", 80),
            "headers": [(name.replace("_", "-").encode(), one.encode())
                        for name, one in names.items()],
        }  # fmt: skip
        self.app = app
        self.body = body
        self.sent: list[Any] = []

    async def __call__(self) -> int:
        parts = [{"type": "http.request", "body": self.body, "more_body": False}]

        async def receive() -> Any:
            return parts.pop() if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            self.sent.append(message)

        await self.app(self.scope, receive, send)
        return int(self.sent[0]["status"])


def ways_in(app: Application) -> Iterator[tuple[str, str]]:
    """Method and path of every route, of those that the quick table answers too."""
    fingerprint, fill = campaign().fingerprint, {"round": "0", "digest": "x", "name": "x"}
    for route in flat(app.routes):
        path = route.path
        for name, one in {"fingerprint": fingerprint, **fill}.items():
            path = path.replace("{" + name + "}", one)
        for method in route.methods or ():
            yield method, path


def flat(routes: Any) -> Iterator[Any]:
    """The routes of routers that are included, too: some releases of the framework nest them."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        yield from flat(inner.routes) if inner else [route]


def reading(app: Application) -> set[tuple[str, str]]:
    """Ways in that take a body, as the document of the routes says."""
    return {
        (method.upper(), path.format(fingerprint=campaign().fingerprint, name="x"))
        for path, calls in app.openapi()["paths"].items()
        for method, call in calls.items()
        if "requestBody" in call
    }


def faults(
    app: Any, context: Any, ways: list[tuple[str, str]], bodies: set[tuple[str, str]]
) -> list[str]:
    """What a way in lets through that it must not, for each way in and guard."""

    async def look() -> list[str]:
        found = []

        async def must(wanted: int, guard: str, method: str, path: str, *body: Any, **more: str):
            status = await Asked(app, method, path, *body, **more)()
            if status != wanted:
                found.append(f"{method} {path}: {guard}: {status}, not {wanted}")

        for method, path in ways:
            way = method, path
            await must(421, "host", *way, host="evil.example")
            await must(431, "headers", *way, x="y" * MOST_HEADER_BYTES)
            await must(501, "framing", *way, transfer_encoding="identity, chunked")
            for end in ("%0a", "%00", "%2f", ";x", "\n", "?%s" % ("q" * MOST_HEADER_BYTES)):
                wanted = 431 if "?" in end else 404
                await must(wanted, f"path with {end[:3]!r}", method, path + end)
            await must(405, "method", "PATCH", path, **JSON_NAMES)
            with context.rate.spent("192.0.2.1"):
                await must(429, "rate", *way, **JSON_NAMES)
            if method in READS:
                continue
            token = {"authorization": "Bearer no key at all, not one"}
            admin = {"authorization": ADMIN["Authorization"]}
            good = {**JSON_NAMES, **admin}
            if path.startswith(PAGES):
                found.extend(await page_faults(app, context, method, path))
                continue
            await must(403, "origin", *way, b"{}", **good, origin="https://evil.example")
            await must(403, "site", *way, b"{}", **good, sec_fetch_site="cross-site")
            await must(403, "null origin", *way, b"{}", **good, origin="null")
            for media in ("text/plain", "application/x-www-form-urlencoded", "", "text/json"):
                await must(415, media, *way, b"{}", **admin, content_type=media, content_length="2")
            for packing in ("br", "gzip, gzip", "x"):
                await must(415, packing, *way, b"{}", **good, content_encoding=packing)
            await must(413, "size", *way, b"{}", **good, content_length="9" * 12)
            reads = way in bodies
            if not reads:
                await must(413, "unread", *way, b" " * (LARGEST_UNREAD + 1), **good)
            with context.rate.spent("192.0.2.1", but=1):
                largest = b" " * (2 * admission.BYTES_A_REQUEST)
                await must(429 if reads else 413, "bytes before decoding", *way, largest, **good)
            if path != TOGETHER:
                await must(401, "token", *way, b"{}", **JSON_NAMES)
                await must(403, "token", *way, b"{}", **JSON_NAMES, **token)
        return found

    return asyncio.run(look())


async def page_faults(app: Any, context: Any, method: str, path: str) -> list[str]:
    """The same for a page of admins: none but its own pages, a session, the session's forms."""
    key = (await context.admin_keys())[0]
    session = AdminSessions(context.store).begin(key, context.clock())
    good = {
        "content_type": FORM,
        "cookie": f"{PLAIN}={session.secret}",
        "origin": "http://127.0.0.1",
    }
    is_login = path == LOGIN
    ways = [
        (403, b"", {"origin": "https://evil.example"}),
        (403, b"", {"origin": "null"}),
        (403, b"", {"origin": ""}),
        (403, b"", {"sec_fetch_site": "cross-site"}),
        (403, b"", {"sec_fetch_site": "same-site"}),
        (403, b"", {"sec_fetch_site": "none"}),
        (415, b"{}", {"content_type": "application/json"}),
        (415, b"{}", {"content_type": "text/plain"}),
        (415, b"{}", {"content_encoding": "gzip"}),
        (413, b"x" * (LARGEST_FORM + 1), {}),
        (413, b"", {"content_length": "9" * 12}),
        (400, b"a", {}),
        (400, b"a=1&a=2", {}),
        (400, b"&".join(b"a%d=1" % i for i in range(20)), {}),
        (400, b"a=%ff", {}),
    ]  # fmt: skip
    if not is_login:
        ways += [
            (401, b"a=1", {"cookie": ""}),
            (401, b"a=1", {"cookie": f"{PLAIN}={session.secret[:-1]}x"}),
            (403, b"a=1", {}),
            (403, b"token=" + b"0" * 64, {}),
            (403, b"token=" + AdminSession(key, "another").form_token.encode(), {}),
        ]
    found = []
    for wanted, body, changes in ways:
        context.logins = RateLimit("")
        status = await Asked(app, method, path, body, **{**good, **changes})()
        if status != wanted:
            found.append(f"{method} {path}: {body[:20]!r} {changes}: {status}, not {wanted}")
    return found


JSON_NAMES = {"content_type": "application/json"}


@pytest.fixture
def guarded(
    sqlite_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Application]:
    """An application with one campaign, which has a token."""

    @contextmanager
    def spent(self: RateLimit, address: str, but: int = 0) -> Iterator[None]:
        """While nothing is left to an address but so many requests."""
        before, left = self.allows, [but]

        def allows(scope: Any, *, kind: str = "", cost: int = 1) -> bool:
            left[0] -= cost
            return left[0] >= 0

        self.allows = allows  # type: ignore[method-assign]
        yield
        self.allows = before  # type: ignore[method-assign]

    monkeypatch.setattr(RateLimit, "spent", spent, raising=False)
    plain = Settings(store=sqlite_url, admin_key=ADMIN_KEY, rate_limit="1000000/second")
    app = create_app(plain, clock=clock)
    context = app.state.context
    context.open()
    context.store.create(campaign(), Terms(), token=hashed(ADMIN_KEY), now=clock())
    yield app
    context.close()


def test_every_route_passes_every_guard(guarded: Application) -> None:
    ways = list(ways_in(guarded))
    assert len(ways) > 15
    assert {method for method, _ in ways} >= {"GET", "POST", "HEAD"}
    bodies = reading(guarded)
    assert 4 < len(bodies) < sum(method in ("POST", "PUT", "DELETE") for method, _ in ways)
    assert faults(guarded, guarded.state.context, ways, bodies) == []


def test_the_page_names_every_call_and_no_other(guarded: Application) -> None:
    page = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
    calls = {f"{method} {route.path}" for route in flat(guarded.routes) for method in route.methods}
    # What the pages load is no call.
    public = {one for one in calls if not one.startswith(("GET /assets/", "GET /dashboard/"))}
    assert set(re.findall(r"`([A-Z]+ /[^`]*)`", page)) == public


def test_an_unsupported_method_is_answered_with_the_supported_ones(serve: Any) -> None:
    client = serve()
    path = created(client, campaign())
    for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"):
        answer = client.request(method, "/v1/reports")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST"), method
    wanted = {"/v1/campaigns": "GET, POST", path: "GET", "/healthz": "GET, HEAD", "/try": "GET"}
    for asked, allowed in wanted.items():
        for method in ("PATCH", "OPTIONS", "BREW"):
            answer = client.request(method, asked)
            assert (answer.status_code, answer.headers["allow"]) == (405, allowed), (method, asked)
    assert client.head("/v1/campaigns").headers["allow"] == "GET, POST"
    assert client.head("/healthz").status_code == 200
    for method in ("GET", "PATCH"):
        answer = client.request(method, "/nothing")
        assert answer.status_code == 404
        assert "allow" not in answer.headers


@pytest.mark.parametrize(
    ("origin", "method", "status"),
    [("a", "POST", 200), ("a", "GET", 200), ("a", "PUT", 400), ("b", "POST", 400)],
)
def test_a_preflight_is_answered_as_the_page_says(
    serve: Any, origin: str, method: str, status: int
) -> None:
    client = serve(allowed_origins=["https://a.example"])
    headers = {"origin": f"https://{origin}.example", "access-control-request-method": method}
    assert client.options("/v1/reports", headers=headers).status_code == status
    assert client.options("/v1/reports").status_code == 405
    assert serve().options("/v1/reports", headers=headers).status_code == 405


def test_a_route_that_is_planted_tomorrow_passes_them_too(guarded: Application) -> None:
    paths = ("/v1/planted", f"/v1/campaigns/{campaign().fingerprint}/planted")

    async def planted() -> str:
        return "let in"

    for path in paths:
        guarded.add_api_route(path, planted, methods=["POST", "PUT"])
    ways = [(method, path) for path in paths for method in ("POST", "PUT")]
    assert faults(guarded, guarded.state.context, ways, set()) == []
    asked = Asked(
        guarded, "POST", paths[0], b"{}", **JSON_NAMES, authorization=f"Bearer {ADMIN_KEY}"
    )
    assert asyncio.run(asked()) == 200


@pytest.mark.parametrize("which", range(9))
def test_a_guard_that_is_left_out_is_missed(guarded: Application, which: int) -> None:
    chain = guarded.state.admission
    ways = list({method: (method, path) for method, path in ways_in(guarded)}.values())
    chain.guards = chain.guards[:which] + chain.guards[which + 1 :]
    bodies = reading(guarded)
    assert faults(guarded, guarded.state.context, ways, bodies)


def test_a_way_past_the_chain_is_seen(guarded: Application) -> None:
    # A route that is mounted beside the chain.
    async def beside(scope: Any, receive: Any, send: Any) -> None:
        past = scope["path"] == "/v1/reports"
        await (guarded.answer if past else guarded)(scope, receive, send)

    ways = [("POST", "/v1/reports")]
    with pytest.raises(KeyError):
        # It does not even find its body.
        faults(beside, guarded.state.context, ways, set(ways))


# -- pages of others


def test_a_page_of_another_site_reports_nothing(serve: Any) -> None:
    # 100 reports of a page's visitors were counted: text/plain needs no permission.
    client, one = serve(), campaign()
    path = created(client, one)
    sent = messages(one, clients(one, 3), 0)
    bodies = {f"{path}/reports": sent[0], "/v1/reports": b"[" + sent[1] + b"]"}
    simple = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "",
              "text/plain;charset=application/json")  # fmt: skip
    for address, body in bodies.items():
        for media in simple:
            answer = client.post(address, content=body, headers={"content-type": media})
            assert answer.status_code == 415, (address, media)
        for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example"):
            answer = client.post(address, content=body, headers={**JSON, "origin": origin})
            assert answer.status_code == 403
    assert client.get(f"{path}/rounds").json()["rounds"] == []
    fine: list[dict[str, str]] = [
        {}, {"origin": "http://127.0.0.1"}, {"sec-fetch-site": "same-origin", "origin": "https://a"},
        {"sec-fetch-site": "none"},
    ]  # fmt: skip
    for more in fine:
        answer = client.post(f"{path}/reports", content=sent[2], headers={**JSON, **more})
        assert answer.status_code == 200, more


def test_allowed_pages_report_and_read_every_answer(serve: Any) -> None:
    page = "https://app.example"
    client, one = serve(allowed_origins=[page], rate_limit="40/minute"), campaign()
    path = created(client, one)
    asked = client.options(
        "/v1/reports",
        headers={"origin": page, "access-control-request-method": "POST",
                 "access-control-request-headers": "content-type"},
    )  # fmt: skip
    assert asked.status_code == 200
    (sent,) = messages(one, clients(one, 1), 0)
    good = {**JSON, "origin": page, "sec-fetch-site": "cross-site"}
    answers = [
        client.post("/v1/reports", content=b"[" + sent + b"]", headers=good),
        client.post(f"{path}/reports", content=sent, headers=good),
        client.post(f"{path}/reports", content=sent, headers={**good, "x": "y" * 40_000}),
        client.post(f"{path}/reports%0a", content=sent, headers=good),
        client.post("/v1/campaigns", content=sent, headers=good),
        client.get(f"{path}/document", headers={"origin": page}),
    ]
    assert [one.status_code for one in answers] == [200, 200, 431, 404, 401, 200]
    answers += [client.get("/v1/campaigns", headers={"origin": page}) for _ in range(40)]
    assert answers[-1].status_code == 429
    assert {one.headers["access-control-allow-origin"] for one in answers} == {page}
    other = client.post(f"{path}/reports", content=sent, headers={**good, "origin": page + ".x"})
    assert "access-control-allow-origin" not in other.headers


# -- what a request costs


def test_many_unknown_campaigns_are_one_look(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, one = serve(), campaign()
    looks: list[str] = []
    for name in ("fingerprints", "campaign"):
        honest = getattr(Store, name)

        def counted(self: Store, *given: Any, _name: str = name, _do: Any = honest, **more: Any):
            looks.append(_name)
            return _do(self, *given, **more)

        monkeypatch.setattr(Store, name, counted)
    (sent,) = messages(one, clients(one, 1), 0)
    parts = [sent.replace(one.fingerprint.encode(), b"%064x" % i) for i in range(100)]
    body = b"[" + b",".join(parts) + b"]"
    answers = client.post("/v1/reports", content=body, headers=JSON).json()["answers"]
    assert {one["status"] for one in answers} == {404}
    assert looks == ["fingerprints"]
    # One that comes to be is known at once; and however many ask, it is read once.
    created(client, one)
    looks.clear()
    body = b"[" + b",".join([sent] * 50) + b"]"
    answers = client.post("/v1/reports", content=body, headers=JSON).json()["answers"]
    assert [one["body"]["accepted"] + one["body"]["duplicates"] for one in answers] == [1] * 50
    assert looks.count("campaign") <= 1


def test_arrays_of_anything_are_refused_before_they_are_decoded(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Never:
        def decode(self, _: bytes) -> Any:
            raise AssertionError("decoded")

    monkeypatch.setattr(joint_upload, "_array", Never())
    client = serve()
    for body in (b"[" + b"1," * 500_000 + b"1]", b"[" + b'{"a":1},' * 1000 + b"{}]"):
        assert client.post("/v1/reports", content=body, headers=JSON).status_code == 413


def test_what_is_sent_is_charged_for(serve: Any) -> None:
    labels = tuple(f"{i:04d}" + "x" * 150 for i in range(8000))
    one = campaign(protocol=loloha.BiLOLOHA(k=8000, eps_inf=2.0, eps_1=1.0), domain=Labels(labels))
    client = serve(rate_limit="100/minute")
    path = created(client, one)
    for part in ("", "/document"):
        fresh = serve(rate_limit="20/minute")
        statuses = [fresh.get(path + part).status_code for _ in range(20)]
        assert statuses[0] == 200
        assert statuses.index(429) < 10, part
    assert client.get(f"{path}/document").content == one.to_json()
    shown = client.get(path)
    assert shown.json()["document"] == one.to_dict()
    again = client.get(path, headers={"if-none-match": shown.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("path", "encoding", "largest", "charged"),
    [
        ("/v1/campaigns/f/reports", b"", 77, 0.75),
        ("/v1/campaigns/f/reports", b"gzip", 77, 6.0),
        ("/v1/reports", b"", 1 << 20, 0.75),
        (LOGIN, b"", LARGEST_FORM, 0.75),
    ],
)
def test_a_body_is_bounded_by_its_path_and_charged_as_what_it_unpacks_to(
    path: str, encoding: bytes, largest: int, charged: float
) -> None:
    """Of 96 KiB: 128 KiB cost as much as a request, and compressed they count eight times."""
    asked: list[Any] = []

    class Bodies:
        async def read(self, admitted: Admitted, receive: Any, largest: int) -> None:
            asked.append(largest)
            admitted.body = b"a=".ljust(96 << 10, b"b")

    context: Any = SimpleNamespace(
        settings=SimpleNamespace(largest_body=77, hosts=None, allowed_origins=()),
        bodies=Bodies(),
        rate=SimpleNamespace(charge=lambda scope, cost: asked.append((scope["path"], cost))),
    )
    headers = [(b"content-type", b"application/x-www-form-urlencoded")]
    headers += [(b"content-encoding", encoding)] * bool(encoding)
    admitted = Admitted({"path": path, "method": "POST", "headers": headers})
    asyncio.run(admission.Admission(context, (), {})._read(admitted, None))
    assert asked == [largest, (path, charged)]
    assert admitted.charged == charged
    assert admitted.form == ({"a": "b" * 98_302} if path == LOGIN else {})


def test_statements_are_made_once(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    honest = result_document.privacy.explain

    def explain(*given: Any, **more: Any) -> Any:
        made.append(1)
        return honest(*given, **more)

    monkeypatch.setattr(result_document.privacy, "explain", explain)
    client = serve()
    path = created(client, campaign())
    bodies = {client.get(f"{path}/privacy").content for _ in range(5)}
    assert len(bodies) == 1
    assert len(made) == 2
    assert json.loads(bodies.pop())["campaign"] == campaign().fingerprint


# -- prefixes


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("/stats/loloha/v1/x", "/v1/x"), ("/stats/loloha/", "/"), ("/v1/x", "/v1/x"),
        ("/stats/loloha", "/stats/loloha"), ("/stats/lolohav1", "/stats/lolohav1"),
        ("/stats/loloha//v1", "//v1"), ("/Stats/loloha/v1", "/Stats/loloha/v1"),
    ],
)  # fmt: skip
def test_a_prefix_is_taken_off_once(path: str, left: str) -> None:
    scope = {"path": path, "raw_path": path.encode()}
    take_off("/stats/loloha", scope)
    assert scope == {"path": left, "raw_path": left.encode()}


def test_media_are_those_that_the_readers_know() -> None:
    assert set(MEDIA) == {
        "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream",
    }  # fmt: skip
    assert not any(re.match("text/|multipart/|application/x-www", one) for one in MEDIA)


def test_labels_are_searched_for_what_their_letters_cost(serve: Any) -> None:
    # 20 000 labels at 166 searches a second silenced health for 20 s.
    labels = tuple(f"{i:05d}" + "x" * 150 for i in range(8000))
    one = campaign(protocol=loloha.BiLOLOHA(k=8000, eps_inf=2.0, eps_1=1.0), domain=Labels(labels))
    client = serve(rate_limit="40/minute")
    path = created(client, one).replace("/v1/campaigns", "/dashboard/labels")
    answers = [client.get(f"{path}?q=0799{i % 10}") for i in range(20)]
    assert answers[0].json()["matches"][0] == {"value": 7990, "label": labels[7990]}
    assert 3 <= [one.status_code for one in answers].index(429) <= 12


def test_headers_path_and_query_have_32_kib_together() -> None:
    scope = {"path": "/" + "p" * 99, "query_string": b"q" * 100}
    for more in (0, 1):
        scope["headers"] = [(b"x" * 60, b"y" * 40), (b"z", b"v" * (32 * 1024 - 301 + more))]
        admitted: Any = SimpleNamespace(scope=scope)
        if more:
            with pytest.raises(Problem, match="at most 32768 bytes"):
                require_short_headers(admitted)
        else:
            require_short_headers(admitted)
