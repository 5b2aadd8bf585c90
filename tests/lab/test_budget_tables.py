"""The tables of the page on budgets for changes: written by the command, and true."""

from pathlib import Path

import numpy as np
import pytest

import loloha
from loloha.population import supports
from loloha.privacy.transcript import worst_loss
from loloha.server.estimate import unbiased
from loloha_lab.tables import budget as budget_tables

PAGE = (Path(__file__).parents[2] / "docs" / "budget-tables.md").read_text(encoding="utf-8")


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


@pytest.mark.long
def test_all_tables_are_what_the_command_writes() -> None:
    """``python -m loloha_lab.tables.budget > docs/budget-tables.md`` writes them again."""
    assert budget_tables.text() == PAGE


@pytest.mark.parametrize("eps", [2.0, pytest.param(16.0, marks=pytest.mark.long)])
def test_a_row_over_the_loss_is_on_the_page(eps: float) -> None:
    assert line(budget_tables.budget_row(eps)) in PAGE


def test_a_row_over_the_rounds_is_on_the_page() -> None:
    assert line(budget_tables.horizon_row(32)) in PAGE


def numbers(row: str) -> list[float]:
    """The cells of a row of the page's first table."""
    (found,) = [one for one in PAGE.split("\n\n**")[0].splitlines() if one.startswith(f"| {row} |")]
    return [float(cell) for cell in found.strip("| ").split("|")]


def test_the_factors_by_which_a_budget_wins_are_those_of_the_table() -> None:
    """Proven and at best apart, at eps = 1 and 2; the break-even at best, over eps."""
    text = (Path(__file__).parents[2] / "docs" / "budget.md").read_text(encoding="utf-8")
    text = " ".join(text.split())
    rows = [numbers("1"), numbers("2")]

    def factors(ololoha: int, budget: int) -> str:
        found = sorted(row[ololoha] / row[budget] for row in rows)
        return " to ".join(f"{one:.2g}" if one < 100 else f"{one:.0f}" for one in found)

    best, proven = 5, 4
    assert f"at eps = 1 and 2 by a factor of {factors(best, 1)} with one change" in text
    assert f"with one change, {factors(best, 3)} with ten" in text
    assert f"OLOLOHA as proven by {factors(proven, 1)}, and {factors(proven, 3)}." in text
    assert numbers("12")[1] < numbers("12")[best]
    assert numbers("16")[1] > numbers("16")[best]


def test_one_round_each_counts_who_speaks_in_a_round() -> None:
    """At a large eps nothing else is left of its error."""
    k, rounds, eps, protocol = 220, 20, 12.0, loloha.OLH(k=220, eps=12.0)
    values = np.repeat(np.arange(10 * k)[:, None] % k, rounds, axis=1)
    counts = supports(protocol, budget_tables.only_once(values, 4), rng=4)
    found = unbiased(protocol, counts.supports, counts.eligible)
    predicted = budget_tables.once(k, rounds, eps)
    assert np.mean((found - 1 / k) ** 2) * len(values) == pytest.approx(predicted, rel=0.1)
    assert predicted == pytest.approx((rounds - 1) * (1 / k) * (1 - 1 / k), rel=0.02)


def test_ololoha_is_compared_at_the_loss_that_the_page_states() -> None:
    """Proven: within eps however often values change. At best: reached with one change at most."""
    eps, rounds = 2.0, 24
    proven = budget_tables.proven(360, rounds, eps)
    at_best = budget_tables.at_best(360, rounds, eps)
    assert 0.99 * eps < worst_loss(proven, rounds, rounds).upper <= eps
    assert 0.99 * eps < worst_loss(at_best, rounds, 1).lower <= eps
    assert at_best.noise < proven.noise
    assert proven.noise < budget_tables.proven(360, rounds, eps, g=3).noise


def test_columns_stay_as_a_whole_while_users_move() -> None:
    values = budget_tables.seldom(np.repeat(np.arange(4), 50), 30, 0.1, np.random.default_rng(1))
    counts = [np.bincount(values[:, t], minlength=4).tolist() for t in range(30)]
    assert counts == [[50] * 4] * 30
    moved = (values[:, 1:] != values[:, :-1]).mean()
    # Three in four who move get another value.
    assert 0.06 < moved < 0.09


def test_measured_errors_are_those_of_the_formulas() -> None:
    """A small population: all three rules within a fifth of their formula (4 400 estimates)."""
    values = budget_tables.seldom(np.arange(2200) % 220, 20, 0.05, np.random.default_rng(5))
    n, k, eps = len(values), 220, 2.0
    found = budget_tables.errors(values, k, eps, 2, seed=3)
    assert found.budget == pytest.approx(found.predicted, rel=0.2)
    assert found.ololoha == pytest.approx(budget_tables.at_best(k, 20, eps).noise / n, rel=0.2)
    assert found.once == pytest.approx(budget_tables.once(k, 20, eps) / n, rel=0.2)
    assert found.uniform == 0
    assert 0 < found.used_up < 0.02
