"""Periodic work of a collector; failures are logged when they begin and end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from loloha.collector.metric import Metrics
from loloha.errors import StoreError

SECONDS = 30.0
_log = logging.getLogger(__name__)


class Upkeep:
    """Periodic work that may fail: it is retried from the store."""

    def __init__(
        self, work: Callable[[], Any], what: str, metrics: Metrics, *, seconds: float = SECONDS
    ) -> None:
        self._work = work
        self._seconds = seconds
        self._what = what
        self._metrics = metrics
        self.failed: Exception | None = None
        """Why the last time failed, if it did."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="upkeep", daemon=True)

    def run(self) -> bool:
        """Do it; whether more is due at once."""
        before, self.failed = self.failed, None
        try:
            more = bool(self._work())
        except Exception as error:  # noqa: BLE001 - whatever it is, the thread goes on
            self.failed = error
            self._metrics.failures.inc()
            if not isinstance(error, StoreError | OSError):
                # A bug, or a damaged log.
                _log.exception("no longer on time: %s", self._what)
            elif before is None:
                _log.warning("no longer on time: %s: %s", self._what, cause_of(error))
            return False
        if before is not None:
            _log.warning("on time again: %s", self._what)
        return more

    @property
    def cause(self) -> str | None:
        """Why the last time failed, if it did; the path of a file stays out."""
        return None if self.failed is None else cause_of(self.failed)

    def start(self) -> None:
        """Begin to do it in a thread of its own, so that no upload waits for it."""
        self._thread.start()

    def stop(self) -> None:
        """Do it a last time, then end."""
        self._stopping.set()
        self._thread.join()

    def _go_on(self) -> None:
        while True:
            last = self._stopping.is_set()
            more = self.run()
            if last:
                return
            if not more:
                self._stopping.wait(self._seconds)


def cause_of(error: Exception) -> str:
    """A failure's message, without paths."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return reason if reason and isinstance(error, StoreError | OSError) else type(error).__name__
