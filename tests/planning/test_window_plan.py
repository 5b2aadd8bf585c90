"""Plans for a loss in any window: what is recommended keeps it, and other ways are compared."""

import json
import math
from typing import Any

import pytest

import loloha
from loloha.cli import main
from loloha.errors import ParameterError
from loloha.planning.planning import Plan
from loloha.server.variance import temporal_covariance, variance

USERS, WINDOW, LOSS = 30_000, 30, 2.0


@pytest.fixture(scope="module")
def monthly() -> Plan:
    return loloha.plan(96, USERS, window=WINDOW, loss=LOSS)


def test_the_recommended_protocol_keeps_the_loss_at_the_best_number_of_symbols(
    monthly: Plan,
) -> None:
    protocol: Any = monthly.recommendation and monthly.recommendation.protocol
    assert loloha.privacy.eps_2(protocol) <= LOSS * (1 + 1e-9)
    assert protocol.asked_memo == 4.0
    # Section 16 of the maths, for any g; 5 and 7 are the primes beside it.
    a, c = math.exp(4.0), math.exp(LOSS)
    g = 1 + (-(a + c) + math.sqrt((a + c) ** 2 + 12 * a * c)) / 6
    assert 5 < g < 7
    assert protocol.g == 5
    assert (monthly.n, monthly.population, monthly.window) == (1000, USERS, WINDOW)
    assert monthly.command is not None
    assert monthly.command.endswith("--every 30")
    assert "differ only in 30 rounds that follow each other lose at most 2" in monthly.reason


def test_ways_have_the_errors_of_what_they_are(monthly: Plan) -> None:
    panels, lpu, lbu, all_rounds, unbounded = monthly.ways
    f, n = 1 / 96, USERS // WINDOW
    sampled = f * (1 - f) * (1 / n - 1 / USERS) * USERS / (USERS - 1)
    for way in (panels, lpu):
        assert (way.every, way.reports) == (WINDOW, 1)
        assert way.mse_round == pytest.approx(variance(way.protocol, n, f) + sampled)
        assert way.mse_window == pytest.approx(way.mse_round / WINDOW)
    assert lbu.mse_window == pytest.approx(variance(lbu.protocol, USERS, f) / WINDOW)
    assert lbu.protocol.asked_first == pytest.approx(LOSS / WINDOW)
    for way in (all_rounds, unbounded):
        once = variance(way.protocol, USERS, f)
        kept = temporal_covariance(way.protocol, USERS, f)
        assert way.mse_round == pytest.approx(once)
        assert way.mse_window == pytest.approx(kept + (once - kept) / WINDOW)
        assert (way.reports, way.value_loss) == (WINDOW, 4.0)
    losses = [way.window_loss for way in monthly.ways]
    assert losses == [LOSS] * 4 + [WINDOW * LOSS]
    assert [way.value_loss for way in (lpu, lbu)] == [math.inf] * 2
    assert unbounded.protocol == panels.protocol


def test_the_goals_hold_exactly(monthly: Plan) -> None:
    """Measured too: ``python -m loloha_lab.tables.division``."""
    panels, lpu, _, all_rounds, _ = monthly.ways
    assert panels.mse_window <= 1.4 * lpu.mse_window
    assert 20 * panels.mse_window <= all_rounds.mse_window
    assert panels.value_loss <= 4.0
    assert WINDOW * panels.reports == all_rounds.reports


def test_what_contradicts_a_window_is_refused() -> None:
    with pytest.raises(ParameterError, match="given together"):
        loloha.plan(96, USERS, window=30)
    with pytest.raises(ParameterError, match="given together"):
        loloha.plan(96, USERS, loss=2.0)
    for other in ({"eps_1": 1.0}, {"eps_2": 2.0}, {"population": 50_000}):
        with pytest.raises(ParameterError, match=f"without {next(iter(other))}"):
            loloha.plan(96, USERS, window=30, loss=2.0, **other)  # type: ignore[arg-type]
    for window in (1, 0, True, "30", 2.5):
        with pytest.raises(ParameterError, match="window must"):
            loloha.plan(96, USERS, window=window, loss=2.0)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="n must"):
        loloha.plan(96, 29, window=30, loss=2.0)
    for loss in (0.0, -1.0, math.nan, 1000.0):
        with pytest.raises(ParameterError, match="loss must"):
            loloha.plan(96, USERS, window=30, loss=loss)


def test_losses_that_no_second_round_can_keep_have_no_ways() -> None:
    plan = loloha.plan(4, 100, window=30, loss=1e-6, protocols=["ololoha"])
    assert plan.recommendation is None
    assert plan.ways == ()
    assert plan.command is None
    tiny = loloha.plan(4, 100, window=30, loss=1e-5, eps_inf=1.0, protocols=["ololoha"])
    # A 30th of it is below what any report can be made for.
    assert [way.every for way in tiny.ways] in ([30, 30, 1], [])


def test_a_plan_without_a_window_has_no_ways() -> None:
    plan = loloha.plan(4, 100, 2.0, 1.0)
    assert plan.ways == ()
    assert plan.command is not None
    assert "--every" not in plan.command


def test_the_command_line_shows_all_ways(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["plan", "--k", "8", "--n", "3000", "--window", "7", "--loss", "1.5"]
    assert main(line) == 0
    shown = capsys.readouterr().out
    assert "LPU: fresh OLH, 1 of 7" in shown
    assert "--every 7" in shown
    assert main([*line, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert [way["every"] for way in plain["ways"]] == [7, 7, 1, 1, 1]
    assert plain["ways"][1]["value_loss"] is None
    for more in (["--error", "0.1"], ["--attributes", "2"], ["--frontier"], ["--eps-2", "1"]):
        assert main([*line, *more]) == 2
        assert "--window" in (said := capsys.readouterr().err) or "window" in said
