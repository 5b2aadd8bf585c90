"""Many simulated users who report to a collector, in batches. Needs numpy and pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import local
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.device.connection import Answer, Connection, path_of
from loloha.errors import CampaignError, ParameterError
from loloha.reportlog.crowd import reports
from loloha.rules import checks
from loloha.rules.campaign import Campaign
from loloha.wire.columns import CONTENT_TYPE, encode_many
from loloha.wire.message import REPORTER_BYTES

if TYPE_CHECKING:
    from loloha.rules.counting.arrays import Ints

BATCH = 10_000
CONNECTIONS = 2


@dataclass
class Arrival:
    """What the collector said about the fleet's reports.

    Attributes
    ----------
    sent : int
        Reports sent.
    accepted, duplicates : int
    refused : dict of str to int
        By reason.
    """

    sent: int = 0
    accepted: int = 0
    duplicates: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def add(self, answer: Answer) -> None:
        """Count what one batch was answered with.

        Raises
        ------
        CampaignError
            If it was refused as a whole.
        """
        said = answer.json()
        if answer.status != 200 or not isinstance(said, dict):
            raise CampaignError(f"collector must take the batch: {answer.detail}")
        self.accepted += said["accepted"]
        self.duplicates += said["duplicates"]
        for one in said["refused"]:
            self.refused[one["reason"]] = self.refused.get(one["reason"], 0) + 1


def fetch(url: str) -> Campaign:
    """The campaign at ``https://HOST/v1/campaigns/FINGERPRINT``.

    Raises
    ------
    CampaignError
        If it is not there, or not the one of that fingerprint.
    Unreachable
        If the collector does not answer.
    """
    path = path_of(url)
    with Connection(url) as connection:
        answer = connection.get(f"{path}/document")
    if answer.status != 200:
        raise CampaignError(f"collector must know the campaign: {answer.detail}")
    return Campaign.from_json(answer.body, fingerprint=path.rpartition("/")[2])


def run_fleet(
    url: str,
    campaign: Campaign,
    values: Ints,
    *,
    first: int = 0,
    token: str | None = None,
    batch: int = BATCH,
    connections: int = CONNECTIONS,
    progress: Callable[[int], None] | None = None,
    rng: Any = None,
) -> Arrival:
    """Let one simulated user per row report each round of its row, round after round.

    Parameters
    ----------
    url : str
        ``https://HOST/v1/campaigns/FINGERPRINT``.
    campaign : Campaign
        Its keys are drawn by devices.
    values : int[n, tau]
        Indices 0..k-1; -1 where a user sends nothing.
    first : int
        Number of the first round.
    token : str, optional
        The campaign's submit token.
    batch : int
        Reports in one request, at most.
    connections : int
        Requests at a time.
    progress : callable, optional
        Called with the number of reports of each batch that was answered.
    rng : seed, optional
        As `numpy.random.default_rng` takes it; by default the operating system's entropy.

    Returns
    -------
    Arrival

    Raises
    ------
    ParameterError
        If values are out of range, or the campaign assigns keys.
    CampaignError, Unreachable
        If the collector refuses a whole batch, or does not answer.
    """
    if campaign.keys == "assigned":
        raise ParameterError(
            "campaign must let devices draw their keys, its collector assigns them; "
            "send such reports with loloha.sender.Sender"
        )
    first = checks.integer("first", first, 0, 1 << 53, "rounds count from 0")
    batch = checks.integer("batch", batch, 1, 1_000_000, "10000 is a good size")
    connections = checks.integer("connections", connections, 1, 64, "2 is a good number")
    values = _checked(values, campaign.protocol.k)
    generator = np.random.default_rng(rng)
    path = f"{path_of(url)}/reports"
    kept = local()
    opened = ExitStack()

    def send(body: bytes, size: int) -> Answer:
        if not hasattr(kept, "connection"):
            kept.connection = Connection(url, token=token)
            opened.callback(kept.connection.close)
        answer: Answer = kept.connection.post(path, body, CONTENT_TYPE)
        if progress is not None:
            progress(size)
        return answer

    arrival = Arrival()
    with opened, ThreadPoolExecutor(connections) as pool:
        for t, (rows, keys, ys) in enumerate(reports(campaign.protocol, values, generator)):
            n = int(np.count_nonzero(rows))
            names = np.frombuffer(generator.bytes(REPORTER_BYTES * n), dtype=np.uint8)
            names = names.reshape(n, REPORTER_BYTES)
            waiting = []
            for start in range(0, n, batch):
                part = slice(start, min(start + batch, n))
                key = None if keys is None else keys[part]
                body = encode_many(campaign, names[part], key, ys[part], rounds=first + t)
                waiting.append(pool.submit(send, body, part.stop - part.start))
            for future in waiting:
                arrival.add(future.result())
            arrival.sent += n
    return arrival


def _checked(values: Any, k: int) -> Ints:
    array: Any = np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "iu" or array.size == 0:
        raise ParameterError(
            "values must be integers of shape [n, tau], got another array; a row is a user"
        )
    if int(array.min()) < -1 or int(array.max()) >= k:
        raise ParameterError(
            f"values must lie in 0..{k - 1}, or be -1 for no report, got some outside (not shown); "
            "map labels to indices by the campaign"
        )
    checked: Ints = array.astype(np.int64)
    return checked
