"""Timing, peak memory, and the row of a table that they go into."""

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Row:
    """One measurement beside the straightforward method.

    Attributes
    ----------
    section, work, size : str
        What was done, on how much.
    figure : float
        What it took or reached by the clock, in ``unit``.
    unit : str
        A rate ("reports/s": more is better) or a time ("ms", "ns/report": less is better).
    target : float or None
        What the design asks for, in ``unit``.
    peer : str
        The straightforward method, and on how much of the work it was timed.
    peer_figure : float or None
        What it took or reached, in ``unit``, extrapolated to all of the work.
    peak : float or None
        Most memory on top of the input, in MB.
    processor : float or None
        For work on one core: the figure by processor time, which is what an idle machine would
        show. It is what target and peer are held against, for others may work here too.
    """

    section: str
    work: str
    size: str
    figure: float
    unit: str
    target: float | None = None
    peer: str = ""
    peer_figure: float | None = None
    peak: float | None = None
    processor: float | None = None

    @property
    def decisive(self) -> float:
        """The figure that counts."""
        return self.figure if self.processor is None else self.processor

    @property
    def is_rate(self) -> bool:
        return self.unit.endswith("/s")

    @property
    def ratio(self) -> float | None:
        """How many times faster than the straightforward method."""
        if self.peer_figure is None:
            return None
        if self.is_rate:
            return self.decisive / self.peer_figure
        return self.peer_figure / self.decisive

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return self.decisive >= self.target if self.is_rate else self.decisive <= self.target

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "reached": self.reached}


MILLISECONDS = 1e6
"""What to count as one unit for figures in milliseconds."""


class Time(NamedTuple):
    """Seconds by the clock and of the processor."""

    clock: float
    processor: float

    def each(self, units: float) -> dict[str, float]:
        """Both in nanoseconds a unit, as fields of a `Row`."""
        return {"figure": 1e9 * self.clock / units, "processor": 1e9 * self.processor / units}

    def rate(self, units: float) -> dict[str, float]:
        """Both in units a second, as fields of a `Row`."""
        return {"figure": units / self.clock, "processor": units / self.processor}


def timed(work: Callable[[], object]) -> Time:
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return Time(time.perf_counter() - clock, time.process_time() - processor)


def best(work: Callable[[], object], repeats: int = 5) -> Time:
    """Least time of some runs, after one that is not counted: it may compile and load."""
    work()
    runs = [timed(work) for _ in range(repeats)]
    return Time(min(run.clock for run in runs), min(run.processor for run in runs))


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """`best` by the clock alone, for work on several cores."""
    return best(work, repeats).clock


def once(work: Callable[[], object]) -> float:
    """`timed` by the clock alone."""
    return timed(work).clock


def peak(work: Callable[[], object]) -> float:
    """Most memory that Python and NumPy held during a run, in MB; not timed, tracing is slow."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
