"""Attacks a collector while honest devices report, and proves that they hardly notice.

    python tests/hostile.py --seconds 600

Attackers come from addresses of their own, with the default rate limit, and run at the lowest
priority: what they compute would be computed elsewhere. At the end memory, health
and the latency of honest uploads are held against their bounds, and the counts against what was
acknowledged.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import multiprocessing
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import loloha
from loloha.campaign import Campaign, Range, Schedule
from loloha.sender.collector import Collector as Client
from loloha.sender.connection import Connection, Patience, Unreachable
from loloha.wire.columns import CONTENT_TYPE, encode_many
from ports import free_port
from torture import KEY, Batch, Collector, make_batches, scratch_store

MEMORY, HEALTH, HONEST = 1 << 30, 1.0, 1.0
HOUR = 3600
WIDE, WIDE_ROUNDS = 1 << 20, 12
IDLE = 150
LINES, JSON = "application/x-ndjson", "application/json"


@dataclass
class Battle:
    """Who attacks what, and what was measured."""

    collector: Collector
    campaign: Campaign
    wide: Campaign
    ending: threading.Event = field(default_factory=threading.Event)
    latencies: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    attacks: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    memory: int = 0

    # -- honest

    def report(self, seed: int) -> None:
        """One report or a hundred at a time, as devices and relays send them."""
        chance = random.Random(seed)
        path = f"/v1/campaigns/{self.campaign.fingerprint}/reports"
        singles = make_batches(self.campaign, 1, 2 * seed)
        many = make_batches(self.campaign, 100, 2 * seed + 1)
        with Connection(
            self.collector.url, patience=Patience(attempts=1), timeout=20
        ) as connection:
            while not self.ending.is_set():
                batch = next(many if chance.random() < 0.2 else singles)
                began = time.perf_counter()
                try:
                    answer = connection.post(path, batch.body, LINES)
                except Unreachable as error:
                    self.errors.append(f"honest: {error}")
                    continue
                self.latencies.append(time.perf_counter() - began)
                if answer.status == 200:
                    batch.acknowledged = True
                    self.batches.append(batch)
                else:
                    self.errors.append(f"honest: {answer.status} {answer.detail}")
                time.sleep(0.05)

    def watch(self) -> None:
        """Health and memory, again and again."""
        process = self.collector.process
        assert process is not None
        while not self.ending.is_set():
            began = time.perf_counter()
            with Connection(self.collector.url, patience=Patience(attempts=1)) as connection:
                try:
                    if connection.get("/healthz").status != 200:
                        self.errors.append("health: not 200")
                except Unreachable as error:
                    self.errors.append(f"health: {error}")
            self.health.append(time.perf_counter() - began)
            self.memory = max(self.memory, _memory(process.pid))
            time.sleep(0.25)

    # -- hostile

    def attack(self, name: str, once: Callable[[str], None], address: str) -> None:
        """Do it over and over."""
        while not self.ending.is_set():
            with suppress(OSError):
                once(address)
            self.attacks[name] = self.attacks.get(name, 0) + 1

    def connect(self, address: str) -> socket.socket:
        return socket.create_connection(
            ("127.0.0.1", self.collector.port), timeout=10, source_address=(address, 0)
        )

    def ask(self, address: str, head: str, body: bytes = b"") -> None:
        """Send a request, and read some of the answer."""
        with self.connect(address) as connection:
            sized = f"{head}\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(sized.encode() + body)
            while connection.recv(1 << 16) and random.random() < 0.9:
                pass

    def upload(self, media: str, body: bytes, *more: str) -> Callable[[str], None]:
        path = f"POST /v1/campaigns/{self.campaign.fingerprint}/reports HTTP/1.1"
        head = "\r\n".join((path, f"Content-Type: {media}", *more))
        return lambda address: self.ask(address, head, body)

    def read(self, *paths: str) -> Callable[[str], None]:
        turn = itertools.cycle(paths)
        return lambda address: self.ask(address, f"GET {next(turn)} HTTP/1.1")

    def drip(self, address: str) -> None:
        """A large body, byte by byte."""
        path = f"/v1/campaigns/{self.campaign.fingerprint}/reports"
        with self.connect(address) as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {LINES}\r\n"
            connection.sendall(f"{head}Content-Length: 9000000\r\n\r\n".encode())
            while not self.ending.wait(0.5):
                connection.sendall(b" ")

    def headers(self, address: str) -> None:
        """Headers without end."""
        with self.connect(address) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n")
            while not self.ending.is_set():
                connection.sendall(b"x: " + b"y" * 60_000 + b"\r\n")

    def idle(self, address: str) -> None:
        """Connections that say nothing, or not enough."""
        opened = [self.connect(address) for _ in range(IDLE)]
        for number, one in enumerate(opened):
            with suppress(OSError):
                one.sendall(b"GET /healthz HTTP/1.1\r\n"[: number % 20])
        self.ending.wait(5)
        for one in opened:
            one.close()

    def collide(self, address: str) -> None:
        """Pseudonyms that differ in four bytes alone."""
        base = secrets.token_hex(8)
        names = [f"{base}{i:08x}{'0' * 8}" for i in random.sample(range(1 << 32), 20_000)]
        start = f'{{"version":1,"campaign":"{self.wide.fingerprint}","round":0,"reporter":"'
        lines = "\n".join(f'{start}{name}","y":"00","key":"000000"}}' for name in names)
        path = f"POST /v1/campaigns/{self.wide.fingerprint}/reports HTTP/1.1"
        self.ask(address, f"{path}\r\nContent-Type: {LINES}", lines.encode())


def attackers(battle: Battle) -> dict[str, Callable[[str], None]]:
    """Every kind of attack."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    nulls = pa.record_batch({"y": pa.nulls(10_000_000)})
    with pa.ipc.new_stream(sink, nulls.schema) as stream:
        stream.write_batch(nulls)
    packed = "Content-Encoding: gzip"
    zeros = gzip.compress(b"[" + b",".join([b"0"] * 20_000_000) + b"]", 1)
    spaces = gzip.compress(b" " * (60 << 20), 1)
    wide = f"/v1/campaigns/{battle.wide.fingerprint}"
    labels = f"/dashboard/labels/{battle.wide.fingerprint}?q="
    return {
        "nulls": battle.upload(CONTENT_TYPE, sink.getvalue().to_pybytes()),
        "gzip": battle.upload(JSON, zeros, packed),
        "spaces": battle.upload(JSON, spaces, packed),
        "malformed": battle.upload(LINES, b"0\n" * 90_000),
        "objects": battle.upload(JSON, b'{"a":[' + b"[]," * 3_000_000 + b"[]]}"),
        "noise": battle.upload(JSON, secrets.token_bytes(4 << 20)),
        "series": battle.read(f"{wide}/series", f"{wide}/series?top=9", f"{wide}/series?value=5"),
        "estimates": battle.read(*(f"{wide}/rounds/{t}/estimates" for t in range(WIDE_ROUNDS))),
        "labels": battle.read(labels + "1", labels + "77"),
        "lists": battle.read("/v1/campaigns", "/metrics", "/openapi.json", "/"),
        "drip": battle.drip,
        "headers": battle.headers,
        "idle": battle.idle,
        "collide": battle.collide,
    }


def _memory(pid: int) -> int:
    """Bytes that a process and those that it started have held at most, one by one."""
    held = 0
    # Threads and processes end while they are looked at.
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task").glob("*/children")
        pids = [pid]
        for path in children:
            with suppress(OSError):
                pids += map(int, path.read_text().split())
        for one in pids:
            with suppress(OSError, IndexError):
                status = Path(f"/proc/{one}/status").read_text()
                held += int(status.partition("VmHWM:")[2].split()[0]) << 10
    return held


def wide_campaign(now: int) -> Campaign:
    """Many values, and some rounds that take reports."""
    return Campaign(
        name=f"wide {secrets.token_hex(4)}",
        protocol=loloha.BiLOLOHA(k=WIDE, eps_inf=2.0, eps_1=1.0),
        domain=Range(0, WIDE, WIDE),
        schedule=Schedule(now - WIDE_ROUNDS * HOUR, HOUR),
    )


def _fill(client: Client, campaign: Campaign, rng: np.random.Generator) -> None:
    for round in range(WIDE_ROUNDS):
        names = np.frombuffer(rng.bytes(16 * 5000), dtype=np.uint8).reshape(-1, 16)
        keys = campaign.protocol.encoding.family.draw_many(5000, rng)
        client.submit(
            encode_many(campaign, names, keys, rng.integers(0, 2, 5000), rounds=round),
            CONTENT_TYPE,
        )


def fight(store: str, seconds: float) -> str:
    """Run it; a line that says what was measured. AssertionError if a bound was broken."""
    collector = Collector(store, free_port(), limited=True)
    collector.start()
    now = int(time.time())
    campaign = Campaign(
        name=f"honest {secrets.token_hex(4)}",
        protocol=loloha.BiLOLOHA(k=40, eps_inf=2.0, eps_1=1.0),
        domain=Range(0, 40, 40),
        schedule=Schedule(now - 60, 86_400),
    )
    wide = wide_campaign(now)
    battle = Battle(collector, campaign, wide)
    try:
        with Client(collector.url, token=KEY) as client:
            client.create(campaign, {"minimum_cohort": 1})
            where = client.create(wide, {"minimum_cohort": 1, "late_seconds": 20 * HOUR}).url
        with Client(where) as client:
            _fill(client, wide, np.random.default_rng(1))
        # It came from the address of the honest ones, and spent what they may ask for in a second.
        time.sleep(2)
        threads = [
            *_threads(battle.report, ((seed,) for seed in range(4))),
            *_threads(battle.watch, [()]),
        ]
        # In a process of their own: what is measured here is not who waits for whom among clients.
        context = multiprocessing.get_context("fork")
        attacks = context.Queue()
        hostile = context.Process(target=_attack_all, args=(battle, seconds, attacks))
        hostile.start()
        for thread in threads:
            thread.start()
        battle.attacks = attacks.get()
        battle.ending.set()
        for thread in threads:
            thread.join()
        hostile.join()
        return _judge(battle)
    finally:
        battle.ending.set()
        collector.kill()


def _attack_all(battle: Battle, seconds: float, attacks: Any) -> None:
    # They would have machines of their own: here they leave the processor to whom they attack.
    os.nice(19)
    threads = list(
        _threads(
            battle.attack,
            (
                (name, once, f"127.0.1.{number + 1}")
                for number, (name, once) in enumerate(attackers(battle).items())
            ),
        )
    )
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    battle.ending.set()
    attacks.put(battle.attacks)


def _threads(work: Callable[..., None], arguments: Any) -> Iterator[threading.Thread]:
    for one in arguments:
        yield threading.Thread(target=work, args=one, daemon=True)


def _judge(battle: Battle) -> str:
    where = f"{battle.collector.url}/v1/campaigns/{battle.campaign.fingerprint}"
    total = battle.campaign.protocol.tally()
    for batch in battle.batches:
        total = total + batch.tally
    with Client(where, timeout=60) as client:
        shown = client.estimates(0)
    p99 = float(np.quantile(battle.latencies, 0.99))
    said = (
        f"{len(battle.latencies)} honest uploads, p99 {p99:.3f} s; health at most "
        f"{max(battle.health):.3f} s; memory {battle.memory / 2**20:.0f} MB; {total.n} reports "
        f"counted exactly; attacks {battle.attacks}"
    )
    print(said, flush=True)
    assert not battle.errors, (len(battle.errors), battle.errors[:5])
    assert shown["n"] == total.n
    assert shown["estimate"] == total.estimate().frequencies.tolist()
    assert battle.memory < MEMORY
    assert max(battle.health) < HEALTH
    assert p99 < HONEST
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    given = parser.parse_args()
    with scratch_store(given.store) as store:
        fight(store, given.seconds)


if __name__ == "__main__":
    main()
