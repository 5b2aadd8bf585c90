"""A separate process for heavy work, so that answering is not delayed.

The system does what no thread can: it lets small requests go first, and takes all memory back.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import IO, TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

from loloha.collector.problem import unavailable

if TYPE_CHECKING:
    from loloha.collector.read_cache import ReadCache

Result = TypeVar("Result")
Given = ParamSpec("Given")

MOST_SECONDS = 120.0
"""Time-out of work, above any legitimate request."""

_PROTOCOL = 5
_KINDNESS = 5
# For glibc, and Arrow on it: large arrays return to the system when freed, and threads share an
# arena.
_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "524288",
    "MALLOC_TRIM_THRESHOLD_": "1048576",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
MOST_MEMORY = 192 << 20
"""Peak bytes after which a process is replaced, so that leaks do not add up."""
# Do not import from the working directory.
_MAIN = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from loloha.collector.process import serve; serve()"
)


class Parts(NamedTuple):
    """The result of work, and the bytes of an answer in pieces."""

    head: Any
    parts: Iterable[bytes]


class _Running(NamedTuple):
    process: subprocess.Popen[bytes]
    asked: IO[bytes]
    answers: IO[bytes]


class Process:
    """Does one piece of work at a time, for one store; starts on first use."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._running: _Running | None = None

    def call(
        self,
        work: Callable[Concatenate[ReadCache, Given], Result],
        *arguments: Given.args,
        **named: Given.kwargs,
    ) -> Result:
        """Call a function of a module there, with a cache before its arguments."""
        try:
            has_worked, outcome, memory = self._asked(self._started(), (work, arguments, named))
        except (OSError, EOFError, pickle.UnpicklingError):
            self.end()
            raise unavailable("the process of this work ended; try again") from None
        except BaseException:
            # A message may be half sent.
            self.end()
            raise
        if memory > MOST_MEMORY:
            self.end()
        if not has_worked:
            raise outcome
        result: Result = outcome
        return result

    def _asked(self, running: _Running, what: Any) -> tuple[bool, Any, int]:
        watch = Timer(MOST_SECONDS, running.process.kill)
        watch.start()
        try:
            self._send(running, what)
            has_worked, outcome = pickle.load(running.answers)
            if isinstance(outcome, Parts):
                parts = iter(lambda: pickle.load(running.answers), None)
                outcome = Parts(outcome.head, list(parts))
            memory = pickle.load(running.answers)
        finally:
            watch.cancel()
        return has_worked, outcome, memory

    def end(self) -> None:
        """Kill it; the next call begins another one."""
        running, self._running = self._running, None
        if running is not None:
            running.process.kill()
            running.process.wait()
            for pipe in (running.asked, running.answers):
                with suppress(OSError):
                    pipe.close()

    def _started(self) -> _Running:
        if self._running is None:
            command = [sys.executable, "-I", "-c", _MAIN]
            pipe = subprocess.PIPE
            environment = {**os.environ, **_MEMORY}
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)
            asked, answers = cast("Any", process.stdin), cast("Any", process.stdout)
            self._running = _Running(process, asked, answers)
            self._send(self._running, sys.path)
            self._send(self._running, self._url)
        return self._running

    @staticmethod
    def _send(running: _Running, message: Any) -> None:
        pickle.dump(message, running.asked, _PROTOCOL)
        running.asked.flush()


def serve() -> None:
    """The worker's loop: the other end of `Process`."""
    from loloha.collector.read_cache import ReadCache
    from loloha.collector.store import Store

    # The parent decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_KINDNESS)
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Prints must not mix with answers.
    os.dup2(2, 1)
    with suppress(EOFError, BrokenPipeError):
        url = pickle.load(asked)
        cache = ReadCache(lambda: store)
        store = Store(url, take_over=False, is_ready=True)
        while True:
            _answer(answers, cache, *pickle.load(asked))
            pickle.dump(_memory(), answers, _PROTOCOL)
            answers.flush()


def _answer(answers: IO[bytes], cache: ReadCache, work: Any, arguments: Any, named: Any) -> None:
    try:
        answer = True, work(cache, *arguments, **named)
    except Exception as error:  # noqa: BLE001 - raised again by who asked
        error.add_note("".join(traceback.format_tb(error.__traceback__)))
        answer = False, error
    if not isinstance(answer[1], Parts):
        pickle.dump(answer, answers, _PROTOCOL)
        return
    head, parts = answer[1]
    pickle.dump((True, Parts(head, ())), answers, _PROTOCOL)
    for part in parts:
        pickle.dump(part, answers, _PROTOCOL)
    pickle.dump(None, answers, _PROTOCOL)


def _memory() -> int:
    """Most bytes that this process has held at once; 0 where the system does not say."""
    # Not by `getrusage`, which starts from the parent's memory.
    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) << 10
    return 0
