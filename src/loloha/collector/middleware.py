"""Around all routes, a layer for each duty: log, headers, bounds of answers, who is let in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from loloha.collector.admin.view import answer_to
from loloha.collector.admission import METHODS, Admission, passes_on
from loloha.collector.answer import Outgoing
from loloha.collector.body import Admitted
from loloha.collector.problem import fault, response, unavailable
from loloha.errors import StoreError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from loloha.collector.admission import Quick
    from loloha.collector.context import Context
    from loloha.collector.metric import Metrics

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

Share = Callable[["ASGIApp"], "ASGIApp"]


class Log:
    """Counts and logs each request, with its declared route: a path could hold anything."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = perf_counter(), 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note)
        finally:
            seconds = perf_counter() - began
            route = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if scope["method"] in METHODS else "OTHER"
            self._metrics.note(route, method, status, seconds)
            if log.isEnabledFor(logging.INFO):
                more = {"method": method, "route": route, "status": status}
                more["milliseconds"] = round(1000 * seconds, 1)
                log.info("%(method)s %(route)s %(status)d %(milliseconds).1f ms", more, extra=more)


class Headers:
    """Adds to each answer the headers that it does not have."""

    def __init__(self, app: ASGIApp, *, shared: bool) -> None:
        policy = {"cross-origin-resource-policy": "cross-origin"} if shared else {}
        self._app = app
        self._headers = {
            name.encode(): value.encode() for name, value in {**HEADERS, **policy}.items()
        }
        self._all = tuple(self._headers.items())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def mark(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = message["headers"]
                given = [name for name, _ in own if name in self._headers]
                more = (
                    [header for header in self._all if header[0] not in given]
                    if given
                    else self._all
                )
                message["headers"] = [*own, *more]
            await send(message)

        await self._app(scope, receive, mark)


class Bounds:
    """Charges for answers and bounds what waits to be read; a fault is answered without a trace."""

    def __init__(self, app: ASGIApp, *, context: Context, share: Share | None) -> None:
        self._app = app
        self._context = context
        self._share = share or _unshared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        out = Outgoing(self._context.rate, self._context.answers, scope, send)
        try:
            await self._app(scope, receive, out.send)
            if out.refused is not None:
                await self._share(response(out.refused))(scope, receive, send)
        except Exception:
            if not out.has_begun:
                await self._share(response(fault()))(scope, receive, send)
            raise


class Entrance:
    """Lets requests in, and hands them to what answers them."""

    def __init__(
        self, app: Any, *, context: Context, quick: Mapping[str, Quick], share: Share | None
    ) -> None:
        self.admission = Admission(context, app.router.routes, quick)
        self._app = app
        self._context = context
        self._share = share or _unshared
        self._answer = self._share(self._hand_over)
        self._root = context.settings.root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._root:
            take_off(self._root, scope)
        try:
            admitted = await self.admission.admit(scope, receive)
        except (HTTPException, StoreError) as error:
            await self._share(_answer_to(error, scope))(scope, receive, send)
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


def take_off(root: str, scope: Scope) -> None:
    """Take the path off under which a proxy shows the collector, where it is there."""
    for name, prefix in (("path", root), ("raw_path", root.encode())):
        path = scope.get(name)
        if path is not None and path.startswith(prefix) and path[len(prefix) :][:1] in ("/", b"/"):
            scope[name] = path[len(prefix) :]


def _answer_to(error: HTTPException | StoreError, scope: Scope) -> Any:
    known = error if isinstance(error, HTTPException) else unavailable(str(error))
    return answer_to(known, scope["path"])


def _unshared(app: ASGIApp) -> ASGIApp:
    return app
