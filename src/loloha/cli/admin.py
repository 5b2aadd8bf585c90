"""``loloha admin``: the admin keys of a collector, of its store or over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import typer

from loloha.cli import console
from loloha.cli.campaign import administered
from loloha.cli.command import Commands
from loloha.errors import CampaignError, ParameterError, StoreError

if TYPE_CHECKING:
    from loloha.collector.store.admin_key import AdminKeys

_CONFLICT = 409

group = Commands(
    name="admin", no_args_is_help=True, help="Add, list, rotate and revoke a store's admin keys."
)


@group.command()
def add(
    *,
    key_label: str | None = None,
    days: int | None = None,
    store: str | None = None,
    collector: str | None = None,
    as_json: bool = False,
) -> None:
    """Draw an admin key, shown once; only its hash is stored.

    Works in the store, also while the collector runs, or at a --collector of which LOLOHA_ADMIN_KEY
    holds a key.
    """
    if collector is None:
        with _opened(store, makes=True) as keys:
            drawn = keys.draw(key_label or "", now=time.time(), days=days)
        _show_drawn(drawn[0], drawn[1].to_dict(), as_json=as_json)
        return
    asked = {"label": key_label or "", "days": days}
    answer = _asked(store, collector, "POST", "keys", "draw a key", asked)
    _show_drawn(answer["key"], answer["known"], as_json=as_json)


@group.command("list")
def list_keys(
    *, store: str | None = None, collector: str | None = None, as_json: bool = False
) -> None:
    """List the keys by the first digits of their hashes."""
    if collector is None:
        with _opened(store) as keys:
            known = [key.to_dict() for key in keys.all()]
    else:
        asked = _asked(store, collector, "GET", "keys", "list its keys")
        known = asked["keys"]
    if as_json:
        console.show_json(known)
        return
    if not known:
        console.show("no admin keys")
        return
    console.show_table(
        ("name", "label", "made", "last used", "expires"),
        [
            (
                key["name"],
                console.visible(key["label"]) or "-",
                (key["created"] or "unknown")[:10],
                (key["used"] or ("never" if key["created"] else "unknown"))[:10],
                (key["expires"] or "-")[:10],
            )
            for key in known
        ],
    )


@group.command()
def rotate(
    key: str, *, store: str | None = None, collector: str | None = None, as_json: bool = False
) -> None:
    """Draw a key in place of another, which is revoked at once; shown once."""
    name = _name(key)
    if collector is None:
        with _opened(store) as keys:
            secret, known = keys.rotate(name, now=time.time())
        _show_drawn(secret, known.to_dict(), as_json=as_json)
        return
    answer = _asked(store, collector, "POST", f"keys/{name}/rotate", "rotate the key")
    _show_drawn(answer["key"], answer["known"], as_json=as_json)


@group.command()
def revoke(
    key: str,
    *,
    store: str | None = None,
    collector: str | None = None,
    yes: bool = False,
    as_json: bool = False,
) -> None:
    """Revoke a key at once; for the last one, say first what that means.

    One that is set as LOLOHA_ADMIN_KEY of the collector is valid until it is unset there.
    """
    name = _name(key)
    with _revoking(store, collector) as revoking:
        meaning = revoking(name, yes)
        if meaning is not None:
            console.say(meaning)
            console.ask("Revoke it?")
            revoking(name, True)
    if as_json:
        console.show_json({"revoked": name})
    else:
        console.say(f"{name} is revoked")


@contextmanager
def _revoking(
    store: str | None, collector: str | None
) -> Iterator[Callable[[str, bool], str | None]]:
    """Revoke a key, or say why not: it is the last one, and the user did not confirm."""
    if collector is not None:
        yield lambda name, even_last: _revoke_over_http(store, collector, name, even_last)
        return
    with _opened(store) as keys:
        from loloha.collector.store.admin_key import LastKeyError

        def revoke_stored(name: str, even_last: bool) -> str | None:
            try:
                keys.revoke(name, now=time.time(), even_last=even_last)
            except LastKeyError as error:
                return str(error)
            return None

        yield revoke_stored


def _revoke_over_http(store: str | None, collector: str, name: str, even_last: bool) -> str | None:
    path = f"keys/{name}" + ("?even_last=true" if even_last else "")
    try:
        _asked(store, collector, "DELETE", path, "revoke the key")
    except CampaignError as error:
        if error.status != _CONFLICT:
            raise
        return str(error)
    return None


def _asked(
    store: str | None,
    url: str,
    method: str,
    path: str,
    what: str,
    asked: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A collector's answer to a request with an admin key."""
    if store is not None:
        raise ParameterError(
            "--store must be left out with --collector, got both; leave one of them out"
        )
    with administered(url) as collector:
        return collector.administer(method, path, asked, what)


def _name(key: str) -> str:
    """The given name, or that of the key on standard input."""
    if key == "-":
        from loloha.collector.store.admin_key import name_of

        return name_of(typer.get_text_stream("stdin").readline().strip())
    if not (key.isascii() and key.isalnum()):
        raise ParameterError(
            "key must be the name of a key in the list, got another (not shown); see `loloha admin "
            "list`, or pass the key itself on standard input and - here"
        )
    return key


def _show_drawn(secret: str, known: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        console.show_json({"key": secret, **known})
    else:
        console.show(secret)
        console.say(f"shown this once; its name is {known['name']}")


@contextmanager
def _opened(url: str | None, *, makes: bool = False) -> Iterator[AdminKeys]:
    """The keys of an existing store; nothing is created for a mistyped path."""
    from loloha import checks

    checks.library("loloha.collector.settings", "admin", "collector")
    from loloha.collector.settings import Settings
    from loloha.collector.store import Store
    from loloha.collector.store.admin_key import AdminKeys
    from loloha.collector.store.database import is_missing

    address = Settings.read(store=url).store
    if is_missing(address):
        if not makes:
            raise StoreError(
                "--store must exist, there is no such file; name it by --store or LOLOHA_STORE, or "
                "a running collector by --collector URL"
            )
        console.say("there was no such store: it is new, and the key is its first")
    # It counts nothing.
    with closing(Store(address, take_over=False, accept_losses=True)) as opened:
        yield AdminKeys(opened)
