"""Threads for what would hold up the event loop, apart for each kind of work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from loloha.collector.problem import unavailable
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
