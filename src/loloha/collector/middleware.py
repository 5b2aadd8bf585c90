"""What every request passes: rate limit, security headers, metrics, and a log without traces."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from loloha.collector.metric import Metrics
from loloha.collector.problem import Problem, response
from loloha.collector.rate import TOO_FAST, RateLimit

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


Share = Callable[["ASGIApp"], "ASGIApp"] | None


class Protection:
    """Outermost layer of the application.

    Parameters
    ----------
    app : ASGI application
    metrics : Metrics
    rate : RateLimit
    hosts : set of str, optional
        Names under which it may be asked, lower case and without port; by default any.
    share : callable, optional
        Wraps an application so that pages of other origins may read its answers: also those that
        are given here.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        rate: RateLimit,
        hosts: frozenset[str] | None,
        share: Share,
    ) -> None:
        self.share = share or _unshared
        self.app = self.share(app)
        self.metrics = metrics
        self.rate = rate
        self.hosts = hosts
        policy = {"cross-origin-resource-policy": "cross-origin"} if share else {}
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
            problem = self._problem(scope)
            answer = self.app if problem is None else self.share(response(problem))
            await answer(scope, receive, send_with_headers)
        finally:
            self._note(scope, status, perf_counter() - began)

    def _problem(self, scope: Scope) -> Problem | None:
        if self.hosts is not None and not _hosts(scope) <= self.hosts:
            return _ELSEWHERE
        # Health has a count of its own: whoever watches is not locked out by whoever reports.
        kind = "health" if scope["path"] == "/healthz" else ""
        return None if self.rate.allows(scope, kind=kind) else TOO_FAST

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        # The route as it was declared: a path could hold anything.
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self.metrics.note(route, method, status, seconds)
        log.info("%s %s %d %.1f ms", method, route, status, 1000 * seconds)


def _unshared(app: ASGIApp) -> ASGIApp:
    return app


_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
# A page of another site whose name was made to lead here is not answered.
_ELSEWHERE = Problem(
    421, "host must be a name of this collector; see its setting allowed_hosts", kind="host"
)


def _hosts(scope: Scope) -> set[str]:
    """The host that was asked for, or the hosts, where somebody tries several; without port."""
    asked = [value for name, value in scope["headers"] if name == b"host"]
    return {_host(one.decode("latin-1").lower()) for one in asked or [b""]}


def _host(asked: str) -> str:
    if asked.startswith("["):
        return asked.partition("]")[0][1:]
    return asked.partition(":")[0]
