"""States of campaigns: ``loloha campaign list``, ``pause``, ``resume``, ``close`` and such."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loloha.cli import console
from loloha.cli.campaign import administered, group

if TYPE_CHECKING:
    from loloha.collector.life import Wanted

__all__ = ["group"]


@group.command("list")
def list_campaigns(collector: str, *, archived: bool = False, as_json: bool = False) -> None:
    """List the campaigns of a collector, the oldest first."""
    from loloha.sender.collector import Collector

    with Collector(collector) as service:
        campaigns = service.campaigns(archived=archived)
    if as_json:
        console.show_json(campaigns)
        return
    if not campaigns:
        console.show("no campaigns")
        return
    base = collector.rstrip("/")
    console.show_table(
        ("name", "state", "protocol", "values", "round", "created"),
        [
            (
                each["name"],
                # None before 0.3.
                each.get("state", "open"),
                each["protocol"]["type"],
                each["protocol"]["k"],
                each["now"]["round"],
                each["created"][:10],
            )
            for each in campaigns
        ],
    )
    for each in campaigns:
        name = console.visible(each["name"])
        console.show(f"{name}: {base}/v1/campaigns/{each['fingerprint']}")


@group.command()
def pause(address: str, *, as_json: bool = False) -> None:
    """Take no reports until it is resumed: devices drop queued reports, and ask again later.

    LOLOHA_ADMIN_KEY holds the admin key.
    """
    _become(address, "paused", as_json)


@group.command()
def resume(address: str, *, as_json: bool = False) -> None:
    """Let a paused campaign take reports again. LOLOHA_ADMIN_KEY holds the admin key."""
    _become(address, "open", as_json)


@group.command()
def close(address: str, *, yes: bool = False, as_json: bool = False) -> None:
    """End a campaign for ever; its estimates stay. LOLOHA_ADMIN_KEY has the admin key."""
    _end(address, "closed", yes, as_json)


@group.command()
def archive(address: str, *, yes: bool = False, as_json: bool = False) -> None:
    """Hide a closed campaign from lists; its estimates stay. LOLOHA_ADMIN_KEY has the admin key."""
    _end(address, "archived", yes, as_json)


@group.command()
def delete(address: str, *, yes: bool = False, as_json: bool = False) -> None:
    """Delete what a closed campaign has counted. LOLOHA_ADMIN_KEY holds the admin key."""
    _end(address, "deleted", yes, as_json)


def _end(address: str, state: Wanted, yes: bool, as_json: bool) -> None:
    """Say what goes and what stays, then ask, then do it."""
    from loloha.collector.life import MEANS
    from loloha.sender.collector import Collector

    with Collector(address) as collector:
        name = console.visible(collector.summary()["name"])
    if not yes:
        console.say(f"{name} is to be {state}. {MEANS[state]}")
        console.ask("Go on?")
    _become(address, state, as_json)


def _become(address: str, state: str, as_json: bool) -> None:
    with administered(address) as collector:
        summary: dict[str, Any] = collector.set_state(state)
        if summary["state"] == "deleting":
            console.say("deleting takes a while; the collector goes on where this ends")
        while summary["state"] == "deleting":
            summary = collector.set_state(state)
    if as_json:
        console.show_json(summary)
    else:
        console.say(f"{console.visible(summary['name'])} is {summary['state']}")
