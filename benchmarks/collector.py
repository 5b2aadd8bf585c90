"""The collector over HTTP on this machine: batches, single reports, and estimates of a wide domain.

PostgreSQL is measured where LOLOHA_TEST_POSTGRES names one, in a schema that is dropped afterwards.
"""

import asyncio
import os
import secrets
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import loloha
from benchmarks.measure import Row
from loloha.campaign import Campaign, Range, Schedule
from loloha.sender.collector import Collector
from loloha.sender.sender import Connection, Patience
from loloha.wire.columns import CONTENT_TYPE, encode_many

KEY = "the key of the benchmark"
BATCH, BATCHES, AT_ONCE = 10_000, 100, 4
SINGLES, CONNECTIONS = 8_000, 64
WIDE, FEW = 100_000, 20_000
ROW_BY_ROW = 100_000
RUNS = 10


class Load(NamedTuple):
    """What sending took."""

    seconds: float
    processor: float
    latencies: Any


def rows() -> Iterator[Row]:
    peer = "a row a report in an SQLite table with a unique key, no HTTP"
    slow = _row_by_row()
    for store, url in _stores():
        with url as address, serving(address) as served:
            for form in ("arrow", "ndjson"):
                load = served.batches(form)
                total = BATCH * BATCHES
                yield Row(
                    "collector",
                    f"{store}, batches as {form}",
                    f"{BATCHES} x {BATCH}, {AT_ONCE} connections",
                    total / load.seconds,
                    "reports/s",
                    target=150_000 if store == "SQLite" else None,
                    peer=peer,
                    peer_figure=slow if store == "SQLite" else None,
                    processor=total / load.processor,
                )
            load = served.singles()
            size = f"{SINGLES} requests, {CONNECTIONS} connections"
            yield Row(
                "collector",
                f"{store}, single reports",
                size,
                SINGLES / load.seconds,
                "reports/s",
                target=2_000,
                processor=SINGLES / load.processor,
            )
            for name, share in (("median", 0.5), ("99th percentile", 0.99)):
                seconds = float(np.quantile(load.latencies, share))
                yield Row("collector", f"{store}, {name} of an answer", size, 1e3 * seconds, "ms")
            for name, (seconds, processor) in served.estimates().items():
                yield Row(
                    "collector",
                    f"{store}, {name}",
                    f"k = {WIDE}",
                    1e3 * seconds,
                    "ms",
                    target=200,
                    processor=1e3 * processor,
                )


def _stores() -> Iterator[tuple[str, Any]]:
    yield "SQLite", _sqlite()
    if os.environ.get("LOLOHA_TEST_POSTGRES"):
        yield "PostgreSQL", postgresql()


@contextmanager
def _sqlite() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/loloha.db"


@contextmanager
def postgresql() -> Iterator[str]:
    import sqlalchemy as sql

    url = sql.make_url(os.environ["LOLOHA_TEST_POSTGRES"]).set(drivername="postgresql+psycopg")
    name = f"loloha_{secrets.token_hex(6)}"
    engine = sql.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sql.text(f"CREATE SCHEMA {name}"))
    own = {"options": f"-csearch_path={name}", "application_name": name}
    inside = url.update_query_dict(own)
    try:
        yield inside.render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(sql.text(f"DROP SCHEMA {name} CASCADE"))
        engine.dispose()


class Served:
    """A collector in a process of its own, and what is sent to it."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.process = process
        self.port = port
        self.rng = np.random.default_rng(1)

    def batches(self, form: str) -> Load:
        campaign = self.create(96)
        make = self.arrow if form == "arrow" else self.lines
        bodies = [make(campaign, BATCH) for _ in range(BATCHES)]
        media = CONTENT_TYPE if form == "arrow" else "application/x-ndjson"
        load = self.send(campaign, bodies, media, AT_ONCE)
        assert self.n(campaign) == BATCH * BATCHES
        return load

    def singles(self) -> Load:
        campaign = self.create(96)
        bodies = self.lines(campaign, SINGLES).split(b"\n")
        load = self.send(campaign, bodies, "application/json", CONNECTIONS)
        assert self.n(campaign) == SINGLES
        return load

    def estimates(self) -> dict[str, tuple[float, float]]:
        """Seconds until the answer is here, and of the collector's processor, a request."""
        campaign = self.create(WIDE)
        self.send(campaign, [self.arrow(campaign, FEW)], CONTENT_TYPE, 1)
        path = f"/v1/campaigns/{campaign.fingerprint}/rounds/0/estimates"
        with Connection(self.url, timeout=60) as connection:
            # Labels are made once for a campaign, by whoever asks first.
            connection.get(f"/v1/campaigns/{campaign.fingerprint}/series?top=1")

            def fresh() -> None:
                connection.get(path)

            def renewed() -> None:
                self.send(campaign, [self.arrow(campaign, FEW)], CONTENT_TYPE, 1)

            def unchanged() -> None:
                connection.request("GET", path, headers=same)

            found = {"estimates after new reports": self.mean(fresh, before=renewed)}
            found["estimates again"] = self.mean(fresh)
            same = {"If-None-Match": connection.get(path).headers["etag"]}
            found["estimates unchanged (304)"] = self.mean(unchanged)
        return found

    def mean(
        self, work: Callable[[], None], *, before: Callable[[], None] | None = None
    ) -> tuple[float, float]:
        """Seconds of the clock and of the collector's processor, a run."""
        seconds = processor = 0.0
        for _ in range(RUNS):
            if before is not None:
                before()
            used, start = self.processor(), time.perf_counter()
            work()
            seconds += time.perf_counter() - start
            processor += self.processor() - used
        return seconds / RUNS, processor / RUNS

    def create(self, k: int) -> Campaign:
        campaign = Campaign(
            name=f"benchmark {secrets.token_hex(4)}",
            protocol=loloha.BiLOLOHA(k=k, eps_inf=2.0, eps_1=1.0),
            domain=Range(0, k, k),
            schedule=Schedule(int(time.time()) - 1800, 3600),
        )
        with Collector(self.url, token=KEY) as collector:
            assert collector.create(campaign).new
        return campaign

    def n(self, campaign: Campaign) -> int:
        with Collector(f"{self.url}/v1/campaigns/{campaign.fingerprint}") as collector:
            return int(collector.rounds()[0]["n"])

    def draw(self, campaign: Campaign, n: int) -> tuple[Any, Any, Any]:
        names = np.frombuffer(self.rng.bytes(16 * n), dtype=np.uint8).reshape(n, 16)
        keys = campaign.protocol.encoding.family.draw_many(n, self.rng)
        return names, keys, self.rng.integers(0, 2, n)

    def arrow(self, campaign: Campaign, n: int) -> bytes:
        return encode_many(campaign, *self.draw(campaign, n), rounds=0)

    def lines(self, campaign: Campaign, n: int) -> bytes:
        names, keys, ys = self.draw(campaign, n)
        start = f'{{"version":1,"campaign":"{campaign.fingerprint}","round":0,"reporter":"'
        return "\n".join(
            f'{start}{name.tobytes().hex()}","y":"{y:02x}","key":"{key:02x}"}}'
            for name, key, y in zip(names, keys, ys, strict=True)
        ).encode()

    def send(self, campaign: Campaign, bodies: list[bytes], media: str, connections: int) -> Load:
        before = self.processor()
        start = time.perf_counter()
        latencies = asyncio.run(self.answers(campaign, bodies, media, connections))
        seconds = time.perf_counter() - start
        return Load(seconds, self.processor() - before, np.array(latencies))

    async def answers(
        self, campaign: Campaign, bodies: list[bytes], media: str, connections: int
    ) -> list[float]:
        waiting, latencies = iter(bodies), []
        head = (
            f"POST /v1/campaigns/{campaign.fingerprint}/reports HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: {media}\r\nContent-Length: "
        ).encode()

        async def one() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            for body in waiting:
                start = time.perf_counter()
                writer.write(head + b"%d\r\n\r\n" % len(body) + body)
                answer = await reader.readuntil(b"\r\n\r\n")
                assert answer.startswith(b"HTTP/1.1 200"), answer
                length = answer.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
                await reader.readexactly(int(length))
                latencies.append(time.perf_counter() - start)
            writer.close()

        await asyncio.gather(*(one() for _ in range(connections)))
        return latencies

    def processor(self) -> float:
        """Seconds of processor time that the collector has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving(store: str, *options: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "loloha", "serve", "--port", "0", "--store", store, *options]
    environment = {**os.environ, "LOLOHA_ADMIN_KEY": KEY, "LOLOHA_RATE_LIMIT": ""}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        port = int(said.partition("http://127.0.0.1:")[2].partition("/")[0])
        served = Served(process, port)
        patience = Patience(attempts=100, first=0.1, longest=0.1)
        with Connection(served.url, patience=patience) as connection:
            connection.get("/healthz")
        yield served
    finally:
        process.terminate()
        process.communicate()


def _row_by_row() -> float:
    """Reports a second of the obvious store: a row each, the database tells duplicates."""
    rng = np.random.default_rng(2)
    names = [rng.bytes(16) for _ in range(ROW_BY_ROW)]
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(f"{folder}/peer.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(
            "CREATE TABLE report (round INTEGER, reporter BLOB, key INTEGER, y INTEGER, "
            "PRIMARY KEY (round, reporter)) WITHOUT ROWID"
        )
        start = time.perf_counter()
        for first in range(0, ROW_BY_ROW, BATCH):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT OR IGNORE INTO report VALUES (0, ?, ?, ?)",
                [(name, 5, 1) for name in names[first : first + BATCH]],
            )
            connection.execute("COMMIT")
        seconds = time.perf_counter() - start
        connection.close()
    return ROW_BY_ROW / seconds
