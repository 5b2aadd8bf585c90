"""The admin pages as HTML, with their headers and cookie."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from loloha.collector.admin.form_guard import FIRST, SECURE
from loloha.collector.body import PAGES
from loloha.collector.dashboard import asset
from loloha.collector.problem import TITLES, response
from loloha.collector.store.admin_session import IDLE_SECONDS

if TYPE_CHECKING:
    from starlette.exceptions import HTTPException

    from loloha.collector.body import Admitted

POLICY = "; ".join(
    (
        "default-src 'none'",
        # The only script sets the dashboard's theme before the first paint.
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Content-Security-Policy of these pages: no inline script, no other host, no frame."""
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    # With no referrer at all, browsers would not send a form's origin.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@cache
def _environment() -> Environment:
    # Autoescape: names and labels are text, never markup.
    return Environment(
        loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined
    )


def page(
    admitted: Admitted | None,
    name: str,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> Response:
    """A page from its template; a session gets its cookie again."""
    session = None if admitted is None else admitted.session
    text = (
        _environment()
        .get_template(f"{name}.html")
        .render(assets=f"../assets/{asset.digest()}", session=session, **values)
    )
    return _with_cookie(HTMLResponse(text, status, {**_HEADERS, **(headers or {})}), admitted)


def moved(admitted: Admitted, to: str) -> Response:
    """Redirect after an action to the page that shows it, so that reloading is safe."""
    return _with_cookie(RedirectResponse(to, 303, _HEADERS), admitted)


def answer_to(error: HTTPException, path: str) -> Response:
    """An error as a page for admin pages, else as a problem document."""
    if not path.startswith(PAGES):
        return response(error)
    kind, status = getattr(error, "kind", None), error.status_code
    is_login = kind in ("session", "login")
    return page(
        None,
        "login" if is_login else "problem",
        status=status,
        headers=dict(error.headers or {}),
        title="Log in" if is_login else TITLES.get(status, "The request failed"),
        detail=None if error.detail == FIRST else str(error.detail),
    )


def logged_out(admitted: Admitted) -> Response:
    """The browser forgets the session."""
    answer = RedirectResponse("login", 303, _HEADERS)
    _set_cookie(answer, admitted.cookie, "", 0)
    return answer


def _with_cookie(answer: Response, admitted: Admitted | None) -> Response:
    if admitted is not None and admitted.session is not None:
        _set_cookie(answer, admitted.cookie, admitted.session.secret, IDLE_SECONDS)
    return answer


def _set_cookie(answer: Response, name: str, value: str, seconds: int) -> None:
    """The cookie has no path: browsers take that of the page, behind any proxy."""
    answer.set_cookie(
        name, value, seconds, path=None, secure=name == SECURE, httponly=True, samesite="strict"
    )
