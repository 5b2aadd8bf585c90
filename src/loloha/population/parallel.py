"""Many independent measurements on all cores, each as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from loloha import checks

# Measurements of small populations take milliseconds: the processes fetch several at a time.
AT_ONCE = 4
# A process whose parent was killed waits for work; it should not wait for long.
IDLE_SECONDS = 10

Task = TypeVar("Task")
Result = TypeVar("Result")


def measure_each(
    measure: Callable[[Task], Result], tasks: Sequence[Task], jobs: int
) -> Iterator[Result]:
    """Results as they come, from ``jobs`` processes with one thread each.

    One measures in this process, in order; more need joblib, and a ``measure`` that can be pickled
    and says in its result which task it is of.
    """
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
