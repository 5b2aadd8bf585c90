"""What is made once and shared: by those who ask at the same time, and by those who ask later."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

Result = TypeVar("Result")


class Once:
    """Work that is under way is waited for, not begun again."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Future[Any]] = {}

    async def of(self, name: Hashable, work: Callable[[], Awaitable[Result]]) -> Result:
        """The result of work of this name; raises what it raises."""
        running = self._running.get(name)
        if running is None:
            running = self._running[name] = asyncio.ensure_future(work())
            running.add_done_callback(lambda done: self._end(name, done))
        # Who hangs up cancels no work that others wait for.
        result: Result = await asyncio.shield(running)
        return result

    def _end(self, name: Hashable, done: asyncio.Future[Any]) -> None:
        del self._running[name]
        if not done.cancelled():
            # Taken note of, also where everybody who waited has hung up.
            done.exception()


class Prepared:
    """Bodies of answers that never change, the least recently used of them dropped first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._bodies: OrderedDict[Hashable, bytes] = OrderedDict()
        self._once = Once()

    async def of(self, name: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """The body of a name, made by who asks first."""
        body = self._bodies.get(name)
        if body is None:
            body = await self._once.of(name, make)
            self._keep(name, body)
        else:
            self._bodies.move_to_end(name)
        return body

    def holds(self, name: Hashable) -> bool:
        """Whether a body is there already."""
        return name in self._bodies

    def _keep(self, name: Hashable, body: bytes) -> None:
        if name not in self._bodies:
            self._bodies[name] = body
            self._size += len(body)
        while self._size > self._most and len(self._bodies) > 1:
            _, dropped = self._bodies.popitem(last=False)
            self._size -= len(dropped)
