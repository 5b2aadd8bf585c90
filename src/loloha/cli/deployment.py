"""A whole deployment on this machine: a collector of its own, a campaign, simulated users."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING

import numpy as np

from loloha.cli import console
from loloha.errors import LolohaError

if TYPE_CHECKING:
    from loloha.campaign import Campaign
    from loloha.datasets import Dataset
    from loloha.population.simulation import Simulation
    from loloha.protocols import Protocol

HOUR, DAY = 3600, 86_400
_PATIENCE = 60.0
_SECONDS_TO_STOP = 15.0
_ADDRESS = re.compile(r"collector at (http://\S+?)/? ")


@dataclass(frozen=True)
class Running:
    """A collector that was started here, by an address without a slash at its end."""

    url: str
    admin_key: str
    process: subprocess.Popen[str]

    def __repr__(self) -> str:
        return f"Running({self.url!r})"

    def wait(self) -> None:
        """Keep it up until it ends, or Ctrl-C ends the waiting."""
        try:
            self.process.wait()
        except KeyboardInterrupt:
            console.say("stopping")


@contextmanager
def collector() -> Iterator[Running]:
    """A collector on a free port of this machine, over a store that vanishes with it."""
    key = secrets.token_urlsafe(32)
    # Settings of a real collector on this machine must not reach this one.
    environment = {name: text for name, text in os.environ.items() if name[:7] != "LOLOHA_"}
    with TemporaryDirectory(prefix="loloha-demo-") as folder:
        options = ["--until-eof", "--port", "0", "--store", f"sqlite:///{folder}/loloha.db"]
        with subprocess.Popen(
            [sys.executable, "-m", "loloha", "serve", *options],
            env={**environment, "LOLOHA_ADMIN_KEY": key, "PYTHONUNBUFFERED": "1"},
            # The pipe closes with this process, however it ends, and stops the collector.
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C is handled here, which stops the collector.
            start_new_session=True,
        ) as process:
            try:
                yield Running(_address(process), key, process)
            finally:
                process.terminate()
                try:
                    process.wait(_SECONDS_TO_STOP)
                except subprocess.TimeoutExpired:
                    process.kill()


def _address(process: subprocess.Popen[str]) -> str:
    """The collector's address, once it is printed."""
    lines: list[str] = []
    # A silent collector is killed after this time, which ends its output.
    patience = threading.Timer(_PATIENCE, process.kill)
    patience.start()
    try:
        for line in process.stderr or ():
            if match := _ADDRESS.search(line):
                threading.Thread(target=_drain, args=(process.stderr,), daemon=True).start()
                return match[1]
            lines.append(line)
    finally:
        patience.cancel()
    raise LolohaError(
        f"collector must start, it did not: {''.join(lines[-3:]).strip() or 'no output'}; "
        "try `loloha serve`, or `loloha demo --offline`"
    )


def _drain(stream: IO[str]) -> None:
    """Drain its output: a full pipe would block it."""
    for _ in stream:
        pass


def hourly(name: str, protocol: Protocol, dataset: Dataset) -> Campaign:
    """A campaign of one round an hour, the last of which is running now."""
    from loloha.campaign import Campaign, Labels, Schedule

    now = int(time.time())
    start = now - now % HOUR - (dataset.tau - 1) * HOUR
    labels = Labels(tuple(map(str, dataset.labels)))
    return Campaign(name=name, protocol=protocol, domain=labels, schedule=Schedule(start, HOUR))


def create(running: Running, campaign: Campaign, rounds: int) -> str:
    """Create the campaign so that all its past rounds take reports; its URL."""
    from loloha.sender.collector import Collector

    terms = {"late_seconds": rounds * HOUR + DAY}
    with Collector(running.url, token=running.admin_key) as collector:
        return collector.create(campaign, terms).url


def report_all(url: str, campaign: Campaign, dataset: Dataset, seed: int | None) -> int:
    """Let every user report every round; how many reports were counted."""
    from loloha.population.load_generator import generate_load

    total = int((dataset.values >= 0).sum())
    task = f"{dataset.n} users report {dataset.tau} rounds over HTTP"
    with console.counting(task, total) as progress:
        receipt = generate_load(url, campaign, dataset.values, progress=progress, rng=seed)
    # A timed-out upload is sent again: duplicates count as reports here.
    counted = receipt.accepted + receipt.duplicates
    if counted != total:
        raise LolohaError(
            f"collector must count {total} reports, got {counted} counted and "
            f"{sum(receipt.refused.values())} refused; look at its log"
        )
    return counted


def collected(url: str, campaign: Campaign, dataset: Dataset, level: float) -> Simulation:
    """What the collector shows of each round, in the form of a simulated run."""
    from loloha.population.simulation import Simulation
    from loloha.sender.collector import Collector

    protocol = campaign.protocol
    with Collector(url) as collector:
        shown = [collector.estimates(t, level=level) for t in range(dataset.tau)]
    n = np.array([row["n"] for row in shown], dtype=np.int64)
    estimates = np.array([row["estimate"] for row in shown], dtype=float)
    # A demo's protocol lets every report support every value.
    eligible = np.repeat(n[:, None], protocol.bins, axis=1)
    # Only devices know their losses.
    losses = np.full(dataset.n, np.nan)
    return Simulation(protocol, estimates, None, eligible, n, losses, dataset=dataset)
