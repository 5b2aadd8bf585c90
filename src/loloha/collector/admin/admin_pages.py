"""Routes of the admin pages: each calls the function of an API route."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter, Depends, Request, Response

from loloha.collector import shape
from loloha.collector.admin.campaign_card import SHORT, card, cards
from loloha.collector.admin.form_guard import LOGIN, PLAIN, SECURE, speaks_tls
from loloha.collector.admin.view import logged_out, moved, page
from loloha.collector.administration import draw_key, revoke_key, rotate_key
from loloha.collector.body import PAGES, Admitted
from loloha.collector.campaigns import become
from loloha.collector.context import Context
from loloha.collector.life import MEANS, Wanted
from loloha.collector.problem import Problem
from loloha.collector.store.admin_key import LAST, AdminKey, AdminKeys
from loloha.collector.store.admin_session import AdminSessions

_DONE = {
    "open": "The campaign takes reports again.",
    "paused": "The campaign is paused.",
    "closed": "The campaign is closed.",
    "archived": "The campaign is archived.",
    "deleting": "What the campaign had counted is being deleted; that goes on by itself.",
    "deleted": "What the campaign had counted is deleted.",
    "revoked": "The key is revoked.",
}


def routes(context: Context) -> APIRouter:
    """The routes, over one context; not part of the API."""
    router = APIRouter(include_in_schema=False, dependencies=[Depends(context.require_sums)])

    @router.get(PAGES.rstrip("/"))
    async def show_the_way() -> Response:
        return Response(status_code=307, headers={"Location": "admin/"})

    @router.get(LOGIN)
    async def show_login(request: Request) -> Response:
        return page(_admitted(request), "login", title="Log in", detail=None)

    @router.post(LOGIN)
    async def log_in(request: Request) -> Response:
        admitted = _admitted(request)
        key = await context.admin_key(admitted.form.get("key", "").strip())
        if key is None:
            # The same answer for keys that are unknown, expired or revoked.
            raise Problem(403, "key must be a valid admin key; try another", kind="login")
        begin = AdminSessions(context.store).begin
        admitted.session = await context.read(begin, key, context.clock())
        admitted.cookie = SECURE if speaks_tls(request.scope) else PLAIN
        return moved(admitted, "./")

    @router.post(f"{PAGES}logout")
    async def log_out(request: Request) -> Response:
        admitted = _admitted(request)
        await context.read(AdminSessions(context.store).end, request.cookies[admitted.cookie])
        return logged_out(admitted)

    @router.get(PAGES)
    async def show_all(
        request: Request, before: str | None = None, done: str | None = None
    ) -> Response:
        some, older = await cards(context, before)
        context.rate.charge(request.scope, 1 + len(some))
        return page(
            _admitted(request),
            "home",
            title="Administration",
            done=_DONE.get(done or ""),
            campaigns=some,
            older=older,
            keys=await _keys(),
            has_setting=context.settings.admin_key is not None,
            last=LAST,
        )

    @router.get(f"{PAGES}state")
    async def ask_about_state(request: Request, fingerprint: str, to: str) -> Response:
        wanted = _state(to)
        campaign = await card(context, fingerprint)
        return page(
            _admitted(request),
            "state",
            title=f"{campaign.verbs[wanted]} a campaign",
            one=campaign,
            to=wanted,
            meaning=MEANS[wanted],
        )

    @router.post(f"{PAGES}state")
    async def set_state(request: Request) -> Response:
        admitted = _admitted(request)
        wanted, fingerprint = _state(_field(admitted, "to")), _field(admitted, "fingerprint")
        if wanted == "deleted" and admitted.form.get("short", "").strip() != fingerprint[:SHORT]:
            raise Problem(
                422, "short name must match the campaign; go back and type it", kind="short"
            )
        stored = await become(context, fingerprint, wanted)
        return moved(admitted, f"./?done={context.life_of(stored).state}")

    @router.post(f"{PAGES}add")
    async def add_key(request: Request) -> Response:
        admitted = _admitted(request)
        wanted = shape.WantedAdminKey(_field(admitted, "label").strip(), _days(admitted))
        return _show_key(admitted, *await draw_key(context, wanted))

    @router.get(f"{PAGES}rotate")
    async def ask_about_rotation(request: Request, name: str) -> Response:
        return await _ask(request, "rotate", name)

    @router.post(f"{PAGES}rotate")
    async def rotate(request: Request) -> Response:
        admitted = _admitted(request)
        return _show_key(admitted, *await rotate_key(context, _field(admitted, "name")))

    @router.get(f"{PAGES}revoke")
    async def ask_about_revocation(request: Request, name: str) -> Response:
        return await _ask(request, "revoke", name)

    @router.post(f"{PAGES}revoke")
    async def revoke(request: Request) -> Response:
        admitted = _admitted(request)
        name = _field(admitted, "name")
        try:
            await revoke_key(context, name, even_last=admitted.form.get("even_last") == "true")
        except Problem as problem:
            if problem.kind != "last_key":
                raise
            return await _ask(request, "revoke", name, last=str(problem.detail))
        return moved(admitted, "./?done=revoked")

    async def _ask(request: Request, what: str, name: str, last: str | None = None) -> Response:
        keys = {key["name"]: key for key in await _keys()}
        if name not in keys:
            raise Problem(404, "key must be one of the list; load the list again", kind="key")
        title = {"rotate": "Rotate an admin key", "revoke": "Revoke an admin key"}[what]
        return page(
            _admitted(request),
            "key",
            status=200 if last is None else 409,
            title=title,
            what=what,
            one=keys[name],
            last=last,
        )

    async def _keys() -> list[dict[str, Any]]:
        now = context.clock()
        known = await context.read(AdminKeys(context.store).all)
        return [{**key.to_dict(), "is_valid": key.is_valid(now)} for key in known]

    def _show_key(admitted: Admitted, secret: str, known: AdminKey) -> Response:
        return page(admitted, "new_key", title="A new admin key", key=secret, one=known.to_dict())

    return router


def _admitted(request: Request) -> Admitted:
    admitted: Admitted = request.scope["admitted"]
    return admitted


def _field(admitted: Admitted, name: str) -> str:
    value = admitted.form.get(name)
    if value is None:
        raise Problem(422, f"{name} must be given; load the page again", kind="form")
    return value


def _state(text: str) -> Wanted:
    try:
        state: Wanted = msgspec.convert(text, Wanted)
        return state
    except msgspec.ValidationError:
        raise Problem(422, "to must be a state of a campaign; go back", kind="state") from None


def _days(admitted: Admitted) -> int | None:
    text = _field(admitted, "days").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Problem(422, "days must be a whole number, or empty; go back", kind="key")
    return int(text)
