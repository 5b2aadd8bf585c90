"""Bodies of requests: never more in memory than is allowed, as received or unpacked."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect

from loloha.collector.problem import Problem
from loloha.collector.rate import group_of
from loloha.collector.share import Shares

if TYPE_CHECKING:
    from starlette.requests import Request

BODY_SECONDS, BYTES_A_SECOND = 10.0, 10_000
"""A body may take so long, and a second more for each so many bytes that have come."""

SMALL_BYTES = 1 << 16
"""So many of each body are not counted: there is always room for a device's report."""

_DIGITS = 18
_GZIP = 31
_STEP = 1 << 20


class Bodies:
    """Reads bodies, of all requests together at most so many bytes at a time.

    Parameters
    ----------
    most : int
        Bytes.
    """

    def __init__(self, most: int) -> None:
        self._shares = Shares(most, "uploads must fit into memory, others fill it; come back")

    @asynccontextmanager
    async def read(self, request: Request, largest: int) -> AsyncIterator[bytes]:
        """The body as it was sent, at most ``largest`` bytes, held until it is done with.

        Raises
        ------
        Problem
            413 if there is more, 408 if it comes too slowly, 400 if the client hangs up, 503 while
            too much else is held, or its address holds more than its part.
        """
        claimed = request.headers.get("content-length", "0")
        if claimed.isdecimal() and (len(claimed) > _DIGITS or int(claimed) > largest):
            raise _too_large(largest)
        size = 0
        with self._shares.hold(group_of(request.scope)) as held:
            parts: list[bytes] = []
            async for part in self._parts(request):
                size += len(part)
                if size > largest:
                    raise _too_large(largest)
                held.grow(max(0, size - SMALL_BYTES) - held.size)
                parts.append(part)
            yield b"".join(parts)

    @staticmethod
    async def _parts(request: Request) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        began, size = loop.time(), 0
        stream = request.stream()
        try:
            while True:
                async with asyncio.timeout_at(began + BODY_SECONDS + size / BYTES_A_SECOND):
                    part = await anext(stream, None)
                if part is None:
                    return
                size += len(part)
                yield part
        except TimeoutError:
            raise Problem(
                408,
                "body must come faster; send it again, in smaller batches",
                kind="too-slow",
                headers={"Connection": "close"},
            ) from None
        except ClientDisconnect:
            raise Problem(400, "body must be whole, the client hung up; send it again") from None


def unpack(body: bytes, encoding: str, largest: int) -> bytes | bytearray:
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
    # Grows in place: parts that are joined would be there twice.
    unpacked = bytearray()
    try:
        while not inflater.eof:
            part = inflater.decompress(body, min(_STEP, largest + 1 - len(unpacked)))
            unpacked += part
            if len(unpacked) > largest:
                raise _too_large(largest)
            body = inflater.unconsumed_tail
            if not body and not part:
                break
    except zlib.error:
        raise _damaged() from None
    if not inflater.eof or inflater.unused_data:
        raise _damaged()
    return unpacked


def _too_large(largest: int) -> Problem:
    return Problem(
        413, f"body must have at most {largest} bytes; send smaller batches", kind="too-large"
    )


def _damaged() -> Problem:
    return Problem(400, "body must be one whole gzip member; send it again", kind="damaged")
