"""Inverse planning: the least budget, fewest reports or largest domain for a target error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from loloha import _moved, checks
from loloha.errors import ParameterError
from loloha.planning.accuracy_check import LARGEST_EPS
from loloha.planning.holding import check_fixed
from loloha.planning.planning import histograms, prospects
from loloha.planning.prospect import Prospect
from loloha.privacy.rounded import product
from loloha.protocols import Protocol
from loloha.protocols.parameter_check import LARGEST_K
from loloha.server.frame import Framed, Printed, Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_EPS, MOST_EPS = 1 / 64, 32.0
"""Range of budgets that is searched."""
MOST_TRIED = 1 << 40
"""Largest number of reports per round that is searched."""
_STEP = 1.25
_DIGITS = 3
GOALS = {
    "error_one": "error of one value",
    "error_all": "error of all values at once",
    "visible_one": "one value visible from",
    "visible_all": "all values visible from",
}


def least_eps(good: Callable[[float], bool]) -> float | None:
    """The least budget that is good, to three digits and rounded up; None if none is."""
    eps = LEAST_EPS
    while not good(eps):
        if eps >= MOST_EPS:
            return None
        eps = min(eps * _STEP, MOST_EPS)
    low, high = eps / _STEP, eps
    while high - low > high * 10**-_DIGITS / 4:
        middle = (low + high) / 2
        low, high = (low, middle) if good(middle) else (middle, high)
    unit = 10.0 ** (math.floor(math.log10(high)) - _DIGITS + 1)
    rounded = round(math.ceil(high / unit) * unit, 12)
    return rounded if good(rounded) else high


def least_n(good: Callable[[float], bool]) -> int | None:
    """The fewest reports that are good; None if none are."""
    if not good(MOST_TRIED):
        return None
    return _first(good, 0, MOST_TRIED)


def largest_k(good: Callable[[float], bool]) -> int | None:
    """The largest domain that is good; None if not even two values are."""
    if not good(2):
        return None
    k = 2
    while k < LARGEST_K and good(2 * k):
        k *= 2
    return k if k >= LARGEST_K else _first(lambda k_: not good(k_), k, 2 * k) - 1


def _first(good: Callable[[int], bool], low: int, high: int) -> int:
    """The least integer in low+1..high that is good, as ``high`` is."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Requirement:
    """What one protocol needs.

    Attributes
    ----------
    label : str
        Of the protocol, as in a `loloha.planning.planning.Plan`.
    solution : float, int or None
        The least eps_inf, the least n or the largest k; None if none will do.
    prospect : Prospect or None
        What the protocol sees there.
    note : str
        Why none will do; or that its privacy is weak, as `loloha campaign create` refuses it.
    """

    label: str
    solution: float | None
    prospect: Prospect | None
    note: str = ""

    found = _moved.renamed("found", "solution")


@dataclass(frozen=True, repr=False)
class Sizing(Framed, Shown):
    """What each protocol needs for a target error, the least first.

    Attributes
    ----------
    unknown : {"eps_inf", "n", "k"}
        What was solved for.
    k, n, eps_inf
        What was given; None for the unknown.
    alpha : float
        eps_1 / eps_inf.
    goal, target
        The number of a `Prospect` that is to be at most the target.
    level : float
    rows : tuple of Requirement
    """

    unknown: str
    k: int | None
    n: int | None
    eps_inf: float | None
    alpha: float
    goal: str
    target: float
    level: float
    rows: tuple[Requirement, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        plain: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        plain["rows"] = [
            {
                "label": row.label,
                "solution": row.solution,
                "found": row.solution,  # until 0.4
                "note": row.note,
                "prospect": row.prospect.to_dict() if row.prospect else None,
            }
            for row in self.rows
        ]
        return plain

    def records(self) -> list[dict[str, Any]]:
        """A row for each protocol: what it needs, and what it sees and costs there."""
        records = []
        for row in self.rows:
            seen = row.prospect.to_dict() if row.prospect else {}
            numbers = {name: seen.get(name) for name in ("g", "error_one", "error_all", "cap")}
            records.append({"protocol": row.label, self.unknown: row.solution, **numbers})
        return records

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw what each protocol needs.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        """
        from loloha.figure.lines import new_axes
        from loloha.figure.style import style

        axes: Any = new_axes() if ax is None else ax
        shown = [row for row in self.rows if row.prospect is not None][::-1]
        for place, row in enumerate(shown):
            name = row.prospect.name if row.prospect else ""
            axes.plot([row.solution], [place], **{**style(name), "linestyle": "none"})
        axes.set_yticks(range(len(shown)), [row.label for row in shown])
        axes.set_xscale("log" if self.unknown != "eps_inf" else "linear")
        axes.set_xlabel(f"{'largest' if self.unknown == 'k' else 'least'} {self.unknown}")
        axes.set_title(self._wanted, loc="left")
        return axes  # type: ignore[no-any-return]

    @property
    def _known(self) -> str:
        """What was given, in words."""
        given = {"k": self.k, "n": self.n, "eps_inf": self.eps_inf}
        return ", ".join(
            f"{name} = {value:.12g}" for name, value in given.items() if value is not None
        )

    @property
    def _wanted(self) -> str:
        """The target, in words."""
        return f"{GOALS[self.goal]}: at most {self.target:g}"

    def __repr__(self) -> str:
        known = self._known.replace(" = ", "=")
        return f"Sizing({known}, {self.goal}<={self.target:g}, {len(self.rows)} rows)"

    def _shown(self) -> Printed:
        rows = [(row.label, row.solution, row.note) for row in self.rows]
        note = f"eps_1 = {self.alpha:g} eps_inf, level {self.level:g}."
        return (f"{self._wanted}, for {self._known}", ("protocol", self.unknown, ""), rows, note)


def plan_for(
    *,
    error: float | None = None,
    visible: float | None = None,
    all_values: bool = False,
    k: int | None = None,
    n: int | None = None,
    eps_inf: float | None = None,
    alpha: float = 0.5,
    level: float = 0.95,
    calibration: str = "tight",
    protocols: Iterable[str | Protocol] | None = None,
) -> Sizing:
    """Solve for the one of eps_inf, n and k that is left out, at a target error.

    Parameters
    ----------
    error : float, optional
        Wanted half width of the interval of one rare value, in (0, 1). Give this or ``visible``.
    visible : float, optional
        Frequency, in (0, 1), to be distinguished from 0 with probability ``level``.
    all_values : bool
        Want it for all values at once, not for one picked beforehand.
    k, n : int, optional
        Domain size; reports in each round.
    eps_inf : float, optional
        Budget of all reports of one value.
    alpha : float
        eps_1 / eps_inf, in (0, 1).
    level, calibration, protocols
        As for `loloha.plan`.

    Returns
    -------
    Sizing

    Raises
    ------
    ParameterError
        Unless exactly one of k, n, eps_inf is left out, and one of error, visible given; or if one
        is out of range.

    Notes
    -----
    The least eps_inf is looked for in 1/64..32 in steps of a quarter and then by halving, to three
    digits, rounded up; n up to 2^40; k by doubling up to 2^24. What is returned meets the target.
    """
    given = {"k": k, "n": n, "eps_inf": eps_inf}
    unknown = [name for name, value in given.items() if value is None]
    if len(unknown) != 1:
        raise ParameterError(
            f"one of k, n and eps_inf must be left out, got {len(unknown)} left out; the error "
            "solves for it"
        )
    if (error is None) == (visible is None):
        raise ParameterError("error or visible must be given, got both or none; give one")
    name, wanted = ("error", error) if visible is None else ("visible", visible)
    target = checks.real(name, wanted, 0.0, 1.0, "0.01 is one percent")
    alpha = checks.real("alpha", alpha, 0.0, 1.0, "the paper uses 0.4 to 0.6")
    if target in (0.0, 1.0) or alpha in (0.0, 1.0):
        raise ParameterError(
            f"{name} and alpha must be inside (0, 1), got {target!r} and {alpha!r}; 0.01 and 0.5 "
            "are usual"
        )
    goal = f"{name}_{'all' if all_values else 'one'}"
    choose: Iterable[str | Protocol] = histograms() if protocols is None else protocols
    names = [choose] if isinstance(choose, str | Protocol) else list(choose)
    rows: list[Requirement] = []
    for label in names:

        def rows_at(number: float, protocol: str | Protocol = label) -> dict[str, Prospect]:
            known: dict[str, Any] = given | {unknown[0]: number}
            eps = known.pop("eps_inf")
            fixed = check_fixed(eps_inf=eps, eps_1=product(alpha, eps))
            prospected = prospects(
                **known, fixed=fixed, level=level, calibration=calibration, protocols=[protocol]
            )
            return {row.label: row for row in prospected}

        rows += _required(unknown[0], rows_at, goal, target)
    # The fewest reports and the least budget first, and the largest domain.
    sign = -1 if unknown[0] == "k" else 1
    rows.sort(key=lambda row: math.inf if row.solution is None else sign * row.solution)
    return Sizing(unknown[0], k, n, eps_inf, alpha, goal, target, level, tuple(rows))


def _required(
    unknown: str, rows_at: Callable[[float], dict[str, Prospect]], goal: str, target: float
) -> list[Requirement]:
    """What each row of one protocol needs."""
    start = {"eps_inf": 1.0, "n": 1000, "k": 8}[unknown]
    solve = {"eps_inf": least_eps, "n": least_n, "k": largest_k}[unknown]
    requirements = []
    for label, example in rows_at(start).items():
        if not example.eligible:
            lasting = "the first report spends more than eps_1"
            note = "nothing bounds the total" if example.spends_every_round else lasting
            requirements.append(Requirement(label, None, None, note))
            continue

        def good(number: float, label: str = label) -> bool:
            row = rows_at(number).get(label)
            return row is not None and row.eligible and getattr(row, goal) <= target

        number = solve(good)
        if number is None:
            requirements.append(Requirement(label, None, None, f"no {unknown} is enough"))
        else:
            reached = rows_at(number)[label]
            requirements.append(Requirement(label, number, reached, _weakness(reached)))
    return requirements


def _weakness(reached: Prospect) -> str:
    """That a campaign of it would be refused unless weak privacy is accepted; empty if not."""
    eps = reached.protocol.asked_memo if reached.protocol else 0.0
    return f"weak privacy: eps_inf {eps:.4g} is above {LARGEST_EPS:g}" if eps > LARGEST_EPS else ""
