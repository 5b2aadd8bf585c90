"""Middleware around all routes: admission, headers, bounds of answers, metrics and the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from loloha.collector.admin.view import answer_to
from loloha.collector.admission import METHODS, Admission, passes_on
from loloha.collector.answer import Outgoing
from loloha.collector.body import Admitted
from loloha.collector.problem import Problem, fault, response, unavailable
from loloha.errors import StoreError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from loloha.collector.admission import Quick
    from loloha.collector.context import Context

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

Cors = Callable[["ASGIApp"], "ASGIApp"]
"""Adds the headers by which pages of other sites may read an answer."""


class Application(FastAPI):
    """The routes behind the chain of checks.

    Attributes
    ----------
    chain : Entrance
    """

    chain: Entrance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request from the server."""
        take = self.chain if scope["type"] == "http" else self.answer
        await take(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request from the chain."""
        await super().__call__(scope, receive, send)


class Entrance:
    """Admits requests, passes them to their handlers, sends the answers.

    Each is counted and logged with its declared route: a path could hold anything. A fault is
    answered without a trace.
    """

    def __init__(
        self, app: Application, *, context: Context, quick: Mapping[str, Quick], cors: Cors | None
    ) -> None:
        self.admission = Admission(context, app.router.routes, quick)
        self._app = app
        self._context = context
        self._cors = cors or (lambda app: app)
        self._answer = self._cors(self._hand_over)
        self._root = context.settings.root_path
        policy = {"cross-origin-resource-policy": "cross-origin"} if cors else {}
        self._headers = {
            name.encode(): value.encode() for name, value in {**HEADERS, **policy}.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, context = perf_counter(), self._context
        out = Outgoing(context.rate, context.answers, self._headers, scope, send)
        try:
            await self._take(scope, receive, out.send)
            if out.refused is not None:
                await self._send_instead(out, out.refused, scope, receive)
        except Exception:
            if not out.has_begun:
                await self._send_instead(out, fault(), scope, receive)
            raise
        finally:
            self._note(scope, out.status, perf_counter() - began)

    async def _take(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._root:
            take_off(self._root, scope)
        try:
            admitted = await self.admission.admit(scope, receive)
        except (HTTPException, StoreError) as error:
            await self._cors(_answer_to(error, scope))(scope, receive, send)
            return
        scope["admitted"] = admitted
        try:
            await self._answer(scope, receive, send)
        finally:
            admitted.release()

    async def _hand_over(self, scope: Scope, receive: Receive, send: Send) -> None:
        admitted: Admitted = scope["admitted"]
        if admitted.answer is None:
            await self._app.answer(scope, passes_on(admitted.body, receive), send)
            return
        try:
            answer = await admitted.answer(self._context, admitted)
        except (HTTPException, StoreError) as error:
            answer = _answer_to(error, scope)
        await answer(scope, receive, send)

    async def _send_instead(
        self, out: Outgoing, problem: Problem, scope: Scope, receive: Receive
    ) -> None:
        out.refused = None
        await self._cors(response(problem))(scope, receive, out.send)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        self._context.metrics.requests.note(route, method, status, seconds)
        if log.isEnabledFor(logging.INFO):
            more = {"method": method, "route": route, "status": status}
            more["milliseconds"] = round(1000 * seconds, 1)
            log.info("%(method)s %(route)s %(status)d %(milliseconds).1f ms", more, extra=more)


def take_off(root: str, scope: Scope) -> None:
    """Remove the proxy's path prefix, if present."""
    for name, prefix in (("path", root), ("raw_path", root.encode())):
        path = scope.get(name)
        if path is not None and path.startswith(prefix) and path[len(prefix) :][:1] in ("/", b"/"):
            scope[name] = path[len(prefix) :]


def _answer_to(error: HTTPException | StoreError, scope: Scope) -> Any:
    known = error if isinstance(error, HTTPException) else unavailable(str(error))
    return answer_to(known, scope["path"])
