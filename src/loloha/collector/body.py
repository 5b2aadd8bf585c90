"""Bodies of requests: never more in memory than is allowed, as received or unpacked."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect

from loloha.collector.problem import Problem

if TYPE_CHECKING:
    from starlette.requests import Request

_GZIP = 31
_STEP = 1 << 20


async def read_body(request: Request, largest: int) -> bytes:
    """The body as it was sent, at most ``largest`` bytes.

    Raises
    ------
    Problem
        413 if there is more, 400 if the client hangs up.
    """
    claimed = request.headers.get("content-length", "0")
    if claimed.isdecimal() and int(claimed) > largest:
        raise _too_large(largest)
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > largest:
                raise _too_large(largest)
            parts.append(part)
    except ClientDisconnect:
        raise Problem(400, "body must be whole, the client hung up; send it again") from None
    return b"".join(parts)


def unpack(body: bytes, encoding: str, largest: int) -> bytes:
    """The body without its content encoding, at most ``largest`` bytes.

    Raises
    ------
    Problem
        413 if there is more, 415 for another encoding than gzip, 400 if it is damaged.
    """
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise Problem(415, "content-encoding must be gzip or none; send it so", kind="encoding")
    inflater = zlib.decompressobj(_GZIP)
    parts, size = [], 0
    try:
        while not inflater.eof:
            parts.append(inflater.decompress(body, min(_STEP, largest + 1 - size)))
            size += len(parts[-1])
            if size > largest:
                raise _too_large(largest)
            body = inflater.unconsumed_tail
            if not body and not parts[-1]:
                break
    except zlib.error:
        raise _damaged() from None
    if not inflater.eof or inflater.unused_data:
        raise _damaged()
    return b"".join(parts)


def _too_large(largest: int) -> Problem:
    return Problem(
        413, f"body must have at most {largest} bytes; send smaller batches", kind="too-large"
    )


def _damaged() -> Problem:
    return Problem(400, "body must be one whole gzip member; send it again", kind="damaged")
