"""Who sends endless headers, nothing at all, or takes no answer, is given up; others are served."""

import resource
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from collecting import ADMIN_KEY, Clock, campaign, clients, messages
from loloha.collector import connections
from loloha.collector.connections import BoundedProtocol
from loloha.collector.settings import Settings
from loloha.device.collector import Collector
from serving import Served, create, get


@pytest.fixture
def url(sqlite_url: str, clock: Clock) -> Iterator[str]:
    settings = Settings(store=sqlite_url, admin_key=ADMIN_KEY, rate_limit="")
    with Served(settings, clock) as served:
        yield served


def connected(url: str) -> socket.socket:
    port = int(url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=20)


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


def test_headers_of_a_reasonable_size_are_taken(url: str) -> None:
    with connected(url) as stranger:
        stranger.sendall(GET + b"x: " + b"y" * 20_000 + b"\r\n\r\n")
        assert stranger.recv(12) == b"HTTP/1.1 200"


def test_half_open_connections_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    for start in (b"", b"GET", GET):
        with connected(url) as stranger:
            stranger.sendall(start)
            began = time.monotonic()
            assert stranger.recv(1000) == b""
            assert time.monotonic() - began < 20
    monkeypatch.setattr(connections, "HEADER_SECONDS", 2.0)
    with connected(url) as patient:
        for _ in range(6):
            patient.sendall(GET + b"\r\n")
            assert patient.recv(1000).startswith(b"HTTP/1.1 200")
            time.sleep(0.4)


def test_pipelined_requests_are_not_cut_off(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.5)
    with connected(url) as stranger:
        stranger.sendall((GET + b"\r\n") * 20)
        said = b""
        while said.count(b"HTTP/1.1 200") < 20:
            part = stranger.recv(100_000)
            assert part
            said += part


def test_300_idle_connections_starve_nobody(url: str) -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit < 800:
        pytest.skip("too few files may be open")
    idle = [connected(url) for _ in range(300)]
    for number, one in enumerate(idle):
        one.sendall(GET[: number % len(GET)])
    began = time.monotonic()
    assert get(url, "/healthz").status == 200
    where = url + create(url, campaign("busy"))
    with Collector(where) as collector:
        sent = messages(campaign("busy"), clients(campaign("busy"), 20), 0)
        assert collector.submit(b"\n".join(sent)).accepted == 20
    assert time.monotonic() - began < 60
    for one in idle:
        one.close()


def test_the_longest_idle_makes_room(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_whoever_has_most_connections_makes_room(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
        asset = get(url, "/").body.partition(b'href="/assets/plotly')[2].partition(b'"')[0]
        with connected(url) as stranger:
            path = b"/assets/plotly" + asset
            ask = b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            stranger.sendall(ask * 8)
            # Its first bytes show that it was let in; nothing more is read until it is gone.
            taken = len(stranger.recv(1))
            until = time.monotonic() + 60
            while served.server.server_state.connections and time.monotonic() < until:
                time.sleep(0.01)
            try:
                while part := stranger.recv(1 << 20):
                    taken += len(part)
            except OSError:
                pass
        assert taken < 20_000_000
        assert get(url, "/healthz").status == 200
