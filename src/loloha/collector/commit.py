"""Group commit: uploads that arrive together share one transaction, then all are answered."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, NamedTuple, Protocol

from loloha.collector.metric import Metrics
from loloha.collector.queue import FEW_REPORTS, Job, Line, Taken, UploadSlice
from loloha.collector.store import TakenOverError, UnfitError
from loloha.collector.submission import Submission, UploadOutcome, count_codes, gather
from loloha.collector.timekeeper import ClockError
from loloha.collector.upkeep import SECONDS, Upkeep
from loloha.errors import StoreError

_log = logging.getLogger(__name__)


# Work of a commit, in reports: others wait behind it.
MOST_AT_ONCE = 20_000
HANGING_SECONDS = 5.0
PROBE_SECONDS = 5.0
"""Seconds between probes while the store cannot be written."""
GATHER_SECONDS = 0.002


class Records(Protocol):
    """Where submissions become durable: a store, or a log."""

    def record(self, submissions: Sequence[Submission], now: float) -> list[Any]:
        """Write the submissions; what became of their reports, as `Store.record` says."""


class Pace(NamedTuple):
    """Size and frequency of commits.

    Attributes
    ----------
    most : int
        Work of a commit, in reports.
    seconds : float
        Uploads gather for so long after a commit of few reports.
    reports : int or None
        Instead, for so long from the beginning of one commit to that of the next, unless so many
        reports wait.
    """

    most: int
    seconds: float
    reports: int | None = None


class Committer:
    """The thread that commits; submitters wait for it."""

    def __init__(
        self,
        store: Records,
        *,
        clock: Callable[[], float],
        metrics: Metrics,
        largest_queue: int,
        tidy: Callable[[], Any],
        pace: Pace | None = None,
    ) -> None:
        self._pace_of_commits = pace or Pace(MOST_AT_ONCE, GATHER_SECONDS)
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._tidy = Upkeep(tidy, "rounds are closed", metrics)
        self._small = Line(largest_queue)
        self._large = Line(largest_queue)
        metrics.waiting.set_function(self._waiting)
        self._next_is_small = True
        self._arrived = threading.Condition()
        self._stopping = False
        self._failed: StoreError | None = None
        # In the future while no commit is running.
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
    def is_alive(self) -> bool:
        """Whether the writing thread runs: if not, only a restart helps."""
        return self._thread.is_alive()

    @property
    def failing(self) -> bool:
        """Whether a commit hangs, or the last write, of reports or a probe, failed."""
        return monotonic() - self._began > HANGING_SECONDS or self._failed is not None

    def must_work(self) -> None:
        """Refuse where it is `failing`."""
        failed = self._failed
        if isinstance(failed, TakenOverError):
            raise TakenOverError("store was taken over by another collector; stop this one")
        if failed is not None:
            raise StoreError(str(failed))
        if self.failing:
            raise StoreError("store must take reports in time, a commit hangs; see its locks")

    def submit(self, job: Job) -> None:
        """Queue an upload; its future resolves once it is durable."""
        with self._arrived:
            line = self._small if job.is_small else self._large
            if self._stopping or not line.reports.fit(job.address, job.size):
                raise StoreError(
                    "queue must have room for the upload, too many reports wait; send it later"
                )
            line.append(job)
            self._arrived.notify()

    def _waiting(self) -> float:
        return self._small.reports.taken + self._large.reports.taken

    def _run(self) -> None:
        more, tidied = self._run_tidy(), monotonic()
        while True:
            taken = self._take(wait=not more)
            if taken:
                self._began = began = monotonic()
                self._write(taken)
                self._began = math.inf
                self._gather(began, sum(part.upload.size for part in taken))
            elif self._stopping:
                self._tidy.run()
                return
            if more or monotonic() - tidied >= self._pause:
                more, tidied = self._run_tidy(), monotonic()

    def _gather(self, began: float, reports: int) -> None:
        """Let some small uploads gather before the next commit."""
        _, seconds, enough = self._pace_of_commits
        if enough is None:
            if reports < FEW_REPORTS:
                sleep(seconds)
            return
        with self._arrived:
            self._arrived.wait_for(
                lambda: self._stopping or self._waiting() >= enough,
                max(0.0, began + seconds - monotonic()),
            )

    @property
    def _pause(self) -> float:
        return PROBE_SECONDS if self._failed is not None else SECONDS

    def _run_tidy(self) -> bool:
        """Tidy up; this write also shows whether the store can be written."""
        more = self._tidy.run()
        if isinstance(self._tidy.failed, StoreError):
            self._note_failure(self._tidy.failed)
        elif self._tidy.failed is None:
            self._note_success()
        return more

    def _take(self, *, wait: bool) -> list[UploadSlice]:
        """Waiting uploads up to a bound; empty after a while without any."""
        # Small and large uploads alternate, and so do addresses: a device waits for one other
        # commit at most.
        with self._arrived:
            if wait and not (self._small or self._large or self._stopping):
                self._arrived.wait(self._pause)
            first, second = self._small, self._large
            if not self._next_is_small:
                first, second = second, first
            line = first or second
            self._next_is_small = line is self._large
        taken = Taken(self._pace_of_commits.most)
        if line is self._small:
            self._take_small(taken)
        else:
            self._take_pieces(taken)
        return taken.slices

    def _take_small(self, taken: Taken) -> None:
        line = self._small
        with self._arrived:
            while taken.capacity > 0 and (job := line.first()) is not None:
                if job.future.done():
                    # Its sender has given up waiting, and will send it again.
                    self._end([job])
                elif taken.put(job, job.upload, slice(None)):
                    line.remove(job)
                    line.pass_turn(job)
                else:
                    return

    def _take_pieces(self, taken: Taken) -> None:
        """Pieces of large uploads, each with those of others for the same rounds."""
        line = self._large

        def take(job: Job, name: Any) -> bool:
            """Whether it fits."""
            if not taken.put(job, *job.pieces[name]):
                return False
            del job.pieces[name]
            if not job.pieces:
                with self._arrived:
                    line.remove(job)
            return True

        while taken.capacity > 0:
            with self._arrived:
                job = line.first()
            if job is None:
                return
            if job.future.done():
                self._end([job])
                continue
            job.cut()
            name = next(iter(job.pieces))
            if not take(job, name):
                return
            with self._arrived:
                line.pass_turn(job)
                others = list(line) if name is not None else []
            for other in others:
                other.cut()
                if name in other.pieces and not take(other, name):
                    break

    def _end(self, jobs: Iterable[Job]) -> None:
        with self._arrived:
            for job in jobs:
                if job.waits:
                    job.line.remove(job)
                job.line.reports.take(job.address, -job.size)

    def _write(self, taken: list[UploadSlice]) -> None:
        try:
            submissions, places = gather([piece.upload for piece in taken])
            with self._metrics.commit_seconds.time():
                codes = self._store.record(submissions, self._clock())
            self._note_success()
            for submission, some in zip(submissions, codes, strict=True):
                fingerprint = submission.stored.campaign.fingerprint
                self._metrics.count(fingerprint, count_codes(some))
            self._note(taken, [codes[which][part] for which, part in places])
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the thread
            is_outage = isinstance(error, StoreError) and not isinstance(error, UnfitError)
            if len(taken) > 1 and not is_outage:
                # One bad upload must not fail the others: find it by committing each alone.
                for slice_ in taken:
                    self._write([slice_])
                return
            if isinstance(error, StoreError):
                self._note_failure(error)
            self._answer(dict.fromkeys((piece.job for piece in taken), error))

    def _note(self, taken: list[UploadSlice], codes: list[Any]) -> None:
        """Answer the uploads that are done."""
        whole = {}
        for piece, part in zip(taken, codes, strict=True):
            job = piece.job
            if job.is_small:
                whole[job] = UploadOutcome.of(part.tolist())
                continue
            job.codes[piece.places] = part
            if not job.pieces:
                whole[job] = UploadOutcome.of(job.codes.tolist())
        self._answer(whole)

    def _answer(self, outcomes: Mapping[Job, UploadOutcome | Exception]) -> None:
        """Resolve the futures; each event loop is woken once."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Any, Any]]] = {}
        self._end(outcomes)
        for job, outcome in outcomes.items():
            by_loop.setdefault(job.loop, []).append((job.future, outcome))
        for loop, settled in by_loop.items():
            # A loop that has ended has no waiters.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, settled)

    def _note_success(self) -> None:
        if self._failed is not None:
            _log.warning("reports are counted again")
        self._failed = None

    def _note_failure(self, error: StoreError) -> None:
        self._metrics.failures.inc()
        if isinstance(error, ClockError):
            # It says so itself, and shows in health.
            return
        # Log each cause once, not for each upload of an outage.
        if str(error) != str(self._failed):
            _log.warning("reports are not counted: %s", error)
        self._failed = error


def _settle(settled: list[tuple[Any, Any]]) -> None:
    for future, outcome in settled:
        # A client that disconnected has cancelled its future.
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
