"""Large answers: encoded and sent in pieces, and bounded together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from starlette.responses import Response

from loloha.collector.problem import response, unavailable

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

# No single step holds the interpreter, or is buffered for a slow reader, for more than this.
_NUMBERS, _BYTES = 50_000, 1 << 18


class Answers:
    """The bytes of answers that have still to be sent.

    Parameters
    ----------
    most : int
        For all requests together.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0

    def json(self, content: Any) -> Response:
        """An answer of JSON."""
        return self.file(msgspec.json.encode(content), "application/json")

    def file(self, body: bytes, media: str, name: str | None = None) -> Response:
        """An answer of any type, to be saved under a name."""
        saved = {"Content-Disposition": f'attachment; filename="{name}"'}
        return _InPieces(self, body, media_type=media, headers=saved if name else None)


class _InPieces(Response):
    """Waits for its reader after each piece."""

    def __init__(self, answers: Answers, body: bytes, **options: Any) -> None:
        super().__init__(body, **options)
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size, answers = len(self.body), self._answers
        if size > _BYTES and answers.held + size > answers.most:
            problem = unavailable("answers must be read by who asked, too many wait; come back")
            await response(problem)(scope, receive, send)
            return
        answers.held += size
        try:
            start = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **start})
            for first in range(0, max(1, size), _BYTES):
                piece = self.body[first : first + _BYTES]
                more = first + _BYTES < size
                await send({"type": "http.response.body", "body": piece, "more_body": more})
        finally:
            answers.held -= size


def in_pieces(column: Any) -> Any:
    """A long list, array, or list of arrays as JSON, encoded a piece at a time."""
    return msgspec.Raw(b"".join(_pieces(column)))


def _pieces(column: Any) -> Iterator[bytes]:
    if isinstance(column, list) and any(isinstance(row, np.ndarray) for row in column):
        for place, row in enumerate(column):
            yield b"," if place else b"["
            yield from _pieces(row)
        yield b"]"
    elif column is None:
        yield b"null"
    else:
        yield b"["
        for first in range(0, len(column), _NUMBERS):
            piece = column[first : first + _NUMBERS]
            plain = piece.tolist() if isinstance(piece, np.ndarray) else piece
            yield (b"," if first else b"") + msgspec.json.encode(plain)[1:-1]
        yield b"]"
