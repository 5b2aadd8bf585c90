"""Decoding of bodies: of a large upload to a submission, of other requests to a struct."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from loloha.collector.body import unpack
from loloha.collector.problem import Problem
from loloha.collector.submission import Submission
from loloha.errors import WireError
from loloha.wire import text
from loloha.wire.batch import Batch, Reader

if TYPE_CHECKING:
    from starlette.requests import Request

    from loloha.collector.read_cache import ReadCache

Asked = TypeVar("Asked")

READERS = {
    "application/json": Reader.read_json,
    "application/x-ndjson": Reader.read_lines,
    "application/vnd.apache.arrow.stream": Reader.read_arrow,
}
"""By type of the body."""


def prepare(
    cache: ReadCache, fingerprint: str, media: str, body: bytes, packing: str, largest: int
) -> tuple[Batch, Any]:
    """Reports and their digests, ready for the commit."""
    stored = cache.known(fingerprint)
    unpacked = unpack(body, packing, largest)
    try:
        batch = READERS[media](stored.reader, unpacked)
    except WireError as error:
        raise unreadable(error) from None
    submission = Submission.of(stored, batch)
    return submission.batch, submission.digests


def unreadable(error: WireError) -> Problem:
    """The answer to an upload that cannot be read."""
    if isinstance(error, text.UploadTooLarge):
        return Problem(413, str(error), kind="too-large")
    return Problem(400, str(error), kind="unreadable")


def read_body(request: Request, kind: type[Asked], name: str) -> Asked:
    """The decoded body; raises a problem if it is invalid."""
    try:
        return msgspec.json.decode(request.scope["admitted"].body, type=kind)
    except msgspec.ValidationError as error:
        raise Problem(422, f"body must be {name}: {error}; correct it", kind="body") from None
    except text.UNREADABLE:
        raise Problem(400, "body must be JSON; send valid JSON", kind="unreadable") from None
