"""Routes about the collector's admin keys, for holders of one."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from loloha.collector import shape
from loloha.collector.context import Context
from loloha.collector.decoding import read_body
from loloha.collector.openapi import WRITES, described, problems, takes
from loloha.collector.problem import Problem
from loloha.collector.query import known_parameters
from loloha.collector.store.admin_key import AdminKey, AdminKeys, LastKeyError
from loloha.errors import CampaignError, ParameterError

_ADMIN: dict[str, Any] = {"security": [{"admin": []}]}
_KEY = "/v1/admin/keys/{name}"


def routes(context: Context) -> APIRouter:
    """The routes, over one context."""
    guards = [Depends(context.require_sums), Depends(known_parameters)]
    router = APIRouter(tags=["admin keys"], dependencies=guards)

    @router.get(
        "/v1/admin/keys",
        summary="List the admin keys",
        responses={**described(shape.AdminKeysDocument), **problems(401, 403)},
        openapi_extra=_ADMIN,
    )
    async def list_keys(request: Request) -> Response:
        """By the first digits of their hashes; the keys themselves are not stored."""
        await context.require_admin(request.headers.get("authorization", ""))
        keys = await context.read(AdminKeys(context.store).all)
        shown = [shape.AdminKeyDocument(**key.to_dict()) for key in keys]
        return _answer(shape.AdminKeysDocument(shown, context.settings.admin_key is not None))

    @router.post(
        "/v1/admin/keys",
        status_code=201,
        summary="Draw an admin key",
        responses={**described(shape.NewAdminKey, status=201), **problems(*WRITES, 401)},
        openapi_extra={**takes(shape.WantedAdminKey), **_ADMIN},
    )
    async def add(request: Request) -> Response:
        """It is in the answer, and never shown again."""
        wanted = read_body(request, shape.WantedAdminKey, "a wanted key")
        return _new(await draw_key(context, wanted), 201)

    @router.post(
        f"{_KEY}/rotate",
        summary="Draw an admin key in place of another",
        responses={**described(shape.NewAdminKey), **problems(*WRITES, 401, 404)},
        openapi_extra=_ADMIN,
    )
    async def rotate(name: str) -> Response:
        """The new one has the label and as long a life; the old one is revoked at once."""
        return _new(await rotate_key(context, name), 200)

    @router.delete(
        _KEY,
        summary="Revoke an admin key",
        status_code=204,
        response_class=Response,
        responses={**problems(*WRITES, 401, 404, 409)},
        openapi_extra=_ADMIN,
    )
    async def revoke(
        name: str,
        even_last: Annotated[bool, Query(description="Also where no valid key is left")] = False,
    ) -> Response:
        """At once. The last valid one is refused by 409, which says what its end would mean."""
        await revoke_key(context, name, even_last=even_last)
        return Response(status_code=204)

    return router


async def draw_key(context: Context, wanted: shape.WantedAdminKey) -> tuple[str, AdminKey]:
    """A new key and what is known of it."""
    keys, now = AdminKeys(context.store), context.clock()
    try:
        return await context.read(lambda: keys.draw(wanted.label, now=now, days=wanted.days))
    except (CampaignError, ParameterError) as error:
        raise Problem(422, str(error), kind="key") from None


async def rotate_key(context: Context, name: str) -> tuple[str, AdminKey]:
    """A key in place of another."""
    keys, now = AdminKeys(context.store), context.clock()
    try:
        return await context.read(lambda: keys.rotate(name, now=now))
    except ParameterError as error:
        raise Problem(404, str(error), kind="key") from None


async def revoke_key(context: Context, name: str, *, even_last: bool) -> None:
    """Accept a key no longer; the last only on purpose, unless the settings have one."""
    keys, now = AdminKeys(context.store), context.clock()
    even_last |= context.settings.admin_key is not None
    try:
        await context.read(lambda: keys.revoke(name, now=now, even_last=even_last))
    except LastKeyError as error:
        raise Problem(409, str(error), kind="last_key") from None
    except ParameterError as error:
        raise Problem(404, str(error), kind="key") from None


def _new(drawn: tuple[str, AdminKey], status: int) -> Response:
    secret, key = drawn
    return _answer(shape.NewAdminKey(secret, shape.AdminKeyDocument(**key.to_dict())), status)


def _answer(document: Any, status: int = 200) -> Response:
    """No cache keeps it."""
    return Response(
        msgspec.json.encode(document),
        status,
        headers={"Cache-Control": "no-store"},
        media_type="application/json",
    )
