"""Connections of strangers: bounded headers, bounded patience, and room for the next one."""

from __future__ import annotations

import resource
from collections import Counter
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from loloha.collector.rate import group_of

if TYPE_CHECKING:
    import asyncio

MOST_HEADER_BYTES = 32 << 10
HEADER_SECONDS = 10.0
"""A connection may be open for so long before the first request on it is there, and between two."""
ANSWER_SECONDS = 30.0
"""An answer may wait for so long for who does not read it."""

_FREE_FILES = 100
_TOO_MUCH = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"Connection: close\r\nContent-Length: 0\r\n\r\n"
)


def most_connections() -> int:
    """How many the process may have open beside its other files."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_FREE_FILES, min(10_000, limit - _FREE_FILES))


class BoundedProtocol(HttpToolsProtocol):
    """Speaks HTTP, but gives up on who sends endless headers, nothing, or takes no answer.

    Where connections run out, one goes of the address that has most: the one that has waited for a
    request longest.
    """

    most_connections = most_connections()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        # Bytes since a request or a part of a body was complete: the parser keeps them.
        self._unread = 0
        self._waits: asyncio.TimerHandle | None = None
        self._writes: asyncio.TimerHandle | None = None
        self._wait()
        if len(self.connections) > self.most_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what comes, as long as it leads somewhere."""
        if self._unread > MOST_HEADER_BYTES:
            self.transport.write(_TOO_MUCH)
            self.transport.close()
            return
        self._unread += len(data)
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Stop waiting: from here on the request has time-outs of its own."""
        self._unread = 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._unread = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it is there already."""
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last and not self.transport.is_closing():
            self._wait()

    def pause_writing(self) -> None:
        """Begin to wait for who should read."""
        super().pause_writing()
        self._writes = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop waiting for who should read."""
        if self._writes is not None:
            self._writes.cancel()
            self._writes = None
        super().resume_writing()

    @property
    def group(self) -> str:
        """Of the address at its other end."""
        return group_of({"type": "http", "client": self.client})

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request."""
        return self._waits is not None

    @property
    def waits_until(self) -> float:
        """When it will give up, in the loop's seconds."""
        return self._waits.when() if self._waits else float("inf")

    def _wait(self) -> None:
        self._stop_waiting()
        self._waits = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None

    def _make_room(self) -> None:
        others = [one for one in self.connections if isinstance(one, BoundedProtocol)]
        counts = Counter(one.group for one in others)
        group = max(counts, key=lambda group: (counts[group], group == self.group))
        theirs = [one for one in others if one.group == group]
        oldest = min(theirs, key=lambda one: one.waits_until)
        busy = self if group == self.group else oldest
        (oldest if oldest.is_idle else busy).transport.abort()
