"""A table of protocols for one survey, the one to take, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from loloha import _moved, checks
from loloha.hashing import LinearHash, PrimeHash, least_prime
from loloha.planning import creation, limits
from loloha.planning.numeric import MeanPlan, plan_mean
from loloha.planning.prospect import Prospect
from loloha.planning.reason import over_time, warning
from loloha.planning.window_plan import Way, ways
from loloha.privacy.rounded import digits, frequency, in_bytes, loss
from loloha.protocols import OLOLOHA
from loloha.protocols.rounds import CALIBRATIONS
from loloha.server.frame import Framed, Printed, Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AS_GOOD = 1.1
"""Errors up to this many times the least count as equally good: cap and cost decide then."""

CHANGE = "change"
OBJECTIVES = {"cap": "cap", "round": "eps_2", CHANGE: "change"}
"""Criteria among rows with equally good errors, and their columns."""

_LEAST = {
    "cap": "the smallest cap",
    "round": "the smallest loss of any one round",
    CHANGE: "changes that show least",
}
_NAMED = {"cap": "cap", "round": "eps_2", CHANGE: "AUC of a change"}


@dataclass(frozen=True, repr=False)
class Plan(Framed, Shown):
    """A table of protocols, the one to take, and whether it can see anything.

    Attributes
    ----------
    k, n, eps_inf, eps_1, level, calibration, objective, eps_2, population, window
        What was asked for; of the three losses two, and None for the other. With a window n are the
        reports of a round, and the population all users.
    rows : tuple of Prospect
    """

    k: int
    n: int
    eps_inf: float | None
    eps_1: float | None
    level: float
    calibration: str
    objective: str
    rows: tuple[Prospect, ...]
    eps_2: float | None = None
    population: int | None = None
    window: int | None = None

    weigh = _moved.renamed("weigh", "objective")
    held = _moved.renamed("held", "budgets")

    @property
    def budgets(self) -> str:
        """The two losses that were asked for, in words."""
        numbers = {"eps_inf": self.eps_inf, "eps_1": self.eps_1, "eps_2": self.eps_2}
        return ", ".join(f"{name} = {eps:.4g}" for name, eps in numbers.items() if eps is not None)

    @property
    def least_eps_2(self) -> float | None:
        """What any one round loses at least if two rounds of noise spend all of eps_1, eps_inf."""
        if self.eps_inf is None or self.eps_1 is None:
            return None
        return limits.eps_2(self.eps_inf, self.eps_1)

    @cached_property
    def recommendation(self) -> Prospect | None:
        """The row to take by the rule of `loloha.plan`; None if none is eligible."""
        return min(self._as_good, key=self._rank, default=None)

    def _rank(self, row: Prospect) -> tuple[float, float, float]:
        """The criterion among equally good rows, smallest first."""
        weight = getattr(row, OBJECTIVES[self.objective])
        # To ten digits, so that rounding does not decide.
        rank = math.inf if weight is None else digits(weight, 10)
        return rank, row.report_bytes, row.server_operations

    @property
    def _as_good(self) -> list[Prospect]:
        """The rows among which cap and cost decide."""
        within = [row for row in self.rows if row.eligible]
        least = min((row.error_one for row in within), default=0.0)
        return [row for row in within if row.error_one <= AS_GOOD * least]

    @property
    def mean(self) -> MeanPlan | None:
        """If values are numbers in equal steps: how well their mean is known by `loloha.OneBit`.

        None unless eps_inf and eps_1 are given, and all users report.
        """
        if self.eps_inf is None or self.eps_1 is None or self.population is not None:
            return None
        best = self.recommendation
        histogram = None if best is None else best.protocol
        return plan_mean(self.k, self.n, self.eps_inf, self.eps_1, self.level, histogram)

    @property
    def reason(self) -> str:
        """Why that one."""
        best, as_good = self.recommendation, self._as_good
        if best is None:
            return "No protocol here keeps both budgets; see the notes of the rows."
        least = min(as_good, key=lambda row: row.error_one)
        named = (
            best.title if best.g is None or "g=" in best.title else f"{best.title} (g = {best.g})"
        )
        reason = f"{named}: its error of one value, {frequency(best.error_one)}, is "
        if best is least:
            reason += "the least within both budgets"
        else:
            reason += f"within 10 % of the least ({frequency(least.error_one)}, {least.title})"
        if len(as_good) == 1:
            reason += ", and no other comes within 10 % of it."
        else:
            others = "; ".join(
                f"{row.title}: {self._cost(row)}" for row in as_good if row is not best
            )
            reason += (
                f". Of the {len(as_good)} that are as good (an error of at most {AS_GOOD:g} times "
                f"the least) it has {_LEAST[self.objective]}, then the fewest bytes a report, then "
                f"the cheapest server: {self._cost(best)}. {others}."
            )
        large = [row for row in self.rows if row.left_out]
        if large:
            reason += " Left out, unless it is named: " + "; ".join(
                f"{row.title}, {in_bytes(row.report_bytes)} a report" for row in large
            )
            reason += "."
        return f"{reason}{self._most_symbols}{self._window_loss} {over_time(best)}"

    @property
    def _most_symbols(self) -> str:
        """Why OLOLOHA was not tried with more symbols, where their best number is larger."""
        most = least_prime(self.k)
        larger = any(
            isinstance(row.protocol, OLOLOHA)
            and row.protocol.hash in (LinearHash.name, PrimeHash.name)
            and row.eps_1 > math.log(most - 1)
            for row in self.rows
        )
        if not larger or self.calibration != CALIBRATIONS[0]:
            return ""
        return (
            f" Linear and least-prime hashing compete with up to g = {most}, the least prime of at "
            f"least k = {self.k}: every value then has a symbol of its own, and more symbols only "
            "add noise."
        )

    @property
    def _window_loss(self) -> str:
        """What panels keep, where they are planned for."""
        if not self.window or self.eps_2 is None:
            return ""
        return (
            f" A device reports in one round of {self.window}: two histories that differ only in "
            f"{self.window} rounds that follow each other lose at most {loss(self.eps_2)}, however "
            "often values change in them; a device that is installed anew can report once more."
        )

    def _cost(self, row: Prospect) -> str:
        """What decides between equally good rows, in words."""
        weight = getattr(row, OBJECTIVES[self.objective])
        shown = "not computed" if weight is None else loss(weight)
        return f"{_NAMED[self.objective]} {shown}, {in_bytes(row.report_bytes)} a report"

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """Ways to keep the loss in any window, the recommended one first; none without a window."""
        best = self.recommendation
        users, window, eps_inf, loss = self.population, self.window, self.eps_inf, self.eps_2
        if best is None or not (best.protocol and users and window and eps_inf and loss):
            return ()
        return ways(best.protocol, users, window, eps_inf, loss)

    @property
    def command(self) -> str | None:
        """The command that creates a campaign of the recommended protocol; None without one."""
        best = self.recommendation
        if best is None or best.protocol is None:
            return None
        return creation.command(best.protocol, self.window or 1)

    @property
    def python(self) -> str | None:
        """An expression that makes the recommended protocol; None if none is eligible."""
        best = self.recommendation
        return None if best is None or best.protocol is None else creation.python(best.protocol)

    @property
    def warning(self) -> str | None:
        """What can still be detected if noise exceeds the average value; else None."""
        best = self.recommendation
        return None if best is None else warning(best, self.n, self.level)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; the recommendation is the label of its row."""
        plain: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return plain | {
            "rows": [row.to_dict() for row in self.rows],
            "recommendation": self.recommendation.label if self.recommendation else None,
            "reason": self.reason,
            "command": self.command,
            "python": self.python,
            "warning": self.warning,
            "least_eps_2": self.least_eps_2,
            "ways": [way.to_dict() for way in self.ways],
            "mean": self.mean and self.mean._asdict(),
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
        from loloha.figure.lines import draw_errors

        shown = [row for row in self.rows if row.protocol is not None]
        return draw_errors(
            [row.title for row in shown],
            [row.name for row in shown],
            {
                f"{100 * self.level:g} % error of one value": [row.error_one for row in shown],
                "of all values at once": [row.error_all for row in shown],
            },
            1 / self.k,
            ax,
        )

    def _shown(self) -> Printed:
        shown = [row for row in self.rows if row.protocol is not None]
        return (
            f"{checks.counted(self.n, 'report')} a round over {self.k} values, {self.budgets}",
            ("protocol", "g", "error of one", "error of all", "visible from", "cap", "competes"),
            [
                (row.title, row.g, frequency(row.error_one), frequency(row.error_all),
                 frequency(row.visible_one), loss(row.cap), "yes" if row.eligible else "no")
                for row in shown
            ],
            f"Recommended: {self.reason}" + (f" {self.warning}" if self.warning else ""),
        )  # fmt: skip

    def __repr__(self) -> str:
        best = self.recommendation.label if self.recommendation else None
        return (
            f"Plan(k={self.k}, n={self.n}, {self.budgets.replace(' = ', '=')}, "
            f"recommendation={best!r}, {len(self.rows)} rows)"
        )
