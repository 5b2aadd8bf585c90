"""The collector's clock: a jump must not close rounds."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock

from loloha.errors import StoreError

MOST_JUMP = 3600.0
"""Seconds by which the clock may be set while the collector runs."""

MOST_GAP = 7 * 86_400.0
"""Seconds between two runs after which the clock must be confirmed."""

_log = logging.getLogger(__name__)


class ClockError(StoreError):
    """The clock is not trusted: nothing can be counted."""


def steady_seconds() -> float:
    """A monotonic clock that includes sleep."""
    which = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(which)


class Timekeeper:
    """Compares the clock with a steady one, and with the last time that the store has seen.

    While they disagree nothing is counted, so that nothing is closed: devices are asked to come
    back, and keep what they have. It goes on as soon as the clock is right again.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        steady: Callable[[], float],
        *,
        seen: float = 0.0,
        accepted: bool = False,
    ) -> None:
        self._clock = clock
        self._steady = steady
        self._seen = seen
        self._accepted = accepted or not seen
        self._believed: tuple[float, float] | None = None
        self._wrong = False
        self._lock = Lock()

    def now(self) -> float:
        """Unix seconds."""
        with self._lock:
            now, steady = self._clock(), self._steady()
            error = self._error(now, steady)
            if error is None:
                self._believed = now, steady
            if (error is not None) != self._wrong:
                self._wrong = not self._wrong
                _log.warning("%s", error or "the clock is right again")
        if error is not None:
            raise ClockError(error)
        return now

    def _error(self, now: float, steady: float) -> str | None:
        if self._believed is None:
            ahead = now - self._seen
            if self._accepted or -MOST_JUMP <= ahead <= MOST_GAP:
                return None
            off = f"{abs(ahead) / 86_400:.1f} days {'ahead of' if ahead > 0 else 'behind'}"
            return (
                f"clock must be at most {MOST_GAP / 86_400:g} days ahead of the last time that the "
                f"store has seen, and no more than {MOST_JUMP / 3600:g} h behind, it is {off} it; "
                "set it right, or start once with accept_clock=True"
            )
        before, then = self._believed
        jump = now - before - (steady - then)
        if abs(jump) <= MOST_JUMP:
            return None
        return (
            f"clock must not jump while the collector runs, it did by {jump:+.0f} s; set it right, "
            "or start the collector again if it is right now"
        )
