"""Heavy work in a process of its own: same results, same errors, and no harm if it dies."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from collecting import START, campaign
from loloha.collector.problem import Problem
from loloha.collector.process import MOST_MEMORY, Parts, Process
from loloha.collector.read_cache import ReadCache
from loloha.collector.store import Store
from loloha.collector.terms import Terms
from loloha.collector.workers import WorkerApart
from loloha.wire.text import UploadTooLarge


def about(cache: ReadCache, fingerprint: str, more: Any = None) -> Any:
    sys.stdout.write("what is printed is no answer")
    return os.getpid(), cache.known(fingerprint).campaign.name, more


def refuse(cache: ReadCache, error: Exception) -> None:
    raise error


def write(cache: ReadCache, n: int, *, breaks: bool = False) -> Parts:
    def parts() -> Iterator[bytes]:
        for i in range(n):
            yield bytes([i]) * (1 << 17)
        if breaks:
            raise ZeroDivisionError

    return Parts(n, parts())


def die(cache: ReadCache) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def linger(cache: ReadCache) -> None:
    time.sleep(300)


def hold(cache: ReadCache, size: int) -> int:
    return len(b"." * size) and os.getpid()


def nice(cache: ReadCache) -> int:
    return os.nice(0)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/loloha.db"


@pytest.fixture(scope="module")
def store(url: str) -> Iterator[Store]:
    opened = Store(url)
    yield opened
    opened.close()


@pytest.fixture
def known(store: Store) -> str:
    return stored_in(store)


def stored_in(store: Store) -> str:
    stored, _ = store.create(campaign(), Terms(), token=None, now=START)
    return stored.campaign.fingerprint


@pytest.fixture(scope="module")
def process(store: Store, url: str) -> Iterator[Process]:
    """One for all: to begin takes half a second."""
    process = Process(url)
    yield process
    process.end()


def test_it_works_on_the_store_and_dies_alone(process: Process, known: str) -> None:
    works_and_dies_alone(process, known)


@pytest.mark.long
@pytest.mark.postgres
def test_it_works_on_a_server_s_store(postgresql_url: str) -> None:
    with closing(Store(postgresql_url)) as store:
        process = Process(postgresql_url)
        works_and_dies_alone(process, stored_in(store))
        process.end()


def works_and_dies_alone(process: Process, known: str) -> None:
    numbers = np.arange(1 << 16)
    pid, name, same = process.call(about, known, more=numbers)
    assert pid != os.getpid()
    assert (name, same.tolist()) == ("hours", numbers.tolist())
    assert process.call(about, known)[0] == pid
    with pytest.raises(Problem) as caught:
        process.call(die)
    assert (caught.value.status_code, caught.value.kind) == (503, "unavailable")
    assert process.call(about, known)[0] != pid
    # The others go first.
    assert process.call(nice) >= min(19, os.nice(0) + 5)


def test_what_takes_too_long_is_given_up(
    process: Process, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.call(about, known)
    monkeypatch.setattr("loloha.collector.process.MOST_SECONDS", 0.1)
    with pytest.raises(Problem, match="process of this work ended"):
        process.call(linger)


def test_nobody_watches_a_process_whose_work_is_done(process: Process, known: str) -> None:
    process.call(about, known)
    watches = [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
    for watch in watches:
        watch.join(30)
    assert not any(watch.is_alive() for watch in watches)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process held")
def test_a_process_with_a_high_peak_is_replaced(process: Process) -> None:
    first = process.call(hold, 1 << 20)
    assert process.call(hold, MOST_MEMORY) == first
    again = process.call(hold, 1 << 20)
    assert again != first
    # What the collector itself holds does not count.
    kept = b"." * MOST_MEMORY
    process.end()
    assert process.call(hold, 1) == process.call(hold, 1)
    assert len(kept) == MOST_MEMORY


def test_parts_come_one_by_one(process: Process, known: str) -> None:
    told, parts = process.call(write, 20)
    assert told == 20
    assert list(parts) == [bytes([i]) * (1 << 17) for i in range(20)]
    with pytest.raises(Problem, match="process of this work ended"):
        process.call(write, 3, breaks=True)
    assert process.call(about, known)[1] == "hours"


def test_errors_are_what_they_were(process: Process, known: str) -> None:
    pid = process.call(about, known)[0]
    given = Problem(409, "too few", kind="few", headers={"Retry-After": "1"}, extra={"n": 2})
    with pytest.raises(Problem, match="too few") as caught:
        process.call(refuse, given)
    assert vars(caught.value) == vars(given) | {"__notes__": caught.value.__notes__}
    assert "in refuse" in caught.value.__notes__[0]
    with pytest.raises(UploadTooLarge, match="many"):
        process.call(refuse, UploadTooLarge("many"))
    with pytest.raises(Problem, match="one of this collector's"):
        process.call(about, "0" * 64)
    with pytest.raises(ZeroDivisionError):
        process.call(refuse, ZeroDivisionError())
    assert process.call(about, known)[0] == pid


def test_what_cannot_be_sent_leaves_no_half_of_it(process: Process, known: str) -> None:
    with pytest.raises((AttributeError, TypeError, ValueError)):
        process.call(about, known, more=[bytes(1 << 17), lambda: 1])
    # A reference to what was sent before would lead into the half.
    twice = "a text of the test"
    assert process.call(about, known, more=[twice, twice])[1:] == ("hours", [twice, twice])


def test_a_worker_has_a_process_and_ends_it(url: str, known: str) -> None:
    worker = WorkerApart("decoding", 8, url)

    async def run() -> set[int]:
        answers = await asyncio.gather(*(worker.run(about, known) for _ in range(6)))
        return {pid for pid, *_ in answers}

    (pid,) = asyncio.run(run())
    worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
