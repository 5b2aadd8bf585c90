"""The ASGI application of a collector."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from loloha import __version__
from loloha.collector import (
    admin,
    administration,
    campaigns,
    dashboard,
    joint_upload,
    over_rounds,
    results,
    shape,
    upload,
)
from loloha.collector.admin.view import answer_to
from loloha.collector.admission import LIVE, READY, allow
from loloha.collector.answer import Json
from loloha.collector.context import Context
from loloha.collector.etag import tagged
from loloha.collector.input_error import explained
from loloha.collector.metric import Metrics
from loloha.collector.middleware import Application, Cors, Entrance
from loloha.collector.openapi import described, problems, schemas
from loloha.collector.problem import Problem, fault, unavailable
from loloha.collector.settings import Settings
from loloha.collector.timekeeper import steady_seconds
from loloha.errors import StoreError

_MOST_SHOWN = 3
_METRICS_COST = 5
DESCRIPTION = """Collects reports that were sanitised on devices, and shows estimates.

Sending reports is idempotent: a reporter counts once a round. Errors are problem documents
(RFC 9457). Moments are in UTC; rounds are integers from 0.
"""


def create_app(
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    steady: Callable[[], float] | None = None,
) -> Application:
    """The ASGI application of one collector."""
    metrics = Metrics()
    if steady is None:
        steady = steady_seconds if clock is time.time else clock
    context = Context(settings, clock, metrics, steady)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(context.open)
        yield
        await asyncio.to_thread(context.close)

    app = Application(
        title="loloha collector",
        version=__version__,
        description=DESCRIPTION,
        lifespan=life,
        # FastAPI's pages would load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        # The document is made once, with relative server addresses.
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.context = context
    api = upload, joint_upload, campaigns, administration, results, over_rounds
    for part in (*api, dashboard, admin):
        # FastAPI's `include_router` would build each route twice, half of the time of a start.
        app.router.routes.extend(part.routes(context).routes)
    _add_operations(app, context)
    _answer_errors_as_problems(app)
    _add_openapi(app, settings)
    app.chain = Entrance(
        app, context=context, quick=upload.QUICK | joint_upload.QUICK, cors=_cors(settings)
    )
    app.state.admission = app.chain.admission
    return app


def _cors(settings: Settings) -> Cors | None:
    """Lets pages of the allowed origins read what an application answers, where there are any."""
    if not settings.allowed_origins:
        return None
    return partial(
        CORSMiddleware,
        allow_origins=settings.allowed_origins,
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type", "Content-Encoding", "If-None-Match"],
        expose_headers=["Date", "ETag", "Retry-After"],
    )


def _add_operations(app: FastAPI, context: Context) -> None:
    async def must_be_ready() -> None:
        try:
            context.timekeeper.now()
            context.running.committer.must_work()
            context.running.must_log()
        except StoreError as error:
            raise unavailable(str(error)) from None
        if context.settings.append_only is None:
            await context.check(lambda: context.store.ping())

    async def ready() -> Response:
        """Answers 200 if the store answers, its last write succeeded and the clock is right.

        So has that of a log of reports, where there is one.
        """
        await must_be_ready()
        return healthy()

    async def live() -> Response:
        """Answers 200 unless only a new start helps: whatever the store and the clock do."""
        if not context.running.committer.is_alive:
            raise unavailable("collector must be restarted, its writer has stopped")
        return healthy()

    def healthy() -> Response:
        return Json(msgspec.json.encode(shape.Health("ok", __version__)))

    answers = {**described(shape.Health), **problems()}
    summaries = {
        LIVE: (live, "Whether it runs"),
        **dict.fromkeys(READY, (ready, "Whether reports can be counted")),
    }
    for path, (answer, summary) in summaries.items():
        app.head(path, include_in_schema=False)(answer)
        app.get(path, tags=["operations"], summary=summary, responses=answers)(answer)

    @app.get(
        "/metrics",
        tags=["operations"],
        summary="Metrics for Prometheus",
        responses={200: {"description": "Metrics", "content": {"text/plain": {}}}, **problems()},
    )
    async def metrics(request: Request) -> Response:
        """Counts of reports, of each campaign too, and of requests; no label for any value."""
        context.rate.charge(request.scope, _METRICS_COST)
        try:
            await must_be_ready()
        except Problem:
            context.metrics.ready.set(0)
        else:
            context.metrics.ready.set(1)
        return Response(context.metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST})


def _answer_errors_as_problems(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def problem(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            # The framework lists the methods of one route only, not of all with this path.
            error.headers = allow(app.router.routes, request.scope)
        return answer_to(error, request.scope["path"])

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        # Input is not echoed.
        wrong = "; ".join(map(explained, error.errors()[:_MOST_SHOWN]))
        return answer_to(Problem(422, wrong, kind="invalid"), request.scope["path"])

    @app.exception_handler(StoreError)
    async def failed(request: Request, error: StoreError) -> Response:
        return answer_to(unavailable(str(error)), request.scope["path"])

    @app.exception_handler(Exception)
    async def failing(request: Request, error: Exception) -> Response:
        return answer_to(fault(), request.scope["path"])


def _add_openapi(app: FastAPI, settings: Settings) -> None:
    """The document, with the schemas of bodies that no framework model describes."""
    of_framework = app.openapi

    @cache
    def document() -> dict[str, Any]:
        openapi = of_framework()
        components = openapi.setdefault("components", {})
        components.setdefault("schemas", {}).update(schemas())
        components["securitySchemes"] = {"admin": {"type": "http", "scheme": "bearer"}}
        # Where this document is, wherever a proxy shows it.
        openapi["servers"] = [{"url": settings.root_path or "."}]
        return openapi

    app.openapi = document  # type: ignore[method-assign]  # as the framework lets it be extended

    @app.get("/openapi.json", include_in_schema=False)
    async def show(request: Request) -> Response:
        return tagged(request, document())
