"""The frontier of eps_2 over the whole range of budgets, and the options that go with it."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest

from loloha.cli import main
from loloha.errors import ParameterError
from loloha.planning.frontier import frontier
from loloha.planning.holding import hold, third
from loloha.protocols import OLOLOHA

BUDGETS = [1e-6, 1e-3, 0.01, 0.5, 2.0, 18.5, 19.0, 25.0, 36.0, 40.0, 100.0, 351.0, 700.0]


@pytest.mark.parametrize("k", [2, 8, 100, 1 << 24])
@pytest.mark.parametrize("eps_inf", BUDGETS)
def test_every_eps_inf_has_points_or_one_reason(k: int, eps_inf: float) -> None:
    if eps_inf < 0.002:
        with pytest.raises(ParameterError, match="eps_2 and eps_inf must leave"):
            frontier(k, eps_inf)
        return
    found = frontier(k, eps_inf)
    assert found
    for one in found:
        assert one.eps_1 < min(one.eps_2, eps_inf)
        assert one.noise >= one.optimum * (1 - 1e-9)
        assert math.isfinite(one.noise)
    noises = [one.noise for one in found]
    assert all(b <= a * (1 + 1e-6) for a, b in pairwise(noises))


@pytest.mark.parametrize("g", [2, 3, 1 << 20])
@pytest.mark.parametrize("eps", [1e-3, 0.3, 1.0, 8.0, 19.0, 40.0, 300.0])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 1.9])
def test_the_third_budget_multiplies_the_contrasts(g: int, eps: float, ratio: float) -> None:
    """lambda(eps_1) = lambda(eps_2) lambda(eps_inf), in rational arithmetic."""
    once = ratio * eps
    u, v = (1 / Fraction(math.exp(x)) for x in (once, eps))
    product = (1 - u) / (1 + (g - 1) * u) * (1 - v) / (1 + (g - 1) * v)
    odds = g * product / (1 - product)
    found = third(g, eps_2=once, eps_inf=eps)["eps_1"]
    expected = math.log1p(odds) if odds < 1 << 40 else math.log(odds)
    assert found == pytest.approx(expected, rel=1e-11)
    if ratio < 1 and found < once * (1 - 1e-6):
        assert third(g, eps_1=found, eps_2=once)["eps_inf"] == pytest.approx(eps, rel=1e-5)


def test_an_unattainable_g_leaves_the_others() -> None:
    held = {"eps_inf": 0.01, "eps_2": 0.004}
    assert hold(OLOLOHA, held, {"k": 100}).asked_first >= 1e-6


@pytest.mark.parametrize(
    "more",
    [
        ["--attributes", "2"], ["--n", "100"], ["--eps-1", "1"], ["--protocol", "grr"],
        ["--eps-2", "1"], ["--level", "0.9"], ["--objective", "round"], ["--error", "0.1"],
        ["--calibration", "published"], ["--all-values"], ["--visible", "0.1"],
    ],
)  # fmt: skip
def test_what_the_frontier_would_ignore_is_refused(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--frontier", "--k", "8", "--eps-inf", "40", *more]) == 2
    assert more[0] in capsys.readouterr().err


def test_the_command_answers_at_large_budgets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--frontier", "--k", "8", "--eps-inf", "40"]) == 0
    assert "eps_inf = 40" in capsys.readouterr().out
