"""Which protocol for a domain, a number of users and two budgets: what each can see and costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from loloha.design import limits
from loloha.design.holding import check_held, hold
from loloha.design.prospect import REPORTS_OF_A_CHANGE, Prospect, prospect
from loloha.errors import ParameterError
from loloha.rules import checks
from loloha.rules.hashing import FAMILIES
from loloha.rules.protocols import REGISTRY, Protocol
from loloha.rules.protocols.base import CALIBRATIONS, LARGEST_K
from loloha.server.frame import records_to_frame, to_html
from loloha.server.variance import MOST_REPORTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AS_GOOD = 1.1
"""Errors up to this many times the least count as equally good: cap and cost decide then."""

WEIGHED = {"cap": "cap", "round": "eps_round", "change": "change"}
"""What decides among rows whose errors are equally good, and the column that holds it."""

SAMPLED = 16
"""Buckets a user samples, beside one and all, in the rows of protocols that sample some."""


@dataclass(frozen=True, repr=False)
class Plan:
    """A table of protocols, the one to take, and whether it can see anything.

    Attributes
    ----------
    k, n, eps_inf, eps_1, level, calibration, weigh, eps_2
        What was asked for; of the three losses two, and None for the other.
    rows : tuple of Prospect
    recommendation : Prospect or None
        None if no row is eligible.
    reason : str
        Why that one.
    warning : str or None
        What can still be seen, where the noise swamps the average value; else None.
    """

    k: int
    n: int
    eps_inf: float | None
    eps_1: float | None
    level: float
    calibration: str
    weigh: str
    rows: tuple[Prospect, ...]
    recommendation: Prospect | None
    reason: str
    warning: str | None
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

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; the recommendation is the label of its row."""
        plain: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        plain["rows"] = [row.to_dict() for row in self.rows]
        plain["recommendation"] = self.recommendation.label if self.recommendation else None
        return plain | {"least_eps_2": self.least_eps_2}

    def to_frame(self, *, backend: str | None = None) -> Any:
        """A row for each protocol: what it can see, and what it costs.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            Kind of the frame; pyarrow by default.
        """
        records = []
        for row in self.rows:
            plain = row.to_dict()
            del plain["protocol"], plain["name"]
            label = plain.pop("label")
            records.append({"protocol": label, "recommended": row is self.recommendation, **plain})
        return records_to_frame(records, backend)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_frame(backend="pyarrow").__arrow_c_stream__(requested_schema)

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


def plan(
    k: int,
    n: int,
    eps_inf: float | None = None,
    eps_1: float | None = None,
    *,
    eps_2: float | None = None,
    hash: str | None = None,
    level: float = 0.95,
    calibration: str = "tight",
    weigh: str = "cap",
    protocols: Iterable[str | Protocol] | None = None,
) -> Plan:
    """Compare protocols for one survey and recommend one.

    Parameters
    ----------
    k : int
        Domain size, 2..2^24.
    n : int
        Reports expected in each round, n >= 1.
    eps_inf, eps_1, eps_2 : float
        Two of the three: the loss of all reports of one value, for ever; of the first report; of
        any one round with all others known. The third is what each protocol then makes of it.
    hash : str, optional
        Family of the hashed protocols, e.g. "linear" to hold them to it; by default the best one
        whose keys n users share.
    level : float
        Of intervals and bounds, in (0, 1).
    calibration : {"tight", "published"}
        Of the protocols that have both.
    weigh : {"cap", "round", "change"}
        What decides among equally good errors: the most budget that can be spent, the loss of any
        one round, or how surely a change shows.
    protocols : iterable of str or Protocol, optional
        Names in the registry, or protocols of domain size k with parameters of your own; by
        default the whole registry. One-round rules stand at eps = eps_1; dBitFlipPM has a bucket
        for each value, of which a user samples 1, 16 and all.

    Returns
    -------
    Plan

    Raises
    ------
    ParameterError
        If a parameter lies outside its range, or a protocol is unknown or of another domain size.

    Notes
    -----
    The rule: among the rows within both budgets, those whose error of one value is at most 1.1
    times the least count as equally good; of these the one with the smallest cap (or what else is
    weighed), then the fewest bytes a later report, then the cheapest server.
    """
    held = check_held(eps_inf=eps_inf, eps_1=eps_1, eps_2=eps_2)
    checks.choice("weigh", weigh, WEIGHED)
    rows = prospects(
        k, n, held, hash=hash, level=level, calibration=calibration, protocols=protocols
    )
    best, reason = _recommend(rows, weigh)
    warning = None if best is None else _warning(best, n, level)
    budgets = held.get("eps_inf"), held.get("eps_1")
    return Plan(
        k, n, *budgets, level, calibration, weigh, rows, best, reason, warning, held.get("eps_2")
    )


def prospects(
    k: int,
    n: int,
    held: Mapping[str, float],
    *,
    hash: str | None = None,
    level: float = 0.95,
    calibration: str = "tight",
    protocols: Iterable[str | Protocol] | None = None,
) -> tuple[Prospect, ...]:
    """The rows of `plan`, without its recommendation: what to compare many budgets by."""
    k = checks.integer("k", k, 2, LARGEST_K, "count the labels of the domain")
    n = checks.integer("n", n, 1, MOST_REPORTS, "give the reports you expect in a round")
    checks.choice("calibration", calibration, CALIBRATIONS)
    level = checks.level(level)
    others = {"k": k, "n": n, "calibration": calibration}
    others |= {} if hash is None else {"hash": checks.choice("hash", hash, FAMILIES)}
    return tuple(
        Prospect(one.name, one.label, None, False, one.note)
        if one.protocol is None
        else prospect(one.protocol, n, level=level, label=one.label, **held)
        for one in candidates(held, others, REGISTRY if protocols is None else protocols)
    )


class Candidate(NamedTuple):
    """A protocol to look at, or why there is none."""

    name: str
    label: str
    protocol: Protocol | None
    note: str = ""


def candidates(
    held: Mapping[str, float], others: Mapping[str, Any], wanted: Iterable[str | Protocol]
) -> Iterator[Candidate]:
    """What to compare; protocols that these budgets rule out come with the reason."""
    for one in [wanted] if isinstance(wanted, str | Protocol) else wanted:
        if isinstance(one, Protocol):
            if one.k != others["k"]:
                raise ParameterError(
                    f"protocols must have k = {others['k']}, got {one!r}; plan for one domain"
                )
            yield Candidate(one.name, repr(one), one)
            continue
        name = checks.choice("protocols", one.lower() if isinstance(one, str) else one, REGISTRY)
        cls = REGISTRY[name]
        known = cls.hints.union(field.name for field in fields(cls))
        params = {key: others[key] for key in others.keys() & known}
        sampled = sorted({1, min(SAMPLED, others["k"]), others["k"]}) if "d" in known else [None]
        for d in sampled:
            label = name if d is None else f"{name} d={d}"
            try:
                protocol = hold(cls, held, params if d is None else {**params, "d": d})
                yield Candidate(name, label, protocol)
            except ParameterError as error:
                yield Candidate(name, label, None, str(error))


def _recommend(rows: tuple[Prospect, ...], weigh: str) -> tuple[Prospect | None, str]:
    """The row to take by the rule of `plan`, and why."""
    within = [row for row in rows if row.eligible]
    if not within:
        return None, "No protocol here keeps both budgets; see the notes of the rows."
    least = min(within, key=lambda row: row.error_one)
    as_good = [row for row in within if row.error_one <= AS_GOOD * least.error_one]
    best = min(
        as_good, key=lambda row: (_weight(row, weigh), row.report_bytes, row.server_operations)
    )
    named = best.label if best.g is None else f"{best.label} (g = {best.g})"
    reason = f"{named}: its error of one value, {best.error_one:.3g}, is "
    if best is least:
        reason += "the least within both budgets"
    else:
        reason += f"within 10 % of the least ({least.error_one:.3g}, {least.label})"
    if len(as_good) == 1:
        return best, f"{reason}, and no other comes within 10 % of it. {_over_time(best)}"
    others = ", ".join(
        f"{row.label} {_weight(row, weigh):.4g}/{row.report_bytes}"
        for row in as_good
        if row is not best
    )
    return best, (
        f"{reason}. Of the {len(as_good)} that are as good it has {_LEAST[weigh]}, then the "
        f"fewest bytes a report, then the cheapest server: {_weight(best, weigh):.4g}/"
        f"{best.report_bytes}, against {others} ({weigh}/bytes). {_over_time(best)}"
    )


_LEAST = {
    "cap": "the smallest cap",
    "round": "the smallest loss of any one round",
    "change": "changes that show least",
}


def _weight(row: Prospect, weigh: str) -> float:
    number = getattr(row, WEIGHED[weigh])
    return math.inf if number is None else float(number)


def _over_time(row: Prospect) -> str:
    """What the recommended protocol reveals of values that change."""
    once = row.eps_round
    bound = f"loses at most {once:.4g}" if math.isfinite(once) else "has no bound"
    shows = "not computed" if row.change is None else f"{row.change:.3f}"
    return (
        f"Any one round of it {bound}; a change shows with {shows} after {REPORTS_OF_A_CHANGE} "
        "reports (0.5 is chance, 1 is certainty)."
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
