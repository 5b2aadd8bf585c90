"""Threads, or processes, for what would hold up the event loop, apart for each kind of work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from loloha.collector.problem import unavailable
from loloha.collector.process import Process
from loloha.errors import StoreError

Result = TypeVar("Result")


class Workers:
    """A few threads with a short queue: what does not fit is asked to come back.

    Parameters
    ----------
    name : str
    threads : int
    most : int
        Pieces of work that may run and wait.
    """

    def __init__(self, name: str, threads: int, most: int) -> None:
        self._name = name
        self._most = most
        self._pending = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do it in a thread.

        Raises
        ------
        Problem
            503 if too much waits already, or the store fails.
        """
        if self._pending >= self._most:
            raise unavailable(f"{self._name} must have a free place, none is left; come back")
        self._pending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        except StoreError as error:
            raise unavailable(str(error)) from None
        finally:
            self._pending -= 1

    def close(self) -> None:
        """Let the threads end."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class WorkersApart(Workers):
    """The same, each thread with a process of its own that works for it.

    Parameters
    ----------
    name, threads, most
        As above.
    url : str
        Of the store.
    """

    def __init__(self, name: str, threads: int, most: int, url: str) -> None:
        super().__init__(name, threads, most)
        self._url = url
        self._mine = threading.local()
        self._all: list[Process] = []

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do it in a process: a function of a module, which gets a desk and the arguments."""
        return await super().run(self._call, work, *arguments)

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
