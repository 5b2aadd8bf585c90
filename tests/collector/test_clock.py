"""A server's clock that jumps closes nothing for good, is noticed, and heals."""

import logging
from typing import Any

import pytest

from collecting import HOUR, START, Clock, campaign, clients, created, messages
from loloha.collector.context import Context
from loloha.collector.metric import Metrics
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.timekeeper import MOST_GAP, MOST_JUMP, Timekeeper, steady_seconds
from loloha.errors import StoreError

YEARS = 10 * 365 * 86_400
LINES = "application/x-ndjson"


def keeper(clock: Clock, steady: Clock, **more: Any) -> Timekeeper:
    return Timekeeper(clock, steady, **more)


@pytest.mark.parametrize("jump", [YEARS, -YEARS, MOST_JUMP + 1, -MOST_JUMP - 1])
def test_a_jump_stops_the_time_until_it_is_taken_back(
    jump: float, caplog: pytest.LogCaptureFixture
) -> None:
    clock, steady = Clock(), Clock(0.0)
    found = keeper(clock, steady)
    assert found.now() == START
    clock.now += jump
    for _ in range(3):
        with pytest.raises(StoreError, match="clock must not jump"):
            found.now()
    clock.now += 60 - jump
    steady.now += 60
    assert found.now() == START + 60
    assert len(caplog.records) == 2
    assert caplog.records[1].message == "the clock is right again"


def test_time_that_passes_is_no_jump_however_long() -> None:
    # A suspended machine, or months without an upload.
    clock, steady = Clock(), Clock(0.0)
    found = keeper(clock, steady)
    for seconds in (1.0, 3600.0, 90 * 86_400.0):
        clock.now += seconds + 100
        steady.now += seconds
        assert found.now() == clock.now


def test_many_small_corrections_are_followed() -> None:
    clock, steady = Clock(), Clock(0.0)
    found = keeper(clock, steady)
    for _ in range(100):
        clock.now += 60
        assert found.now() == clock.now


def test_a_start_long_after_the_last_one_is_confirmed_by_somebody() -> None:
    clock, steady = Clock(), Clock(0.0)
    seen = START - MOST_GAP - 1
    with pytest.raises(StoreError, match="accept_clock=True"):
        keeper(clock, steady, seen=seen).now()
    assert keeper(clock, steady, seen=seen, accepted=True).now() == START
    assert keeper(clock, steady, seen=seen + 2).now() == START
    # Behind the store, rounds that devices report in seem not to have begun.
    with pytest.raises(StoreError, match="days behind"):
        keeper(clock, steady, seen=START + 400 * 86_400).now()
    with pytest.raises(StoreError, match="days behind"):
        keeper(clock, steady, seen=START + HOUR + 1).now()
    assert keeper(clock, steady, seen=START + HOUR).now() == START
    assert keeper(clock, steady, seen=START + YEARS, accepted=True).now() == START
    # A new store has seen none.
    assert keeper(clock, steady, seen=0).now() == START
    wrong = keeper(clock, steady, seen=seen)
    with pytest.raises(StoreError):
        wrong.now()
    clock.now = seen + HOUR
    assert wrong.now() == clock.now


def test_the_steady_clock_is_not_the_systems() -> None:
    assert 0 < steady_seconds() <= steady_seconds()


def test_an_upload_under_a_wrong_clock_closes_nothing(
    serve: Any, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    # One upload while the clock stood at +10 years closed the campaign for ever: 410 for all.
    caplog.set_level(logging.WARNING)
    steady = Clock(0.0)
    client, one = serve(steady=steady), campaign()
    path = created(client, one)
    sent = messages(one, clients(one, 3), 0)

    def send(message: bytes) -> Any:
        headers = {"content-type": "application/json"}
        return client.post(f"{path}/reports", content=message, headers=headers)

    assert send(sent[0]).status_code == 200
    clock.now += YEARS
    answer = send(sent[1])
    assert answer.status_code == 503
    assert "retry-after" in answer.headers
    health = client.get("/healthz")
    assert health.status_code == 503
    assert "clock must not jump" in health.json()["detail"]
    assert any("clock must not jump" in record.message for record in caplog.records)
    clock.now -= YEARS
    assert [send(message).json()["accepted"] for message in sent] == [0, 1, 1]
    assert client.get(f"{path}/rounds").json()["rounds"][0]["refused"] == {}


def test_a_start_under_a_wrong_clock_closes_nothing(
    serve: Any, clock: Clock, sqlite_url: str
) -> None:
    store = Store(sqlite_url)
    store.see(clock.now)
    store.close()
    clock.now += YEARS
    client = serve()
    assert client.get("/healthz").status_code == 503
    store = client.app.state.context.store
    assert store.seen() == START + 60
    clock.now -= YEARS
    assert client.get("/healthz").status_code == 200
    clock.now += YEARS
    accepted = serve(accept_clock=True)
    assert accepted.get("/healthz").status_code == 200


def test_a_clock_that_fell_back_before_the_stop_does_not_make_the_right_one_seem_ahead(
    serve: Any, clock: Clock
) -> None:
    stopped = serve(steady=lambda: 0.0).app.state.context
    before = clock.now
    clock.now = 0.0
    stopped.close()
    clock.now = before + HOUR
    assert serve().get("/healthz").status_code == 200


def test_stops_do_not_add_up(clock: Clock, sqlite_url: str) -> None:
    # Each took a minute off the time seen, also where the clock was not believed.
    settings = Settings(store=sqlite_url)
    left = clock.now // 2 * 2 + 1
    for ahead in (0, 0, YEARS, 0):
        clock.now += ahead
        context = Context(settings, clock, Metrics(), clock)
        context.open()
        context.close()
        store = Store(sqlite_url)
        assert store.seen() == left
        store.close()


def test_starts_a_little_behind_never_take_the_time_seen_back(
    clock: Clock, sqlite_url: str
) -> None:
    """Each could be less than an hour behind the one before: the clock went back for good."""

    def seen(**more: Any) -> int:
        context = Context(Settings(store=sqlite_url, **more), clock, Metrics(), clock)
        context.open()
        context.store.see(clock.now)
        during = context.store.seen()
        context.close()
        store = Store(sqlite_url)
        after = store.seen()
        store.close()
        # In use, and left.
        assert (during % 2, after) == (0, during + 1)
        return after

    first = seen()
    assert first == clock.now // 2 * 2 + 1
    for _ in range(3):
        clock.now -= HOUR / 4
        assert seen() == first
    # Whoever says that an earlier time is right is believed.
    clock.now -= YEARS
    assert seen(accept_clock=True) <= clock.now + 1
    assert seen() <= clock.now + 1


@pytest.mark.parametrize(
    ("gap", "told"), [(0, False), (MOST_JUMP, False), (MOST_JUMP + 1, True), (MOST_GAP, True)]
)
def test_a_start_that_closes_rounds_says_so(
    clock: Clock, sqlite_url: str, caplog: pytest.LogCaptureFixture, gap: float, told: bool
) -> None:
    store = Store(sqlite_url)
    store.see(clock.now)
    store.close()
    clock.now += gap
    context = Context(Settings(store=sqlite_url), clock, Metrics(), clock)
    context.open()
    context.close()
    assert ("closed for good" in caplog.text) == told


@pytest.mark.parametrize("back", [150, 10 * HOUR])
def test_what_is_closed_is_shown_so_after_the_clock_went_back(
    serve: Any, clock: Clock, back: float
) -> None:
    """The rounds said to be open were those of the clock: reports in them were refused late."""
    one = campaign()
    first = serve(steady=lambda: clock.now)
    path = created(first, one, terms={"late_seconds": 0, "early_seconds": 60, "minimum_cohort": 1})
    some, at = clients(one, 6), 11
    clock.now = START + at * HOUR + 60

    def send(client: Any, round: int, place: int) -> str:
        (sent,) = messages(one, [some[place]], round)
        headers = {"content-type": "application/json"}
        answer = client.post(f"{path}/reports", content=sent, headers=headers)
        return str(answer.json().get("reason", "accepted"))

    def states(client: Any) -> list[str]:
        rounds = [at - 2, at - 1, at, at + 1]
        return [client.get(f"{path}/rounds/{each}/estimates").json()["state"] for each in rounds]

    assert (send(first, at, 0), send(first, at - 1, 1)) == ("accepted", "late")
    clock.now -= back
    second = serve(steady=lambda: clock.now, accept_clock=True)
    for client in (first, second) if back < HOUR else (second,):
        shown = client.get(path).json()["now"]
        assert shown["first_open"] == at
        open_rounds = range(shown["first_open"], shown["last_open"] + 1)
        assert list(open_rounds) == []
        assert states(client)[:2] == ["closed", "closed"]
        assert states(client)[3] == "future"
    # What is closed is late, not early: a device would keep it for ever.
    assert send(second, at - 1, 2) == "late"
    assert send(second, at, 3) == "early"
    assert states(second)[2] == "future"
    clock.now += back
    assert (send(second, at, 4), states(second)[2]) == ("accepted", "open")
