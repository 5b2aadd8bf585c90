"""Routes of the dashboard, which shows the public API's data."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends, Request, Response

from loloha.collector.answer import Shared
from loloha.collector.context import Context
from loloha.collector.dashboard import asset
from loloha.collector.etag import not_modified, tag_of, tagged, with_tag
from loloha.collector.problem import Problem
from loloha.collector.result_document import of_labels

if TYPE_CHECKING:
    from loloha.collector.dashboard.asset import Asset

POLICY = "; ".join(
    (
        "default-src 'none'",
        # No 'unsafe-inline' and no 'unsafe-eval': plotly draws its maps and lines without either.
        "script-src 'self'",
        "style-src 'self'",
        # Heat maps and saved pictures are images that the page makes itself.
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Content-Security-Policy of the page. Nothing is loaded from, or sent to, any other host."""

_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def routes(context: Context) -> APIRouter:
    """The routes, over one context; not part of the API."""
    router = APIRouter(include_in_schema=False, dependencies=[Depends(context.require_sums)])

    @router.get("/")
    async def show_page(request: Request) -> Response:
        return _page(request, asset.page())

    @router.get("/try")
    async def show_tryout(request: Request) -> Response:
        return _page(request, asset.tryout_page())

    @router.get(f"/{asset.charts_path()}")
    async def show_charts(request: Request) -> Response:
        charts = await context.read(asset.charts)
        # Packing takes a moment, the first time.
        await context.read(lambda: charts.packed)
        return _answer(request, charts, _FOR_EVER)

    @router.get("/assets/{digest}/{name}")
    async def show_asset(digest: str, name: str, request: Request) -> Response:
        return _named(request, asset.own(), digest, name)

    @router.get("/assets/{digest}/try/{name}")
    async def show_tryout_asset(digest: str, name: str, request: Request) -> Response:
        return _named(request, asset.tryout(), digest, name)

    @router.get("/dashboard/labels/{fingerprint}")
    async def find_labels(fingerprint: str, request: Request, q: str = "") -> Response:
        stored = await context.known(fingerprint)
        labels, _ = await context.compute(request, stored.search_work, of_labels, fingerprint, q)
        return tagged(request, {"total": stored.bins, "matches": labels})

    return router


def _packs(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _page(request: Request, page: Asset) -> Response:
    tag = _tag(page, _packs(request))
    answer = not_modified(request, tag) or with_tag(_answer(request, page), tag)
    answer.headers["Content-Security-Policy"] = POLICY
    return answer


@cache
def _tag(page: Asset, is_packed: bool) -> str:
    return tag_of(page.body, is_packed)


def _named(request: Request, files: dict[str, Asset], digest: str, name: str) -> Response:
    file = files.get(name)
    if file is None or digest != asset.digest():
        raise Problem(404, "asset must be one of this release; load the page again")
    return _answer(request, file, _FOR_EVER)


def _answer(request: Request, page: Asset, headers: dict[str, str] | None = None) -> Response:
    headers = {"Vary": "Accept-Encoding", **(headers or {})}
    body = page.body
    if _packs(request):
        body = page.packed
        headers["Content-Encoding"] = "gzip"
    return Shared(body, media=page.media_type, headers=headers)
