"""Results made once and shared, by those who ask at the same time and those who ask later."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Recent(Generic[Item]):
    """An LRU cache by name, bounded by total size; the newest item always stays.

    Threads may use it together.
    """

    def __init__(self, most: int, size: Callable[[Item], int]) -> None:
        self._most = most
        self._size_of = size
        self._size = 0
        self._items: OrderedDict[Hashable, Item] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, name: Hashable) -> bool:
        return name in self._items

    def get(self, name: Hashable) -> Item | None:
        """The item of a name, marked as used."""
        with self._lock:
            if name in self._items:
                self._items.move_to_end(name)
            return self._items.get(name)

    def put(self, name: Hashable, item: Item) -> Item:
        """Keep an item in place of the one of its name."""
        with self._lock:
            replaced = self._items.pop(name, None)
            if replaced is not None:
                self._size -= self._size_of(replaced)
            self._items[name] = item
            self._size += self._size_of(item)
            while self._size > self._most and len(self._items) > 1:
                _, dropped = self._items.popitem(last=False)
                self._size -= self._size_of(dropped)
        return item


class Once:
    """Shares running work among those who wait for it."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Future[Any]] = {}

    async def of(self, name: Hashable, work: Callable[[], Awaitable[Result]]) -> Result:
        """The result of work of this name; raises what it raises."""
        running = self._running.get(name)
        # A finished task is removed only in the loop's next turn: do not wait for it.
        if running is None or running.done():
            running = self._running[name] = asyncio.ensure_future(work())
            running.add_done_callback(lambda done: self._end(name, done))
        # A disconnecting client cancels no work that others wait for.
        result: Result = await asyncio.shield(running)
        return result

    def _end(self, name: Hashable, done: asyncio.Future[Any]) -> None:
        if self._running.get(name) is done:
            del self._running[name]
        if not done.cancelled():
            # Retrieve the exception even if all waiting clients have disconnected.
            done.exception()


class Look:
    """A refresh of shared state that begins after the request for it."""

    def __init__(self, look: Callable[[], Awaitable[Any]]) -> None:
        self._look = look
        self._began = -math.inf
        self._once = Once()

    @property
    def age(self) -> float:
        """Seconds since the last one began."""
        return asyncio.get_running_loop().time() - self._began

    async def again(self, pause: float = 0.0) -> None:
        """Wait for a refresh begun from now on, ``pause`` after the last; requests share it."""
        asked = asyncio.get_running_loop().time()
        while self._began < asked:
            await self._once.of("look", lambda: self._begin(pause))

    async def _begin(self, pause: float) -> None:
        await asyncio.sleep(max(0.0, pause - self.age))
        began = asyncio.get_running_loop().time()
        await self._look()
        self._began = began


class Prepared:
    """A cache of immutable answers, up to ``most`` bytes."""

    def __init__(self, most: int) -> None:
        self._bodies: Recent[bytes] = Recent(most, len)
        self._once = Once()

    async def of(self, name: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """The body of a name, made at the first request."""
        body = self._bodies.get(name)
        if body is None:
            body = self._bodies.put(name, await self._once.of(name, make))
        return body

    def holds(self, name: Hashable) -> bool:
        """Whether a body is there already."""
        return name in self._bodies
