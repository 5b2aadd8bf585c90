"""``loloha campaign``: create, show and export campaigns; others stand in `campaign_state`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loloha.cli import campaign_file, console
from loloha.cli.command import Commands
from loloha.cli.input_table import domain_of, is_file
from loloha.cli.parameter import make_protocol, secret
from loloha.cli.table_file import check_new, new_file
from loloha.errors import CampaignError, ParameterError

if TYPE_CHECKING:
    from loloha.campaign import Campaign, Domain
    from loloha.sender.collector import Collector

ADMIN_KEY = "LOLOHA_ADMIN_KEY"

group = Commands(
    name="campaign", no_args_is_help=True, help="Create, show, pause and end campaigns."
)


@group.command()
def create(
    name: str,
    *,
    protocol: str | None = None,
    to: str | None = None,
    domain: str | None = None,
    range_: tuple[float, float] | None = None,
    bins: int | None = None,
    other: str | None = None,
    number: bool = False,
    start: str | None = None,
    until: str | None = None,
    seconds: int = 86_400,
    every: int = 1,
    assign_keys: bool = False,
    token: bool = False,
    n: int | None = None,
    successor_of: str | None = None,
    accept_weak_privacy: bool = False,
    as_json: bool = False,
    terms: dict[str, int],
    parameters: dict[str, Any],
) -> None:
    """Create a campaign. It can never be changed: other parameters are another campaign.

    With --to it is created at a collector; LOLOHA_ADMIN_KEY holds the admin key. With --n its
    accuracy is checked beforehand. --number asks for mean and quantiles of numbers, by one bit of
    each (protocol onebit): of a --range, or of integer labels in equal steps; with --target mean
    for the mean alone, and no threshold is sent.
    """
    from loloha.planning.accuracy_check import (
        check_accuracy,
        require_fit_keys,
        require_strong_privacy,
    )

    agreed = _domain(domain, range_, bins, other)
    protocol = _protocol(protocol, agreed, number=number)
    campaign = _campaign(
        name, protocol, parameters, agreed, (start, until), seconds, every, assign_keys
    )
    succeeded = None if successor_of is None else _succeeded(successor_of, to, campaign)
    require_fit_keys(campaign)
    require_strong_privacy(campaign, accept_weak_privacy=accept_weak_privacy)
    created: dict[str, Any] = {"campaign": campaign.to_dict(), "fingerprint": campaign.fingerprint}
    created["accuracy_check"] = None if n is None else check_accuracy(campaign, n).to_dict()
    if succeeded is not None:
        created["successor_of"] = succeeded
        if not as_json:
            console.say(succeeded)
    if to is not None:
        with administered(to) as collector:
            made = collector.create(
                campaign, terms, token=token, accept_weak_privacy=accept_weak_privacy
            )
            alike = _alike(collector, campaign) if made.new else []
        created |= {"url": made.url, "created": made.new, "token": made.token, "terms": made.terms}
    if as_json:
        console.show_json(created)
    elif to is None:
        console.show(campaign.to_json().decode())
        _show_accuracy(created["accuracy_check"])
    else:
        console.show(created["url"])
        if created["token"]:
            console.say(f"submit token, shown this once: {created['token']}")
        if not created["created"]:
            console.warn("this campaign was there already; it keeps its first terms and token")
        for other_url in alike:
            console.warn(
                f"another open campaign has this name: {other_url}; if this one replaces it, "
                "`loloha campaign close` ends it"
            )
        _show_accuracy(created["accuracy_check"])


def _alike(collector: Collector, campaign: Campaign) -> list[str]:
    """Addresses of the other open campaigns of a campaign's name."""
    return [
        f"{collector.url}/v1/campaigns/{each['fingerprint']}"
        for each in collector.campaigns()
        # No state before 0.3.
        if each["name"] == campaign.name
        and each.get("state", "open") == "open"
        and each["fingerprint"] != campaign.fingerprint
    ]


def _succeeded(other: str, to: str | None, campaign: Campaign) -> str:
    """What a user spends who reports to a campaign and to the one before it."""
    from loloha.sender.consent_text import both

    if to is not None and re.fullmatch("[0-9a-f]{64}", other):
        other = f"{to.rstrip('/')}/v1/campaigns/{other}"
    before = campaign_file.load_campaign(other)
    if before == campaign:
        raise ParameterError(
            "--successor-of must be another campaign, got this one; change a parameter"
        )
    return both([before], [campaign])


@group.command()
def show(campaign: str, *, as_json: bool = False) -> None:
    """Show a campaign: its rules, when its rounds begin, what it protects."""
    from loloha import privacy

    document = campaign_file.load_campaign(campaign)
    if as_json:
        console.show_json({"fingerprint": document.fingerprint, "campaign": document.to_dict()})
        return
    schedule = document.schedule.to_dict()
    console.show(f"{document.name}\n{document.fingerprint}")
    if "://" in campaign:
        _show_state(campaign)
    console.show(f"{document.protocol!r}, {len(document.labels)} values, keys {document.keys}")
    console.show(
        f"rounds of {schedule['seconds']} s from {schedule['start']}"
        + (f" until {schedule['expires']}" if "expires" in schedule else "")
        + "\n"
    )
    if document.schedule.every > 1:
        console.show(f"each user reports in one round of {document.schedule.every}\n")
    explained = privacy.explain(
        document.protocol, keys=document.keys, every=document.schedule.every
    )
    console.show_text(str(explained))


def _show_state(campaign: str) -> None:
    from loloha.sender.collector import Collector

    with Collector(campaign) as collector:
        summary = collector.summary()
        # None before 0.3.
        opt_outs = sum(round.get("opt_outs", 0) for round in collector.rounds())
    # None before 0.3.
    state = summary.get("state", "open")
    console.show(f"{state}, round {summary['now']['round']} by the collector's clock")
    if opt_outs:
        # Of its newest 1000 rounds.
        console.show(f"opt-outs in its newest rounds: {opt_outs} (anybody can send any number)")


@group.command()
def export(campaign: str, *, out: Path | None = None, force: bool = False) -> None:
    """Write the canonical document of a campaign: its SHA-256 is the fingerprint.

    To stdout, or to the file --out.
    """
    if out is not None:
        check_new(out, force)
    document = campaign_file.load_campaign(campaign).to_json()
    if out is None:
        console.show(document, nl=False)
        return
    with new_file(out) as draft:
        draft.write_bytes(document)


def _protocol(protocol: str | None, domain: Domain, *, number: bool) -> str:
    """The name of the protocol: what --number means, where it is given."""
    from loloha.protocols import OneBit

    if not number:
        if protocol is None:
            raise ParameterError("--protocol must be given, got none; or --number, for numbers")
        return protocol
    if protocol not in (None, OneBit.name):
        raise ParameterError(
            f"--protocol must be {OneBit.name} with --number, got {protocol}; leave one of them out"
        )
    if domain.scale is None:
        raise ParameterError(
            "--number must come with a --range, or with integers in equal, ascending steps, and "
            "without --other, got another domain; give the range of the numbers"
        )
    return OneBit.name


def _campaign(
    name: str,
    protocol: str,
    parameters: dict[str, Any],
    domain: Domain,
    times: tuple[str | None, str | None],
    seconds: int,
    every: int,
    assign_keys: bool,
) -> Campaign:
    import time

    from loloha.campaign import Campaign, Schedule
    from loloha.campaign.schedule import from_text

    rules = make_protocol(protocol, parameters, domain.k)
    start, until = times
    begins = int(time.time()) if start is None else from_text(_moment(start))
    ends = None if until is None else from_text(_moment(until), "until")
    if ends is not None and ends <= time.time():
        raise ParameterError(
            f"--until must be in the future, got {until!r}; give a later end, or none"
        )
    return Campaign(
        name=name,
        protocol=rules,
        domain=domain,
        schedule=Schedule(begins, seconds, every, ends),
        keys="assigned" if assign_keys else "drawn",
    )


def _moment(text: str) -> str:
    """A moment as it is; a day as its beginning in UTC."""
    return text + "T00:00:00Z" if len(text) == len("2026-01-01") else text


def _domain(
    domain: str | None, range_: tuple[float, float] | None, bins: int | None, other: str | None
) -> Domain:
    from loloha.campaign import Labels
    from loloha.datasets.label_list import read_domain

    given = domain_of(domain, range_, bins, other)
    if given is None:
        raise ParameterError(
            "--domain must be given, got none; or give --range LOW HIGH and --bins"
        )
    if isinstance(given, list):
        return Labels(tuple(given), other)
    if not isinstance(given, Path):
        return given
    if is_file(given):
        labels = read_domain(given).labels
        return Labels(
            tuple(label if isinstance(label, int) else str(label) for label in labels), other
        )
    if other is None:
        raise ParameterError(
            f"--domain must be at least two labels, or a file of them, got {domain!r}: no such "
            "file, so it is read as one label; check the path"
        )
    return Labels((str(domain).strip(),), other)


@contextmanager
def administered(url: str) -> Iterator[Collector]:
    """A collector that is asked with the admin key; says which one is wanted where it is not."""
    from loloha.sender.collector import Collector

    key = secret(ADMIN_KEY)
    try:
        with Collector(url, token=key) as collector:
            yield collector
    except CampaignError as error:
        if error.status not in (401, 403):
            raise
        # The collector does not tell these apart, so that it helps nobody who guesses.
        raise CampaignError(_about_key(key)) from None


def _about_key(key: str | None) -> str:
    """Which key is wanted; only this side says whether one was given."""
    if not key:
        return (
            f"{ADMIN_KEY} must hold an admin key, got none; `export {ADMIN_KEY}=...` with the one "
            "that the first `loloha serve` showed, or that `loloha admin add` draws"
        )
    return (
        f"{ADMIN_KEY} must hold an admin key of this collector, got another; copy it again, or "
        "draw one by `loloha admin add` beside its store"
    )


def _show_accuracy(check: dict[str, Any] | None) -> None:
    from loloha.privacy.rounded import percent

    if check is None:
        return
    cap = "no cap" if check["cap"] is None else f"cap {check['cap']:g}"
    if check["mean_95"] is not None:
        errors = f"the mean {percent(check['mean_95'])} of the range"
    else:
        visible = "no frequency" if check["visible"] is None else percent(check["visible"])
        errors = (
            f"a rare value {percent(check['error_95'])}, of all at once "
            f"{percent(check['error_all_95'])}; visible from {visible}"
        )
    console.say(
        f"with {check['n']} reports a round: 95 % error of {errors}; {cap} (the most budget that "
        "a user can spend)"
    )
    for warning in check["warnings"]:
        console.warn(warning)
