"""Several attributes under one budget: both ways by formula, and the better one."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.cli import main
from loloha.errors import ParameterError
from loloha.planning import attributes
from loloha.planning.attributes import AttributesPlan, plan_attributes
from loloha.privacy.rounded import frequency, loss


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
    drawn = found.drawn.recommendation
    assert drawn is not None
    even = loloha.variance(drawn.protocol, 9_000, 1 / 20, eligible=9_000 // d)
    assert drawn.rmse**2 == pytest.approx(even, rel=1e-12)
    errors = {way: plan.recommendation.rmse for way, plan in ways_of(found)}
    assert found.better == min(errors, key=lambda way: errors[way])
    assert frequency(errors[found.better]) in found.reason
    assert found.chosen is (found.shared if found.better == "shared" else found.drawn)


def ways_of(found: AttributesPlan) -> list[tuple[str, Any]]:
    return [("shared", found.shared), ("drawn", found.drawn)]


def test_for_two_equally_frequent_values_sharing_is_better() -> None:
    """Of 5/4 over two attributes: who is drawn adds 5e-5 at f = 1/2, the noise is 0.8e-5."""
    found = plan_attributes(2, 5000, 5.0, 4.0, attributes=2)
    assert found.better == "shared"
    shared, drawn = (plan.recommendation.rmse**2 for _, plan in ways_of(found))
    assert shared == pytest.approx(3.62e-5, rel=0.01)
    assert drawn == pytest.approx(0.76e-5 + 0.25 * 2500 / (4999 * 2500), rel=0.01)
    assert "For rare values alone drawing one is better." in found.reason


@pytest.mark.parametrize(("k", "eps_inf", "eps_1"), [(2, 5.0, 4.0), (20, 2.0, 1.0)])
def test_the_reason_says_the_numbers_of_both_plans(k: int, eps_inf: float, eps_1: float) -> None:
    found = plan_attributes(k, 5000, eps_inf, eps_1, attributes=3, level=0.9)
    best = found.chosen.recommendation
    (other,) = (plan.recommendation for way, plan in ways_of(found) if way != found.better)
    assert best is not None
    assert other is not None
    assert f"is {frequency(best.rmse)}; " in found.reason
    assert f", {frequency(other.rmse)}. " in found.reason
    assert f"90 % error of a rare value is {frequency(best.error_one)}; " in found.reason
    assert f", {frequency(other.error_one)}." in found.reason
    assert ("rare values alone" in found.reason) == (other.error_one < best.error_one)
    assert f"cap {loss(best.cap)} for each " in found.reason
    if found.better == "shared":
        assert f"{loss(3 * best.cap)} for each user" in found.reason


@pytest.mark.parametrize("f", [0, 1, 2, 3])
def test_the_variance_of_a_drawn_attribute_by_enumeration(f: int) -> None:
    """Every half of four users, each report's exact law: moments of the estimate are as planned."""
    protocol = loloha.GRR(k=2, eps=1.5)
    n, m = 4, 2
    p, q = protocol.p_star, protocol.q_star
    first = second = 0.0
    halves = list(itertools.combinations([1] * f + [0] * (n - f), m))
    for half in halves:
        for shown in itertools.product((0, 1), repeat=m):
            chances = [p if held else q for held in half]
            chance = math.prod(c if y else 1 - c for y, c in zip(shown, chances, strict=True))
            estimate = (sum(shown) / m - q) / (p - q)
            first += chance * estimate / len(halves)
            second += chance * estimate**2 / len(halves)
    assert first == pytest.approx(f / n, abs=1e-12)
    planned = loloha.variance(protocol, n, f / n, eligible=m)
    assert second - first**2 == pytest.approx(planned, rel=1e-12)
    # Without the users left out it would be that of the noise alone.
    noise = loloha.variance(protocol, m, f / n)
    assert (planned > noise * (1 + 1e-9)) is (0 < f < n)


@pytest.mark.parametrize("k", [2, 5])
def test_both_ways_err_as_simulated(k: int) -> None:
    """Mean squared error over all values, 4000 surveys (seed 5), at equal frequencies.

    Its standard error is 2.3 % at most (k = 2: one chi-square a survey); 11 % cover it at alpha
    2e-6. It would see the sampling missing: 7.6 times at k = 2.
    """
    n, d, surveys = 1000, 2, 4000
    found = plan_attributes(k, n, 5.0, 4.0, attributes=d, protocols=["l-grr"])
    rng = np.random.default_rng(5)
    population = np.full(k, n // k)
    for way, plan in ways_of(found):
        protocol = plan.recommendation.protocol
        users = n // d if way == "drawn" else n
        held = rng.multivariate_hypergeometric(population, users, size=surveys)
        shown = np.full((k, k), protocol.q_star) + np.eye(k) * (protocol.p_star - protocol.q_star)
        support = sum(rng.multinomial(held[:, v], shown[v]) for v in range(k))
        estimates = (support / users - protocol.q_star) / (protocol.p_star - protocol.q_star)
        error = float(np.mean((estimates - 1 / k) ** 2))
        assert error == pytest.approx(plan.recommendation.rmse**2, rel=0.11)


@pytest.mark.long
def test_losses_are_those_of_an_attribute_and_of_a_user() -> None:
    found = plan_attributes(6, 9_000, 4.0, 2.0, attributes=4)
    plain = json.loads(json.dumps(found.to_dict()))["losses"]
    shared = found.shared.recommendation
    assert shared is not None
    assert plain["shared"]["per_user"]["eps_inf"] == 4.0
    assert plain["shared"]["per_attribute"]["eps_inf"] == 1.0
    assert plain["shared"]["per_user"]["cap"] == pytest.approx(4 * shared.cap)
    assert plain["drawn"]["per_user"] == plain["drawn"]["per_attribute"]


def test_a_reason_says_where_rare_values_would_be_better_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = plan_attributes(9, 10_000, 4.0, 2.0, attributes=2, protocols=["biloloha"])
    shared, drawn = found.shared, found.drawn
    errors = {"rmse": (1.0, 2.0), "error_one": (4.0, 3.0)}
    monkeypatch.setattr(
        attributes, "_error", lambda plan, name: errors[name][0 if plan is shared else 1]
    )
    for better, rest in ((attributes.SHARED, "drawing one"), (attributes.DRAWN, "sharing")):
        text = attributes._reason(2, shared, drawn, better)
        assert (f"For rare values alone {rest} is better." in text) == (better == attributes.SHARED)
        assert text.index("error of an attribute") < text.index(rest)


def test_where_no_protocol_keeps_the_budgets_neither_way_has_losses() -> None:
    found = plan_attributes(5, 100, 2.0, 1.0, attributes=2, protocols=["grr"])
    assert found.shared.recommendation is found.drawn.recommendation is None
    assert "either way" in found.reason
    assert found.better == "drawn"
    assert found.losses == {"shared": None, "drawn": None}


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


def test_the_command_shows_both(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    asked = ["plan", "--k", "5", "--n", "1000", "--eps-inf", "2", "--eps-1", "1"]
    assert main([*asked, "--attributes", "3", "--protocol", "biloloha"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "draw one of the 3 attributes" in shown
    for name in ("cap, attribute", "cap, user", "eps_2, attribute", "eps_2, user"):
        assert name in shown
    assert "eps_inf = 2, eps_1 = 1 a user" in shown
    assert "eps_inf = 0.6667, eps_1 = 0.3333 an attribute" in shown
    assert "--protocol biloloha --eps-inf 2 --eps-1 1 --range 0 5 --bins 5" in shown
    assert main([*asked, "--attributes", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["better"] == "drawn"
    assert main(["plan", "--attributes", "3", "--error", "0.1"]) == 2
