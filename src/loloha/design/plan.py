"""A table of protocols for one survey, the one to take, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from loloha.design import limits
from loloha.design.prospect import REPORTS_OF_A_CHANGE, Prospect
from loloha.server.frame import Framed, to_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AS_GOOD = 1.1
"""Errors up to this many times the least count as equally good: cap and cost decide then."""

WEIGHED = {"cap": "cap", "round": "eps_round", "change": "change"}
"""What decides among rows whose errors are equally good, and the column that holds it."""

_LEAST = {
    "cap": "the smallest cap",
    "round": "the smallest loss of any one round",
    "change": "changes that show least",
}


@dataclass(frozen=True, repr=False)
class Plan(Framed):
    """A table of protocols, the one to take, and whether it can see anything.

    Attributes
    ----------
    k, n, eps_inf, eps_1, level, calibration, weigh, eps_2
        What was asked for; of the three losses two, and None for the other.
    rows : tuple of Prospect
    """

    k: int
    n: int
    eps_inf: float | None
    eps_1: float | None
    level: float
    calibration: str
    weigh: str
    rows: tuple[Prospect, ...]
    eps_2: float | None = None

    @property
    def held(self) -> str:
        """The two losses that were asked for, in words."""
        numbers = {"eps_inf": self.eps_inf, "eps_1": self.eps_1, "eps_2": self.eps_2}
        return ", ".join(f"{name} = {eps:.4g}" for name, eps in numbers.items() if eps is not None)

    @property
    def least_eps_2(self) -> float | None:
        """What any one round loses at least where eps_1 and eps_inf are held at full accuracy."""
        if self.eps_inf is None or self.eps_1 is None:
            return None
        return limits.eps_2(self.eps_inf, self.eps_1)

    @cached_property
    def recommendation(self) -> Prospect | None:
        """The row to take by the rule of `loloha.plan`; None if none is eligible."""
        as_good = self._as_good
        if not as_good:
            return None
        return min(
            as_good, key=lambda row: (self._weight(row), row.report_bytes, row.server_operations)
        )

    @property
    def _as_good(self) -> list[Prospect]:
        """The rows among which cap and cost decide."""
        within = [row for row in self.rows if row.eligible]
        least = min((row.error_one for row in within), default=0.0)
        return [row for row in within if row.error_one <= AS_GOOD * least]

    def _weight(self, row: Prospect) -> float:
        number = getattr(row, WEIGHED[self.weigh])
        return math.inf if number is None else float(number)

    @property
    def reason(self) -> str:
        """Why that one."""
        best, as_good = self.recommendation, self._as_good
        if best is None:
            return "No protocol here keeps both budgets; see the notes of the rows."
        least = min(as_good, key=lambda row: row.error_one)
        named = best.label if best.g is None else f"{best.label} (g = {best.g})"
        reason = f"{named}: its error of one value, {best.error_one:.3g}, is "
        if best is least:
            reason += "the least within both budgets"
        else:
            reason += f"within 10 % of the least ({least.error_one:.3g}, {least.label})"
        if len(as_good) == 1:
            return f"{reason}, and no other comes within 10 % of it. {_over_time(best)}"
        others = ", ".join(
            f"{row.label} {self._weight(row):.4g}/{row.report_bytes}"
            for row in as_good
            if row is not best
        )
        return (
            f"{reason}. Of the {len(as_good)} that are as good (an error of at most {AS_GOOD:g} "
            f"times the least) it has {_LEAST[self.weigh]}, then the fewest bytes a report, then "
            f"the cheapest server: {self._weight(best):.4g}/"
            f"{best.report_bytes}, against {others} ({self.weigh}/bytes). {_over_time(best)}"
        )

    @property
    def warning(self) -> str | None:
        """What can still be seen, where the noise swamps the average value; else None."""
        best = self.recommendation
        return None if best is None else _warning(best, self.n, self.level)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; the recommendation is the label of its row."""
        plain: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return plain | {
            "rows": [row.to_dict() for row in self.rows],
            "recommendation": self.recommendation.label if self.recommendation else None,
            "reason": self.reason,
            "warning": self.warning,
            "least_eps_2": self.least_eps_2,
        }

    def records(self) -> list[dict[str, Any]]:
        """A row for each protocol: what it can see, and what it costs."""
        records = []
        for row in self.rows:
            plain = row.to_dict()
            del plain["protocol"], plain["name"]
            label = plain.pop("label")
            records.append({"protocol": label, "recommended": row is self.recommendation, **plain})
        return records

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the error of each protocol, of one value and of all at once.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        """
        from loloha.study.figure.lines import draw_errors

        shown = [row for row in self.rows if row.protocol is not None]
        return draw_errors(
            [row.label for row in shown],
            [row.name for row in shown],
            {
                f"{100 * self.level:g} % error of one value": [row.error_one for row in shown],
                "of all values at once": [row.error_all for row in shown],
            },
            1 / self.k,
            ax,
        )

    def _repr_html_(self) -> str:
        shown = [row for row in self.rows if row.protocol is not None]
        return to_html(
            f"{self.n} reports a round over {self.k} values, {self.held}",
            ("protocol", "g", "error of one", "error of all", "visible from", "cap", "keeps both"),
            [
                (row.label, row.g, row.error_one, row.error_all, row.visible_one, row.cap,
                 "yes" if row.eligible else "no")
                for row in shown
            ],
            f"Recommended: {self.reason}" + (f" {self.warning}" if self.warning else ""),
        )  # fmt: skip

    def __repr__(self) -> str:
        best = self.recommendation.label if self.recommendation else None
        return (
            f"Plan(k={self.k}, n={self.n}, {self.held.replace(' = ', '=')}, "
            f"recommendation={best!r}, {len(self.rows)} rows)"
        )


def users_of_a_key(row: Prospect) -> str | None:
    """With how many users each shares the key, in digits; None where none is kept."""
    if row.shared is None:
        return None
    return f"{row.shared:.3g}" if row.shared < 1000 else f"{row.shared:.0f}"


def _over_time(row: Prospect) -> str:
    """What the recommended protocol reveals of values that change."""
    once = row.eps_round
    bound = f"loses at most {once:.4g}" if math.isfinite(once) else "has no bound"
    shows = "not computed" if row.change is None else f"at most {row.change:.4g}"
    keys = ""
    if row.shared is not None:
        users = f"about {users_of_a_key(row)} users share one"
        keys = f" A key joins its user's rounds; {users if row.shared >= 2 else 'few are shared'}."
    return (
        f"Any one round of it {bound}; a change shows with {shows} after {REPORTS_OF_A_CHANGE} "
        f"reports (0.5 is chance, 1 is certainty).{keys}"
    )


def _warning(row: Prospect, n: int, level: float) -> str | None:
    """What can still be seen, where noise hides a value of average frequency; None if it does not.

    Always answering "uniform" errs by the standard deviation of the true frequencies, which is at
    most sqrt(bins - 1)/bins: where one value holds everything.
    """
    bins = row.protocol.bins if row.protocol else 1
    one, every, rmse = row.error_one, row.error_all, row.rmse
    average, uniform = 1 / bins, math.sqrt(bins - 1) / bins
    if max(one, every) <= average:
        return None
    what, error = ("one value", one) if one > average else ("all values at once", every)
    hidden = (
        f"With n = {n} the {100 * level:g} % error of {what}, {error:.2g}, is above the average "
        f"frequency 1/{bins} = {average:.2g}."
    )
    if rmse >= uniform:
        hidden += (
            f" The noise swamps the histogram: whatever the truth, always answering 1/{bins} is "
            f"nearer to it on average (off by at most {uniform:.2g}, the estimates by {rmse:.2g})."
        )
    else:
        hidden += (
            f" Always answering 1/{bins} is nearer to the truth on average, unless the true "
            f"frequencies spread by more than {rmse:.2g} (standard deviation over the values)."
        )
    needed = math.ceil(n * (error / average) ** 2)
    return (
        f"{hidden} {_still_visible(row)} About {needed:.2g} reports a round would bring this error "
        "down to the average frequency."
    )


def _still_visible(row: Prospect) -> str:
    one, every = row.visible_one, row.visible_all
    if math.isinf(one):
        return "Nothing can be seen, not even a value that everybody holds."
    alone = f"Still visible: a value picked beforehand from a frequency of {one:.2g} on"
    if math.isinf(every):
        return f"{alone}; none when all values are looked at."
    return f"{alone}, or {every:.2g} when all values are looked at."
