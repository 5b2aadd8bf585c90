"""Several attributes under one budget: share it among all of them, or draw one for each user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loloha.design.planning import Plan, plan
from loloha.errors import ParameterError
from loloha.rules import checks

MOST_ATTRIBUTES = 1000


@dataclass(frozen=True)
class AttributesPlan:
    """Two ways to ask n users about d attributes, each within one user's whole budget.

    Attributes
    ----------
    attributes : int
    shared : Plan
        Everybody reports every attribute, each with a d-th of the budgets.
    drawn : Plan
        Everybody draws one attribute for ever, by chance and not by value, and reports it alone
        with the whole budgets: an n/d-th of the reports for each.
    better : {"shared", "drawn"}
        Whose recommended protocol has the smaller variance.
    reason : str
        In a sentence.
    """

    attributes: int
    shared: Plan
    drawn: Plan
    better: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "attributes": self.attributes,
            "shared": self.shared.to_dict(),
            "drawn": self.drawn.to_dict(),
            "better": self.better,
            "reason": self.reason,
        }


def plan_attributes(
    k: int, n: int, eps_inf: float, eps_1: float, *, attributes: int, **options: Any
) -> AttributesPlan:
    """Compare the two ways to ask about several attributes, of k values each.

    Parameters
    ----------
    k, n, eps_inf, eps_1
        As for `loloha.plan`; the budgets are those of one user for all attributes together.
    attributes : int
        How many, d >= 2.
    **options
        As for `loloha.plan`.

    Returns
    -------
    AttributesPlan

    Raises
    ------
    ParameterError
        If a parameter lies outside its range, or there are fewer reports than attributes.

    Notes
    -----
    Losses of one user's attributes add up, however the attributes depend on each other: d reports
    of loss eps/d each reveal at most eps. Source: the paper, section 2, for both ways.
    """
    d = checks.integer(
        "attributes", attributes, 2, MOST_ATTRIBUTES, "for one attribute use loloha.plan"
    )
    n = checks.integer("n", n, 1, 1 << 53, "give the reports you expect in a round")
    if n < d:
        raise ParameterError(
            f"n must be at least attributes = {d}, got {n!r}; each attribute needs reports"
        )
    shared = plan(k, n, eps_inf / d, eps_1 / d, **options)
    drawn = plan(k, n // d, eps_inf, eps_1, **options)
    one, other = _variance(shared), _variance(drawn)
    better = "shared" if one < other else "drawn"
    said = {
        "shared": f"share the budget: every user reports all {d} attributes, each with a {d}-th "
        f"of it. V* of one attribute is {one:.3g}",
        "drawn": f"draw one of the {d} attributes for each user, once and for ever, and report it "
        f"alone with the whole budget. V* of one attribute is {other:.3g}",
    }
    rest = {"shared": f"drawing one, {other:.3g}", "drawn": f"sharing, {one:.3g}"}
    return AttributesPlan(d, shared, drawn, better, f"{said[better]}; {rest[better]}.")


def _variance(found: Plan) -> float:
    """V* of the recommended protocol; infinite where none is."""
    row = found.recommendation
    return float("inf") if row is None or row.variance is None else float(row.variance)
