"""Kills devices at random moments, and proves that each round has one answer, counted once.

    python tests/torture_device.py --kills 50

Between devices and collector stands a gateway that answers in every wrong way, loses requests and
loses answers. The disks of devices fill up in the middle of a write, their clocks jump by hours and
by years, and so does the collector's. Whenever a report arrives, it must be on the device's disk.
At the end all devices are let in peace: the collector must have counted, for each round, every
report that it ever acknowledged, each once, and never two answers of one device.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import loloha
from loloha.campaign import Campaign, Labels, Schedule
from loloha.sender.collector import Collector as Client
from loloha.sender.connection import Connection, Patience, Unreachable
from loloha.sender.sender import Sender
from ports import free_port
from torture import KEY, YEARS, Collector, scratch_store

DEVICES, HOUR, PAST = 3, 3600, 40
VALUES = ("a", "b", "c", "d", "e")
PEACE = Patience(attempts=20, first=0.05, longest=0.2)
HASTE = Patience(attempts=2, first=0.01, longest=0.05)


def live(state: Path, url: str, ahead: float, seed: int, room: int) -> None:
    """A device: it agrees, reports by its clock and delivers, again and again, until killed."""
    if room:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    chance = random.Random(seed)

    def clock() -> float:
        return time.time() + ahead - chance.uniform(0, PAST - 1) * HOUR

    print("alive", flush=True)
    while True:
        try:
            with Sender(state, clock=clock, timeout=1.0, patience=HASTE) as device:
                if not device.consent:
                    device.agree(url)
                for _ in range(20):
                    # A device goes on after a failure, with what it has in memory.
                    with suppress(loloha.errors.LolohaError, OSError):
                        device.report(chance.choice(VALUES))
                    device.deliver()
        except (loloha.errors.LolohaError, OSError):
            time.sleep(0.01)


PAGE = b"<html>Welcome to the hotel. Please pay.</html>"
DEEP = b"[" * 100_000
WRONG: list[tuple[int, str, bytes]] = [
    *((status, "text/html", PAGE) for status in (200, 204, 302, 400, 401, 403, 404, 405, 407)),
    *((status, "text/html", PAGE) for status in (408, 409, 410, 421, 422, 429, 451, 500, 501)),
    *((status, "text/html", PAGE) for status in (502, 503, 504, 507, 511, 520, 522, 525)),
    (200, "application/json", b'{"accepted":1,"duplicates":0,"refused":[],"reporter":"00"}'),
    (200, "application/json", b"{}"),
    (200, "application/json", DEEP),
    (410, "application/problem+json", b'{"type":"about:blank","status":410}'),
]


@dataclass
class Gateway:
    """Stands between devices and collector, sees everything, and passes on what it likes."""

    collector: Collector
    states: list[Path]
    chance: random.Random
    wild: bool = True
    left: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    settled: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    wrongs: int = 0
    errors: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    last: bytes = b"{}"

    def see(self, device: str, body: str) -> None:
        """Whatever arrives is on the disk of the device, and the only answer to its round."""
        queued = _queued(Path(device))
        with self.lock:
            message = json.loads(body)
            answers = self.left[device, message["round"]]
            answers.add(body)
            if len(answers) > 1:
                self.errors.append(f"round {message['round']} has {len(answers)} answers")
            # A request of a killed process may arrive after the next one has settled its report.
            if body not in queued and body not in self.settled:
                self.errors.append("a report left that was not on the disk")

    def answer(self, path: str, body: bytes | None) -> tuple[int, str, bytes] | None:
        """What a device gets: None hangs up."""
        number, _, rest = path[1:].partition("/")
        device = str(self.states[int(number)])
        if body is not None:
            self.see(device, body.decode())
        with self.lock:
            draw = self.chance.random() if self.wild else 1.0
            wrong = self.chance.choice([*WRONG, (200, "application/json", self.last), None])
            self.wrongs += draw < 0.4
        if draw < 0.3:
            return wrong
        try:
            with Connection(self.collector.url, patience=Patience(attempts=1), timeout=10) as there:
                found = (
                    there.get(f"/{rest}")
                    if body is None
                    else there.post(f"/{rest}", body, "application/json")
                )
        except Unreachable:
            return None
        if body is not None:
            self.note(found, body.decode())
        # The answer is lost on its way.
        kind = found.headers.get("content-type", "")
        return None if draw < 0.4 else (found.status, kind, found.body)

    def note(self, found: Any, body: str) -> None:
        """Remember what the collector has acknowledged, whether the device learns of it or not."""
        with self.lock:
            if found.status == 200:
                self.counted.add(body)
                self.last = found.body
                if found.json()["refused"]:
                    self.errors.append(f"refused: {found.json()}")
            elif found.status == 409:
                self.errors.append(f"conflict: {found.detail}")
            if found.status in (200, 410):
                self.settled.add(body)

    @contextmanager
    def open(self) -> Iterator[str]:
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.give(None)

            def do_POST(self) -> None:
                self.give(self.rfile.read(int(self.headers["content-length"])))

            def give(self, body: bytes | None) -> None:
                answer = gateway.answer(self.path, body)
                self.close_connection = True
                if answer is None:
                    return
                status, kind, content = answer
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """A device that was killed takes no answer."""

        server = Server(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def _queued(state: Path) -> list[str]:
    try:
        plain = json.loads(state.read_bytes())
    except FileNotFoundError:
        return []
    return [message for one in plain["enrolments"] for _, message in one["queue"]]


def _kill(command: list[str], chance: random.Random) -> None:
    """Start a device, and kill it at a moment that nobody knows."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.8))
        assert process.poll() is None, "a device ended by itself"
        process.kill()


def torture(kills: int, seed: int) -> str:
    """Run it; a line that says what happened. AssertionError if a report went astray."""
    chance = random.Random(seed)
    with scratch_store("sqlite") as store, tempfile.TemporaryDirectory() as folder:
        collector = Collector(store, free_port())
        collector.start()
        try:
            return _torture(collector, Path(folder), kills, chance)
        finally:
            collector.kill()
            collector.offset.unlink()


def _torture(collector: Collector, folder: Path, kills: int, chance: random.Random) -> str:
    now = int(time.time())
    campaign = Campaign(
        name=f"devices {secrets.token_hex(4)}",
        protocol=loloha.BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0),
        domain=Labels(VALUES),
        schedule=Schedule(now - PAST * HOUR, HOUR),
    )
    with Client(collector.url, token=KEY) as client:
        client.create(campaign, {"minimum_cohort": 1, "late_seconds": 2 * PAST * HOUR})
    states = [folder / f"state{number}" for number in range(DEVICES)]
    gateway = Gateway(collector, states, random.Random(chance.random()))
    kinds: dict[str, int] = defaultdict(int)
    with gateway.open() as url:
        addresses = [
            f"{url}/{number}/v1/campaigns/{campaign.fingerprint}" for number in range(DEVICES)
        ]
        for number in range(kills):
            which = number % DEVICES
            ahead = chance.choice((0.0, 0.0, 0.0, YEARS, -YEARS, 3 * HOUR, -3 * HOUR))
            state = states[which]
            size = state.stat().st_size if state.exists() else 0
            full = size > 0 and chance.random() < 0.4
            room = size + chance.randrange(-100, 400) if full else 0
            kinds["full disks"] += full
            kinds["clocks of devices"] += ahead != 0
            if chance.random() < 0.2:
                kinds["clocks of the collector"] += 1
                collector.offset.write_text(str(chance.choice((YEARS, -YEARS))))
            command = [sys.executable, __file__, "--live", str(state), addresses[which]]
            _kill([*command, str(ahead), str(chance.randrange(1 << 30)), str(room)], chance)
            collector.offset.write_text("0")
            if chance.random() < 0.1:
                kinds["collectors"] += 1
                collector.kill()
                collector.start()
        gateway.wild = False
        waiting = [_in_peace(states[number], addresses[number]) for number in range(DEVICES)]
    return _prove(gateway, campaign, waiting, dict(kinds, devices=kills))


def _in_peace(state: Path, address: str) -> set[str]:
    """Deliver all that can be; what still waits."""
    with Sender(state, patience=PEACE, timeout=30.0) as device:
        if not device.consent:
            device.agree(address)
        device.deliver()
    return set(_queued(state))


def _prove(
    gateway: Gateway, campaign: Campaign, waiting: list[set[str]], kinds: dict[str, int]
) -> str:
    assert not gateway.errors, gateway.errors[:5]
    left = {body for bodies in gateway.left.values() for body in bodies}
    # Rounds that have not begun by the right clock wait; nothing else does.
    still = set().union(*waiting)
    now = campaign.schedule.round_at(time.time())
    assert all(json.loads(body)["round"] > now for body in still)
    assert left <= gateway.settled | still
    by_round: dict[int, int] = defaultdict(int)
    for body in gateway.counted:
        by_round[json.loads(body)["round"]] += 1
    with Client(
        f"{gateway.collector.url}/v1/campaigns/{campaign.fingerprint}", timeout=60
    ) as client:
        shown = {one["round"]: one for one in client.rounds()}
    counted = {number: one["n"] for number, one in shown.items() if one["n"]}
    assert counted == dict(by_round), (counted, dict(by_round))
    assert not any(one["conflicts"] for one in shown.values())
    duplicates = sum(one["duplicates"] for one in shown.values())
    return (
        f"{kinds}, {gateway.wrongs} wrong or lost answers, {duplicates} reports sent again: "
        f"{len(gateway.counted)} counted once, none twice, one answer a round"
    )


def main() -> None:
    if sys.argv[1:2] == ["--live"]:
        state, url, ahead, seed, room = sys.argv[2:]
        live(Path(state), url, float(ahead), int(seed), int(room))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 30))
    given = parser.parse_args()
    print(f"devices, seed {given.seed}")
    print(torture(given.kills, given.seed))


if __name__ == "__main__":
    main()
