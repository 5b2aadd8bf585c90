"""Answers: small ones, and large ones encoded and sent in pieces, with a common bound."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from starlette.responses import Response

from loloha.collector.problem import Problem, response
from loloha.collector.rate import group_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from starlette.types import Message, Receive, Scope, Send

    from loloha.collector.quota import Quota
    from loloha.collector.rate import RateLimit

PIECE_BYTES = 1 << 16
"""Bytes buffered for a reader that does not read."""
BYTES_A_REQUEST = 1 << 18
"""Bytes of an answer that count as one more request."""
# Bytes encoded in one step, which holds the interpreter.
_NUMBERS = 8_192
_JSON = b"content-type", b"application/json"
_encoder = msgspec.json.Encoder()


class Outgoing:
    """Sends one answer, adding default headers that it lacks.

    Attributes
    ----------
    status : int
    has_begun : bool
    refused : Problem or None
        Why nothing was sent of the answer that was given; another may be given now.
    """

    __slots__ = (
        "_answers", "_headers", "_rate", "_scope", "_start", "_to", "has_begun", "refused",
        "status",
    )  # fmt: skip

    def __init__(
        self,
        rate: RateLimit,
        answers: Quota,
        headers: Mapping[bytes, bytes],
        scope: Scope,
        to: Send,
    ) -> None:
        self._rate = rate
        self._answers = answers
        self._headers = headers
        self._scope = scope
        self._to = to
        self._start: Message | None = None
        self.status = 500
        self.has_begun = False
        self.refused: Problem | None = None

    async def send(self, message: Message) -> None:
        """Send a message of the answer, unless it is refused."""
        if self.refused is not None:
            return
        if message["type"] == "http.response.start":
            # The start is held back, so that an error can still replace the answer.
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
        if self._start is not None:
            await self._send_start(self._start)
        await self._to(message)

    async def _send_start(self, start: Message) -> None:
        self._start = None
        self.has_begun = True
        self.status = start["status"]
        own, more = start["headers"], self._headers
        given = [name for name, _ in own if name in more]
        if given:
            more = {name: value for name, value in more.items() if name not in given}
        await self._to({**start, "headers": [*own, *more.items()]})

    async def _send_large(self, body: bytes, more: bool) -> None:
        with self._answers.reserve(group_of(self._scope)) as taken:
            try:
                taken.grow(len(body))
            except Problem as problem:
                if self.has_begun:
                    raise
                self.refused = problem
                return
            if self._start is not None:
                await self._send_start(self._start)
            for piece in pieces_of(body):
                await self._to({"type": "http.response.body", "body": piece, "more_body": True})
            await self._to({"type": "http.response.body", "body": b"", "more_body": more})


def pieces_of(body: bytes) -> Iterator[memoryview]:
    """A body in pieces, none of them a copy."""
    view = memoryview(body)
    for first in range(0, len(view), PIECE_BYTES):
        yield view[first : first + PIECE_BYTES]


class Json(Response):
    """A small JSON document, made on a fast path."""

    background = None

    def __init__(self, body: bytes) -> None:
        self.status_code = 200
        self.body = body
        self.raw_headers = [(b"content-length", b"%d" % len(body)), _JSON]


class InPieces(Response):
    """An answer in pieces, with backpressure after each."""

    def __init__(
        self, quota: Quota, pieces: Sequence[bytes], media: str, name: str | None = None
    ) -> None:
        self._quota = quota
        self._pieces = pieces
        self._size = sum(map(len, pieces))
        headers = {"content-length": str(self._size)}
        if name is not None:
            headers["content-disposition"] = f'attachment; filename="{name}"'
        super().__init__(None, media_type=media, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._quota.reserve(group_of(scope)) as taken:
            if self._size > PIECE_BYTES:
                try:
                    taken.grow(self._size)
                except Problem as problem:
                    await response(problem)(scope, receive, send)
                    return
            # Freed one by one as they are sent.
            pieces = list(self._pieces)[::-1]
            self._pieces = []
            await _send(self, send, (pieces.pop() for _ in range(len(pieces))))


class Shared(Response):
    """An answer made of cached bodies: a slow reader costs no memory."""

    def __init__(self, *bodies: bytes, media: str, headers: dict[str, str] | None = None) -> None:
        self._bodies = bodies
        size = {"content-length": str(sum(map(len, bodies)))}
        super().__init__(None, media_type=media, headers={**size, **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _send(self, send, chain.from_iterable(map(pieces_of, self._bodies)))


async def _send(answer: Response, send: Send, pieces: Iterable[bytes | memoryview]) -> None:
    start = {"status": answer.status_code, "headers": answer.raw_headers}
    await send({"type": "http.response.start", **start})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def cut(body: bytes | bytearray) -> list[bytes]:
    """A body in pieces."""
    with memoryview(body) as view:
        return [
            bytes(view[first : first + PIECE_BYTES]) for first in range(0, len(view), PIECE_BYTES)
        ]


def in_pieces(document: msgspec.Struct) -> Iterator[bytes]:
    """A document as JSON, in pieces; its columns are encoded piece by piece."""
    # A column is a list, an array, or a list of arrays.
    body = bytearray()
    for _ in _written(document, body):
        if len(body) >= PIECE_BYTES:
            yield from cut(body)
            body.clear()
    yield bytes(body)


def _written(document: msgspec.Struct, body: bytearray) -> Iterator[None]:
    """Append the document to ``body``, which may be emptied after each step."""
    before = b"{"
    for name in document.__struct_fields__:
        value = getattr(document, name)
        if value is msgspec.UNSET:
            continue
        body += before + msgspec.json.encode(name) + b":"
        if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
            yield from _column(value, body)
        else:
            _append(value, body)
        before = b","
    body += b"}"
    yield


def _column(column: Any, body: bytearray) -> Iterator[None]:
    if isinstance(column, list) and isinstance(_first(column), np.ndarray):
        for place, row in enumerate(column):
            body += b"," if place else b"["
            yield from _column(row, body)
        body += b"]"
        return
    if column is None or not len(column):
        body += b"null" if column is None else b"[]"
        return
    for first in range(0, len(column), _NUMBERS):
        piece = column[first : first + _NUMBERS]
        start = len(body)
        _append(piece.tolist() if isinstance(piece, np.ndarray) else piece, body)
        # One list of all pieces, separated by commas.
        body[start] = ord("," if first else "[")
        body.pop()
        yield
    body += b"]"


def _first(column: list[Any]) -> Any:
    """The first row that is not suppressed (None)."""
    return next((row for row in column if row is not None), None)


def _append(value: Any, body: bytearray) -> None:
    """Encode in place, without a copy of all bytes."""
    _encoder.encode_into(value, body, -1)
