"""A collector without sums while it runs: it reads campaigns of a store, and appends to a log."""

from __future__ import annotations

from collections.abc import Callable

from loloha.collector.appender import Appender
from loloha.collector.commit import Committer, Pace
from loloha.collector.metric import MOST_CAMPAIGNS, Metrics
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.store.overview import Overview
from loloha.collector.timekeeper import Timekeeper


class OpenAppender:
    """In place of `OpenCollector`; it writes nothing to the store, so others may run beside it.

    Raises
    ------
    StoreError
        If the store cannot be read, or the log cannot be written.
    """

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
        """The committer says whether the log takes reports."""

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
