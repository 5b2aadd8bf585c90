"""Several attributes under one budget: both ways by formula, and the better one."""

import json

import pytest

import loloha
from loloha.cli import main
from loloha.design.attributes import plan_attributes
from loloha.errors import ParameterError


@pytest.mark.parametrize(("d", "eps_inf", "eps_1"), [(2, 2.0, 1.0), (5, 4.0, 2.0), (3, 9.0, 8.0)])
def test_both_ways_are_plans_of_their_own(d: int, eps_inf: float, eps_1: float) -> None:
    names = ["biloloha", "ololoha", "rappor"]
    found = plan_attributes(20, 9_000, eps_inf, eps_1, attributes=d, protocols=names)
    for plan, n, share in ((found.shared, 9_000, d), (found.drawn, 9_000 // d, 1)):
        for row in plan.rows:
            held = row.protocol
            assert (held.name, held.k) == (row.name, 20)
            assert (held.eps_inf, held.eps_1) == (eps_inf / share, eps_1 / share)
            assert row.variance == pytest.approx(loloha.variance(held, n), rel=1e-12)
    best = {
        name: plan.recommendation.variance
        for name, plan in (("shared", found.shared), ("drawn", found.drawn))
        if plan.recommendation is not None
    }
    assert found.better == min(best, key=lambda name: best[name])
    assert f"{best[found.better]:.3g}" in found.reason


def test_small_budgets_are_better_drawn() -> None:
    """V* falls as 1/eps^2 there: a d-th of the budget costs d^2, a d-th of the reports d."""
    found = plan_attributes(20, 10_000, 1.0, 0.5, attributes=4)
    assert found.better == "drawn"
    assert found.shared.recommendation is not None
    assert found.drawn.recommendation is not None
    ratio = found.shared.recommendation.variance / found.drawn.recommendation.variance
    assert 3.5 < ratio < 4.5


@pytest.mark.parametrize("attributes", [1, 0, -2, 1001, 2.0, True])
def test_fewer_than_two_attributes_are_refused(attributes: object) -> None:
    with pytest.raises(ParameterError, match="attributes must be an integer in"):
        plan_attributes(5, 100, 2.0, 1.0, attributes=attributes)  # type: ignore[arg-type]


def test_each_attribute_needs_reports() -> None:
    with pytest.raises(ParameterError, match="n must be at least attributes"):
        plan_attributes(5, 3, 2.0, 1.0, attributes=4)


def test_the_command_shows_both(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", "--k", "5", "--n", "1000", "--eps-inf", "2", "--eps-1", "1"]
    assert main([*asked, "--attributes", "3", "--protocol", "biloloha"]) == 0
    assert "draw one of the 3 attributes" in " ".join(capsys.readouterr().out.split())
    assert main([*asked, "--attributes", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["better"] == "drawn"
    assert main(["plan", "--attributes", "3", "--error", "0.1"]) == 2
