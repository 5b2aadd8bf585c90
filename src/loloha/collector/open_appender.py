"""A collector without sums while it runs: it reads campaigns of a store, and appends to a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from loloha.address import Location
from loloha.collector.commit import Committer, Pace
from loloha.collector.commit_cost import by_round
from loloha.collector.life import Life
from loloha.collector.metric import MOST_CAMPAIGNS, Metrics
from loloha.collector.report_archive import ReportArchive
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.store.overview import Overview
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import Submission
from loloha.collector.timekeeper import Timekeeper
from loloha.collector.upkeep import cause_of
from loloha.errors import StoreError

WRITERS = 8
"""Segments of one commit that are written at a time, each of another round or campaign."""


class Appender:
    """Writes submissions to a log, in place of a store; the tally of the log guards it.

    It knows nothing of other writers, nor of what it wrote before: a report that is sent again is
    accepted again, and counts once.
    """

    def __init__(self, folder: Location, life: Callable[[StoredCampaign], Life]) -> None:
        self._life = life
        self._log = ReportArchive(folder, setting="append_only", shared=True)
        self._pool = ThreadPoolExecutor(WRITERS, "appender")

    def prepare(self) -> None:
        """Check that the log can be written."""
        self._log.prepare()

    def probe(self) -> None:
        """Check the same while it is in use."""
        try:
            self._log.probe()
        except OSError as error:
            raise _refused(error) from None

    def record(self, submissions: Sequence[Submission], now: float) -> list[Any]:
        """Append the reports of open rounds, a segment a round; as `Store.record`."""
        # Each segment appears whole or not at all, and all are durable when this returns. Where it
        # fails some may be there: sending the same again is safe.
        codes, segments = [], []
        for submission in submissions:
            stored = submission.stored
            fates = submission.fates(*self._life(stored).open_rounds(stored, now))
            for round, rows in by_round(submission.batch.rounds, np.flatnonzero(fates == 0)):
                few = submission.take(rows).batch
                segments.append((stored.campaign, round, few.reporters, few.keys, few.ys))
            codes.append(submission.codes(fates))
        try:
            list(self._pool.map(lambda segment: self._log.append(*segment), segments))
        except OSError as error:
            raise _refused(error) from None
        return codes


def _refused(error: OSError) -> StoreError:
    """Senders of reports can read it, so it shows no address."""
    return StoreError(f"log of reports must take segments, it does not: {cause_of(error)}")


class OpenAppender:
    """In place of `OpenCollector`; it writes nothing to the store, so others may run beside it."""

    alarms = None

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float],
        metrics: Metrics,
        steady: Callable[[], float],
    ) -> None:
        self._appender = Appender(settings.append_only, lambda stored: self.store.life(stored))
        self._appender.prepare()
        self.store = Store(settings.store, take_over=False, accept_losses=settings.accept_losses)
        try:
            self.timekeeper = Timekeeper(
                clock, steady, seen=self.store.seen(), accepted=settings.accept_clock
            )
            self.store.read_lives()
        except BaseException:
            self.store.close()
            raise
        self._metrics, self._overview = metrics, Overview(self.store)
        enough = settings.segment_reports
        self.committer = Committer(
            self._appender,
            clock=self.timekeeper.now,
            metrics=metrics,
            largest_queue=settings.largest_queue,
            tidy=self._look,
            pace=Pace(enough, settings.segment_seconds, enough),
        )
        self.committer.start()

    def must_log(self) -> None:
        """The committer reports failures of the log."""

    def close(self) -> None:
        """Write what waits, then close the store."""
        self.committer.stop()
        self.store.close()

    def look_over(self, now: float) -> None:
        """Have metrics of the campaigns that there are; when their reports came, the log knows."""
        self._metrics.show(self._overview.newest(MOST_CAMPAIGNS, now), counts=False)

    def _look(self) -> None:
        """See that the log can be written, and what was paused or ended elsewhere."""
        self._appender.probe()
        self.store.read_lives()
        self.look_over(self.timekeeper.now())
