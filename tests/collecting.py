"""What tests of the collector share: a clock, a campaign, and the messages of many clients."""

from collections.abc import Sequence
from typing import Any

import loloha
from loloha.campaign import Campaign, Labels, Range, Schedule
from loloha.client import Client
from loloha.rng import SimulationRng
from loloha.server.tally import Tally
from loloha.wire import encode
from loloha.wire.batch import Batch, Reader

ADMIN_KEY = "an admin key of the tests"
ADMIN = {"Authorization": f"Bearer {ADMIN_KEY}"}
START = 1_767_225_600
HOUR = 3600


class Clock:
    """Unix seconds that only change when they are told to."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def campaign(name: str = "hours", **changes: Any) -> Campaign:
    parts: dict[str, Any] = {
        "name": name,
        "protocol": loloha.BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0),
        "domain": Labels(("a", "b", "c", "d", "e")),
        "schedule": Schedule(START, HOUR),
    }
    return Campaign(**{**parts, **changes})


HOURS = campaign(
    "Weekly hours",
    protocol=loloha.OLOLOHA(k=33, eps_inf=2.0, eps_1=1.0, hash="linear"),
    domain=Range(1, 100, 33),
)
"""What the README creates."""


def clients(campaign: Campaign, n: int, *, seed: int = 0) -> list[Client]:
    return [campaign.protocol.client(rng=SimulationRng(seed + user)) for user in range(n)]


def messages(campaign: Campaign, some: Sequence[Client], round: int) -> list[bytes]:
    k = campaign.protocol.k
    return [
        encode(
            campaign,
            one.report(user % k, round=round),
            round=round,
            reporter=one.reporter(round),
        )
        for user, one in enumerate(some)
    ]


def expected(campaign: Campaign, some: Sequence[Client], round: int) -> Tally:
    tally = campaign.protocol.tally()
    for one in some:
        tally.add(one.report(0, round=round))
    return tally


def batch(campaign: Campaign, encoded: Sequence[bytes]) -> Batch:
    return Reader(campaign).read_lines(b"\n".join(encoded))


def created(client: Any, campaign: Campaign, **more: Any) -> str:
    """Create a campaign over HTTP; the path of it."""
    body = {"campaign": campaign.to_dict(), **more}
    answer = client.post("/v1/campaigns", json=body, headers=ADMIN)
    assert answer.status_code in (200, 201), answer.text
    return f"/v1/campaigns/{campaign.fingerprint}"


def become(client: Any, one: Campaign, state: str, status: int = 200) -> Any:
    """Ask for a state of a campaign; what is answered."""
    path = f"/v1/admin/campaigns/{one.fingerprint}/state"
    answer = client.put(path, json={"state": state}, headers=ADMIN)
    assert answer.status_code == status, answer.text
    return answer.json()
