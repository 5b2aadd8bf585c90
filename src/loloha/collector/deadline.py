"""Deadlines of connections and requests, by one timer for all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

Result = TypeVar("Result")
SECONDS_BETWEEN_LOOKS = 0.25


class Deadlines:
    """The deadlines of one application."""

    def __init__(self) -> None:
        self.running: set[Deadline] = set()
        self._results: dict[asyncio.Future[Any], float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def within(self, seconds: float) -> Deadline:
        """A context with a deadline of so many seconds, to the next tick of the timer."""
        loop = self._looking()
        return Deadline(self.running, loop, loop.time() + seconds)

    async def result(self, future: asyncio.Future[Result], seconds: float) -> Result:
        """Await a result for so many seconds, else `TimeoutError`; cheaper than `within`."""
        self._results[future] = self._looking().time() + seconds
        try:
            return await future
        finally:
            del self._results[future]

    def _looking(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            loop.call_later(SECONDS_BETWEEN_LOOKS, self._look)
        return loop

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for deadline in [deadline for deadline in self.running if deadline.when <= now]:
            deadline.end()
        for result, when in self._results.items():
            if when <= now and not result.done():
                result.set_exception(TimeoutError())
        if self.running or self._results:
            loop.call_later(SECONDS_BETWEEN_LOOKS, self._look)
        else:
            self._loop = None


class Deadline:
    """As `asyncio.timeout`, a context manager that raises `TimeoutError`.

    Attributes
    ----------
    when : float
        In the loop's seconds; may be moved.
    """

    __slots__ = ("_among", "_cancelled", "_has_passed", "_loop", "_task", "when")

    def __init__(self, among: set[Deadline], loop: asyncio.AbstractEventLoop, when: float) -> None:
        self._among = among
        self._loop = loop
        self.when = when
        self._has_passed = False

    def __enter__(self) -> Self:
        task = asyncio.current_task(self._loop)
        if task is None:
            raise RuntimeError("a deadline needs a running task; there is none")
        self._task = task
        self._cancelled = task.cancelling()
        self._among.add(self)
        return self

    def end(self) -> None:
        """Cancel what is waited for."""
        self._among.discard(self)
        self._has_passed = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._among.discard(self)
        # A cancellation by others stays.
        is_ours = self._has_passed and self._task.uncancel() <= self._cancelled
        if is_ours and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from None
