"""A collector while it runs: the store it has taken over, and the threads that write to it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from loloha.collector.alarm_watch import AlarmWatch
from loloha.collector.commit import Committer
from loloha.collector.metric import MOST_CAMPAIGNS, Metrics
from loloha.collector.process import Process
from loloha.collector.published_rows import PublishedRows
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.store.deletion import Deletion
from loloha.collector.store.estimate_rows import EstimateRows
from loloha.collector.store.log_queue import LogQueue
from loloha.collector.store.overview import Overview
from loloha.collector.timekeeper import MOST_JUMP, Timekeeper
from loloha.collector.upkeep import Upkeep
from loloha.errors import StoreError

SECONDS_OF_LIVES = 1.0
"""Seconds between reads of which campaigns another collector has paused or ended."""
_log = logging.getLogger(__name__)
_SECONDS_A_TURN = 1.0
SECONDS_TO_DROP = 3600.0
"""Sums past keep_days are deleted this often, and not sooner after a start."""


class OpenCollector:
    """Opens the store, checks everything, takes it over and begins to write; or gives it back."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float],
        metrics: Metrics,
        steady: Callable[[], float],
    ) -> None:
        self._dropped = 0.0
        self._metrics = metrics
        archive = report_archive(settings)
        if archive is not None:
            archive.must_be_ours()
        self.store = store = Store(
            settings.store,
            keeps=archive.pack if archive else None,
            take_over=False,
            accept_losses=settings.accept_losses,
        )
        try:
            if archive is not None:
                archive.prepare()
            self._overview = Overview(store)
            seen = store.seen()
            self.timekeeper = timekeeper = Timekeeper(
                clock, steady, seen=seen, accepted=settings.accept_clock
            )
            self.committer = Committer(
                store,
                clock=timekeeper.now,
                metrics=metrics,
                largest_queue=settings.largest_queue,
                tidy=lambda: self._tidy(timekeeper.now()),
            )
            self.log = None
            if archive is not None:
                self.log = Upkeep(
                    lambda: store.leads() and LogQueue(store).take(archive.deliver),
                    "reports are logged",
                    metrics,
                )
            store.take_over()
            _warn_of_another(store, clock(), seen)
            if settings.accept_clock:
                seen = min(seen, int(timekeeper.now()))
                store.see(seen, even_earlier=True)
            # Another leading collector may still log them.
            if archive is None and store.leads() and (dropped := LogQueue(store).drop()):
                _log.warning(
                    "commits that waited for a log that was switched off, now deleted: %d", dropped
                )
            if not settings.estimates_view and store.leads():
                EstimateRows(store).clear()
            # Metrics have every campaign from the start.
            self.look_over(clock())
        except BaseException:
            # Nothing was counted here yet: the previous writer may go on.
            with suppress(StoreError):
                store.give_back()
            store.close()
            raise
        deleting = Upkeep(
            lambda: self._delete(timekeeper.now()), "what is to go is deleted", metrics
        )
        self._upkeeps = [deleting, *([] if self.log is None else [self.log])]
        self.alarms = watch = None
        if settings.alarms:
            self.alarms = watch = AlarmWatch(
                settings, store, Process(settings.store), timekeeper.now, metrics
            )
            what = "rounds are tried for alarms"
            self._upkeeps.append(Upkeep(lambda: store.leads() and watch.run(), what, metrics))
        self._published = published = None
        if settings.estimates_view:
            self._published = published = PublishedRows(store, Process(settings.store))
            what = "published estimates are written for the view"
            self._upkeeps.append(Upkeep(lambda: store.leads() and published.run(), what, metrics))
        if store.is_shared:
            what, often = "states of campaigns are read", SECONDS_OF_LIVES
            self._upkeeps.append(Upkeep(store.read_lives, what, metrics, seconds=often))
        self.committer.start()
        for upkeep in self._upkeeps:
            upkeep.start()

    def must_log(self) -> None:
        """Refuse while reports cannot be written to their log."""
        if self.log is not None and self.log.cause is not None:
            raise StoreError(f"log of reports must be writable: {self.log.cause}")

    def close(self) -> None:
        """Write what waits, then close the store."""
        if self.alarms is not None:
            self.alarms.close()
        if self._published is not None:
            self._published.close()
        self.committer.stop()
        for upkeep in self._upkeeps:
            upkeep.stop()
        # If it fails, the next start warns needlessly.
        with suppress(StoreError):
            self.store.leave()
        self.store.close()

    def look_over(self, now: float) -> None:
        """Have metrics of the campaigns that there are."""
        self._metrics.show(self._overview.newest(MOST_CAMPAIGNS, now))

    def _tidy(self, now: float) -> bool:
        """See that the store can be written; the leader closes rounds on time: are more due."""
        self.store.see(now)
        self.store.probe()
        self.look_over(now)
        return self.store.leads() and self.store.close_rounds(now)

    def _delete(self, now: float) -> bool:
        """For a while; the leader sees that all goes: is more to go."""
        more = self.store.leads() and self._delete_some(now, monotonic() + _SECONDS_A_TURN)
        if self.store.is_shared and not more:
            self.store.erase()
        return more

    def _delete_some(self, now: float, until: float) -> bool:
        deletion = Deletion(self.store)
        # A wrong clock may be corrected before anything is deleted.
        self._dropped = min(now, self._dropped or now)
        if deletion.finish(until):
            return True
        if now - self._dropped < SECONDS_TO_DROP:
            return False
        if deletion.old_sums(now, until):
            return True
        self._dropped = now
        return False


def report_archive(settings: Settings) -> Any:
    """The log of reports of a collector, if any."""
    if settings.keep_reports is None:
        return None
    from loloha.collector.report_archive import ReportArchive

    return ReportArchive(settings.keep_reports, shared=not settings.store.startswith("sqlite"))


def _warn_of_another(store: Store, now: float, seen: int) -> None:
    """Warn if the store was used a moment ago, by a collector that may still run, or long ago."""
    ago = int(now) - seen
    if seen and ago > MOST_JUMP:
        _log.warning(
            "the store was used %.1f h ago for the last time, by the clock: rounds that have "
            "ended since are closed for good; if the clock is ahead, stop and set it right",
            ago / 3600,
        )
    if not store.is_shared and (moment := store.used(now)) is not None:
        _log.warning(
            "took the store over from a collector that used it %d s ago: if that one still "
            "runs, it counts nothing any more; stop one of the two",
            moment,
        )
