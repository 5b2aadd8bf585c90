"""Group commit: uploads that arrive together share one transaction, then all are answered."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic

from loloha.collector.metric import Metrics
from loloha.collector.store import Store
from loloha.collector.submission import (
    Few,
    Receipt,
    Submission,
    count_codes,
    gather,
    receipts,
)
from loloha.errors import StoreError

Upload = Submission | Few

MOST_AT_ONCE = 100_000
TIDY_SECONDS = 30.0


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
        self._waiting: deque[tuple[Upload, Future[Receipt]]] = deque()
        self._reports = 0
        self._arrived = threading.Condition()
        self._stopping = False
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

    def submit(self, upload: Upload) -> Future[Receipt]:
        """Queue an upload; the future resolves once it is durable.

        Raises
        ------
        StoreError
            If too many reports wait already.
        """
        future: Future[Receipt] = Future()
        size = max(1, upload.size)
        with self._arrived:
            full = self._waiting and self._reports + size > self._largest
            if full or self._stopping:
                raise StoreError(
                    "queue must have room for the upload, too many reports wait; send it later"
                )
            self._waiting.append((upload, future))
            self._reports += size
            self._metrics.waiting.set(self._reports)
            self._arrived.notify()
        return future

    def _run(self) -> None:
        self._run_tidy()
        tidied = monotonic()
        while True:
            taken = self._take()
            if taken:
                self._commit(taken)
            if monotonic() - tidied >= TIDY_SECONDS:
                self._run_tidy()
                tidied = monotonic()
            if not taken and self._stopping:
                self._run_tidy()
                return

    def _take(self) -> list[tuple[Upload, Future[Receipt]]]:
        """What waits, up to a bound; after a while without any, nothing."""
        with self._arrived:
            if not self._waiting and not self._stopping:
                self._arrived.wait(TIDY_SECONDS if self._tidy else None)
            taken, reports = [], 0
            while self._waiting and reports < MOST_AT_ONCE:
                taken.append(self._waiting.popleft())
                reports += max(1, taken[-1][0].size)
            self._reports -= reports
            self._metrics.waiting.set(self._reports)
        return taken

    def _commit(self, taken: list[tuple[Upload, Future[Receipt]]]) -> None:
        try:
            submissions, places = gather([upload for upload, _ in taken])
            with self._metrics.commit_seconds.time():
                codes = self._store.record(submissions, self._clock())
            self._metrics.count(count_codes(codes))
            found = receipts(codes, places)
        except StoreError as error:
            self._metrics.failures.inc()
            for _, future in taken:
                future.set_exception(error)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the thread
            # One upload must not fail the others: find it by writing each on its own.
            if len(taken) == 1:
                taken[0][1].set_exception(error)
                return
            for one in taken:
                self._commit([one])
        else:
            for (_, future), receipt in zip(taken, found, strict=True):
                future.set_result(receipt)

    def _run_tidy(self) -> None:
        if self._tidy is None:
            return
        try:
            self._tidy()
        except (StoreError, OSError):
            # Nothing is lost: it waits in the store until the next time.
            self._metrics.failures.inc()
