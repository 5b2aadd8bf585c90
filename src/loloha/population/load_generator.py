"""The load generator: simulated users who report to a collector. Needs numpy and pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from threading import Event, local
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Ints
from loloha.campaign import Campaign
from loloha.errors import ParameterError
from loloha.population.population import due
from loloha.population.samplers import Draws, History, sample_reports
from loloha.report import LARGEST_ROUND, REPORTER_BYTES
from loloha.sender.collector import Collector, Receipt
from loloha.sender.connection import Patience
from loloha.wire.columns import CONTENT_TYPE, encode_many
from loloha.wire.message import LARGEST_UPLOAD

BATCH = 10_000
CONNECTIONS = 2


def generate_load(
    url: str,
    campaign: Campaign,
    values: Ints,
    *,
    first: int = 0,
    token: str | None = None,
    batch: int = BATCH,
    progress: Callable[[int], None] | None = None,
    begins: Callable[[Ints], None] | None = None,
    rng: Any = None,
) -> Receipt:
    """Let one simulated user per row of int[n, tau] report each round of it, round after round."""
    # -1 sends nothing; columns are rounds from ``first`` on. Where the campaign asks a user in one
    # round of ``every``, each draws which, and sends in those. At most ``batch`` reports go in one
    # of `CONNECTIONS` requests at a time. After an exception, as of Ctrl-C, those under way are
    # answered, and no other is sent. ``progress`` gets the number of reports answered, ``begins``
    # those of each round.
    if campaign.keys == "assigned":
        raise ParameterError(
            "campaign must let devices draw their keys, its collector assigns them; "
            "send such reports with loloha.sender.Sender"
        )
    first = checks.integer("first", first, 0, LARGEST_ROUND, "rounds count from 0")
    batch = checks.integer("batch", batch, 1, LARGEST_UPLOAD, "10000 is a good size")
    generator = np.random.default_rng(rng)
    history = History(values, campaign.protocol.k)
    history = due(history, campaign.schedule.every, generator, first)
    if begins is not None:
        begins(history.present)
    threads, stopped = local(), Event()
    opened = ExitStack()

    def wait(seconds: float) -> None:
        if stopped.wait(seconds):
            raise CancelledError

    def send(body: bytes) -> Receipt:
        if not hasattr(threads, "collector"):
            patience = Patience(sleep=wait)
            threads.collector = opened.enter_context(Collector(url, token=token, patience=patience))
        receipt: Receipt = threads.collector.submit(body, CONTENT_TYPE)
        if progress is not None:
            progress(receipt.sent)
        return receipt

    total = Receipt()
    with opened, ThreadPoolExecutor(CONNECTIONS) as pool:
        try:
            sent = sample_reports(campaign.protocol, history, Draws(generator))
            for t, (senders, keys, ys) in enumerate(sent):
                n = int(np.count_nonzero(senders))
                names = np.frombuffer(generator.bytes(REPORTER_BYTES * n), dtype=np.uint8)
                names = names.reshape(n, REPORTER_BYTES)
                waiting = []
                for start in range(0, n, batch):
                    part = slice(start, min(start + batch, n))
                    key = None if keys is None else keys[part]
                    body = encode_many(campaign, names[part], key, ys[part], rounds=first + t)
                    waiting.append(pool.submit(send, body))
                for future in as_completed(waiting):
                    total += future.result()
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return total
