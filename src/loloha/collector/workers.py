"""Thread or process pools for each kind of heavy work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from loloha.collector.problem import unavailable
from loloha.collector.process import Process
from loloha.collector.quota import Quota
from loloha.errors import StoreError

Result = TypeVar("Result")


class Workers:
    """A few threads with a short queue; excess work is refused."""

    def __init__(self, name: str, threads: int, most: int) -> None:
        self._places = Quota(most, f"{name} must have a free place, none is left; come back")
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(
        self, work: Callable[..., Result], *arguments: Any, address: str | None = None
    ) -> Result:
        """Run work in a thread, within the quota of its address."""
        with self._places.reserve(address) as place:
            place.grow(1)
            try:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._pool, work, *arguments)
            except StoreError as error:
                raise unavailable(str(error)) from None

    def close(self) -> None:
        """Let the threads end."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class WorkerApart(Workers):
    """One thread with a process that works for it."""

    def __init__(self, name: str, most: int, url: str) -> None:
        super().__init__(name, 1, most)
        self._process = Process(url)

    async def run(
        self, work: Callable[..., Result], *arguments: Any, address: str | None = None
    ) -> Result:
        """Do it in a process: a function of a module, which gets a cache and the arguments."""
        return await super().run(self._process.call, work, *arguments, address=address)

    def close(self) -> None:
        """End the process, and the thread."""
        super().close()
        self._process.end()
