"""Deadlines: what takes too long is cancelled, and whoever else cancels is heard."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from loloha.collector import deadline
from loloha.collector.deadline import Deadlines


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "SECONDS_BETWEEN_LOOKS", 0.01)


def run(work: Callable[[Deadlines], Awaitable[Any]]) -> Any:
    deadlines = Deadlines()

    async def whole() -> Any:
        async with asyncio.timeout(60):
            return await work(deadlines)

    try:
        return asyncio.run(whole())
    finally:
        assert not deadlines.running
        assert not deadlines._results


async def late(deadlines: Deadlines) -> None:
    with deadlines.within(0.02):
        await asyncio.sleep(600)


async def moved(deadlines: Deadlines) -> str:
    with deadlines.within(0.0) as one:
        one.when += 600
        await asyncio.sleep(0.1)
    return "in time"


async def late_result(deadlines: Deadlines) -> None:
    await deadlines.result(asyncio.get_running_loop().create_future(), 0.02)


async def result(deadlines: Deadlines) -> str:
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.1, future.set_result, "in time")
    return str(await deadlines.result(future, 600))


def test_what_takes_too_long_ends_by_a_time_out() -> None:
    assert (run(moved), run(result)) == ("in time", "in time")
    for work in (late, late_result):
        with pytest.raises(TimeoutError):
            run(work)


def test_they_are_looked_at_again_after_all_of_them_have_gone() -> None:
    async def twice(deadlines: Deadlines) -> None:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await late(deadlines)
            await asyncio.sleep(0.05)

    run(twice)


def test_whoever_else_cancels_is_heard() -> None:
    """Before the deadline, and together with it."""

    async def cancelled(deadlines: Deadlines, *, passes: bool) -> None:
        with deadlines.within(600) as one:
            task = asyncio.current_task()
            assert task is not None
            if passes:
                one.end()
            task.cancel()
            await asyncio.sleep(600)

    for passes in (False, True):
        with pytest.raises(asyncio.CancelledError):
            run(lambda deadlines, passes=passes: cancelled(deadlines, passes=passes))


def test_an_error_of_the_work_stays_what_it_is() -> None:
    async def failing(deadlines: Deadlines) -> None:
        with deadlines.within(600) as one:
            one.end()
            try:
                await asyncio.sleep(600)
            finally:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(failing)
