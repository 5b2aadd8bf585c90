"""What goes out: charged for, cut into pieces that wait for their reader, and bounded together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loloha.collector.problem import Problem
from loloha.collector.rate import group_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Message, Scope, Send

    from loloha.collector.rate import RateLimit
    from loloha.collector.share import Shares

PIECE_BYTES = 1 << 16
"""No more is buffered at a time for who does not read."""
BYTES_A_REQUEST = 1 << 18
"""Bytes of an answer that cost as much as one more request."""


class Outgoing:
    """Sends one answer, whoever gives it.

    Attributes
    ----------
    has_begun : bool
    refused : Problem or None
        Why nothing was sent of the answer that was given; another may be given now.
    """

    __slots__ = ("_answers", "_rate", "_scope", "_start", "_to", "has_begun", "refused")

    def __init__(self, rate: RateLimit, answers: Shares, scope: Scope, to: Send) -> None:
        self._rate = rate
        self._answers = answers
        self._scope = scope
        self._to = to
        self._start: Message | None = None
        self.has_begun = False
        self.refused: Problem | None = None

    async def send(self, message: Message) -> None:
        """Send a message of the answer, unless it is refused."""
        if self.refused is not None:
            return
        if message["type"] == "http.response.start":
            # Held back: while nothing is sent another answer may take its place.
            self._start = message
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._start is not None and (more or len(body) > PIECE_BYTES):
            size = int(dict(self._start["headers"]).get(b"content-length", 0))
            if size > PIECE_BYTES:
                try:
                    self._rate.charge(self._scope, size / BYTES_A_REQUEST)
                except Problem as problem:
                    self.refused = problem
                    return
        if len(body) > PIECE_BYTES:
            await self._send_large(body, more)
            return
        await self._send_start()
        await self._to(message)

    async def _send_start(self) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            self.has_begun = True
            await self._to(start)

    async def _send_large(self, body: bytes, more: bool) -> None:
        with self._answers.hold(group_of(self._scope)) as share:
            try:
                share.grow(len(body))
            except Problem as problem:
                if self.has_begun:
                    raise
                self.refused = problem
                return
            await self._send_start()
            for piece in pieces_of(body):
                await self._to({"type": "http.response.body", "body": piece, "more_body": True})
            await self._to({"type": "http.response.body", "body": b"", "more_body": more})


def pieces_of(body: bytes) -> Iterator[memoryview]:
    """A body in pieces, none of them a copy."""
    view = memoryview(body)
    for first in range(0, len(view), PIECE_BYTES):
        yield view[first : first + PIECE_BYTES]
