"""A request on its way in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loloha.collector.rate import group_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response
    from starlette.types import Scope

    from loloha.collector.share import Hold
    from loloha.collector.stored_campaign import StoredCampaign

_READS = frozenset(("GET", "HEAD", "OPTIONS"))


class Admitted:
    """A request on its way through the chain, and what the chain has learnt of it.

    Attributes
    ----------
    scope : dict
    path, method : str
    headers : dict of bytes to bytes
    address : str
        Group of the address that it comes from.
    writes : bool
        Whether it may change something.
    stored : StoredCampaign
        The campaign that its path lies under, where it writes and there is one.
    media, packing : str
        Type and encoding of its body.
    body : bytes
    charged : float
        Requests that its body was charged as.
    answer : callable or None
        What answers it past everything that routes and parses other requests.
    """

    __slots__ = (
        "address", "answer", "body", "charged", "headers", "held", "media", "method", "packing",
        "path", "scope", "stored", "writes",
    )  # fmt: skip

    stored: StoredCampaign

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.path: str = scope["path"]
        self.method: str = scope["method"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.address = group_of(scope)
        self.writes = self.method not in _READS
        self.media = self.text(b"content-type").partition(";")[0].strip().lower()
        self.packing = self.text(b"content-encoding").strip().lower()
        self.body = b""
        self.charged = 0.0
        self.held: Hold | None = None
        self.answer: Callable[..., Awaitable[Response]] | None = None

    def text(self, name: bytes) -> str:
        """The text of a header, empty if there is none."""
        return self.headers.get(name, b"").decode("latin-1")

    def release(self) -> None:
        """Give back the room that its body takes: it has been decoded."""
        self.body = b""
        if self.held is not None:
            self.held.release()
