"""Answers with an ETag: polls get 304 without a body while nothing changed.

A tag stands for the bytes of one answer: for the content, and for its encoding.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import Response

from loloha.collector.answer import Json

if TYPE_CHECKING:
    from starlette.requests import Request

# Within one run a round's numbers identify its counts. Later another store (a backup with as many
# reports) or another release may give other answers.
_RUN = secrets.token_bytes(8)


def tagged(request: Request, content: Any) -> Response:
    """JSON with the hash of its bytes as tag."""
    return tagged_bytes(request, msgspec.json.encode(content))


def tagged_bytes(request: Request, body: bytes) -> Response:
    """The bytes of a JSON document, tagged."""
    tag = _tag(body)
    return not_modified(request, tag) or with_tag(Json(body), tag)


def tag_of(*parts: Any) -> str:
    """A tag of all that an answer depends on, in this run."""
    return _tag(repr((_RUN, parts)).encode())


def not_modified(request: Request, tag: str) -> Response | None:
    """Answer 304 if the client has this tag, else None."""
    known = request.headers.get("if-none-match", "")
    if tag in (tag_.strip().removeprefix("W/") for tag_ in known.split(",")):
        return with_tag(Response(status_code=304), tag)
    return None


def with_tag(response: Response, tag: str) -> Response:
    """Add the tag to an answer."""
    # The browser may cache it, but must revalidate each time.
    response.headers.update({"ETag": tag, "Cache-Control": "no-cache"})
    return response


def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'
