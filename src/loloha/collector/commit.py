"""Group commit: uploads that arrive together share one transaction, then all are answered."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, NamedTuple

from loloha.collector.metric import Metrics
from loloha.collector.store import Store, TakenOverError
from loloha.collector.submission import (
    Receipt,
    SmallUpload,
    Submission,
    count_codes,
    gather,
    receipts,
)
from loloha.errors import StoreError

Upload = Submission | SmallUpload
_log = logging.getLogger(__name__)


class Waiting(NamedTuple):
    """An upload, and the future that is to be told, on which event loop."""

    upload: Upload
    future: Any
    loop: asyncio.AbstractEventLoop


# A commit begins no further large upload once it has so many reports: small ones wait behind it.
MOST_AT_ONCE = 20_000
TIDY_SECONDS = FAILING_SECONDS = 30.0
HANGING_SECONDS = 5.0
FEW_REPORTS, GATHER_SECONDS = 1_000, 0.002


class Committer:
    """One thread that writes; whoever submits waits for the commit.

    Parameters
    ----------
    store : Store
    clock : callable
        Unix seconds: decides which rounds are open.
    metrics : Metrics
    largest_queue : int
        Reports that may wait.
    tidy : callable, optional
        Called in the same thread at the start, every 30 seconds, and at the end.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float],
        metrics: Metrics,
        largest_queue: int,
        tidy: Callable[[], None] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._largest = largest_queue
        self._tidy = tidy
        self._small: deque[Waiting] = deque()
        self._large: deque[Waiting] = deque()
        self._next_is_small = True
        self._reports = 0
        self._arrived = threading.Condition()
        self._stopping = False
        self._failed = -math.inf
        self._taken_over = False
        self._untidy = False
        # While no commit is under way it begins in the future.
        self._began = math.inf
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, then end."""
        with self._arrived:
            self._stopping = True
            self._arrived.notify()
        self._thread.join()

    @property
    def failing(self) -> bool:
        """Whether a commit failed or hangs: the last one, some seconds ago at most."""
        hangs = monotonic() - self._began > HANGING_SECONDS
        return hangs or monotonic() - self._failed < FAILING_SECONDS

    def must_work(self) -> None:
        """Refuse where it is `failing`.

        Raises
        ------
        StoreError
            If so; says whether another collector has taken the store over.
        """
        if not self.failing:
            return
        if self._taken_over:
            raise TakenOverError("store was taken over by another collector; stop this one")
        raise StoreError("store must take reports, the last commit failed; see its disk")

    async def commit(self, upload: Upload) -> Receipt:
        """Wait, without blocking the event loop, until an upload is durable; else as `submit`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Receipt] = loop.create_future()
        self.submit(Waiting(upload, future, loop))
        return await future

    def submit(self, waiting: Waiting) -> None:
        """Queue an upload; its future resolves once it is durable.

        Raises
        ------
        StoreError
            If too many reports wait already.
        """
        size = max(1, waiting.upload.size)
        with self._arrived:
            full = self._reports and self._reports + size > self._largest
            if full or self._stopping:
                raise StoreError(
                    "queue must have room for the upload, too many reports wait; send it later"
                )
            (self._small if size <= FEW_REPORTS else self._large).append(waiting)
            self._reports += size
            self._arrived.notify()

    def _run(self) -> None:
        self._run_tidy()
        tidied = monotonic()
        while True:
            taken = self._take()
            if taken:
                self._commit(taken)
                if sum(one.upload.size for one in taken) < FEW_REPORTS:
                    # Small uploads come in numbers: let some gather before the next commit.
                    sleep(GATHER_SECONDS)
            if monotonic() - tidied >= TIDY_SECONDS:
                self._run_tidy()
                tidied = monotonic()
            if not taken and self._stopping:
                self._run_tidy()
                return

    def _take(self) -> list[Waiting]:
        """What waits, up to a bound; after a while without any, nothing.

        Small uploads and large ones by turns: a device waits for one commit of others at most.
        """
        with self._arrived:
            if not self._reports and not self._stopping:
                self._arrived.wait(TIDY_SECONDS if self._tidy else None)
            first, second = self._small, self._large
            if not self._next_is_small:
                first, second = second, first
            waiting = first or second
            self._next_is_small = waiting is self._large
            taken, reports = [], 0
            while waiting and reports < MOST_AT_ONCE:
                taken.append(waiting.popleft())
                reports += max(1, taken[-1].upload.size)
            self._reports -= reports
            self._metrics.waiting.set(self._reports)
        return taken

    def _commit(self, taken: list[Waiting]) -> None:
        self._began = monotonic()
        try:
            self._write(taken)
        finally:
            self._began = math.inf

    def _write(self, taken: list[Waiting]) -> None:
        try:
            submissions, places = gather([one.upload for one in taken])
            with self._metrics.commit_seconds.time():
                codes = self._store.record(submissions, self._clock())
            self._taken_over = False
            if self._failed > -math.inf:
                _log.warning("reports are counted again")
            self._failed = -math.inf
            self._metrics.count(count_codes(codes))
            _answer(taken, receipts(codes, places))
        except StoreError as error:
            # Once, not for each upload of an outage.
            if not self.failing:
                _log.warning("reports are not counted: %s", error)
            self._taken_over = isinstance(error, TakenOverError)
            self._failed = monotonic()
            self._metrics.failures.inc()
            _answer(taken, [error] * len(taken))
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the thread
            # One upload must not fail the others: find it by writing each on its own.
            if len(taken) == 1:
                _answer(taken, [error])
            else:
                for one in taken:
                    self._write([one])

    def _run_tidy(self) -> None:
        if self._tidy is None:
            return
        try:
            self._tidy()
            if self._untidy:
                _log.warning("rounds are closed, and reports logged, on time again")
            self._untidy = False
        except (StoreError, OSError) as error:
            # Nothing is lost: it waits in the store until the next time.
            if not self._untidy:
                _log.warning(
                    "rounds are not closed, or reports not logged, on time: %s",
                    error
                    if isinstance(error, StoreError)
                    else error.strerror or type(error).__name__,
                )
            self._untidy = True
            self._metrics.failures.inc()
        except Exception:  # noqa: BLE001
            # A fault of ours, or a damaged log: without this thread nothing would be counted again.
            _log.exception("rounds are not closed, or reports not logged, on time")
            self._metrics.failures.inc()


def _answer(taken: list[Waiting], outcomes: Sequence[Receipt | Exception]) -> None:
    """Tell everybody who waits; an event loop is woken once, not once for each of them."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Any, Any]]] = {}
    for one, outcome in zip(taken, outcomes, strict=True):
        by_loop.setdefault(one.loop, []).append((one.future, outcome))
    for loop, settled in by_loop.items():
        # A loop that has ended has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, settled)


def _settle(settled: list[tuple[Any, Any]]) -> None:
    for future, outcome in settled:
        # A client that hung up meanwhile has cancelled its future.
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
