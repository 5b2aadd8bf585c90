"""Routes of the dashboard: all it shows comes from the same API that everybody can use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from loloha.collector.context import Context
from loloha.collector.dashboard import asset
from loloha.collector.etag import not_modified, tag_of, tagged, with_tag
from loloha.collector.problem import Problem

if TYPE_CHECKING:
    from loloha.collector.dashboard.asset import Asset

POLICY = "; ".join(
    (
        "default-src 'none'",
        # No 'unsafe-inline' and no 'unsafe-eval': plotly draws its maps and lines without either.
        "script-src 'self'",
        "style-src 'self'",
        # Heat maps, and the pictures that people save, are images that the page itself makes.
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Content-Security-Policy of the page. Nothing is loaded from, or sent to, any other host."""

MOST_MATCHES = 50
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def routes(context: Context) -> APIRouter:
    """The routes, over one context; none of them belongs to the API."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def show_page(request: Request) -> Response:
        return _page(request, asset.page())

    @router.get("/try")
    async def show_tryout(request: Request) -> Response:
        return _page(request, asset.tryout_page())

    @router.get(asset.charts_path())
    async def show_charts(request: Request) -> Response:
        found = await context.read(asset.charts)
        # Packing takes a moment, the first time.
        await context.read(lambda: found.packed)
        return _answer(request, found, _FOR_EVER)

    @router.get("/assets/{digest}/{name}")
    async def show_asset(digest: str, name: str, request: Request) -> Response:
        return _named(request, asset.own(), digest, name)

    @router.get("/assets/{digest}/try/{name}")
    async def show_tryout_asset(digest: str, name: str, request: Request) -> Response:
        return _named(request, asset.tryout(), digest, name)

    @router.get("/dashboard/labels/{fingerprint}")
    async def find_labels(fingerprint: str, request: Request, q: str = "") -> Response:
        stored = await context.known(fingerprint)
        found = await context.compute(request, stored.bins, lambda: matches(stored.labels, q))
        return tagged(request, {"total": stored.bins, "matches": found})

    return router


def matches(labels: list[str], text: str) -> list[dict[str, int | str]]:
    """Labels that hold ``text``, at most 50: the same one, then those it begins, then the others.

    Parameters
    ----------
    labels : list of str
    text : str
        In any case; all labels hold the empty one.
    """
    wanted = text.strip().casefold()
    found: tuple[list[int], ...] = ([], [], [])
    for value, label in enumerate(labels):
        folded = label.casefold()
        if wanted in folded:
            found[0 if folded == wanted else 1 if folded.startswith(wanted) else 2].append(value)
    best = [value for kind in found for value in kind][:MOST_MATCHES]
    return [{"value": value, "label": labels[value]} for value in best]


def _packs(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _page(request: Request, found: Asset) -> Response:
    tag = tag_of(found.body, _packs(request))
    answer = not_modified(request, tag) or with_tag(_answer(request, found), tag)
    answer.headers["Content-Security-Policy"] = POLICY
    return answer


def _named(request: Request, files: dict[str, Asset], digest: str, name: str) -> Response:
    found = files.get(name)
    if found is None or digest != asset.digest():
        raise Problem(404, "asset must be one of this release; load the page again")
    return _answer(request, found, _FOR_EVER)


def _answer(request: Request, found: Asset, headers: dict[str, str] | None = None) -> Response:
    headers = {"Vary": "Accept-Encoding", **(headers or {})}
    body = found.body
    if _packs(request):
        body = found.packed
        headers["Content-Encoding"] = "gzip"
    return Response(body, headers=headers, media_type=found.media_type)
