"""What every request passes: rate limit, security headers, metrics, and a log without traces."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from loloha.collector.metric import Metrics
from loloha.collector.problem import Problem, response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("loloha.collector")

NOTHING_AT_ALL = (
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
)

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "content-security-policy": NOTHING_AT_ALL,
    "cache-control": "no-store",
}


class Protection:
    """Outermost layer of the application.

    Parameters
    ----------
    app : ASGI application
    metrics : Metrics
    rate_limit : str
        Requests per address under /v1; empty for no limit.
    shared : bool
        Answers may be read by pages of other origins (those that the CORS layer allows).
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics, rate_limit: str, shared: bool) -> None:
        self.app = app
        self.metrics = metrics
        self.limit: RateLimitItem | None = parse(rate_limit) if rate_limit else None
        # In memory only: addresses are never written anywhere.
        self.limiter = FixedWindowRateLimiter(MemoryStorage())
        policy = {"cross-origin-resource-policy": "cross-origin"} if shared else {}
        self.headers = [
            (name.encode(), value.encode()) for name, value in {**HEADERS, **policy}.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = perf_counter(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                message["headers"] += [one for one in self.headers if one[0] not in own]
            await send(message)

        try:
            if self._is_too_fast(scope):
                await response(_TOO_FAST)(scope, receive, send_with_headers)
            else:
                await self.app(scope, receive, send_with_headers)
        finally:
            self._note(scope, status, perf_counter() - began)

    def _is_too_fast(self, scope: Scope) -> bool:
        if self.limit is None or not scope["path"].startswith("/v1"):
            return False
        address = (scope.get("client") or ("unknown", 0))[0]
        return not self.limiter.hit(self.limit, address)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        # The route as it was declared: a path could hold anything.
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self.metrics.note(route, method, status, seconds)
        log.info("%s %s %d %.1f ms", method, route, status, 1000 * seconds)


_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_TOO_FAST = Problem(
    429,
    "requests must keep within the rate limit; send batches, or wait",
    kind="rate-limit",
    headers={"Retry-After": "1"},
)
