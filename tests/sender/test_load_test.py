"""Simulated devices against a real collector."""

import os
import signal
import time
import tracemalloc
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from threading import main_thread
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

import loloha
from collecting import HOUR, START, Clock, campaign
from loloha.campaign import Schedule
from loloha.cli import load_test, main
from loloha.errors import CampaignError, DomainError, ParameterError
from loloha.population.load_generator import generate_load
from loloha.sender.collector import Collector, Receipt
from sending import address, rounds
from serving import create, get


@pytest.fixture(autouse=True)
def patient_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine an answer takes its time: what is sent again counts as a duplicate."""
    monkeypatch.setattr(
        "loloha.population.load_generator.Collector", partial(Collector, timeout=120.0)
    )


@pytest.mark.parametrize("name", ["biloloha", "rappor", "l-grr", "dbitflippm", "olh"])
def test_every_simulated_report_is_counted(url: str, clock: Clock, name: str) -> None:
    sizes = {"olh": {"eps": 1.0}, "dbitflippm": {"eps_inf": 2.0, "b": 5, "d": 2}}
    protocol = loloha.protocol(name, k=5, **sizes.get(name, {"eps_inf": 2.0, "eps_1": 1.0}))
    clock.now = START + 2 * HOUR
    weak = {"accept_weak_privacy": True}
    terms = {"minimum_cohort": 1, "late_seconds": 5 * HOUR}
    where = url + create(url, campaign(protocol=protocol), terms=terms, **weak)
    values = np.random.default_rng(1).integers(-1, 5, size=(60, 2))
    seen: list[int] = []
    with Collector(where) as collector:
        one = collector.document()
    receipt = generate_load(where, one, values, batch=32, progress=seen.append, rng=2)
    present = (values >= 0).sum(axis=0).tolist()
    assert [n for _, n, _ in rounds(where)] == present
    assert receipt.sent == receipt.accepted == sum(seen) == sum(present)
    assert (receipt.duplicates, receipt.refused) == (0, {})


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Ctrl-C interrupts, whatever started the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.usefixtures("interrupts")
def test_an_interrupted_load_test_says_how_to_go_on(
    url: str, clock: Clock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stops at once, its count is exact, and with its seed it counts nothing twice."""
    where = address(url, late_seconds=9 * HOUR)
    clock.now = START + 2 * HOUR
    table = tmp_path / "table.csv"
    table.write_text("user,r0,r1\n" + "".join(f"{i},{'abc'[i % 3]},b\n" for i in range(30)))
    submit = Collector.submit

    def interrupted(at: int, line: list[str]) -> tuple[str, int]:
        calls, before = count(1), sum(n for _, n, _ in rounds(where))

        def counting(self: Any, *body: Any) -> Any:
            if next(calls) == at:
                for _ in range(2):  # as `timeout`, and the impatient, do
                    signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)
                    time.sleep(0.1)
            return submit(self, *body)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Collector, "submit", counting)
            assert main(line) == 130
        return capsys.readouterr().err, sum(n for _, n, _ in rounds(where)) - before

    line = ["load-test", str(table), "--campaign", where, "--batch", "1", "--seed", "7"]
    said, has = interrupted(35, line)
    assert 35 <= has < 60
    assert f"answered {has} reports, 1 of 2 rounds and a part of round 1" in said
    assert "the same line goes on" in said
    assert main(line) == 0
    more = f"60 reports of 30 users in 2 rounds: {60 - has} counted, {has} dup"
    assert more in capsys.readouterr().out
    assert [n for _, n, _ in rounds(where)] == [30, 30]
    assert main([*line, "--rounds", "3"]) == 0
    # A third round holds the first column again.
    assert "30 counted, 60 duplicates" in capsys.readouterr().out
    # Without the seed it would be other users.
    said, has = interrupted(5, [*line[:-2], "--rounds", "3"])
    assert f"answered {has} reports, 0 of 3 rounds" in said
    assert "--first 1 --rounds 2" in said


@pytest.mark.parametrize(
    ("answered", "sizes", "seed", "says"),
    [
        (0, [30, 30], None, "begins anew"),
        (0, [], 7, "begins anew"),
        (30, [30], None, "counts new ones"),
        (30, [30, 30], None, "--first 5 --rounds 1"),
        (31, [30, 30, 30], None, "--first 6 --rounds 1"),
        (31, [30, 30, 30], 7, "goes on"),
    ],
)
def test_how_to_go_on_fits_what_is_left(
    answered: int, sizes: list[int], seed: int | None, says: str
) -> None:
    said = load_test._left(answered, sizes, 4, seed)
    assert says in said
    assert ("--first" in said) == says.startswith("--first")


def test_rounds_that_are_not_sent_take_no_memory(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.arange(4_000).reshape(2, 2_000) % 5
    seen = list[Any]()

    def generated(url: str, one: Any, values: Any, **_: Any) -> Receipt:
        seen.append(values)
        return Receipt()

    monkeypatch.setattr("loloha.population.load_generator.generate_load", generated)
    monkeypatch.setattr(load_test, "load_for", lambda *_: table)
    line = ["load-test", "syn", "--campaign", address(url), "--users", "2001", "--rounds", "1"]
    tracemalloc.start()
    try:
        assert main(line) == 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # All rounds of these users are 32 MB.
    assert peak < 16e6
    assert np.array_equal(seen[0], np.resize(table[:, :1], (2001, 1)))


def test_refused_rounds_come_with_those_that_fit(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("user,r0\n1,a\n2,b\n")
    line = ["load-test", str(table), "--campaign", address(url)]
    assert main([*line, "--rounds", "3"]) == 1
    said = capsys.readouterr().err
    assert "4 refused: early" in said
    assert "--first 0 --rounds 1 fits" in said


def test_estimates_of_simulated_users_are_near_the_truth(url: str, clock: Clock) -> None:
    where = address(url, late_seconds=9 * HOUR)
    clock.now = START + 2 * HOUR
    share = np.array([0.5, 0.2, 0.2, 0.1, 0.0])
    values = np.random.default_rng(3).choice(5, size=(20_000, 2), p=share)
    generate_load(where, campaign(), values, rng=4)
    base, _, path = where.partition("/v1/")
    for round in range(2):
        shown = get(base, f"/v1/{path}/rounds/{round}/estimates").json()
        truth = np.bincount(values[:, round], minlength=5) / 20_000
        z = (np.array(shown["estimate"]) - truth) / np.array(shown["standard_error"])
        # alpha = 10 x 2e-10: sees a wrong label order, round or protocol.
        assert np.abs(z).max() < 6.4, z


def test_simulated_panels_are_counted_estimated_and_exported(
    url: str, clock: Clock, tmp_path: Path
) -> None:
    every = 3
    one = campaign(schedule=Schedule(START, HOUR, every=every))
    clock.now = START + 5 * HOUR
    terms = {"minimum_cohort": 1, "late_seconds": 5 * HOUR}
    where = url + create(url, one, terms=terms, accept_weak_privacy=True)
    share = np.array([0.5, 0.2, 0.2, 0.1, 0.0])
    values = np.random.default_rng(3).choice(5, size=(900, 6), p=share)
    assert generate_load(where, one, values, rng=4).accepted == 2 * 900
    sizes = [n for _, n, _ in rounds(where)]
    assert sizes[:3] == sizes[3:]
    assert sum(sizes[:3]) == 900
    base, _, path = where.partition("/v1/")
    # Nothing is compared before a window is over.
    assert "panels" not in get(base, f"/v1/{path}/rounds").json()
    clock.now = START + 11 * HOUR
    panels = get(base, f"/v1/{path}/rounds?last=2").json()["panels"]
    assert (panels["first"], panels["last"], panels["even"]) == (3, 5, True)
    assert (panels["smallest"], panels["largest"]) == (min(sizes), max(sizes))
    shown = get(base, f"/v1/{path}/rounds/4/estimates").json()
    f, n = np.clip(shown["estimate"], 0, 1), shown["n"]
    noise = loloha.variance(one.protocol, n, f) + f * (1 - f) * 2 * n / (3 * n - 1) / n
    assert np.square(shown["standard_error"]) == pytest.approx(noise)
    series = get(base, f"/v1/{path}/series").json()
    # A page that begins later has windows that begin before it.
    page = get(base, f"/v1/{path}/series?first=4&value=1").json()
    assert page["round"] == [4, 5]
    newest = get(base, f"/v1/{path}/series?newest=1").json()
    assert newest["round"] == [5]
    for name in ("estimate", "standard_error", "lower", "upper"):
        rows = series[f"window_{name}"]
        assert len(rows) == 6
        assert newest[f"window_{name}"] == rows[5:]
        assert page[f"window_{name}"] == [[row[1]] for row in rows[4:]]
    means = np.array(series["estimate"])
    for last in range(6):
        window = slice(max(0, last - 2), last + 1)
        pooled = np.average(means[window], axis=0, weights=sizes[window])
        assert series["window_estimate"][last] == pytest.approx(pooled)
    errors = np.array(series["standard_error"]), np.array(series["window_standard_error"])
    assert (errors[1][2:] < 0.7 * errors[0][2:]).all()
    table = tmp_path / "table.csv"
    assert main(["export", where, "--out", str(table)]) == 0
    header, *lines = table.read_text().splitlines()
    assert header.endswith(
        '"window_estimate","window_standard_error","window_lower","window_upper"'
    )
    assert len(lines) == 30


def test_a_receipt_says_what_was_refused(url: str) -> None:
    where = address(url)
    values = np.zeros((10, 3), dtype=int)
    receipt = generate_load(where, campaign(), values)
    assert (receipt.accepted, receipt.refused) == (10, {"early": 20})


def test_values_that_do_not_fit_are_refused(url: str) -> None:
    where = address(url)
    for values in (
        np.zeros(3, dtype=int),
        np.full((2, 2), 5),
        np.zeros((2, 2)),
        np.full((1, 1), -2),
    ):
        with pytest.raises((DomainError, ParameterError), match="values must"):
            generate_load(where, campaign(), values)
    one = np.zeros((1, 1), dtype=int)
    with pytest.raises(ParameterError, match="assigns"):
        generate_load(where, campaign(keys="assigned"), one)
    with pytest.raises(CampaignError, match="take the batch"):
        generate_load(f"{url}/v1/campaigns/{'0' * 64}", campaign(), one)
