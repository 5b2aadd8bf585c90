"""Results on disk: one file, to which every measurement adds a line as soon as it is made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from loloha import checks

Row = dict[str, Any]

FILE = "results.ndjson"

_RENAMED = {
    "mse_unbiased": "mse",
    "mse_expected": "expected_mse",
    "workload": "data_set",
    "method": "protocol",
}
"""Columns by their names of 0.2."""
# Measurements of small populations take milliseconds: the processes fetch several at a time.
AT_ONCE = 4
# A process whose parent was killed would wait for work for ever.
IDLE_SECONDS = 10

Task = TypeVar("Task")
Result = TypeVar("Result")


class Archive:
    """Stored measurements, by name."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lines: dict[str, tuple[str, Row]] = {}
        self._torn = False
        if path is None or not path.exists():
            return
        text = path.read_bytes()
        self._torn = not text.endswith(b"\n")
        for line in text.split(b"\n"):
            try:
                name, seal, row = json.loads(line)
                self._lines[name] = seal, row
            except (ValueError, TypeError, RecursionError):
                continue

    def __contains__(self, name: str) -> bool:
        """Whether there is a measurement of that name, valid or not."""
        return name in self._lines

    def holds(self, identity: str) -> bool:
        """Whether any measurement has this identity."""
        return any(seal == _seal(row, identity) for seal, row in self._lines.values())

    def find(self, name: str, identity: str) -> Row | None:
        """The measurement of that name, if all that decides it has this identity."""
        # None if it is missing, damaged, or of other data, rules or seeds.
        seal, row = self._lines.get(name, ("", {}))
        if seal != _seal(row, identity):
            return None
        return {_RENAMED.get(column, column): cell for column, cell in row.items()}

    def keep(self, name: str, identity: str, row: Row) -> None:
        """Add a measurement, safe from the death of this process once this returns."""
        if self.path is None:
            return
        line = json.dumps([name, _seal(row, identity), row]) + "\n"
        with self.path.open("a", encoding="utf-8") as file:
            # A half-written line of a killed process must not absorb this one.
            file.write("\n" + line if self._torn else line)
        self._torn = False


def _seal(row: Mapping[str, Any], identity: str) -> str:
    return hashlib.sha256((identity + json.dumps(row)).encode()).hexdigest()


def measure_each(
    measure: Callable[[Task], Result], tasks: Sequence[Task], jobs: int
) -> Iterator[Result]:
    """Results as they come, from ``jobs`` processes with one thread each."""
    # One measures in this process, in order; more need joblib, and a ``measure`` that can be
    # pickled and says in its result which task it is of.
    alone = tasks if jobs == 1 else tasks[:1]
    # Compiled once, here: the processes then read the compiler's cache instead of racing for it.
    yield from map(measure, alone)
    if len(alone) == len(tasks):
        return
    joblib = checks.library("joblib", "run several processes (one, jobs=1, needs it not)", "paper")
    with joblib.parallel_config(
        "loky", n_jobs=jobs, inner_max_num_threads=1, idle_worker_timeout=IDLE_SECONDS
    ):
        yield from joblib.Parallel(
            return_as="generator_unordered", batch_size=AT_ONCE, pre_dispatch="4*n_jobs"
        )(joblib.delayed(measure)(task) for task in tasks[1:])
