"""``loloha report``: one user's client, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from loloha.cli import campaign_file, console, report_preview
from loloha.cli.parameter import secret
from loloha.errors import BudgetError, ParameterError, StateError

if TYPE_CHECKING:
    from loloha.sender import Delivery, Sender

TOKEN = "LOLOHA_TOKEN"


def report(
    label: str | None = None,
    *,
    state: Path,
    campaign: str | None = None,
    consent: bool = False,
    withdraw: bool = False,
    preview: bool = False,
    limit: float | None = None,
    wait: bool = True,
    as_json: bool = False,
) -> None:
    """Sanitise a value, store the report and send it, once the user has agreed.

    The value itself is never sent. A round is answered once. The first time --campaign is the
    address to report to; LOLOHA_TOKEN holds the submit token where one is needed. Where
    DO_NOT_TRACK is set nothing is drawn or sent. --preview shows what would be sent: the report
    of this round if there is one, else an example; it takes no value.
    """
    if preview:
        if label is not None or consent or withdraw or limit is not None or not wait:
            raise ParameterError(
                "--preview must be given with --state and --campaign alone; leave out the others"
            )
        report_preview.show(state, campaign, as_json=as_json)
        return
    from loloha.client.file import DAMAGED
    from loloha.sender import Delivery, Sender
    from loloha.sender.agreement_file import AgreementFile
    from loloha.sender.do_not_track import OPTED_OUT

    if withdraw and (label is not None or consent):
        raise ParameterError(
            "--withdraw must be given alone, got a value or --consent; leave them out"
        )
    for option, given in (("--limit", limit is not None), ("--no-wait", not wait)):
        if given and not (consent and campaign):
            raise ParameterError(
                f"{option} must come with the user's consent, got it alone; add --consent and "
                "--campaign URL"
            )
    try:
        opened = Sender(state)
    except StateError as error:
        if not (withdraw and DAMAGED in str(error)):
            raise
        _tell_withdrawn(AgreementFile.erase(state), as_json=as_json)
        return
    with opened as sender:
        if withdraw:
            if not sender.consent and not sender.loss:
                raise StateError(
                    f"consent must have been given, {str(state)!r} holds none, and nothing was "
                    "deleted; check the path"
                )
            _tell_withdrawn(sender.withdraw(), as_json=as_json)
            return
        if sender.opted_out:
            console.say(OPTED_OUT)
            if as_json:
                delivery = sender.deliver() if sender.consent else Delivery(reason=OPTED_OUT)
                _show(delivery, sender.loss, limited=False, as_json=True)
            return
        if campaign is not None and (consent or sender.consent):
            if label is not None:
                _check(label, sender, campaign)
            sender.agree(campaign, token=secret(TOKEN), limit=limit, wait=wait)
        if not sender.consent:
            raise StateError(
                "consent must be given before anything is reported; ask the user, then add "
                "--consent and --campaign URL"
            )
        answered, current, refusal = sender.answered, None, None
        try:
            current = None if label is None else sender.report(label)
        except BudgetError as error:
            # Queued reports were agreed to: send them all the same.
            refusal = error
        delivery = sender.deliver()
        loss, panels = sender.loss, sender.campaign.schedule.every > 1
    if label is not None and current is None and refusal is None:
        console.say(_why_not(delivery, panels=panels))
    if current in answered:
        console.say(f"round {current} was answered before; a round is answered once")
    _show(delivery, loss, limited=refusal is not None, as_json=as_json)
    if refusal is not None:
        raise refusal
    if delivery.refused or delivery.waiting:
        raise typer.Exit(1)


def _check(label: str, sender: Sender, campaign: str) -> None:
    """Refuse a value that is none of the campaign's before any consent is stored."""
    from loloha.sender.url import fingerprint_of

    if sender.consent:
        sender.campaign.index(label)
    elif fingerprint_of(campaign):
        campaign_file.load_campaign(campaign).index(label)


def _why_not(delivery: Delivery, *, panels: bool) -> str:
    """Why nothing was drawn, by what the delivery found out."""
    if delivery.campaign == "ended":
        return "the campaign has ended: nothing is drawn or sent for it any more"
    if delivery.campaign == "paused":
        return "the campaign is paused: nothing is drawn or sent for it until it goes on"
    if not panels:
        return "the campaign was paused, and goes on now: report again"
    return "this user does not report in this round: nothing is sent for it"


def _tell_withdrawn(meaning: str, *, as_json: bool) -> None:
    if as_json:
        console.show_json({"withdrawn": True, "meaning": meaning})
    else:
        console.show_text(meaning)


def _show(delivery: Delivery, loss: float, *, limited: bool, as_json: bool) -> None:
    """Print what became of each report."""
    if as_json:
        status = {
            "sent": list(delivery.sent),
            "refused": {str(round): why for round, why in delivery.refused.items()},
            "waiting": list(delivery.waiting),
            "reason": delivery.reason,
            "campaign": delivery.campaign,
            "loss": loss,
            "limit_reached": limited,
        }
        console.show_json(status)
        return
    for round in delivery.sent:
        console.show(f"round {round}: counted")
    for round, why in delivery.refused.items():
        console.warn(f"round {round} was refused: {why}")
    for round in delivery.waiting:
        console.show(f"round {round}: waits")
    if delivery.reason:
        console.warn(delivery.reason)
    console.say(f"spent so far: {loss:g}")
