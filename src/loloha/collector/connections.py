"""Connections of clients: bounded headers, time-outs, and bounded buffers."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from loloha.collector.admission import MOST_HEADER_BYTES, too_long
from loloha.collector.body import WHOLE
from loloha.collector.problem import Problem, response
from loloha.collector.quota import Quota, Reservation
from loloha.collector.rate import group_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Iterator

    from loloha.collector.settings import Settings

MOST_UNREAD_BYTES = 2 * MOST_HEADER_BYTES
"""Overlong headers are answered when complete, or at once beyond this many bytes."""
MOST_IGNORED_BYTES, IGNORING_SECONDS = 1 << 20, 2.0
"""Bytes of them that are discarded, so that the client reads the answer."""
HEADER_SECONDS = 10.0
"""Seconds a connection may wait for its first request, and between two."""
ANSWER_SECONDS = 30.0
"""Seconds an answer may wait for its reader."""
MOST_UNSENT_BYTES = 64 << 20
"""Bytes buffered for readers that do not read; a quarter of it per address."""

_FREE_FILES = 100
_UNREADABLE = Problem(
    400,
    "request must be in the form of RFC 9112, got another; correct its first line and headers",
    kind="unreadable",
    headers={"Connection": "close"},
)
_BYTES_PARSED = 4096
"""Pipelined requests of one connection before others get their turn."""


def most_connections() -> int:
    """Number of connections that the process can have open beside other files."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_FREE_FILES, min(10_000, limit - _FREE_FILES))


class BoundedProtocol(HttpToolsProtocol):
    """HTTP protocol that times out clients that send endless headers, nothing, or read no answer.

    Where connections run out, one goes of the address that has most: the one that has waited for a
    request longest.
    """

    most_connections = most_connections()
    origins: tuple[str, ...] = ()
    unsent = Quota(MOST_UNSENT_BYTES, "answers must be read")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        # Bytes since a request or a part of a body was complete, buffered by the parser.
        self._unread = 0
        self._is_refused = self._upgrades = False
        # Where a request for a protocol upgrade ended in the data received.
        self._resume: int | None = None
        # Received bytes not parsed yet, at most one read of the loop.
        self._held = memoryview(b"")
        self._running: RequestResponseCycle | None = None
        self._waits_until: float | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._writes: asyncio.TimerHandle | None = None
        self._unsent = Reservation(self.unsent, self.group)
        self._wait()
        if len(self.connections) > self.most_connections:
            self._close_longest_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._watch is not None:
            self._watch.cancel()
        self._watch = None
        self.resume_writing()
        # Nobody would read answers to waiting requests, and the running one is not always the
        # newest.
        self.pipeline.clear()
        self._held = memoryview(b"")
        if self._running is not None:
            self._running.disconnected = True
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        """Take received data, within the bounds."""
        if self._is_refused:
            self._unread += len(data)
            if self._unread > MOST_IGNORED_BYTES:
                self.transport.abort()
        elif not self.transport.is_closing():
            self._held = memoryview(bytes(self._held) + data) if self._held else memoryview(data)
            self._parse()

    def _parse(self) -> None:
        """Parse buffered data in steps, until a request waits for its answer."""
        # Of thousands of pipelined requests the next are parsed as answers to the first are read.
        while self._held and not (self.pipeline or self._is_refused or self.transport.is_closing()):
            piece, self._held = self._held[:_BYTES_PARSED], self._held[_BYTES_PARSED:]
            self._unread += len(piece)
            self._resume = None
            super().data_received(piece)  # type: ignore[arg-type]  # the parser takes any buffer
            if self._resume is not None:
                self._held = memoryview(bytes(piece[self._resume :]) + bytes(self._held))
            if self._unread > MOST_UNREAD_BYTES and not self.transport.is_closing():
                self._refuse_headers()

    def send_400_response(self, msg: str) -> None:
        """Answer unparsable requests; an address can be too long for the parser."""
        if len(getattr(self, "url", b"")) > MOST_HEADER_BYTES:
            self._refuse_headers()
        else:
            self.transport.write(self._refusal(_UNREADABLE))
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Stop the time-out: from here on the request has its own."""
        self._unread = 0
        self._waits_until = None
        self._upgrades = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        if not self._upgrades:
            super().on_headers_complete()
            # Ignore trailers after a chunked body.
            self.headers = []

    def on_message_complete(self) -> None:
        """End a request, unless its body is still to be read."""
        if not self._upgrades:
            super().on_message_complete()
            self.scope[WHOLE] = True  # type: ignore[literal-required]

    def _should_upgrade(self) -> bool:
        """No other protocol is spoken here."""
        return False

    def _unsupported_upgrade_warning(self) -> None:
        """Serve a request that asks for another protocol as if it did not (RFC 9110, 7.8)."""
        # The parser has left its body to that protocol, so a new one reads it from the start.
        # Java's client and `curl --http2` ask in every request.
        if not self._upgrades:
            return
        (self._resume,) = sys.exception().args  # type: ignore[union-attr]  # it is being handled
        lines = [
            b"%s %s HTTP/%s"
            % (self.parser.get_method(), self.url, str(self.parser.get_http_version()).encode())
        ]
        lines += [b"%s: %s" % header for header in _without_upgrade(self.headers)]
        self.parser = httptools.HttpRequestParser(self)
        super().data_received(b"\r\n".join([*lines, b"", b""]))

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._unread = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it is there already; as uvicorn, without its timer."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self._wait()
        self._parse()

    def pause_writing(self) -> None:
        """Start the time-out for a slow reader, if the bound on buffers allows."""
        super().pause_writing()
        try:
            self._unsent.grow(self.transport.get_write_buffer_size())
        except Problem:
            # A refused answer is discarded at once and takes no space from others.
            self.transport.abort()
            self._unsent.release()
            return
        self._writes = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the time-out for a slow reader."""
        self._unsent.release()
        if self._writes is not None:
            self._writes.cancel()
            self._writes = None
        super().resume_writing()

    @property
    def group(self) -> str:
        """The group of the client's address."""
        return group_of({"type": "http", "client": self.client})

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request."""
        return self._waits_until is not None

    @property
    def waits_until(self) -> float:
        """Time of its time-out, in the loop's seconds."""
        return float("inf") if self._waits_until is None else self._waits_until

    def _wait(self) -> None:
        self._waits_until = self.loop.time() + HEADER_SECONDS
        # One timer for all requests of a connection: rescheduled if it fires too early.
        if self._watch is None:
            self._watch = self.loop.call_later(HEADER_SECONDS, self._look)

    def _look(self) -> None:
        self._watch = None
        if self._waits_until is None:
            return
        rest = self._waits_until - self.loop.time()
        if rest <= 0:
            self.transport.close()
        else:
            self._watch = self.loop.call_later(rest, self._look)

    def _close_longest_idle(self) -> None:
        others = [
            connection for connection in self.connections if isinstance(connection, BoundedProtocol)
        ]
        counts = Counter(connection.group for connection in others)
        group = max(counts, key=lambda group: (counts[group], group == self.group))
        theirs = [connection for connection in others if connection.group == group]
        oldest = min(theirs, key=lambda connection: connection.waits_until)
        busy = self if group == self.group else oldest
        (oldest if oldest.is_idle else busy).transport.abort()

    def _refuse_headers(self) -> None:
        """Answer, and keep reading for a while: a client cut off while sending reads no answer."""
        self._is_refused = True
        self._unread = 0
        self.transport.write(self._refusal(too_long()))
        self.transport.write_eof()
        self.loop.call_later(IGNORING_SECONDS, self.transport.close)

    def _refusal(self, problem: Problem) -> bytes:
        """The answer to what is no request for a route, with CORS headers for allowed pages."""
        answer = response(problem)
        headers = list(answer.raw_headers)
        sent = self.scope["headers"] if self.scope else ()
        given = {value.decode("latin-1") for name, value in sent if name == b"origin"}
        allowed = given & set(self.origins)
        if "*" in self.origins or len(self.origins) == 1:
            # Also if the Origin header has not come: with one allowed page it is this one, or none
            # that may read.
            allowed = set(self.origins)
        headers += [(b"access-control-allow-origin", origin.encode()) for origin in allowed]
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        status = STATUS_LINE[answer.status_code]
        return b"%s%s\r\n%s" % (status, lines, answer.body)


def _without_upgrade(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """The headers of a request that stays with this protocol."""
    for name, value in headers:
        if name == b"connection":
            others = [token for token in value.split(b",") if token.strip().lower() != b"upgrade"]
            yield name, b",".join(others)
        elif name != b"upgrade":
            yield name, value


def bounded(settings: Settings) -> type[BoundedProtocol]:
    """The protocol of a collector with these settings."""
    return type(
        "Bounded",
        (BoundedProtocol,),
        {
            "origins": tuple(settings.allowed_origins),
            "unsent": Quota(MOST_UNSENT_BYTES, "answers must be read"),
        },
    )
