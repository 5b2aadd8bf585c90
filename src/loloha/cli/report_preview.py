"""The preview of ``loloha report --preview``: nothing is drawn, stored or sent."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from loloha.cli import campaign_file, console
from loloha.errors import ParameterError, StateError

if TYPE_CHECKING:
    from loloha.sender import Preview


def show(state: Path, campaign: str | None, *, as_json: bool) -> None:
    """Print the reports of this round, of each campaign that the user agreed to or of one."""
    previews = _previews(state, campaign)
    if as_json:
        console.show_json([preview.to_dict() for preview in previews])
        return
    for place, preview in enumerate(previews):
        title, message, words = preview.text.split("\n", 2)
        if place:
            console.show()
        console.show_text(title)
        # On one line, exactly these bytes.
        console.show(message)
        console.show_text(words)


def _previews(state: Path, campaign: str | None) -> list[Preview]:
    from loloha.sender import Sender
    from loloha.sender.do_not_track import OPTED_OUT, is_opted_out
    from loloha.sender.preview import example, unagreed

    # Without a state no file is made, not even a lock.
    if os.path.lexists(state.expanduser()):
        with Sender(state) as sender:
            agreed = list(sender.campaigns.values())
            wanted = [
                enrolment
                for enrolment in agreed
                if campaign is None or campaign.endswith(enrolment.fingerprint)
            ]
            if wanted:
                return [sender.preview(enrolment) for enrolment in wanted]
            if campaign is not None and "://" not in campaign:
                return [sender.preview(campaign_file.load_campaign(campaign))]
    if campaign is None:
        raise StateError(
            "campaign must be given where the user has not agreed to any, got none; add --campaign"
        )
    if "://" in campaign and is_opted_out():
        raise ParameterError(f"{OPTED_OUT}; for an example give the campaign as a file")
    document = campaign_file.load_campaign(campaign)
    round = max(0, document.schedule.round_at(time.time()))
    return [example(document, round, unagreed())]
