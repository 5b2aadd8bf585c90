"""``loloha campaign``: create, show and export campaigns."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loloha.cli import console
from loloha.cli.command import Commands
from loloha.cli.console import AsJson
from loloha.cli.parameter import find_protocol, with_parameters
from loloha.cli.table_file import new_file
from loloha.errors import CampaignError, ParameterError

if TYPE_CHECKING:
    from loloha.campaign import Campaign, Domain

ADMIN_KEY = "LOLOHA_ADMIN_KEY"
DOMAIN, SCHEDULE, TERMS = "Domain", "Rounds", "The collector's terms"

Address = Annotated[
    str, typer.Argument(metavar="URL", help="https://HOST/v1/campaigns/FINGERPRINT, or a document.")
]

group = Commands(name="campaign", no_args_is_help=True, help="Create, show and export campaigns.")


@group.command()
@with_parameters(without={"k"})
def create(
    name: Annotated[str, typer.Argument(help="For people.")],
    *,
    protocol: Annotated[str, typer.Option(metavar="NAME", help="See `loloha protocols`.")],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help=f"The collector; {ADMIN_KEY} holds the admin key. Without it the document is "
            "only printed.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|LABELS",
            help='All labels: a file (JSON, CSV, a label a line) or "a,b,c".',
            rich_help_panel=DOMAIN,
        ),
    ] = None,
    range_: Annotated[
        tuple[float, float] | None,
        typer.Option("--range", help="Numbers from LOW to HIGH.", rich_help_panel=DOMAIN),
    ] = None,
    bins: Annotated[
        int | None, typer.Option(help="Equal parts of the range.", rich_help_panel=DOMAIN)
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="One more label, for everything else.", rich_help_panel=DOMAIN
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Beginning of round 0, e.g. 2026-01-01T00:00:00Z; by default now.",
            rich_help_panel=SCHEDULE,
        ),
    ] = None,
    seconds: Annotated[
        int, typer.Option(help="Length of a round.", rich_help_panel=SCHEDULE)
    ] = 86_400,
    assign_keys: Annotated[
        bool,
        typer.Option(
            "--assign-keys",
            help="The collector draws the devices' keys; not of the affine family, some of whose "
            "keys isolate a value.",
            rich_help_panel=TERMS,
        ),
    ] = False,
    token: Annotated[
        bool,
        typer.Option(
            "--token",
            help="Only devices with a token may report; it is shown once.",
            rich_help_panel=TERMS,
        ),
    ] = False,
    late_seconds: Annotated[
        int | None,
        typer.Option(
            help="How long a round takes reports after its end, up to 31622400; by default 86400, "
            "or 500 rounds if that is less.",
            rich_help_panel=TERMS,
        ),
    ] = None,
    early_seconds: Annotated[
        int | None, typer.Option(help="And before its beginning.", rich_help_panel=TERMS)
    ] = None,
    minimum_cohort: Annotated[
        int | None,
        typer.Option(help="Reports below which a round is not shown.", rich_help_panel=TERMS),
    ] = None,
    publish_every: Annotated[
        int | None,
        typer.Option(
            help="Estimates of a round are updated in batches of at least that many reports, by "
            "default the minimum cohort; 0 shows a round once it is closed.",
            rich_help_panel=TERMS,
        ),
    ] = None,
    users: Annotated[
        int | None, typer.Option(help="Expected number of users, for the verdict.")
    ] = None,
    accept_weak_privacy: Annotated[
        bool, typer.Option("--accept-weak-privacy", help="Create it though its privacy is weak.")
    ] = False,
    as_json: AsJson = False,
    parameters: dict[str, Any],
) -> None:
    """Create a campaign. It can never be changed: other parameters are another campaign."""
    from loloha.planning.verdict import require_fit_keys, require_strong_privacy, verdict

    domain = _domain(labels, range_, bins, other)
    campaign = _campaign(name, protocol, parameters, domain, start, seconds, assign_keys)
    require_fit_keys(campaign)
    require_strong_privacy(campaign, accept_weak_privacy=accept_weak_privacy)
    found: dict[str, Any] = {"campaign": campaign.to_dict(), "fingerprint": campaign.fingerprint}
    found["verdict"] = None if users is None else verdict(campaign, users).to_dict()
    if to is not None:
        terms = {
            "late_seconds": late_seconds,
            "early_seconds": early_seconds,
            "minimum_cohort": minimum_cohort,
            "publish_every": publish_every,
        }
        found |= _send(to, campaign, terms, token, accept_weak_privacy)
    if as_json:
        console.show_json(found)
    elif to is None:
        console.show(campaign.to_json().decode())
        _show_verdict(found["verdict"])
    else:
        console.show(found["url"])
        if found["token"]:
            console.say(f"submit token, shown this once: {found['token']}")
        if not found["created"]:
            console.warn("this campaign was there already; it keeps its first terms and token")
        _show_verdict(found["verdict"])


@group.command()
def show(campaign: Address, *, as_json: AsJson = False) -> None:
    """Show a campaign: its rules, when its rounds begin, what it protects."""
    from loloha import privacy

    found = _read(campaign)
    if as_json:
        console.show_json({"fingerprint": found.fingerprint, "campaign": found.to_dict()})
        return
    schedule = found.schedule.to_dict()
    console.show(f"{found.name}\n{found.fingerprint}")
    console.show(f"{found.protocol!r}, {len(found.labels)} values, keys {found.keys}")
    console.show(f"rounds of {schedule['seconds']} s from {schedule['start']}\n")
    console.show_text(str(privacy.explain(found.protocol, keys=found.keys)))


@group.command()
def export(
    campaign: Address,
    *,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="By default stdout.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.")] = False,
) -> None:
    """Write the canonical document of a campaign: its SHA-256 is the fingerprint."""
    document = _read(campaign).to_json()
    if out is None:
        console.show(document, nl=False)
        return
    if out.exists() and not force:
        raise ParameterError(f"out must not exist, got {str(out)!r}; choose another, or --force")
    with new_file(out) as draft:
        draft.write_bytes(document)


def _campaign(
    name: str,
    protocol: str,
    parameters: dict[str, Any],
    domain: Domain,
    start: str | None,
    seconds: int,
    assign_keys: bool,
) -> Campaign:
    import time

    from loloha.campaign import Campaign, Schedule
    from loloha.campaign.schedule import from_text

    rules = find_protocol(protocol, parameters, known=("k",)).from_params(
        {**parameters, "k": domain.k}
    )
    begins = int(time.time()) if start is None else from_text(start)
    return Campaign(
        name=name,
        protocol=rules,
        domain=domain,
        schedule=Schedule(begins, seconds),
        keys="assigned" if assign_keys else "drawn",
    )


def _domain(
    labels: str | None, range_: tuple[float, float] | None, bins: int | None, other: str | None
) -> Domain:
    from loloha.campaign import Labels, Range

    if labels is not None and range_ is None and bins is None:
        return Labels(tuple(_labels(labels, other)), other)
    if labels is None and range_ is not None and bins is not None:
        return Range(*range_, bins, other)
    raise ParameterError(
        "domain must be given by --labels, or by --range LOW HIGH and --bins; give one of them"
    )


def _labels(given: str, other: str | None) -> list[str | int]:
    from loloha.datasets.domain import read_domain

    if "," not in given and Path(given).is_file():
        labels = read_domain(Path(given)).labels
        return [one if isinstance(one, int) else str(one) for one in labels]
    if "," not in given and other is None:
        raise ParameterError(
            f"labels must be at least two, or a file of them, got {given!r}: no such file, hence "
            "taken as one label; check the path"
        )
    return [label.strip() for label in given.split(",")]


def _send(
    to: str,
    campaign: Campaign,
    terms: dict[str, int | None],
    token: bool,
    accept_weak_privacy: bool,
) -> dict[str, Any]:
    from loloha.sender.collector import Collector

    key = os.environ.get(ADMIN_KEY)
    given = {name: term for name, term in terms.items() if term is not None}
    try:
        with Collector(to, token=key) as collector:
            created = collector.create(
                campaign, given, token=token, accept_weak_privacy=accept_weak_privacy
            )
    except CampaignError as error:
        if error.status not in (401, 403):
            raise
        raise CampaignError(f"{error}; {_about_key(key)}") from None
    return {
        "url": created.url,
        "created": created.new,
        "token": created.token,
        "terms": created.terms,
    }


def _about_key(key: str | None) -> str:
    """Which key is wanted. Only this side says whether one was given, so it helps nobody else."""
    if not key:
        return (
            f"no admin key was given: `export {ADMIN_KEY}=...` with the one that the first "
            "`loloha serve` showed, or that `loloha admin add` draws"
        )
    return (
        f"the key in {ADMIN_KEY} is not one of this collector's: copy it again, or draw another "
        "by `loloha admin add` beside its store"
    )


def _show_verdict(found: dict[str, Any] | None) -> None:
    from loloha.privacy.rounded import percent

    if found is None:
        return
    cap = "no cap" if found["cap"] is None else f"cap {found['cap']:g}"
    visible = "no frequency" if found["visible"] is None else percent(found["visible"])
    console.say(
        f"with {found['n']} reports a round: 95 % error of a rare value "
        f"{percent(found['error_95'])}, of all at once {percent(found['error_all_95'])}; "
        f"visible from {visible}; {cap} (the most budget that a user can spend)"
    )
    for warning in found["warnings"]:
        console.warn(warning)


def _read(address: str) -> Campaign:
    from loloha.campaign import Campaign

    if "://" not in address:
        return Campaign.from_json(Path(address).read_bytes())
    from loloha.sender.collector import Collector

    with Collector(address) as collector:
        return collector.document()
