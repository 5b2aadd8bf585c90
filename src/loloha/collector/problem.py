"""Errors as problem documents (RFC 9457)."""

from __future__ import annotations

import logging
import math
from time import monotonic
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from starlette.exceptions import HTTPException
from starlette.responses import Response

from loloha.collector import shape
from loloha.collector.life import ENDED, State
from loloha.wire import Refusal

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:loloha:problem:"
"""Prefix of the type of this service's problems, which no gateway's have."""

TITLES = {
    400: "The request cannot be read",
    401: "A key or token is needed",
    403: "The key or token is not the right one",
    404: "There is no such thing",
    405: "The method does not exist here",
    408: "The body came too slowly",
    409: "The request contradicts what is known",
    410: "The round or the campaign is closed",
    413: "The body is too large",
    415: "The type of the body is not known",
    421: "This is not the host that was asked for",
    422: "The request is not valid",
    425: "The round has not begun",
    429: "Too many requests",
    431: "The headers are too large",
    500: "The collector failed",
    501: "The request is none that is answered here",
    503: "The collector cannot answer now",
}
STATUS_OF = {Refusal.EARLY: 425, Refusal.LATE: 410, Refusal.CONFLICT: 409, Refusal.CAMPAIGN: 409}
RETRY_SECONDS = 2
LOG_SECONDS = 60.0
_MOST_LOGGED = 100
_HALTED = {
    "paused": "campaign is paused, it takes no reports until it is resumed; drop these, and ask "
    "again later",
    "ended": "campaign has ended, it takes no reports any more; drop these, and send no more",
}
_logged: dict[str, float] = {}
_log = logging.getLogger(__name__)
# Bounded: an error must not echo input.
_LONGEST_DETAIL = 1000


class Problem(HTTPException):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str | None = None,
        headers: dict[str, str] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(status, detail[:_LONGEST_DETAIL], headers)
        self.kind = kind
        self.extra = extra or {}


def refused(reason: Refusal, reporter: str | UnsetType = UNSET) -> Problem:
    """The answer to a single refused report, with its reporter if readable."""
    status = STATUS_OF.get(reason, 422)
    headers = {"Retry-After": str(RETRY_SECONDS)} if reason is Refusal.EARLY else None
    extra = {"reason": str(reason), "reporter": reporter}
    return Problem(status, reason.help, kind=reason, headers=headers, extra=extra)


def ended(state: State, reporter: str | UnsetType) -> Problem:
    """The answer to reports of a paused or ended campaign."""
    # Devices of 0.2 treat it as a closed round, and drop them.
    halted = "ended" if state in ENDED else "paused"
    extra = {"reason": str(Refusal.LATE), "reporter": reporter, "campaign": halted}
    return Problem(410, _HALTED[halted], kind=Refusal.LATE, extra=extra)


def unavailable(detail: str) -> Problem:
    """The answer while the store cannot be written: retry later. Each cause is logged, rarely."""
    now = monotonic()
    if now - _logged.get(detail, -math.inf) >= LOG_SECONDS:
        if len(_logged) > _MOST_LOGGED:
            _logged.clear()
        _logged[detail] = now
        _log.warning("answered 503: %s", detail)
    return Problem(503, detail, kind="unavailable", headers={"Retry-After": str(RETRY_SECONDS)})


def fault() -> Problem:
    """The answer to a request over which the collector fails; without a detail of it."""
    return Problem(500, "the collector has a fault; tell its operator")


def response(error: HTTPException) -> Response:
    """The problem document of an error."""
    status = error.status_code
    kind = getattr(error, "kind", None)
    document = shape.ProblemDocument(
        f"{TYPE}{kind}" if kind else "about:blank",
        TITLES.get(status, "The request failed"),
        status,
        str(error.detail),
        **getattr(error, "extra", {}),
    )
    body = msgspec.json.encode(document)
    return Response(body, status, headers=dict(error.headers or {}), media_type=MEDIA_TYPE)
