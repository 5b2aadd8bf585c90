"""Checks of every request before its route: one chain, the same for all ways in.

New routes are behind it by default: unless listed here, a request that writes needs an admin key,
and its body is read, bounded and rate-limited.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from starlette.routing import Match

from loloha.collector.admin.form_guard import (
    FORM,
    LARGEST_FORM,
    read_form,
    require_own_page,
    require_session,
)
from loloha.collector.body import Admitted
from loloha.collector.decoding import READERS
from loloha.collector.problem import Problem
from loloha.collector.rate import too_fast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.responses import Response
    from starlette.types import Scope

    from loloha.collector.context import Context

    Quick = Callable[[Context, Admitted], Awaitable[Response]]

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MOST_HEADER_BYTES = 32 << 10
BYTES_A_REQUEST = 1 << 17
"""Bytes of a body that count as one more request."""
UNPACKS_TO = 8
"""Factor by which compressed bytes count."""
MEDIA = tuple(READERS)
"""Media types of bodies: other sites' pages cannot send one without a CORS preflight."""
TOGETHER = "/v1/reports"
LARGEST_TOGETHER = 1 << 20
LARGEST_UNREAD = 1 << 10
"""Most bytes of a body that its route ignores."""
LIVE, READY = "/livez", ("/readyz", "/healthz")
"""Paths of liveness and readiness."""
HEALTH = (LIVE, *READY)

# Of duplicates of these, proxies could read another one than we do (request smuggling).
_ONCE = frozenset((
    b"host", b"origin", b"authorization", b"content-type", b"content-encoding", b"content-length",
    b"transfer-encoding", b"sec-fetch-site",
))  # fmt: skip
_PAGE = frozenset((b"origin", b"sec-fetch-site"))
# Every path has one spelling, without escapes.
_CANONICAL = re.compile(rb"/[A-Za-z0-9._+/-]*")
_CAMPAIGNS = "/v1/campaigns/"
CAMPAIGN = _CAMPAIGNS + "{fingerprint}"
"""How the path of a campaign begins, as routes write it."""
_FINGERPRINT = slice(len(_CAMPAIGNS), len(_CAMPAIGNS) + 64)


class Admission:
    """The guards, in order: first those that only look, then those that wait."""

    def __init__(self, context: Context, routes: Sequence[Any], quick: Mapping[str, Quick]) -> None:
        self._context = context
        self._hosts = context.settings.hosts
        self._origins = frozenset(context.settings.allowed_origins)
        self._routes = routes
        self._quick = {path: (SimpleNamespace(path=path), each) for path, each in quick.items()}
        self.guards: tuple[Callable[[Admitted], None], ...] = (
            require_short_headers,
            require_single_headers,
            self._require_host,
            self._require_rate,
            require_canonical_path,
            self._require_route,
            self._require_origin,
            require_media,
            require_known_packing,
        )

    async def admit(self, scope: Scope, receive: Any) -> Admitted:
        """Everything about a request, its body too."""
        admitted = Admitted(scope)
        for guard in self.guards:
            guard(admitted)
        if admitted.writes or admitted.is_page:
            await self._require_right(admitted)
        if admitted.writes:
            try:
                await self._read(admitted, receive)
            except BaseException:
                admitted.release()
                raise
        return admitted

    def _require_host(self, admitted: Admitted) -> None:
        # Against DNS rebinding: another site's name that resolves to this host is refused.
        given = admitted.headers.get(b"host", b"")
        if self._hosts is not None and host_name(given) not in self._hosts:
            raise Problem(
                421,
                "host must be a name of this collector; see its setting allowed_hosts",
                kind="host",
            )

    def _require_rate(self, admitted: Admitted) -> None:
        # Health has a rate limit of its own, so that reports do not lock monitoring out.
        kind = "health" if admitted.path in HEALTH else ""
        if not self._context.rate.allows(admitted.scope, kind=kind):
            raise too_fast()

    def _require_route(self, admitted: Admitted) -> None:
        if not (admitted.writes or admitted.is_page):
            return
        if admitted.method == "POST":
            path = admitted.path
            # A malformed fingerprint is not found below.
            under = path.startswith(_CAMPAIGNS) and len(path) > _FINGERPRINT.stop
            quick = self._quick.get(CAMPAIGN + path[_FINGERPRINT.stop :] if under else path)
            if quick is not None:
                if admitted.scope["query_string"]:
                    raise Problem(422, "query must be empty; leave it out", kind="invalid")
                # The route's name for metrics, and its handler.
                admitted.scope["route"], admitted.answer = quick
                return
        route = _match(self._routes, admitted.scope)
        if route is None:
            allowed = allow(self._routes, admitted.scope)
            if not allowed["Allow"]:
                raise Problem(404, "Not Found")
            raise Problem(405, "Method Not Allowed", headers=allowed)
        # Routes declare in the OpenAPI document which bodies they read.
        admitted.takes_body = "requestBody" in (getattr(route, "openapi_extra", None) or {})

    def _require_origin(self, admitted: Admitted) -> None:
        """Refuse requests of other origins' pages, by the browser's Origin header."""
        if admitted.writes and admitted.is_page:
            require_own_page(admitted)
            return
        if not (admitted.writes and _PAGE.intersection(admitted.headers)):
            return
        site, origin = admitted.text(b"sec-fetch-site"), admitted.text(b"origin")
        if site in ("same-origin", "none") or not (site or origin):
            return
        if "*" in self._origins or origin in self._origins:
            return
        if not site and origin.partition("://")[2].lower() == admitted.text(b"host").lower():
            return
        raise Problem(
            403,
            "origin must be an allowed one; see the collector's setting allowed_origins",
            kind="origin",
        )

    async def _require_right(self, admitted: Admitted) -> None:
        """By path alone: paths under a campaign need its token, all others an admin key."""
        # Admin pages need a session instead.
        path = admitted.path
        if admitted.is_page:
            await require_session(self._context, admitted)
            return
        if path == TOGETHER:
            # Each report is compared with the token of its own campaign.
            return
        given = admitted.text(b"authorization")
        if path.startswith(_CAMPAIGNS):
            admitted.stored = await self._context.known(path[_FINGERPRINT])
            self._context.require_token(given, admitted.stored)
        else:
            await self._context.require_admin(given)

    async def _read(self, admitted: Admitted, receive: Any) -> None:
        settings = self._context.settings
        largest = LARGEST_TOGETHER if admitted.path == TOGETHER else settings.largest_body
        if admitted.is_page:
            largest = LARGEST_FORM
        elif not admitted.takes_body:
            largest = LARGEST_UNREAD
        await self._context.bodies.read(admitted, receive, largest)
        packed = UNPACKS_TO if admitted.packing else 1
        admitted.charged = len(admitted.body) * packed / BYTES_A_REQUEST
        self._context.rate.charge(admitted.scope, admitted.charged)
        if admitted.is_page:
            read_form(admitted)


def allow(routes: Sequence[Any], scope: Scope) -> dict[str, str]:
    """The header of an answer 405 (RFC 9110, 15.5.6): the methods that the path has."""
    there = (each for each in METHODS if _match(routes, {**scope, "method": each}))
    return {"Allow": ", ".join(there)}


def _match(routes: Sequence[Any], scope: Scope) -> Any:
    for route in routes:
        if route.matches(scope)[0] is Match.FULL:
            # Some releases of the framework nest the routes of a router.
            inner = getattr(route, "original_router", None)
            return route if inner is None else _match(inner.routes, scope)
    return None


def require_short_headers(admitted: Admitted) -> None:
    """Bound the size of all headers together."""
    scope = admitted.scope
    size = len(b"".join(chain.from_iterable(scope["headers"])))
    if size + len(scope["path"]) + len(scope["query_string"]) > MOST_HEADER_BYTES:
        raise too_long()


def too_long() -> Problem:
    """The answer to headers that are too long."""
    return Problem(
        431,
        f"headers must have at most {MOST_HEADER_BYTES} bytes; send fewer",
        kind="headers",
        headers={"Connection": "close"},
    )


def require_single_headers(admitted: Admitted) -> None:
    """Refuse duplicates of decisive headers, and transfer encodings other than chunked."""
    every = admitted.scope["headers"]
    if len(every) != len(admitted.headers):
        names = [name for name, _ in every if name in _ONCE]
        if len(names) != len(set(names)):
            raise Problem(400, "headers must not contradict each other; send each once")
    if admitted.headers.get(b"transfer-encoding", b"chunked").strip().lower() != b"chunked":
        raise Problem(
            501,
            "transfer-encoding must be chunked or none; use one of them",
            kind="encoding",
            headers={"Connection": "close"},
        )


def require_canonical_path(admitted: Admitted) -> None:
    """Refuse paths in any other spelling."""
    raw = admitted.scope.get("raw_path") or admitted.path.encode()
    if not _CANONICAL.fullmatch(raw):
        raise Problem(404, "path must be written without escapes; see /openapi.json")


def require_media(admitted: Admitted) -> None:
    """Require a media type that other sites' pages cannot send without a preflight."""
    kinds = (FORM,) if admitted.is_page else MEDIA
    if not admitted.writes or admitted.media in kinds:
        return
    headers = admitted.headers
    is_empty = headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers
    if not is_empty or admitted.media:
        raise Problem(415, f"content-type must be one of {', '.join(kinds)}; name one", kind="type")


def require_known_packing(admitted: Admitted) -> None:
    """Only uploads may be compressed."""
    is_upload = admitted.path.endswith("/reports") and admitted.path != TOGETHER
    if admitted.writes and not is_upload and admitted.packing not in ("", "identity"):
        raise Problem(
            415, "content-encoding must be none; send the body uncompressed", kind="encoding"
        )


# Few are ever asked for.
@lru_cache(64)
def host_name(header: bytes) -> str:
    """A Host header without its port, in lower case."""
    asked = header.decode("latin-1").lower()
    return asked.partition("]")[0][1:] if asked.startswith("[") else asked.partition(":")[0]


def passes_on(body: bytes, receive: Any) -> Any:
    """Receive for a route behind the chain: the body already read."""
    waiting: list[Mapping[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def once() -> Mapping[str, Any]:
        return waiting.pop() if waiting else await receive()

    return once
