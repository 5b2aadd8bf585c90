"""Incoming requests; the memory of their bodies is bounded, even unpacked."""

from __future__ import annotations

import asyncio
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

from loloha.collector.problem import Problem
from loloha.collector.quota import Quota, Reservation
from loloha.collector.rate import group_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response
    from starlette.types import Receive, Scope

    from loloha.collector.store.admin_session import AdminSession
    from loloha.collector.stored_campaign import StoredCampaign

PAGES = "/admin/"
"""Prefix of the paths of admin pages; none has another slash, so that all share one cookie."""
_READS = frozenset(("GET", "HEAD", "OPTIONS"))
BODY_SECONDS, BYTES_A_SECOND = 10.0, 10_000
"""Seconds that a body may take, and bytes received that earn one more second."""

WHOLE = "loloha.whole"
"""Key of the scope of a request whose body is complete."""
SMALL_BYTES = 1 << 16
"""Bytes of each body that are not counted, so that a device's report always fits."""

_DIGITS = 18
_GZIP = 31
_STEP = 1 << 20


class Admitted:
    """A request on its way through the chain, with what the chain found out.

    Attributes
    ----------
    scope : dict
    path, method : str
    headers : dict of bytes to bytes
    address : str
        Group of the address that it comes from.
    writes : bool
        Whether it may change something.
    is_page : bool
        Whether its path is that of a page of admins.
    stored : StoredCampaign
        The campaign that its path lies under, where it writes and there is one.
    media, packing : str
        Type and encoding of its body.
    body : bytes
    charged : float
        Requests that its body was charged as.
    takes_body : bool
        Whether its route reads a body.
    form : dict of str to str
        Its body, if it is a form.
    session, cookie : AdminSession or None, str
        Of the admin who is logged in, and the name under which the browser keeps it.
    answer : callable or None
        What answers it past everything that routes and parses other requests.
    """

    __slots__ = (
        "address", "answer", "body", "charged", "cookie", "form", "headers", "is_page",
        "media", "method", "packing", "path", "reservation", "scope", "session", "stored",
        "takes_body", "writes",
    )  # fmt: skip

    stored: StoredCampaign

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.path: str = scope["path"]
        self.method: str = scope["method"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.address = group_of(scope)
        self.writes = self.method not in _READS
        self.is_page = self.path.startswith(PAGES)
        self.media = _media(self.headers.get(b"content-type", b""))
        self.packing = self.text(b"content-encoding").strip().lower()
        self.takes_body = True
        self.body = b""
        self.charged = 0.0
        self.reservation: Reservation | None = None
        self.form: dict[str, str] = {}
        self.session: AdminSession | None = None
        self.cookie = ""
        self.answer: Callable[..., Awaitable[Response]] | None = None

    def text(self, name: bytes) -> str:
        """The text of a header, empty if there is none."""
        value = self.headers.get(name)
        return "" if value is None else value.decode("latin-1")

    def release(self) -> None:
        """Release the memory of its decoded body."""
        self.body = b""
        if self.reservation is not None:
            self.reservation.release()


class Bodies:
    """Reads bodies, with a bound on the bytes of all requests together."""

    def __init__(self, most: int) -> None:
        self._quota = Quota(most, "uploads must fit into memory, others fill it; come back")

    async def read(self, admitted: Admitted, receive: Receive, largest: int) -> None:
        """Read the body as it was sent, at most ``largest`` bytes, held until it is released."""
        claimed = admitted.headers.get(b"content-length", b"0")
        if claimed.isdigit() and (len(claimed) > _DIGITS or int(claimed) > largest):
            raise _too_large(largest)
        if WHOLE in admitted.scope:
            part, _ = await _next(receive)
            self._reserve(admitted, len(part), largest)
            admitted.body = part
            return
        parts: list[bytes] = []
        size, more = 0, True
        try:
            first = asyncio.get_running_loop().time() + BODY_SECONDS
            async with asyncio.timeout_at(first) as deadline:
                while more:
                    part, more = await _next(receive)
                    size += len(part)
                    self._reserve(admitted, size, largest)
                    parts.append(part)
                    if more:
                        deadline.reschedule(first + size / BYTES_A_SECOND)
        except TimeoutError:
            raise Problem(
                408,
                "body must come faster; send it again, in smaller batches",
                kind="too-slow",
                headers={"Connection": "close"},
            ) from None
        admitted.body = b"".join(parts)

    def _reserve(self, admitted: Admitted, size: int, largest: int) -> None:
        if size > largest:
            raise _too_large(largest)
        if size > SMALL_BYTES:
            if admitted.reservation is None:
                admitted.reservation = Reservation(self._quota, admitted.address)
            admitted.reservation.grow((size - SMALL_BYTES) - admitted.reservation.size)


async def _next(receive: Receive) -> tuple[bytes, bool]:
    """The next part of a body, and whether more follows."""
    message = await receive()
    if message["type"] != "http.request":
        raise Problem(400, "body must be complete, the connection was closed; send it again")
    return message.get("body", b""), message.get("more_body", False)


# Few are ever sent.
@lru_cache(64)
def _media(content_type: bytes) -> str:
    return content_type.decode("latin-1").partition(";")[0].strip().lower()


def unpack(body: bytes, encoding: str, largest: int) -> bytes | bytearray:
    """The body without its content encoding, at most ``largest`` bytes."""
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise Problem(
            415, "content-encoding must be gzip or none; use one of them", kind="encoding"
        )
    inflater = zlib.decompressobj(_GZIP)
    # Grows in place: joining parts would double the memory.
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
