"""Thread or process pools for each kind of heavy work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from loloha.collector.problem import unavailable
from loloha.collector.process import Process
from loloha.collector.share import Shares
from loloha.errors import StoreError

Result = TypeVar("Result")


class Workers:
    """A few threads with a short queue; excess work is refused."""

    def __init__(self, name: str, threads: int, most: int) -> None:
        self._places = Shares(most, f"{name} must have a free place, none is left; come back")
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(
        self, work: Callable[..., Result], *arguments: Any, address: str | None = None
    ) -> Result:
        """Run work in a thread, within the share of its address."""
        with self._places.hold(address) as place:
            place.grow(1)
            try:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._pool, work, *arguments)
            except StoreError as error:
                raise unavailable(str(error)) from None

    def close(self) -> None:
        """Let the threads end."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class WorkersApart(Workers):
    """The same, each thread with a process of its own that works for it."""

    def __init__(self, name: str, threads: int, most: int, url: str) -> None:
        super().__init__(name, threads, most)
        self._url = url
        self._mine = threading.local()
        self._all: list[Process] = []

    async def run(
        self, work: Callable[..., Result], *arguments: Any, address: str | None = None
    ) -> Result:
        """Do it in a process: a function of a module, which gets a cache and the arguments."""
        return await super().run(self._call, work, *arguments, address=address)

    def _call(self, work: Callable[..., Result], *arguments: Any) -> Result:
        if not hasattr(self._mine, "process"):
            self._mine.process = Process(self._url)
            self._all.append(self._mine.process)
        process: Process = self._mine.process
        return process.call(work, *arguments)

    def close(self) -> None:
        """End the processes, and the threads."""
        super().close()
        for process in self._all:
            process.end()
