"""Plans: the protocols for a domain, a number of users and two budgets, with error and cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from loloha import _moved, checks
from loloha.errors import ParameterError
from loloha.hashing import FAMILIES, LinearHash
from loloha.planning.holding import check_fixed, hold
from loloha.planning.prospect import Prospect, prospect
from loloha.planning.recommendation import AS_GOOD, OBJECTIVES, Plan
from loloha.planning.variants import variants
from loloha.planning.window_plan import windowed
from loloha.privacy.rounded import in_bytes
from loloha.protocols import OLOLOHA, REGISTRY, Protocol
from loloha.protocols.parameter_check import LARGEST_K
from loloha.protocols.rounds import CALIBRATIONS
from loloha.report import MOST_REPORTS

__all__ = ["Plan", "plan"]

LARGEST_REPORT = 64_000
"""Bytes of a report above which only a protocol that was asked for by name is recommended."""
SAMPLED = 16
"""Buckets a user samples, beside one and all, in the rows of protocols that sample some."""


@_moved.keywords(weigh="objective")
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
    objective: str = "cap",
    protocols: Iterable[str | Protocol] | None = None,
    population: int | None = None,
    window: int | None = None,
    loss: float | None = None,
) -> Plan:
    """Compare protocols for one survey and recommend one.

    Parameters
    ----------
    k : int
        Domain size, 2..2^24.
    n : int
        Reports expected in each round, n >= 1; with a window, users.
    eps_inf, eps_1, eps_2 : float
        Two of the three: the loss of all reports of one value, for ever; of the first report; of
        any one round with all others known. The third is what each protocol then makes of it.
    hash : str, optional
        Family of the hashed protocols, e.g. "linear" to hold them to it; by default all compete.
    level : float
        Of intervals and bounds, in (0, 1).
    calibration : {"tight", "published"}
        Of the protocols that have both.
    objective : {"cap", "round", "change"}
        What decides among equally good errors: the most budget that can be spent, the loss of any
        one round, or how surely a change shows.
    protocols : iterable of str or Protocol, optional
        Names in the registry, or protocols of domain size k with parameters of your own; by
        default all that estimate frequencies of values. One-round ones stand at eps = eps_1;
        dBitFlipPM has a bucket for each value, of which a user samples 1, 16 and all.
    population : int, optional
        Users of whom the n of a round are drawn at random, by default just these n: errors are
        then those of the frequencies of all of them.
    window, loss : int, float
        Plan for panels: a user reports in one round of ``window``, so that any so many rounds lose
        at most ``loss`` (which is then eps_2), however often values change. eps_inf is twice the
        loss by default. `Plan.ways` compares this with other ways to keep the loss.

    Returns
    -------
    Plan

    Raises
    ------
    ParameterError
        If a parameter lies outside its range, or a protocol is unknown or of another domain size.

    Notes
    -----
    The rule: of all protocols, and of OLOLOHA with all g, hash families and memos, those whose
    error of one value is at most 1.1 times the least within both budgets are equally good; of these
    the smallest cap is recommended (or another objective), then the fewest bytes a report, then
    the cheapest server. Reports above 64 kB are left out unless their protocol is named. OLOLOHA
    has rows for the hash family that suits n users, for the linear one, for the least variance, and
    for what the rule takes of each memo. Linear and least-prime hashing are tried up to the least
    prime of at least k symbols: more only add noise, and the reason says so where e^eps_1 + 1 is
    larger. Families other than the linear one compete where at least five users share each key, or
    where one is asked for. ``objective="change"`` tries the fewest
    symbols of each family only. The published calibration keeps the g of the paper.
    """
    if window is None and loss is None:
        fixed = check_fixed(eps_inf=eps_inf, eps_1=eps_1, eps_2=eps_2)
    else:
        others = {"eps_1": eps_1, "eps_2": eps_2, "population": population}
        fixed = windowed(window, loss, n, eps_inf, **others)
        n, population = n // int(window or 1), n
    checks.choice("objective", objective, OBJECTIVES)
    named = (
        protocols if protocols is None or isinstance(protocols, str | Protocol) else list(protocols)
    )
    options: dict[str, Any] = {"level": level, "population": population}
    rows = prospects(
        k, n, fixed, hash=hash, compete=hash is None, calibration=calibration, protocols=named,
        **options,
    )  # fmt: skip
    if calibration == "tight" and (named is None or OLOLOHA.name in _names(named)):
        within = [row.error_one for row in rows if row.eligible and _fits(row, named)]
        competing = variants(
            k, n, fixed, hash=hash, least=min(within, default=math.inf), as_good=AS_GOOD,
            objective=objective, **options,
        )  # fmt: skip
        known = [row.protocol for row in rows]
        for row in competing:
            if row.protocol not in known:
                known.append(row.protocol)
                rows += (row,)
    rows = tuple(row if _fits(row, named) else _left_out(row) for row in rows)
    budgets = fixed.get("eps_inf"), fixed.get("eps_1")
    return Plan(
        k, n, *budgets, level, calibration, objective, rows, fixed.get("eps_2"), population, window
    )  # fmt: skip


Named = Iterable[str | Protocol] | str | Protocol | None


def _names(named: Named) -> list[str]:
    """The names among what was asked for."""
    several = [named] if isinstance(named, str | Protocol) else named or ()
    return [name.lower() for name in several if isinstance(name, str)]


def _fits(row: Prospect, named: Named) -> bool:
    """Whether a report is small enough to be recommended unasked."""
    return named is not None or row.protocol is None or row.report_bytes <= LARGEST_REPORT


def _left_out(row: Prospect) -> Prospect:
    if not row.eligible:
        return row
    note = (
        f"a report takes {in_bytes(row.report_bytes)}, more than {in_bytes(LARGEST_REPORT)}: it is "
        "recommended only if it is named"
    )
    return replace(row, eligible=False, note=note, left_out=True)


def prospects(
    k: int,
    n: int,
    fixed: Mapping[str, float],
    *,
    hash: str | None = None,
    compete: bool = False,
    level: float = 0.95,
    calibration: str = "tight",
    protocols: Iterable[str | Protocol] | None = None,
    population: int | None = None,
) -> tuple[Prospect, ...]:
    """The rows of `plan`, without its recommendation: what to compare many budgets by."""
    # With ``compete`` a protocol whose hash family is chosen by n has a row for the linear one too.
    k = checks.integer("k", k, 2, LARGEST_K, "count the labels of the domain")
    n = checks.integer("n", n, 1, MOST_REPORTS, "give the reports you expect in a round")
    checks.choice("calibration", calibration, CALIBRATIONS)
    level = checks.level(level)
    others = {"k": k, "n": n, "calibration": calibration}
    others |= {} if hash is None else {"hash": checks.choice("hash", hash, FAMILIES)}
    wanted = histograms() if protocols is None else protocols
    return tuple(
        Prospect(candidate.name, candidate.label, None, False, candidate.note)
        if candidate.protocol is None
        else prospect(
            candidate.protocol,
            n,
            level=level,
            label=candidate.label,
            population=population,
            **fixed,
        )
        for candidate in candidates(fixed, others, wanted, compete)
    )


def histograms() -> list[str]:
    """Names of the protocols that estimate the frequency of every value."""
    return [name for name, cls in REGISTRY.items() if cls.histogram]


class Candidate(NamedTuple):
    """A protocol to look at, or why there is none."""

    name: str
    label: str
    protocol: Protocol | None
    note: str = ""


def candidates(
    fixed: Mapping[str, float],
    others: Mapping[str, Any],
    wanted: Iterable[str | Protocol],
    compete: bool = False,
) -> Iterator[Candidate]:
    """What to compare; protocols that these budgets rule out come with the reason."""
    for choice in [wanted] if isinstance(wanted, str | Protocol) else wanted:
        if isinstance(choice, Protocol):
            if choice.k != others["k"]:
                raise ParameterError(
                    f"protocols must have k = {others['k']}, got {choice!r}; plan for one domain"
                )
            yield Candidate(choice.name, repr(choice), choice)
            continue
        name = checks.choice(
            "protocols", choice.lower() if isinstance(choice, str) else choice, REGISTRY
        )
        cls = REGISTRY[name]
        known = cls.hints.union(field.name for field in fields(cls))
        params = {key: others[key] for key in others.keys() & known}
        sampled = sorted({1, min(SAMPLED, others["k"]), others["k"]}) if "d" in known else ()
        variants = {f"{name} d={d}": {**params, "d": d} for d in sampled} or {name: params}
        if compete and cls.hints & params.keys():
            variants[f"{name} {LinearHash.name}"] = {**params, "hash": LinearHash.name}
        made: Protocol | None = None
        for label, chosen in variants.items():
            try:
                before, made = made, hold(cls, fixed, chosen)
                if made != before:
                    yield Candidate(name, label, made)
            except ParameterError as error:
                yield Candidate(name, label, None, str(error))
