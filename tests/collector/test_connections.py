"""Who sends endless headers, nothing at all, or takes no answer, is given up; others are served."""

import json
import re
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import loloha
from collecting import ADMIN_KEY, Clock, campaign, clients, messages
from loloha.campaign import Labels
from loloha.collector import connections
from loloha.collector.connections import BoundedProtocol
from loloha.collector.settings import Settings
from loloha.sender.collector import Collector
from serving import Served, create, get


@pytest.fixture
def url(sqlite_url: str, clock: Clock) -> Iterator[str]:
    settings = Settings(store=sqlite_url, admin_key=ADMIN_KEY, rate_limit="")
    with Served(settings, clock) as served:
        yield served


@pytest.fixture(scope="module")
def anywhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One collector for tests that leave nothing behind."""
    store = f"sqlite:///{tmp_path_factory.mktemp('store')}/loloha.db"
    settings = Settings(store=store, admin_key=ADMIN_KEY, rate_limit="")
    with Served(settings, Clock()) as served:
        yield served


def connected(url: str) -> socket.socket:
    port = int(url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=300)


def sent_before_cut(stranger: socket.socket, piece: bytes, most: int) -> tuple[int, bytes]:
    """Bytes that are taken before the connection is cut, and what it says then."""
    sent = 0
    try:
        while sent < most:
            stranger.sendall(piece)
            sent += len(piece)
        said = stranger.recv(1000)
    except OSError:
        said = b""
    return sent, said


GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = b"POST /v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        pytest.param(GET, b"x: " + b"y" * 1000 + b"\r\n", id="many headers"),
        pytest.param(GET + b"x: ", b"y" * 1000, id="one header"),
        pytest.param(b"GET /", b"y" * 1000, id="path"),
        pytest.param(b"", b"\r\n" * 500, id="nothing"),
        pytest.param(CHUNKED + b"0\r\n", b"x: " + b"y" * 1000 + b"\r\n", id="trailers"),
        pytest.param(CHUNKED + b"0\r\nx: ", b"y" * 1000, id="one trailer"),
        pytest.param(CHUNKED + b"1;x=", b"y" * 1000, id="extension of a chunk"),
    ],
)
def test_endless_headers_are_cut_off(url: str, start: bytes, piece: bytes) -> None:
    # 120 MiB of headers were taken and kept.
    with connected(url) as stranger:
        stranger.sendall(start)
        sent, _ = sent_before_cut(stranger, piece, 16 << 20)
    assert sent < 8 << 20
    assert get(url, "/healthz").status == 200


def answered(url: str, *pieces: bytes) -> bytes:
    """All that is answered to one request, until the connection is closed or says enough."""
    with connected(url) as stranger:
        for piece in pieces:
            stranger.sendall(piece)
            time.sleep(0.002 if len(pieces) > 1 else 0)
        said = b""
        while part := stranger.recv(100_000):
            said += part
            head, _, body = said.partition(b"\r\n\r\n")
            size = re.search(rb"content-length: (\d+)", head.lower())
            if size and len(body) >= int(size[1]):
                break
    return said


def test_what_is_incomplete_is_refused_beyond_a_bound_and_what_is_wrong_once(
    anywhere: str,
) -> None:
    most = 1 << 16
    start = GET + b"x: "
    full = start + b"y" * (most - len(start))
    assert answered(anywhere, full + b"y").startswith(b"HTTP/1.1 431")
    # Up to there it is read to its end, and answered as what it is.
    with connected(anywhere) as stranger:
        stranger.sendall(full)
        stranger.settimeout(0.1)
        with pytest.raises(TimeoutError):
            stranger.recv(1)
    # What is no header comes beyond the bound: the parser has answered, and closes.
    said = answered(anywhere, full + b"\0")
    assert said.startswith(b"HTTP/1.1 400")
    assert said.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("size", [40_000, 120_000, 300_000])
@pytest.mark.parametrize("pieces", [1, 20])
@pytest.mark.parametrize("where", ["header", "headers", "query"])
def test_long_headers_are_refused_however_they_arrive(
    anywhere: str, size: int, pieces: int, where: str
) -> None:
    # 120 KB in one read passed, whatever the limit said.
    sent = {
        "header": GET + b"x: " + b"y" * size + b"\r\n\r\n",
        "headers": GET + b"x: yyyyyyyy\r\n" * (size // 10) + b"\r\n",
        "query": b"GET /healthz?" + b"y" * size + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    }[where]
    step = -(-len(sent) // pieces)
    try:
        said = answered(
            anywhere, *(sent[first : first + step] for first in range(0, len(sent), step))
        )
    except ConnectionError:
        # Cut off while it still sent.
        said = b"HTTP/1.1 431"
    assert said.startswith(b"HTTP/1.1 431"), said[:200]


def test_what_follows_a_body_is_no_header(anywhere: str) -> None:
    # It came in among the headers, after they had been looked at.
    start = CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Type: application/json\r\n\r\n")
    key = b"Authorization: Bearer " + ADMIN_KEY.encode()
    said = answered(anywhere, start + b"2\r\n{}\r\n0\r\n" + key + b"\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 401")
    said = answered(anywhere, start, b"2\r\n{}\r\n", b"0\r\n" + key + b"\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 401")


POST = b"POST /v1/reports HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
PIECES = b"2\r\n[]\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("framing", "body", "status"),
    [
        (b"Transfer-Encoding: chunked", PIECES, 413),
        (b"Transfer-Encoding: Chunked ", PIECES, 413),
        (b"Transfer-Encoding: identity, chunked", PIECES, 501),
        (b"Transfer-Encoding: gzip, chunked", PIECES, 501),
        (b"Transfer-Encoding: identity", b"[]", 400),
        (b"Transfer-Encoding: chunked, identity", PIECES, 400),
        (b"Transfer-Encoding: chunked, chunked", PIECES, 400),
        (b"Transfer-Encoding: xchunked", PIECES, 400),
        (b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", PIECES, 400),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 2", PIECES, 400),
        (b"Content-Length: 2\r\nTransfer-Encoding: chunked", PIECES, 400),
        (b"Content-Length: 2\r\nContent-Length: 2", b"[]", 400),
        (b"Content-Length: 2\r\nContent-Length: 3", b"[]", 400),
        (b"Content-Length: 2, 2", b"[]", 400),
        (b"Content-Length: +2", b"[]", 400),
        (b"Content-Length: -1", b"[]", 400),
        (b"Content-Length: 0x2", b"[]", 400),
        (b"Transfer-Encoding: chunked", b"zz\r\n[]\r\n0\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked", b"-2\r\n[]\r\n0\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked", b"0x2\r\n[]\r\n0\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked", b"f" * 17 + b"\r\n[]\r\n0\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked", b"1\r\n[]\r\n0\r\n\r\n", 400),
        (b"Content-Length : 2", b"[]", 400),
        (b"Host: localhost\r\nContent-Length: 2", b"[]", 400),
        (b"Content-Type: text/plain\r\nContent-Length: 2", b"[]", 400),
    ],
)
def test_a_body_is_framed_in_one_way_or_refused_at_once(
    anywhere: str, framing: bytes, body: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else the connection would wait for more, or be closed for that.
    monkeypatch.setattr(connections, "HEADER_SECONDS", 3600.0)
    said = answered(anywhere, POST + framing + b"\r\n\r\n" + body)
    assert said.startswith(b"HTTP/1.1 %d " % status), said[:300]
    head, _, document = said.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    assert json.loads(document)["status"] == status
    # In two reads as well.
    assert answered(anywhere, POST + framing + b"\r\n\r\n", body).startswith(
        b"HTTP/1.1 %d " % status
    )


@pytest.mark.parametrize(
    ("size", "origins", "origin", "allowed"),
    [
        (300_000, ["https://a.example"], b"https://a.example", b"https://a.example"),
        (40_000, ["https://a.example", "https://b"], b"https://b", b"https://b"),
        (300_000, ["https://a.example", "https://b"], b"https://b", b"https://b"),
        (300_000, ["https://a.example", "https://b"], b"https://c.example", None),
        (300_000, ["*"], b"https://c.example", b"*"),
        (40_000, [], b"https://a.example", None),
    ],
)
def test_pages_read_that_their_headers_are_too_long(
    sqlite_url: str,
    clock: Clock,
    origins: list[str],
    origin: bytes,
    allowed: bytes | None,
    size: int,
) -> None:
    with Served(Settings(store=sqlite_url, allowed_origins=origins), clock) as url:
        start = GET + b"Origin: " + origin + b"\r\nx: "
        said = answered(url, start, b"y" * size, b"\r\n\r\n").lower()
    assert said.startswith(b"http/1.1 431")
    assert b"application/problem+json" in said
    found = re.search(rb"access-control-allow-origin: (\S+)", said)
    assert (found and found[1]) == allowed


def test_unread_answers_take_little_memory(
    sqlite_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 50 unread documents of 12 MB took 600 MB, and health 4.5 s.
    labels = tuple(f"{i:05d}" + "x" * 190 for i in range(20_000))
    protocol = loloha.BiLOLOHA(k=len(labels), eps_inf=2.0, eps_1=1.0)
    one = campaign(protocol=protocol, domain=Labels(labels))
    served = Served(Settings(store=sqlite_url, admin_key=ADMIN_KEY, rate_limit=""), clock)
    with served as url:
        path = create(url, one)
        ask = GET.replace(b"/healthz", f"{path}/document".encode()) + b"\r\n"
        # A quarter of what there is for one address: five pieces or so.
        bound = served.config.http_protocol_class.unsent
        monkeypatch.setattr(bound, "most", 4 * 5 * 140_000)
        readers = [connected(url) for _ in range(30)]
        for reader in readers:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.sendall(ask * 3)
        until = time.monotonic() + 300
        # One that is over the bound is ended; its thread may just be about to.
        while time.monotonic() < until and (
            len(served.open()) > 8 or bound.taken > bound.most // 4
        ):
            assert get(url, "/healthz").status == 200
        waiting = [one.transport.get_write_buffer_size() for one in served.open()]
        assert 0 < len(waiting) <= 8
        assert max(waiting) <= 2 * (64 << 10) + 1000
        assert bound.taken <= bound.most // 4
        for reader in readers:
            reader.close()
        assert get(url, "/healthz").status == 200
    assert bound.taken == 0


def test_headers_of_a_reasonable_size_are_taken(url: str) -> None:
    with connected(url) as stranger:
        stranger.sendall(GET + b"x: " + b"y" * 20_000 + b"\r\n\r\n")
        assert stranger.recv(12) == b"HTTP/1.1 200"


def test_half_open_connections_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    for start in (b"", b"GET", GET):
        with connected(url) as stranger, suppress(ConnectionError):
            stranger.sendall(start)
            assert stranger.recv(1000) == b""


def test_a_connection_is_waited_for_anew_after_each_request(
    sqlite_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 3600.0)
    served = Served(Settings(store=sqlite_url, rate_limit=""), clock)
    with served as url, connected(url) as patient:
        ends = []
        for _ in range(4):
            patient.sendall(GET + b"\r\n")
            said = patient.recv(1000)
            # Headers and body can come apart.
            while said and not said.endswith(b"}"):
                said += patient.recv(1000)
            assert said.startswith(b"HTTP/1.1 200")
            (one,) = served.open()
            while not one.is_idle:
                time.sleep(0.001)
            ends.append(one.waits_until)
            # Some loops count milliseconds.
            time.sleep(0.01)
            # The timer of the first wait ends, and looks whether that is over.
            one.loop.call_soon_threadsafe(one._look)
        assert ends == sorted(set(ends))


def test_pipelined_requests_are_not_cut_off(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    idle, start = [], BoundedProtocol._start_asgi_task

    def late(self: BoundedProtocol, cycle: Any, app: Any) -> None:
        # The time in which the first request had to come is over by now.
        idle.append(self.is_idle)
        self._look()
        start(self, cycle, app)

    monkeypatch.setattr(BoundedProtocol, "_start_asgi_task", late)
    with connected(url) as stranger:
        stranger.sendall((GET + b"\r\n") * 20)
        said = b""
        while said.count(b"HTTP/1.1 200") < 20:
            part = stranger.recv(100_000)
            assert part
            said += part
    assert idle == [False] * 20


def test_few_requests_of_many_at_once_are_parsed_before_they_are_answered(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most, parse = [0], BoundedProtocol._parse

    def counted(self: BoundedProtocol) -> None:
        parse(self)
        most.append(len(self.pipeline))

    monkeypatch.setattr(BoundedProtocol, "_parse", counted)
    first, second = GET + b"\r\n", GET.replace(b"healthz", b"nowhere") + b"\r\n"
    with connected(url) as stranger:
        sent = (first + second) * 500
        writer = threading.Thread(target=stranger.sendall, args=[sent])
        writer.start()
        time.sleep(0.5)
        said = b""
        while said.count(b"HTTP/1.1 ") < 1000:
            part = stranger.recv(100_000)
            assert part
            said += part
        writer.join()
    statuses = re.findall(rb"HTTP/1\.1 (\d+)", said)
    assert statuses == [b"200", b"404"] * 500
    assert 0 < max(most) <= 4096 // len(first) + 1


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
@pytest.mark.parametrize("piece", [1, 7, 1 << 20], ids=["bytes", "pieces", "whole"])
def test_a_request_that_asks_for_another_protocol_is_served(
    url: str, protocol: bytes, piece: int
) -> None:
    """As Java's client and `curl --http2` ask in every request: the body was thrown away."""
    one = campaign()
    create(url, one)
    path = f"/v1/campaigns/{one.fingerprint}/reports".encode()
    asked = (
        b"Host: 127.0.0.1\r\nConnection: keep-alive, Upgrade, HTTP2-Settings\r\nUpgrade: %s\r\n"
        b"HTTP2-Settings: AAEAAEAAAAIAAAAA\r\n" % protocol
    )
    first, second = messages(one, clients(one, 2), 0)
    framed = (
        b"Content-Length: %d\r\n\r\n%s" % (len(first), first),
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(second), second),
    )
    requests = [b"GET /healthz HTTP/1.1\r\n" + asked + b"\r\n"]
    requests += [
        b"POST %s HTTP/1.1\r\nContent-Type: application/json\r\n%s%s" % (path, asked, body)
        for body in framed
    ]
    # One after another, and all at once on one connection.
    sent = b"".join(requests)
    with connected(url) as device:
        for start in range(0, len(sent), piece):
            device.sendall(sent[start : start + piece])
        answered = b""
        while answered.count(b"HTTP/1.1 ") < 3 or not answered.endswith((b"}", b"ok")):
            answered += device.recv(65536)
    assert answered.count(b"HTTP/1.1 200") == 3
    assert answered.count(b'"accepted":1') + answered.count(b'"accepted": 1') == 2
    assert b"upgrade" not in answered.lower()


def test_who_pipelines_and_leaves_makes_no_traceback(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        with connected(url) as stranger:
            stranger.sendall((GET + b"\r\n") * 400)
    for _ in range(20):
        assert get(url, "/healthz").status == 200
    assert [one for one in caplog.records if one.exc_info] == []


def test_300_idle_connections_starve_nobody(url: str) -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit < 800:
        pytest.skip("too few files may be open")
    idle = [connected(url) for _ in range(300)]
    for number, one in enumerate(idle):
        one.sendall(GET[: number % len(GET)])
    assert get(url, "/healthz").status == 200
    where = url + create(url, campaign("busy"))
    with Collector(where) as collector:
        sent = messages(campaign("busy"), clients(campaign("busy"), 20), 0)
        assert collector.submit(b"\n".join(sent)).accepted == 20
    for one in idle:
        one.close()


def test_the_longest_idle_is_closed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedProtocol, "most_connections", 5)
    idle: list[Any] = []
    for _ in range(5):
        idle.append(connected(url))
        time.sleep(0.05)
    with connected(url) as sixth:
        sixth.sendall(GET + b"\r\n")
        assert sixth.recv(12) == b"HTTP/1.1 200"
    idle[0].settimeout(30)
    assert idle[0].recv(1) == b""
    idle[4].sendall(GET + b"\r\n")
    assert idle[4].recv(12) == b"HTTP/1.1 200"
    for one in idle:
        one.close()


def test_the_address_with_most_connections_loses_one(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Busy connections of one address kept everybody else out: no idle one made room for them.
    monkeypatch.setattr(BoundedProtocol, "most_connections", 5)
    port = int(url.rpartition(":")[2])
    hostile = []
    for _ in range(4):
        hostile.append(
            socket.create_connection(("127.0.0.1", port), 20, source_address=("127.0.0.2", 0))
        )
        hostile[-1].sendall(CHUNKED + b"1\r\nx\r\n")
    with connected(url) as honest, connected(url) as another:
        for one in (honest, another):
            one.sendall(GET + b"\r\n")
            assert one.recv(12) == b"HTTP/1.1 200"
    for one in hostile:
        one.close()


def test_an_answer_that_nobody_reads_is_given_up(
    sqlite_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.3)
    served = Served(Settings(store=sqlite_url, rate_limit=""), clock)
    with served as url:
        asset = get(url, "/").body.partition(b'href="assets/plotly')[2].partition(b'"')[0]
        with connected(url) as stranger:
            path = b"/assets/plotly" + asset
            ask = b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            stranger.sendall(ask * 8)
            # Its first bytes show that it was let in; nothing more is read until it is gone.
            taken = len(stranger.recv(1))
            until = time.monotonic() + 300
            while served.server.server_state.connections and time.monotonic() < until:
                time.sleep(0.01)
            try:
                while part := stranger.recv(1 << 20):
                    taken += len(part)
            except OSError:
                pass
        assert taken < 20_000_000
        assert get(url, "/healthz").status == 200
