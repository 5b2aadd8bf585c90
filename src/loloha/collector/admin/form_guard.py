"""Checks of requests for the admin page: origin, session and form token."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.requests import Request

from loloha.collector.body import PAGES
from loloha.collector.problem import Problem
from loloha.collector.store.admin_session import AdminSessions

if TYPE_CHECKING:
    from starlette.types import Scope

    from loloha.collector.body import Admitted
    from loloha.collector.context import Context

LOGIN = f"{PAGES}login"
FORM = "application/x-www-form-urlencoded"
LARGEST_FORM = 4_096
SECURE = "__Secure-loloha-admin"
PLAIN = "loloha-admin"
"""The name of the cookie without TLS."""
FIRST = "log in with an admin key"
"""Message for visitors without an earlier session."""
_MOST_FIELDS = 8


def require_own_page(admitted: Admitted) -> None:
    """Accept only forms of the collector's own pages, whatever origins may send reports."""
    site, host = admitted.text(b"sec-fetch-site"), admitted.text(b"host").lower()
    origin = admitted.text(b"origin").partition("://")[2].lower()
    # Over plain HTTP browsers send the origin only, and a proxy may have changed the host.
    is_own = site == "same-origin" if site else origin == host != ""
    if not is_own:
        raise Problem(
            403,
            "form must come from a page of this collector; open the page itself, by https where a "
            "proxy shows it",
            kind="origin",
        )


async def require_session(context: Context, admitted: Admitted) -> None:
    """Require a session whose key is still valid; limit the rate of logins."""
    if admitted.path == LOGIN:
        if admitted.writes and not context.logins.allows(admitted.scope):
            raise Problem(
                429,
                "logins must be fewer than ten a minute; wait a minute",
                kind="rate-limit",
                headers={"Retry-After": "60"},
            )
        return
    cookies = Request(admitted.scope).cookies
    names = [name for name in (SECURE, PLAIN) if name in cookies]
    for name in names:
        keys, find = await context.admin_keys(), AdminSessions(context.store).find
        session = await context.read(find, cookies[name], keys, context.clock())
        if session is not None:
            await context.note_use(session.key)
            admitted.session, admitted.cookie = session, name
            return
    had_one = admitted.writes or names
    raise Problem(
        401,
        "session has ended; log in again" if had_one else FIRST,
        kind="session",
        headers={"WWW-Authenticate": "Bearer"},
    )


def read_form(admitted: Admitted) -> None:
    """The fields of a form, after a check of its session token."""
    try:
        fields = parse_qsl(
            admitted.body.decode(),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        raise Problem(400, "body must be a form; load the page again", kind="unreadable") from None
    form = dict(fields)
    if len(form) != len(fields):
        raise Problem(400, "each field must be given once; load the page again", kind="unreadable")
    admitted.form = form
    if admitted.path == LOGIN:
        return
    session = admitted.session
    given = form.get("token", "").encode()
    if session is None or not hmac.compare_digest(session.form_token.encode(), given):
        raise Problem(403, "form must be of this session; load the page again", kind="form")


def speaks_tls(scope: Scope) -> bool:
    """Whether the browser uses TLS, by a trusted proxy's header or the form's origin."""
    origin: bytes = dict(scope["headers"]).get(b"origin", b"")
    return bool(scope["scheme"] == "https" or origin.startswith(b"https://"))
