"""Backwards: what is found meets the target, and a little less does not."""

import math
import re
from typing import Any

import matplotlib as mpl
import polars
import pytest

import loloha
from loloha.errors import ParameterError
from loloha.planning import sizing
from loloha.planning.prospect import Prospect
from loloha.planning.sizing import Requirement, Sizing

mpl.use("Agg")
LASTING = {"ololoha", "biloloha", "l-grr", "l-osue", "l-oue", "l-soue", "rappor"}
GOALS = [("error", False), ("error", True), ("visible", False), ("visible", True)]


def at(found: Sizing, label: str, number: float) -> Prospect:
    known: dict[str, Any] = {"k": found.k, "n": found.n, "eps_inf": found.eps_inf}
    known[found.unknown] = number
    eps = known.pop("eps_inf")
    row, *_ = loloha.plan(
        **known, eps_inf=eps, eps_1=found.alpha * eps, level=found.level, protocols=[label]
    ).rows
    return row


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("given", [{"k": 96, "n": 10**6}, {"k": 96, "eps_inf": 4.0},
                                   {"n": 10**5, "eps_inf": 4.0}])  # fmt: skip
def test_a_solution_is_enough_and_the_next_is_not(
    given: dict[str, Any], goal: tuple[str, bool]
) -> None:
    name, all_values = goal
    target: dict[str, Any] = {name: 0.02}
    found = loloha.plan_for(**target, all_values=all_values, **given)
    assert found.goal == f"{name}_{'all' if all_values else 'one'}"
    solved = [row for row in found.rows if row.solution is not None]
    assert {row.label for row in solved} <= LASTING
    assert {"ololoha", "rappor"} <= {row.label for row in solved}
    for row in solved:
        assert row.prospect is not None
        assert row.solution is not None
        assert getattr(row.prospect, found.goal) <= 0.02
        less = {"eps_inf": 0.989 * row.solution, "n": row.solution - 1, "k": row.solution + 1}
        if row.solution == 1 << 24:
            continue
        assert getattr(at(found, row.label, less[found.unknown]), found.goal) > 0.02, row.label


def test_the_most_frugal_comes_first() -> None:
    for given in ({"k": 96, "n": 10**6}, {"n": 10**6, "eps_inf": 4.0}):
        found = loloha.plan_for(error=0.02, all_values=True, **given)  # type: ignore[arg-type]
        numbers = [row.solution for row in found.rows if row.solution is not None]
        assert numbers == sorted(numbers, reverse="n" in given and "k" not in given)
        lacking = [row.solution is None for row in found.rows]
        assert lacking == sorted(lacking)
        assert all(row.note for row in found.rows if row.solution is None)


def test_a_budget_that_a_campaign_would_be_refused_for_is_marked() -> None:
    rows = loloha.plan_for(error=0.005, k=360, n=500, protocols=["l-osue", "l-grr"]).rows
    reached = [row for row in rows if row.solution is not None]
    assert reached
    for row in reached:
        assert row.solution is not None
        assert ("weak privacy" in row.note) == (row.solution > 5), row
    assert any(row.solution and row.solution > 5 for row in rows)
    strong = loloha.plan_for(error=0.1, k=360, n=5000, protocols=["l-osue"]).rows[0]
    assert strong.solution is not None
    assert (strong.solution <= 5, strong.note) == (True, "")


def test_nothing_is_enough_where_noise_has_a_floor() -> None:
    # Two symbols of a hash: at eps = infinity half of all reports still support a value by chance.
    (row,) = loloha.plan_for(error=0.01, k=96, n=10_000, protocols=["biloloha"]).rows
    assert (row.solution, row.prospect) == (None, None)
    assert "no eps_inf is enough" in row.note


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"error": 0.1, "k": 4, "n": 9, "eps_inf": 1.0}, "one of k, n and eps_inf"),
        ({"error": 0.1, "k": 4}, "one of k, n and eps_inf"),
        ({"k": 4, "n": 9}, "error or visible must be given"),
        ({"error": 0.1, "visible": 0.1, "k": 4, "n": 9}, "error or visible must be given"),
        ({"error": 0.0, "k": 4, "n": 9}, "inside"),
        ({"error": math.nan, "k": 4, "n": 9}, "error must"),
        ({"error": 0.1, "k": 4, "n": 9, "alpha": 1.0}, "inside"),
        ({"error": 0.1, "k": 4, "n": 9, "protocols": ["laplace"]}, "protocols must be"),
        ({"error": 0.1, "k": 1, "n": 9}, "k must be"),
    ],
)
def test_what_cannot_be_solved_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        loloha.plan_for(**given)


@pytest.mark.parametrize(
    ("unknown", "scale", "says"),
    [("eps_inf", "linear", "least eps_inf"), ("n", "log", "least n"), ("k", "log", "largest k")],
)
def test_the_picture_has_what_each_needs_with_the_most_frugal_on_top(
    unknown: str, scale: str, says: str
) -> None:
    given = {"k": 16, "n": 10_000, "eps_inf": 4.0, unknown: None}
    (seen,) = loloha.plan(16, 10_000, 4.0, 2.0, protocols=["l-grr"]).rows
    rows = (
        Requirement("frugal", 2.0, seen),
        Requirement("dear", 3.0, seen),
        Requirement("never", None, None, "no n is enough"),
    )
    known: Any = {"alpha": 0.5, "goal": "error_one", "target": 0.05, "level": 0.95}
    sizing = Sizing(unknown, rows=rows, **given, **known)
    axes = sizing.plot()
    points = [(*line.get_xdata(), *line.get_ydata()) for line in axes.get_lines()]
    assert points == [(3.0, 0), (2.0, 1)]
    assert list(axes.get_yticks()) == [0, 1]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["dear", "frugal"]
    assert (axes.get_xscale(), axes.get_xlabel()) == (scale, says)
    assert sizing.plot(ax=axes) is axes


def test_plans_sizings_and_sweeps_are_frames_pages_and_pictures() -> None:
    few = ["ololoha", "l-grr", "grr", "l-oue"]
    plan = loloha.plan(16, 10_000, 4.0, 2.0, protocols=few)
    frame = plan.to_frame(backend="pandas")
    assert frame["protocol"].tolist() == [row.label for row in plan.rows]
    (best,) = frame[frame["recommended"]]["protocol"]
    assert plan.recommendation is not None
    assert best == plan.recommendation.label
    assert repr(plan) == (
        f"Plan(k=16, n=10000, eps_inf=4, eps_1=2, recommendation={best!r}, {len(plan.rows)} rows)"
    )
    assert len(plan.rows) >= 4
    assert polars.DataFrame(plan).height == len(plan.rows)
    assert best in plan._repr_html_()
    drawn = [text.get_text() for text in plan.plot().get_yticklabels()]
    assert drawn == [row.title for row in plan.rows if row.protocol]

    sizing = loloha.plan_for(error=0.05, k=16, n=10_000, protocols=few[1:3])
    needed = sizing.to_frame(backend="polars")
    assert needed["eps_inf"].to_list() == [row.solution for row in sizing.rows]
    assert "error of one value: at most 0.05, for k = 16, n = 10000" in sizing._repr_html_()
    assert len(sizing.plot().get_lines()) == sum(row.solution is not None for row in sizing.rows)
    assert polars.DataFrame(sizing).equals(needed)
    assert repr(sizing) == f"Sizing(k=16, n=10000, error_one<=0.05, {len(sizing.rows)} rows)"
    assert sizing.to_dict()["rows"][0]["solution"] == sizing.rows[0].solution


def test_a_sweep_shows_the_three_budgets_of_each_plan() -> None:
    found = loloha.sweep(16, 10_000, [2.0, 4.0], [0.5, 1.0, 3.0], protocols="ololoha")
    assert [row[:2] for row in found.rows] == [
        (2.0, 0.5), (2.0, 1.0), (4.0, 0.5), (4.0, 1.0), (4.0, 3.0),
    ]  # fmt: skip
    frame = found.to_frame(backend="pandas")
    for (eps_inf, eps_1, seen), record in zip(found.rows, frame.to_dict("records"), strict=True):
        row, *_ = loloha.plan(16, 10_000, eps_inf, eps_1, protocols="ololoha").rows
        assert (record["error_one"], record["cap"]) == (row.error_one, row.cap)
        assert seen.protocol is not None
        assert record["eps_2"] == loloha.privacy.eps_2(seen.protocol)
    page = found._repr_html_()
    assert f"10000 reports a round over 16 values, {len(found.rows)} plans" in page
    first = page.split("<tbody>")[1].split("</tr>")[0]
    assert re.findall(r">([^<>]+)</td>", first)[:3] == ["ololoha", "4", "3"]
    axes = found.plot("eps_2", "rmse")
    assert [line.get_label() for line in axes.get_lines()] == [
        "ololoha, eps_inf = 2", "ololoha, eps_inf = 4",
    ]  # fmt: skip
    assert list(axes.get_lines()[0].get_ydata()) == frame["rmse"].tolist()[:2]
    assert len(loloha.sweep(16, 10_000, 2.0, protocols=["rappor"]).rows) == 18
    with pytest.raises(ParameterError, match="eps_1 must be below"):
        loloha.sweep(16, 10_000, 2.0, 3.0)
    with pytest.raises(ParameterError, match="x must be one of"):
        found.plot("n")


@pytest.mark.parametrize("least", [1, 2, 37, sizing.MOST_TRIED - 1, sizing.MOST_TRIED])
def test_the_fewest_reports_are_found(least: int) -> None:
    assert sizing.least_n(lambda n: n >= least) == least
    assert sizing.least_n(lambda n: n > sizing.MOST_TRIED) is None


@pytest.mark.parametrize(
    ("least", "said"),
    [(0.4995, 0.5), (0.50001, 0.501), (1.2341, 1.24), (12.31, 12.4), (30.5, 30.6)],
)
def test_the_least_budget_is_rounded_up_to_three_digits(least: float, said: float) -> None:
    assert sizing.least_eps(lambda eps: eps >= least) == pytest.approx(said, abs=1e-12)


def test_budgets_are_looked_through_from_a_64th_to_32() -> None:
    assert sizing.least_eps(lambda eps: False) is None
    assert sizing.least_eps(lambda eps: eps >= 32.1) is None
    assert sizing.least_eps(lambda eps: eps >= 31.91) == pytest.approx(32.0, abs=1e-12)
    # What is good already at the first is looked for a step below it.
    assert sizing.least_eps(lambda eps: eps >= 0.0156) == pytest.approx(0.0157, abs=1e-12)


@pytest.mark.parametrize("most", [2, 3, 4, 5, 1000, sizing.LARGEST_K - 1, sizing.LARGEST_K])
def test_the_largest_domain_is_found(most: int) -> None:
    assert sizing.largest_k(lambda k: k <= most) == most
    assert sizing.largest_k(lambda k: False) is None
