"""What was used last is kept, up to a size; work that is under way is shared."""

import asyncio
from typing import Any

import pytest

from loloha.collector.prepared import Look, Once, Recent


def test_the_least_recently_used_goes() -> None:
    recent: Recent[str] = Recent(4, len)
    assert recent.put("a", "aa") == "aa"
    recent.put("b", "bb")
    assert recent.get("a") == "aa"
    recent.put("c", "c")
    assert ("a" in recent, "b" in recent, "c" in recent) == (True, False, True)
    assert recent.get("b") is None


def test_the_bound_is_attained_and_not_exceeded() -> None:
    recent: Recent[str] = Recent(4, len)
    for name in "abcd":
        recent.put(name, name)
    assert all(name in recent for name in "abcd")
    recent.put("e", "e")
    assert [name for name in "abcde" if name in recent] == list("bcde")


def test_an_item_in_place_of_another_counts_once() -> None:
    recent: Recent[str] = Recent(4, len)
    recent.put("a", "a")
    for _ in range(9):
        recent.put("b", "bbb")
    assert recent.get("a") == "a"
    recent.put("b", "b")
    recent.put("c", "cc")
    assert recent.get("a") == "a"
    assert recent.get("b") == "b"


def test_one_that_is_too_large_stays_alone() -> None:
    recent: Recent[str] = Recent(4, len)
    recent.put("a", "a")
    recent.put("b", "b" * 9)
    assert "a" not in recent
    assert recent.get("b") == "b" * 9
    recent.put("c", "c" * 4)
    assert "b" not in recent
    assert recent.get("c") == "c" * 4


def test_work_that_has_just_ended_is_not_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # Between its end and the loop's next turn others ask: they wait for a look of their own.
    calls, begun = [0], [0]
    of = Once.of

    async def counted(self: Once, *arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] > 1_000:
            raise RecursionError("asked again and again without a turn of the loop")
        return await of(self, *arguments)

    monkeypatch.setattr(Once, "of", counted)

    async def look() -> None:
        begun[0] += 1

    async def ask(look: Look, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        before = begun[0]
        await look.again()
        assert begun[0] > before

    async def ask_at_every_turn() -> None:
        shared = Look(look)
        await asyncio.gather(*(ask(shared, turns) for turns in range(40)))

    asyncio.run(ask_at_every_turn())
    assert begun[0] <= 40


async def _waits(once: Once, seen: list[str]) -> None:
    async def work() -> None:
        seen.append("begun")

    await once.of("name", work)


def test_who_asks_as_work_ends_begins_it_anew_and_nobody_ends_the_new() -> None:
    async def both() -> list[str]:
        once, seen = Once(), []
        for _ in range(3):
            await asyncio.gather(*(_waits(once, seen) for _ in range(5)))
        assert not once._running
        return seen

    assert asyncio.run(both()) == ["begun"] * 3
