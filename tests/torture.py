"""Troubles a collector under load, over and over, and proves that every report is counted once.

    python tests/torture.py --troubles 50 --store sqlite
    LOLOHA_TEST_POSTGRES=postgresql://... python tests/torture.py --store postgresql

It is killed, loses its store to another collector, or nearly so, has its clock set years ahead and
back, and finds its store locked. At the end every report is sent once more. All that had been
acknowledged must be duplicates now, and the counts must be, cell by cell, those of all reports
once.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sql

import loloha
from loloha.campaign import Campaign, Labels, Schedule
from loloha.sender.collector import Collector as Client
from loloha.sender.connection import Connection, Patience, Unreachable
from loloha.server.tally import Tally

KEY = "the key of the torture test"
BATCH = 100
THREADS = 6
Trouble = Callable[["Collector", random.Random], None]
LINES = "application/x-ndjson"


# What serves in a process of its own: its clock is ahead by what a file says.
_SERVE = """
import sys, time
from pathlib import Path
offset, real = Path(sys.argv.pop(1)), time.time
time.time = lambda: real() + float(offset.read_text() or 0)
from loloha.cli import main
sys.exit(main(sys.argv[1:]))
"""
YEARS = 10 * 365 * 86_400


@dataclass
class Batch:
    """Reports of one request, and what is known about each."""

    body: bytes
    reporters: list[str]
    tally: Tally
    conflicting: bytes
    acknowledged: bool = False


@dataclass
class Collector:
    """A collector in a process of its own, always on the same port."""

    store: str
    port: int
    limited: bool = False
    process: subprocess.Popen[bytes] | None = None
    offset: Path = field(default_factory=lambda: Path(tempfile.mkstemp(prefix="offset-")[1]))

    def start(self) -> None:
        self.process = self.another("--port", str(self.port))
        patience = Patience(attempts=600, first=0.1, longest=0.1)
        with Connection(self.url, patience=patience) as patient:
            assert patient.get("/healthz").status == 200

    def another(self, *options: str) -> subprocess.Popen[bytes]:
        """A process that serves the store, by a clock that can be set."""
        command = [sys.executable, "-c", _SERVE, str(self.offset), "serve", "--store", self.store]
        environment = {**os.environ, "LOLOHA_ADMIN_KEY": KEY}
        if not self.limited:
            environment["LOLOHA_RATE_LIMIT"] = ""
        return subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL, env=environment)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def make_batches(campaign: Campaign, n: int, seed: int) -> Iterator[Batch]:
    """Valid reports; for each of them there is one that contradicts it."""
    rng = np.random.default_rng(seed)
    family = campaign.protocol.encoding.family
    while True:
        keys, ys = family.draw_many(n, rng), rng.integers(0, 2, n)
        names = [rng.bytes(16).hex() for _ in range(n)]
        tally = campaign.protocol.tally()
        tally.update(keys, ys)
        yield Batch(
            _lines(campaign, names, keys, ys),
            names,
            tally,
            _lines(campaign, names[:1], keys[:1], 1 - ys[:1]),
        )


def _lines(campaign: Campaign, names: list[str], keys: Any, ys: Any) -> bytes:
    start = f'{{"version":1,"campaign":"{campaign.fingerprint}","round":0,"reporter":"'
    return "\n".join(
        f'{start}{name}","y":"{y:02x}","key":"{key:02x}"}}'
        for name, key, y in zip(names, keys, ys, strict=True)
    ).encode()


@dataclass
class Load:
    """Threads that send, resend and contradict, and remember what was acknowledged."""

    url: str
    path: str
    campaign: Campaign
    batches: list[Batch] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self, seed: int) -> None:
        chance = random.Random(seed)
        connection = Connection(self.url, patience=Patience(attempts=1), timeout=20)
        source = make_batches(self.campaign, BATCH, seed)
        mine: list[Batch] = []
        try:
            while not self.stopping.is_set():
                # What was not acknowledged is mostly sent again, sometimes left in doubt.
                doubtful = mine and not mine[-1].acknowledged and chance.random() < 0.9
                if doubtful:
                    self.send(connection, mine[-1], may_be_known=True)
                elif mine and chance.random() < 0.25:
                    self.resend(connection, chance.choice(mine), chance)
                else:
                    mine.append(next(source))
                    self.batches.append(mine[-1])
                    self.send(connection, mine[-1], may_be_known=False)
        except Exception as error:  # noqa: BLE001 - told by the main thread
            self.errors.append(repr(error))
        connection.close()

    def resend(self, connection: Connection, batch: Batch, chance: random.Random) -> None:
        if batch.acknowledged and chance.random() < 0.3:
            answer = self.post(connection, batch.conflicting)
            if answer is not None and [one["reason"] for one in answer["refused"]] != ["conflict"]:
                self.errors.append(f"a contradiction was answered by {answer}")
        else:
            self.send(connection, batch, may_be_known=True)

    def send(self, connection: Connection, batch: Batch, *, may_be_known: bool) -> None:
        known = batch.acknowledged
        answer = self.post(connection, batch.body)
        if answer is None:
            return
        counted = answer["accepted"], answer["duplicates"]
        expected = [(0, BATCH)] if known else [(BATCH, 0), (0, BATCH)]
        if answer["refused"] or counted not in (expected if may_be_known else [(BATCH, 0)]):
            self.errors.append(f"known {known}, answered {answer}")
        batch.acknowledged = True

    def post(self, connection: Connection, body: bytes) -> Any:
        try:
            answer = connection.post(self.path, body, LINES)
        except Unreachable:
            self.stopping.wait(0.1)
            return None
        if answer.status != 200:
            self.errors.append(f"status {answer.status}: {answer.detail}")
            return None
        return answer.json()


def kill(collector: Collector, chance: random.Random) -> None:
    """Without a warning, and start again."""
    collector.kill()
    collector.start()


def fail(collector: Collector, chance: random.Random) -> None:
    """Start a second collector that cannot serve: the first one goes on."""
    second = collector.another("--port", "0", "--keep-reports", "/dev/null/nowhere")
    assert second.wait(60) == 1
    with Connection(collector.url) as connection:
        assert connection.get("/healthz").status == 200


def take_over(collector: Collector, chance: random.Random) -> None:
    """Start a second collector on the store, kill it, and start the first one again."""
    second = collector.another("--port", "0")
    time.sleep(chance.uniform(0.5, 2.0))
    second.kill()
    second.wait()
    kill(collector, chance)


def jump(collector: Collector, chance: random.Random) -> None:
    """Set the server's clock years ahead, or back, and then right."""
    collector.offset.write_text(str(chance.choice((YEARS, -YEARS, 3 * 86_400))))
    time.sleep(chance.uniform(0.2, 1.0))
    collector.offset.write_text("0")


def lock(collector: Collector, chance: random.Random) -> None:
    """Hold the store's lock, for less or more than the collector waits."""
    engine = sql.create_engine(collector.store)
    with engine.connect() as holder:
        if engine.dialect.name == "sqlite":
            holder.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            holder.execute(sql.text("SELECT * FROM writer FOR UPDATE"))
        time.sleep(chance.choice((0.2, 1.0, 7.0)))
        holder.rollback()
    engine.dispose()


TROUBLES = (kill, kill, kill, fail, take_over, jump, lock)


def torture(store: str, troubles: int, seed: int, kinds: Sequence[Trouble] = TROUBLES) -> str:
    """Run it; a line that says what happened. Raises AssertionError if a report went astray."""
    chance = random.Random(seed)
    collector = Collector(store, free_port())
    collector.start()
    campaign = Campaign(
        name=f"torture {secrets.token_hex(4)}",
        protocol=loloha.BiLOLOHA(k=40, eps_inf=2.0, eps_1=1.0),
        domain=Labels(tuple(range(40))),
        schedule=Schedule(int(time.time()) - 60, 86_400),
    )
    _create(collector.url, campaign)
    path = f"/v1/campaigns/{campaign.fingerprint}"
    load = Load(collector.url, f"{path}/reports", campaign)
    threads = [
        threading.Thread(target=load.run, args=(seed * 1000 + number,)) for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    try:
        counts: Counter[str] = Counter()
        for number in range(troubles):
            time.sleep(chance.uniform(0.05, 0.6))
            # Each kind once, then as chance has it.
            trouble = kinds[number] if number < len(kinds) else chance.choice(kinds)
            trouble(collector, chance)
            counts[trouble.__name__] += 1
        time.sleep(0.5)
        load.stopping.set()
        for thread in threads:
            thread.join()
        return _prove(collector, campaign, load, dict(counts))
    finally:
        load.stopping.set()
        for thread in threads:
            thread.join()
        collector.kill()
        collector.offset.unlink()


def _prove(collector: Collector, campaign: Campaign, load: Load, counts: dict[str, int]) -> str:
    assert not load.errors, load.errors[:5]
    acknowledged = sum(batch.acknowledged for batch in load.batches)
    before = _n(collector, campaign)
    assert acknowledged * BATCH <= before <= len(load.batches) * BATCH
    _send_all_again(collector, load)
    total = campaign.protocol.tally()
    for batch in load.batches:
        total = total + batch.tally
    assert _n(collector, campaign) == total.n
    with Connection(collector.url) as connection:
        shown = connection.get(f"/v1/campaigns/{campaign.fingerprint}/rounds/0/estimates")
    assert shown.json()["estimate"] == total.estimate().frequencies.tolist()
    unknown = before - acknowledged * BATCH
    return (
        f"{counts}, {before} reports counted, {acknowledged * BATCH} of them acknowledged, "
        f"{unknown} counted without an answer: all {total.n} there once, none twice"
    )


def _send_all_again(collector: Collector, load: Load) -> None:
    """Many batches in a request; what was acknowledged must be there."""
    connection = Connection(collector.url, timeout=60)
    for known in (True, False):
        batches = [batch for batch in load.batches if batch.acknowledged is known]
        for start in range(0, len(batches), 100):
            part = batches[start : start + 100]
            answer = connection.post(load.path, b"\n".join(one.body for one in part), LINES).json()
            assert not answer["refused"], answer
            assert answer["accepted"] + answer["duplicates"] == BATCH * len(part)
            assert not known or answer["accepted"] == 0, f"lost: {answer}"
    connection.close()


def _n(collector: Collector, campaign: Campaign) -> int:
    with Client(f"{collector.url}/v1/campaigns/{campaign.fingerprint}") as client:
        rounds = client.rounds()
    return int(rounds[0]["n"]) if rounds else 0


def _create(url: str, campaign: Campaign) -> None:
    with Client(url, token=KEY) as client:
        assert client.create(campaign, {"minimum_cohort": 1}).new


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def scratch_store(kind: str) -> Iterator[str]:
    """An empty store, gone afterwards."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/loloha.db"
        return
    url = sql.make_url(os.environ["LOLOHA_TEST_POSTGRES"]).set(drivername="postgresql+psycopg")
    name = f"loloha_{secrets.token_hex(6)}"
    engine = sql.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sql.text(f"CREATE SCHEMA {name}"))
    try:
        inside = url.update_query_dict({"options": f"-csearch_path={name}"})
        yield inside.render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(sql.text(f"DROP SCHEMA {name} CASCADE"))
        engine.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--troubles", type=int, default=50)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 30))
    given = parser.parse_args()
    print(f"{given.store}, seed {given.seed}")
    with scratch_store(given.store) as store:
        print(torture(store, given.troubles, given.seed))


if __name__ == "__main__":
    main()
