"""Behind a proxy: under a path of its own, and with the configuration that the docs show."""

import http.client
import json
import re
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import Request, urlopen

import pytest

from browsing import Site, listening
from collecting import ADMIN, ADMIN_KEY, START, Clock, campaign, clients, messages
from dashboards import small
from loloha.collector.dashboard import asset
from loloha.collector.settings import Settings
from loloha.sender.collector import Collector
from ports import free_port
from serving import Served, get, running_nginx

ROOT = Path(__file__).parents[2]
PREFIX = "/stats/loloha"


@contextmanager
def proxied(url: str, *, strips: bool) -> Iterator[str]:
    """A proxy that shows a collector under a path, and nothing beside it."""
    port = urlsplit(url).port or 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path
            if not path.startswith(PREFIX + "/"):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            sent = {name: one for name, one in self.headers.items() if name.lower() != "host"}
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as inside:
                inside.request(
                    self.command, path.removeprefix(PREFIX) if strips else path, body, sent
                )
                answer = inside.getresponse()
                content = answer.read()
            self.send_response(answer.status)
            for name, one in answer.getheaders():
                if name.lower() not in ("date", "server", "connection"):
                    self.send_header(name, one)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(params=["taken off", "passed on"])
def under_a_path(request: pytest.FixtureRequest, sqlite_url: str, clock: Clock) -> Iterator[str]:
    strips = request.param == "taken off"
    settings = Settings(
        store=sqlite_url, admin_key=ADMIN_KEY, rate_limit="", root_path="" if strips else PREFIX
    )
    with Served(settings, clock) as url, proxied(url, strips=strips) as shown:
        yield shown


def text(url: str) -> str:
    with urlopen(url) as answer:
        return str(answer.read().decode())


def test_everything_is_found_under_a_path(under_a_path: str) -> None:
    one = campaign()
    with Collector(under_a_path, token=ADMIN_KEY) as collector:
        where = collector.create(one, {"minimum_cohort": 1}).url
    assert where == f"{under_a_path}/v1/campaigns/{one.fingerprint}"
    with Collector(where) as collector:
        assert collector.submit(b"\n".join(messages(one, clients(one, 3), 0))).accepted == 3
        assert collector.document() == one
        assert collector.estimates(0)["n"] == 3
    for page in ("/", "/try", "/admin/login"):
        address = under_a_path + page
        named = re.findall(r'(?:src|href)="([^"#]+)"', text(address))
        assert len(named) > 3
        for each in named:
            assert urljoin(address, each).startswith(under_a_path + "/"), each
            with urlopen(urljoin(address, each)) as answer:
                assert answer.status == 200


def test_an_admin_logs_in_under_a_path(under_a_path: str) -> None:
    place = urlsplit(under_a_path)
    headers = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
    with closing(http.client.HTTPConnection(place.netloc, timeout=60)) as asked:
        asked.request("GET", f"{PREFIX}/admin")
        led = asked.getresponse()
        led.read()
        assert urljoin(f"{under_a_path}/admin", led.headers["location"]) == f"{under_a_path}/admin/"
        asked.request("POST", f"{PREFIX}/admin/login", urlencode({"key": ADMIN_KEY}), headers)
        answer = asked.getresponse()
        answer.read()
        home = urljoin(f"{under_a_path}/admin/login", answer.headers["location"])
        assert (answer.status, home) == (303, f"{under_a_path}/admin/")
        cookie = answer.headers["set-cookie"]
        # Hence of the folder that the form was sent to.
        assert "path" not in cookie.lower()
        asked.request("GET", f"{PREFIX}/admin/", headers={"cookie": cookie.partition(";")[0]})
        page = asked.getresponse()
        assert (page.status, b"Administration" in page.read()) == (200, True)


def test_addresses_in_answers_lead_back(under_a_path: str) -> None:
    address = f"{under_a_path}/v1/campaigns"
    body = b'{"campaign": %s}' % campaign().to_json()
    asked = Request(address, body, {**ADMIN, "content-type": "application/json"})
    with urlopen(asked) as answer:
        created = urljoin(address, answer.headers["location"])
    assert campaign().fingerprint in text(created)
    document = f"{under_a_path}/openapi.json"
    described = json.loads(text(document))
    (server,) = described["servers"]
    base = urljoin(document, server["url"]).rstrip("/")
    assert base == under_a_path
    assert "/v1/campaigns" in described["paths"]
    assert "campaigns" in text(f"{base}/v1/campaigns")


def test_no_script_names_the_root() -> None:
    for name, one in {**asset.own(), **asset.tryout()}.items():
        if name.endswith((".js", ".css")):
            found = re.findall(r"""(?:get|fetch|import|url)\(\s*["'`]?/[^/*]""", one.body.decode())
            assert not found, name


ABORTED = "net::ERR_ABORTED"


@pytest.mark.long
@pytest.mark.browser
def test_the_dashboard_shows_itself_under_a_path(chromium: Any, tmp_path: Path) -> None:
    clock = Clock(START + 60)
    with listening(tmp_path, clock) as site, proxied(site.url, strips=True) as shown:
        site.create(small(), accept_weak_privacy=True)
        page = chromium.new_page()
        failed: list[str] = []
        # What the page asks for ahead ends when it is left.
        page.on(
            "requestfailed",
            lambda request: failed.append(request.url) if request.failure != ABORTED else None,
        )
        page.on(
            "response",
            lambda answer: failed.append(answer.url) if answer.status >= 400 else None,
        )
        page.goto(f"{shown}/")
        page.wait_for_selector("body[data-state=ready]")
        assert f"{shown}/v1/campaigns/{small().fingerprint}" in page.content()
        page.goto(f"{shown}/try")
        page.get_by_text("Dashboard").click()
        page.wait_for_url(f"{shown}/**")
        page.close()
        assert failed == []
        assert isinstance(site, Site)


# -- nginx


def samples() -> list[str]:
    docs = (ROOT / "docs" / "collector.md").read_text()
    shipped = (ROOT / "deploy" / "nginx.conf").read_text()
    return [shipped, *re.findall(r"```nginx\n(.*?)```", docs, re.DOTALL)]


@contextmanager
def nginx(sample: str, inside: str, folder: Path) -> Iterator[int]:
    """Runs a configuration of the docs, with other ports and a certificate of its own."""
    maker = shutil.which("openssl")
    if maker is None:
        pytest.skip("no openssl is installed")
    port = free_port()
    certificate, key = folder / "fullchain.pem", folder / "privkey.pem"
    command = [maker, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=reports"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    changed = sample.replace("listen 443", f"listen 127.0.0.1:{port}")
    changed = changed.replace("127.0.0.1:8770", inside.removeprefix("http://"))
    changed = re.sub(r"\S*/fullchain.pem", str(certificate), changed)
    changed = re.sub(r"\S*/privkey.pem", str(key), changed)
    changed = changed.replace("/var/log/nginx", str(folder))
    with running_nginx(changed, port, folder):
        yield port


ANY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts everybody. One for all: to read who is to be trusted takes longer than to ask."""
ANY.check_hostname, ANY.verify_mode = False, ssl.CERT_NONE


def ask(port: int, method: str, path: str, source: str = "127.0.0.1", body: bytes = b"") -> int:
    with closing(
        http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=60, source_address=(source, 0), context=ANY
        )
    ) as asked:
        headers = {**ADMIN, "content-type": "application/json"} if body else {}
        asked.request(method, path, body or None, headers)
        return asked.getresponse().status


@pytest.mark.parametrize("which", [0, 1])
def test_the_sample_keeps_private_what_is(
    which: int, sqlite_url: str, clock: Clock, tmp_path: Path
) -> None:
    prefix, one = ("", PREFIX)[which], campaign()
    settings = Settings(
        store=sqlite_url, admin_key=ADMIN_KEY, trusted_proxies="127.0.0.1", rate_limit=""
    )
    sample = samples()[which]
    # A path of several writings must not slip past the location that is meant.
    odd = ("%0a", "%0A", "%00", "%20", ";x", "/", "/.", "%2f", "%3f", "%23", ".", "%0d%0a")
    with Served(settings, clock) as url, nginx(sample, url, tmp_path) as port:
        with Collector(url, token=ADMIN_KEY) as collector:
            collector.create(one)
        new = b'{"campaign": %s}' % campaign("another").to_json()
        (sent,) = messages(one, clients(one, 1), 0)
        path = f"{prefix}/v1/campaigns"
        stranger = "127.0.0.2"
        assert ask(port, "GET", f"{prefix}/", stranger) == 200
        assert ask(port, "GET", path, stranger) == 200
        reports = f"{path}/{one.fingerprint}/reports"
        assert ask(port, "POST", reports, stranger, sent) == 200
        assert ask(port, "GET", f"{prefix}/metrics") == 200
        private = (f"{prefix}/metrics", f"{prefix}//metrics", f"{prefix}/%6detrics")
        private += (f"{prefix}/x/../metrics", *(f"{prefix}/metrics{end}" for end in odd))
        for each in private:
            assert ask(port, "GET", each, stranger) in (400, 403, 404), each
        for page in ("", "/", "/login", "/x/../login"):
            for form in (f"/admin{page}", f"/%61dmin{page}", f"//admin{page}"):
                for method in ("GET", "POST"):
                    assert ask(port, method, prefix + form) in (400, 403, 404), form
        creating = (path, f"{prefix}/v1/%63ampaigns", f"{prefix}//v1/campaigns")
        for each in (*creating, *(path + end for end in odd)):
            assert ask(port, "POST", each, "127.0.0.1", new) in (400, 403, 404, 405), each
        # Whatever else an admin may write, as the interface says.
        rights = {
            each: method.upper()
            for each, methods in get(url, "/openapi.json").json()["paths"].items()
            for method, said in methods.items()
            if said.get("security") == [{"admin": []}] and each != "/v1/campaigns"
        }
        assert "PUT" in rights.values()
        for each, method in rights.items():
            place = each.replace("{fingerprint}", one.fingerprint)
            ending = b'{"state": "paused"}'
            for form in (place, place.replace("admin", "%61dmin"), f"/v1/x/..{place[3:]}"):
                assert ask(port, method, prefix + form, "127.0.0.1", ending) in (400, 403, 404), (
                    form
                )
        with Collector(url) as collector:
            (only,) = collector.campaigns()
            assert only["state"] == "open"
