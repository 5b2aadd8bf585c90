"""Several attributes under one budget: share it among all of them, or draw one for each user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loloha import checks
from loloha.errors import ParameterError
from loloha.planning.planning import Plan, plan
from loloha.privacy.rounded import digits, frequency, loss
from loloha.report import MOST_REPORTS

MOST_ATTRIBUTES = 1000
SHARED, DRAWN = "shared", "drawn"


@dataclass(frozen=True)
class AttributesPlan:
    """Two ways to ask n users about d attributes, each within one user's whole budget.

    Attributes
    ----------
    attributes : int
    shared : Plan
        Everybody reports every attribute, each with a d-th of the budgets: its losses are those of
        one attribute.
    drawn : Plan
        Everybody draws one attribute for ever, by chance and not by value, and reports it alone
        with the whole budgets. The n/d users of an attribute are a sample of all n: errors are
        those of the frequencies of all n.
    better : {"shared", "drawn"}
        Whose recommended protocol has the smaller mean squared error over all values of an
        attribute, where it is largest: of equal frequencies.
    reason : str
        In sentences.
    """

    attributes: int
    shared: Plan
    drawn: Plan
    better: str
    reason: str

    @property
    def chosen(self) -> Plan:
        """The plan of the better way."""
        return self.shared if self.better == SHARED else self.drawn

    @property
    def losses(self) -> dict[str, dict[str, dict[str, float | None]] | None]:
        """Losses of each way's recommended protocol: of one attribute, and of one user."""
        return {
            way: _losses(plan, self.attributes if way == SHARED else 1)
            for way, plan in ((SHARED, self.shared), (DRAWN, self.drawn))
        }

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "attributes": self.attributes,
            "shared": self.shared.to_dict(),
            "drawn": self.drawn.to_dict(),
            "losses": self.losses,
            "better": self.better,
            "reason": self.reason,
        }


def plan_attributes(
    k: int, n: int, eps_inf: float, eps_1: float, *, attributes: int, **options: Any
) -> AttributesPlan:
    """Compare the two ways to ask about several attributes, of k values each."""
    # Losses of one user's attributes add up, however the attributes depend on each other: d reports
    # of loss eps/d each reveal at most eps. Source: the paper, section 2, for both ways. That the m
    # = n/d users of a drawn attribute are a sample adds f(1-f) (n - m)/((n - 1) m) to the variance:
    # nothing for a rare value, most at equal frequencies, where the mean squared error of drawing
    # is largest. That of sharing is the same for every truth. Errors are those of n/d users, who
    # draw an attribute on average: since their number varies, the variance is larger by some d/n.
    d = checks.integer(
        "attributes", attributes, 2, MOST_ATTRIBUTES, "for one attribute use loloha.plan"
    )
    n = checks.integer("n", n, 1, MOST_REPORTS, "give the reports you expect in a round")
    if n < d:
        raise ParameterError(
            f"n must be at least attributes = {d}, got {n!r}; each attribute needs reports"
        )
    shared = plan(k, n, eps_inf / d, eps_1 / d, **options)
    drawn = plan(k, n // d, eps_inf, eps_1, population=n, **options)
    better = SHARED if _error(shared, "rmse") < _error(drawn, "rmse") else DRAWN
    return AttributesPlan(d, shared, drawn, better, _reason(d, shared, drawn, better))


def _reason(d: int, shared: Plan, drawn: Plan, better: str) -> str:
    best = shared if better == SHARED else drawn
    if best.recommendation is None:
        return "No protocol here keeps both budgets either way; see the notes of the rows."
    other = drawn if better == SHARED else shared
    ways = {
        SHARED: f"share the budget: every user reports all {d} attributes, each with 1/{d} of it",
        DRAWN: f"draw one of the {d} attributes for each user, once and for ever, and report it "
        "alone with the whole budget",
    }
    doing = {SHARED: "sharing", DRAWN: "drawing one"}
    rest = doing[DRAWN if better == SHARED else SHARED]
    least, most = (frequency(_error(plan, "rmse")) for plan in (best, other))
    rare = [_error(plan, "error_one") for plan in (best, other)]
    text = (
        f"{ways[better]}. At equal frequencies the root mean squared error of an attribute's "
        f"values is {least}; {rest}, {most}. The {100 * best.level:g} % error of a rare value is "
        f"{frequency(rare[0])}; {rest}, {frequency(rare[1])}."
    )
    if rare[1] < rare[0]:
        text += f" For rare values alone {rest} is better."
    cap = best.recommendation.cap
    if better == SHARED:
        return (
            f"{text} {best.recommendation.title}: cap {loss(cap)} for each attribute, "
            f"{loss(d * cap)} for each user."
        )
    return f"{text} {best.recommendation.title}: cap {loss(cap)} for each user."


def _error(plan: Plan, name: str) -> float:
    """A number of the recommended protocol; infinite where none is."""
    row = plan.recommendation
    return float("inf") if row is None else float(getattr(row, name))


def _losses(plan: Plan, reported: int) -> dict[str, dict[str, float | None]] | None:
    """Of one attribute and of one user, who reports so many."""
    row = plan.recommendation
    if row is None:
        return None
    numbers = {
        "eps_1": row.eps_1, "eps_inf": row.eps_inf, "eps_2": row.eps_2, "cap": row.cap,
    }  # fmt: skip
    return {
        "per_attribute": {name: checks.finite(eps) for name, eps in numbers.items()},
        "per_user": {name: checks.finite(_of(reported, eps)) for name, eps in numbers.items()},
    }


def _of(reported: int, eps: float) -> float:
    """A d-th of a budget, d times, is the budget that was asked for."""
    return eps if reported == 1 else digits(reported * eps, 12)
