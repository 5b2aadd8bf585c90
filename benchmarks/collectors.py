"""Several collectors: on one PostgreSQL, and without sums on one log; single reports and batches.

Requests are spread over them evenly. LOLOHA_TEST_POSTGRES names the server. Collectors, load
generator and server share the processors of this machine, so that figures by the collectors'
processor time are what counts.
"""

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from pyarrow import parquet

from benchmarks.collector import CONNECTIONS, Served, postgresql, serving
from benchmarks.measure import Row
from loloha.campaign import Campaign
from loloha.wire.columns import CONTENT_TYPE

NUMBERS = (1, 2, 4)
SINGLES, BATCHES, BATCH = 12_000, 96, 10_000
AT_ONCE = 8
APPENDERS = (1, 2)
GATHERED, WAITING = 40_000, 4_000
"""Single reports, and connections, to collectors that let reports gather for a second."""


class Waits:
    """Seconds that sessions of the collectors spent waiting for locks, by looking often."""

    seconds = 0.0


@contextmanager
def lock_waits(store: str) -> Iterator[Waits]:
    import sqlalchemy as sql

    engine = sql.create_engine(store, isolation_level="AUTOCOMMIT")
    waiting = sql.text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND application_name = current_setting('application_name')"
    )
    waits, stopping = Waits(), threading.Event()

    def look() -> None:
        with engine.connect() as connection:
            last = time.perf_counter()
            while not stopping.wait(0.01):
                number = int(connection.execute(waiting).scalar_one())
                now = time.perf_counter()
                waits.seconds += number * (now - last)
                last = now

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield waits
    finally:
        stopping.set()
        thread.join()
        engine.dispose()


def rows() -> Iterator[Row]:
    yield from appended()
    if not os.environ.get("LOLOHA_TEST_POSTGRES"):
        return
    for number in NUMBERS:
        with postgresql() as store, ExitStack() as stack:
            every = [stack.enter_context(serving(store)) for _ in range(number)]
            for work in ("single reports", "batches as arrow"):
                yield from measured(store, every, work)


def appended() -> Iterator[Row]:
    """Collectors without sums: all write to one folder."""
    for number in APPENDERS:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            store, log = f"sqlite:///{folder}/loloha.db", Path(folder, "log")
            counting = stack.enter_context(serving(store))
            options = "--append-only", str(log)
            every = [stack.enter_context(serving(store, *options)) for _ in range(number)]
            for singles in (True, False):
                campaign = counting.create(96)
                bodies, media = uploads(every[0], campaign, GATHERED if singles else 0)
                total = GATHERED if singles else BATCH * BATCHES
                connections = WAITING if singles else AT_ONCE
                before = set(log.rglob("*.parquet"))
                used, start = sum(one.processor() for one in every), time.perf_counter()
                latencies = asyncio.run(spread(every, campaign, bodies, media, connections))
                seconds = time.perf_counter() - start
                used = sum(one.processor() for one in every) - used
                files = set(log.rglob("*.parquet")) - before
                assert sum(parquet.read_metadata(one).num_rows for one in files) == total
                work = "single reports" if singles else "batches as arrow"
                name = f"{number} without sums, {work}"
                size = f"{len(bodies)} requests, {connections} connections"
                rate = total / seconds
                yield Row("collectors", name, size, rate, "reports/s", processor=total / used)
                slowest = 1e3 * float(np.quantile(latencies, 0.99))
                yield Row(
                    "collectors", f"{name}, 99th percentile of an answer", size, slowest, "ms"
                )
                yield Row("collectors", f"{name}, files", size, len(files), "files")
                bytes_each = sum(one.stat().st_size for one in files) / total
                yield Row("collectors", f"{name}, in the log", size, bytes_each, "B a report")


def uploads(one: Served, campaign: Campaign, singles: int) -> tuple[list[bytes], str]:
    """Bodies of so many single reports, or of batches where there are none; their media type."""
    if singles:
        return one.lines(campaign, singles).split(b"\n"), "application/json"
    return [one.arrow(campaign, BATCH) for _ in range(BATCHES)], CONTENT_TYPE


def measured(store: str, every: list[Served], work: str) -> Iterator[Row]:
    campaign = every[0].create(96)
    singles = work == "single reports"
    bodies, media = uploads(every[0], campaign, SINGLES if singles else 0)
    total = len(bodies) if singles else BATCH * len(bodies)
    connections = CONNECTIONS if singles else AT_ONCE
    used, start = sum(one.processor() for one in every), time.perf_counter()
    with lock_waits(store) as waits:
        latencies = asyncio.run(spread(every, campaign, bodies, media, connections))
    seconds = time.perf_counter() - start
    used = sum(one.processor() for one in every) - used
    assert every[-1].n(campaign) == total
    name = f"{len(every)} on one PostgreSQL, {work}"
    size = f"{len(bodies)} requests, {connections} connections"
    rate = total / seconds
    yield Row("collectors", name, size, rate, "reports/s", processor=total / used)
    slowest = float(np.quantile(latencies, 0.99))
    yield Row("collectors", f"{name}, 99th percentile of an answer", size, 1e3 * slowest, "ms")
    waited = 1e3 * waits.seconds / seconds
    yield Row("collectors", f"{name}, lock waits in a second, all together", size, waited, "ms")


async def spread(
    every: list[Served], campaign: Campaign, bodies: list[bytes], media: str, connections: int
) -> list[float]:
    """Seconds of each answer; each collector gets its share of requests and connections."""
    n = len(every)
    shares = await asyncio.gather(
        *(
            one.answers(campaign, bodies[place::n], media, connections // n)
            for place, one in enumerate(every)
        )
    )
    return [seconds for share in shares for seconds in share]
