"""A device and its collector in one process."""

from pathlib import Path

import loloha
from collecting import Clock, campaign
from loloha.campaign import Campaign
from loloha.sender import Sender

HOURS, PAGES, FRESH = (
    campaign("hours", protocol=loloha.LGRR(k=5, eps_inf=2.0, eps_1=1.0)),
    campaign("pages"),
    campaign("fresh", protocol=loloha.GRR(k=5, eps=1.0)),
)


def url(one: Campaign = HOURS) -> str:
    return f"http://c/v1/campaigns/{one.fingerprint}"


def sender(path: Path, clock: Clock) -> Sender:
    return Sender(path, clock=clock)
