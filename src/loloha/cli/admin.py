"""``loloha admin``: the admin keys of a collector's store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from loloha.cli import console
from loloha.cli.command import Commands
from loloha.errors import ParameterError, StoreError

if TYPE_CHECKING:
    from loloha.collector.store import Store

_DIGITS = 12

group = Commands(
    name="admin", no_args_is_help=True, help="Add, list and revoke a store's admin keys."
)


@group.command()
def add(*, store: str | None = None, as_json: bool = False) -> None:
    """Draw an admin key, shown once; only its hash is kept."""
    from loloha.collector.secret import hashed, new_secret

    key = new_secret()
    with _opened(store, makes=True) as opened:
        opened.add_admin_key(hashed(key))
    if as_json:
        console.show_json({"key": key, "name": _name(hashed(key))})
    else:
        console.show(key)


@group.command("list")
def list_keys(*, store: str | None = None, as_json: bool = False) -> None:
    """List the keys by the first digits of their hashes."""
    with _opened(store) as opened:
        names = [_name(one) for one in sorted(opened.admin_keys())]
    if as_json:
        console.show_json(names)
    else:
        console.show("\n".join(names) or "no admin keys")


@group.command()
def revoke(key: str, *, store: str | None = None, as_json: bool = False) -> None:
    """Revoke a key, at once. One that is set as LOLOHA_ADMIN_KEY is valid until it is unset."""
    from loloha.collector.secret import hashed

    name = _name(hashed(typer.get_text_stream("stdin").readline().strip())) if key == "-" else key
    with _opened(store) as opened:
        matching = [one for one in opened.admin_keys() if _name(one) == name]
        if not matching:
            raise ParameterError(
                "key must be one of the list, got another (not shown); see `loloha admin list`"
            )
        for one in matching:
            opened.remove_admin_key(one)
    if as_json:
        console.show_json({"revoked": name})
    else:
        console.say(f"{name} is revoked")


@contextmanager
def _opened(url: str | None, *, makes: bool = False) -> Iterator[Store]:
    """The store, which stays with the collector that has it; one that is not there is no typo."""
    from loloha import checks

    checks.library("loloha.collector.settings", "admin", "collector")
    from loloha.collector.settings import Settings
    from loloha.collector.store import Store
    from loloha.collector.store.database import is_missing

    address = Settings.read(store=url).store
    if is_missing(address):
        if not makes:
            raise StoreError("store must exist, there is no such file; correct --store")
        console.say("there was no such store: it is new, and the key is its first")
    # It counts nothing.
    opened = Store(address, take_over=False, accept_losses=True)
    try:
        yield opened
    finally:
        opened.close()


def _name(sha256: bytes) -> str:
    return sha256.hex()[:_DIGITS]
