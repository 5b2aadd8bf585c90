"""Troubles a collector under load, over and over, and proves that every report is counted once.

    python tests/torture.py --troubles 50 --store sqlite
    LOLOHA_TEST_POSTGRES=postgresql://... python tests/torture.py --store postgresql
    LOLOHA_TEST_POSTGRES=postgresql://... python tests/torture.py --store postgresql --collectors 3

Of several on one PostgreSQL each has its network to it cut, and its sessions there ended. One is
killed, loses its store to another collector, or nearly so, has its clock set years ahead and
back, and finds its store locked. At the end every report is sent once more. All that had been
acknowledged must be duplicates now, and the counts must be, cell by cell, those of all reports
once.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
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
from ports import free_port

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


class Network:
    """The way from one collector to its database, which can be cut."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._entrance = socket.create_server(("127.0.0.1", 0))
        self.port = self._entrance.getsockname()[1]
        self._ends: set[socket.socket] = set()
        self._flows = threading.Event()
        self._flows.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, seconds: float) -> None:
        """Let nothing through for a while, then break what was open."""
        self._flows.clear()
        time.sleep(seconds)
        for end in list(self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._flows.set()

    def close(self) -> None:
        """Take no more connections."""
        self._entrance.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                inside, _ = self._entrance.accept()
                ends = inside, socket.create_connection(self._server)
                self._ends.update(ends)
                for pair in (ends, ends[::-1]):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while sent := source.recv(1 << 16):
                self._flows.wait()
                target.sendall(sent)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._ends.discard(source)
        source.close()


@dataclass
class Collector:
    """A collector in a process of its own, always on the same port."""

    store: str
    port: int
    limited: bool = False
    process: subprocess.Popen[bytes] | None = None
    offset: Path = field(default_factory=lambda: Path(tempfile.mkstemp(prefix="offset-")[1]))
    network: Network | None = None

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

    def stop(self) -> None:
        """As a service manager does."""
        assert self.process is not None
        self.process.terminate()
        # Its server ends by the same signal, once everything is answered.
        assert self.process.wait(60) in (0, -signal.SIGTERM)

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
    """Threads that send, resend and contradict, and remember what was acknowledged.

    Each request goes to one of the collectors, as chance has it.
    """

    urls: list[str]
    path: str
    campaign: Campaign
    balanced: bool = False
    """Whether what stands in front of them repeats a request that one of them did not answer: then
    a batch that is sent once may be counted by one and acknowledged by the other as duplicates."""
    batches: list[Batch] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    unanswered: int = 0
    """Requests that were refused as a whole, or not answered."""
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self, seed: int) -> None:
        chance = random.Random(seed)
        connections = [
            Connection(url, patience=Patience(attempts=1), timeout=20) for url in self.urls
        ]
        source = make_batches(self.campaign, BATCH, seed)
        mine: list[Batch] = []
        try:
            while not self.stopping.is_set():
                connection = chance.choice(connections)
                # What was not acknowledged is mostly sent again, sometimes left in doubt.
                doubtful = mine and not mine[-1].acknowledged and chance.random() < 0.9
                if doubtful:
                    self.send(connection, mine[-1], may_be_known=True)
                elif mine and chance.random() < 0.25:
                    self.resend(connection, chance.choice(mine), chance)
                else:
                    mine.append(next(source))
                    self.batches.append(mine[-1])
                    self.send(connection, mine[-1], may_be_known=self.balanced)
        except Exception as error:  # noqa: BLE001 - told by the main thread
            self.errors.append(repr(error))
        for connection in connections:
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
            self.unanswered += 1
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


def restart(collector: Collector, chance: random.Random) -> None:
    """Stop it in order, and start again."""
    collector.stop()
    collector.start()


def end_sessions(collector: Collector, chance: random.Random) -> None:
    """End some of its sessions, or of another's, on the server: perhaps in a commit."""
    engine = sql.create_engine(collector.store, isolation_level="AUTOCOMMIT")
    end = sql.text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND application_name = current_setting('application_name') AND random() < 0.5"
    )
    with engine.connect() as connection:
        for _ in range(chance.randrange(1, 5)):
            connection.execute(end)
            time.sleep(chance.uniform(0.0, 0.05))
    engine.dispose()


def cut(collector: Collector, chance: random.Random) -> None:
    """Cut the network between it and the database."""
    assert collector.network is not None
    collector.network.cut(chance.choice((0.0, 0.5, 3.0)))


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
TROUBLES_OF_MANY = (*TROUBLES, restart, end_sessions, end_sessions, cut, cut)


def make_collectors(store: str, number: int) -> Iterator[Collector]:
    """Several on one PostgreSQL, each with a network of its own; or one."""
    for _ in range(number):
        network, mine = None, store
        if number > 1:
            url = sql.make_url(store)
            network = Network(url.host or "127.0.0.1", url.port or 5432)
            url = url.set(host="127.0.0.1", port=network.port)
            mine = url.render_as_string(hide_password=False)
        yield Collector(mine, free_port(), network=network)


def torture(
    store: str,
    troubles: int,
    seed: int,
    kinds: Sequence[Trouble] | None = None,
    collectors: int = 1,
    balancing: Callable[[list[str]], AbstractContextManager[list[str]]] = nullcontext,
) -> str:
    """Run it; a line that says what happened. Raises AssertionError if a report went astray.

    Requests go to the collectors, or to what balances them.
    """
    chance = random.Random(seed)
    kinds = kinds or (TROUBLES if collectors == 1 else TROUBLES_OF_MANY)
    every = list(make_collectors(store, collectors))
    for each in every:
        each.start()
    collector = every[0]
    campaign = Campaign(
        name=f"torture {secrets.token_hex(4)}",
        protocol=loloha.BiLOLOHA(k=40, eps_inf=2.0, eps_1=1.0),
        domain=Labels(tuple(range(40))),
        schedule=Schedule(int(time.time()) - 60, 86_400),
    )
    _create(collector.url, campaign)
    path = f"/v1/campaigns/{campaign.fingerprint}"
    load = Load([], f"{path}/reports", campaign, balanced=balancing is not nullcontext)
    threads = [
        threading.Thread(target=load.run, args=(seed * 1000 + number,)) for number in range(THREADS)
    ]
    try:
        with balancing([each.url for each in every]) as load.urls:
            for thread in threads:
                thread.start()
            counts: Counter[str] = Counter()
            for number in range(troubles):
                time.sleep(chance.uniform(0.05, 0.6))
                # Each kind once, then as chance has it.
                trouble = kinds[number] if number < len(kinds) else chance.choice(kinds)
                trouble(every[number % collectors], chance)
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
        for each in every:
            each.kill()
            each.offset.unlink()
            if each.network is not None:
                each.network.close()


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
        f"{unknown} counted without an answer, {load.unanswered} requests unanswered: all "
        f"{total.n} there once, none twice"
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
        own = {"options": f"-csearch_path={name}", "application_name": name}
        inside = url.update_query_dict(own)
        yield inside.render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(sql.text(f"DROP SCHEMA {name} CASCADE"))
        engine.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--troubles", type=int, default=50)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--collectors", type=int, default=1, help="on one PostgreSQL")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 30))
    given = parser.parse_args()
    print(f"{given.store}, seed {given.seed}")
    with scratch_store(given.store) as store:
        print(torture(store, given.troubles, given.seed, collectors=given.collectors))


if __name__ == "__main__":
    main()
