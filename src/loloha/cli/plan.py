"""``loloha plan``: protocols for a number of users and budgets, with error and cost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loloha.checks import counted
from loloha.cli import console, frontier_table
from loloha.errors import ParameterError

if TYPE_CHECKING:
    from loloha.planning.planning import Plan
    from loloha.planning.sizing import Requirement, Sizing

ALPHA = 0.5
LEVEL, CALIBRATION, OBJECTIVE = 0.95, "tight", "cap"


def plan(
    *,
    k: int | None = None,
    n: int | None = None,
    eps_inf: float | None = None,
    eps_1: float | None = None,
    eps_2: float | None = None,
    hash_: str | None = None,
    frontier: bool = False,
    out: Path | None = None,
    force: bool = False,
    error: float | None = None,
    visible: float | None = None,
    all_values: bool = False,
    level: float = LEVEL,
    calibration: str = CALIBRATION,
    objective: str = OBJECTIVE,
    protocol: list[str] | None = None,
    attributes: int | None = None,
    window: int | None = None,
    loss: float | None = None,
    wide: bool = False,
    as_json: bool = False,
) -> None:
    """Compare protocols for one survey before anything is collected, and recommend one.

    Of all protocols, and of OLOLOHA with each g to about k, hash family and memo, those whose error
    of one value is at most 1.1 times the least within both budgets are equally good; of these the
    smallest cap is recommended (or what --objective names), then the fewest bytes a report, then
    the cheapest server. Reports above 64 kB are left out unless --protocol names them.

    Give two of --eps-inf, --eps-1 and --eps-2. With --error or --visible it solves for the one of
    --k, --n and --eps-inf that is left out, at an eps_1 of half of eps_inf unless both are given.
    --wide shows all columns. With --frontier, --out is a .png or .svg file.

    With --window W and --loss E each of n users reports in one round of W, and any W rounds lose at
    most E; other methods with that bound are compared.
    """
    import loloha

    if frontier:
        _only_frontier(
            n=n, eps_1=eps_1, eps_2=eps_2, error=error, visible=visible, all_values=all_values,
            level=level != LEVEL, calibration=calibration != CALIBRATION,
            objective=objective != OBJECTIVE, protocol=protocol, attributes=attributes, wide=wide,
            window=window, loss=loss,
        )  # fmt: skip
        frontier_table.show(k, eps_inf, hash_, out, force, as_json)
        return
    if out is not None:
        raise ParameterError("--out must come with --frontier, got it alone; leave it out")
    if eps_1 is not None and eps_inf is None and eps_2 is None:
        raise ParameterError("--eps-1 must come with --eps-inf, got it alone; it is a share of it")
    options: dict[str, Any] = {
        "level": level, "calibration": calibration, "protocols": protocol or None,
    }  # fmt: skip
    backwards = error is not None or visible is not None
    windowed = window is not None or loss is not None
    if windowed and (backwards or attributes is not None):
        other = "--attributes" if attributes is not None else "--error and --visible"
        raise ParameterError(f"--window and --loss must come without {other}; leave one out")
    if backwards and attributes is not None:
        raise ParameterError("--attributes must come without --error and --visible; leave one out")
    if backwards:
        alpha = ALPHA if eps_1 is None or eps_inf is None else eps_1 / eps_inf
        needed = loloha.plan_for(
            error=error, visible=visible, all_values=all_values, k=k, n=n, eps_inf=eps_inf,
            alpha=alpha, **options,
        )  # fmt: skip
        _show_needed(needed, as_json=as_json)
        return
    if k is None or n is None or ([eps_inf, eps_1, eps_2].count(None) > 1 and not windowed):
        given = {"--k": k, "--n": n, "--eps-inf": eps_inf, "--eps-1": eps_1, "--eps-2": eps_2}
        got = ", ".join(name for name, value in given.items() if value is not None) or "none"
        raise ParameterError(
            f"--k, --n and two of --eps-inf, --eps-1, --eps-2 must be given, got {got}; leave one "
            "out only with --error or --visible"
        )
    if attributes is not None:
        if eps_inf is None or eps_1 is None:
            raise ParameterError("--attributes must come with --eps-inf and --eps-1; give both")
        _show_attributes(k, n, eps_inf, eps_1, attributes, objective, options, wide, as_json)
        return
    proposal = loloha.plan(
        k, n, eps_inf, eps_1, eps_2=eps_2, hash=hash_, objective=objective, window=window,
        loss=loss, **options,
    )  # fmt: skip
    if as_json:
        console.show_json(proposal.to_dict())
        return
    _show_rows(proposal, wide)
    _show_ways(proposal)
    for row in proposal.rows:
        if row.note:
            console.show_text(f"- {row.title}: {row.note}")
    console.show()
    console.show_text(f"Recommended: {proposal.reason}")
    _show_made(proposal)
    if proposal.least_eps_2 is not None:
        console.show_text(
            "Two rounds of noise that spend all of these two budgets lose "
            f"{proposal.least_eps_2:.4g} "
            "in any one round at least (as two symbols do); `--frontier` shows what less of it "
            "costs."
        )
    _show_mean(proposal)
    if proposal.warning:
        console.warn(proposal.warning)


def _show_ways(plan: Plan) -> None:
    """Print other methods that bound the loss of any window, if one was given."""
    from loloha.privacy import rounded

    if not plan.ways:
        return
    best = plan.ways[0].mse_window
    console.show_table(
        ("way", "1 round", f"mean of {plan.window}", "squared", f"any {plan.window} lose",
         "one value", "reports"),
        [
            (
                way.name,
                rounded.frequency(math.sqrt(way.mse_round)),
                rounded.frequency(math.sqrt(way.mse_window)),
                f"{way.mse_window / best:.3g} x",
                rounded.loss(way.window_loss),
                rounded.loss(way.value_loss),
                way.reports,
            )
            for way in plan.ways
        ],
        title=f"{plan.population} users: root mean squared error at equal frequencies, loss of any "
        f"{plan.window} rounds and of one value for ever, a user's reports in {plan.window} rounds",
    )  # fmt: skip


def _show_mean(proposal: Plan) -> None:
    """Print the error of the mean by OneBit, if values are numbers."""
    from loloha.planning.numeric import WANTED
    from loloha.privacy.rounded import percent

    mean = proposal.mean
    if mean is None or proposal.k == 2:
        return
    histogram = ""
    if mean.histogram_users is not None:
        histogram = f"; from the histogram recommended here, {mean.histogram_users}"
    console.show_text(
        "If the values are numbers in equal steps: onebit (`loloha campaign create --number`) "
        f"tells their mean to within {percent(mean.error)} of the range with these reports "
        f"({100 * mean.level:.4g} %). To within {percent(WANTED)} it takes {mean.users} reports"
        f"{histogram}."
    )


def _show_attributes(
    k: int,
    n: int,
    eps_inf: float,
    eps_1: float,
    attributes: int,
    objective: str,
    options: dict[str, Any],
    wide: bool,
    as_json: bool,
) -> None:
    """Print both ways to ask about several attributes, and the better one."""
    from loloha.planning.attributes import plan_attributes

    ways = plan_attributes(
        k, n, eps_inf, eps_1, attributes=attributes, objective=objective, **options
    )
    if as_json:
        console.show_json(ways.to_dict())
        return
    for way, plan in (("sharing the budgets", ways.shared), ("drawing one", ways.drawn)):
        reported = attributes if plan is ways.shared else 1
        budgets = f"eps_inf = {eps_inf:.4g}, eps_1 = {eps_1:.4g} a user"
        _show_rows(plan, wide, f"{way.capitalize()} ({budgets}): ", of_a_user=reported)
    console.show_text(f"Recommended: {ways.reason}")
    _show_made(ways.chosen)


def _only_frontier(**given: Any) -> None:
    """Refuse what --frontier would ignore."""
    ignored = [
        f"--{name.replace('_', '-')}" for name, value in given.items() if value not in (None, False)
    ]
    if ignored:
        raise ParameterError(
            f"--frontier must come without {', '.join(ignored)}, which it would ignore; leave "
            f"{'it' if len(ignored) == 1 else 'them'} out"
        )


def _show_needed(sizing: Sizing, *, as_json: bool) -> None:
    """Print what each protocol needs, the least first."""
    from loloha.privacy import rounded

    if as_json:
        console.show_json(sizing.to_dict())
        return
    console.show_table(
        ("protocol", f"{'largest' if sizing.unknown == 'k' else 'least'} {sizing.unknown}", "g",
         "error", "all at once", "visible from", "cap", "note"),
        [_needed(row) for row in sizing.rows],
        title=f"{sizing.goal} of at most {rounded.percent(sizing.target)}, "
        f"eps_1 = {sizing.alpha:.4g} eps_inf",
    )  # fmt: skip


def _needed(row: Requirement) -> tuple[Any, ...]:
    from loloha.privacy import rounded

    seen = row.prospect
    if seen is None:
        return row.label, None, None, None, None, None, None, row.note
    shares = map(rounded.frequency, (seen.error_one, seen.error_all, seen.visible_one))
    return row.label, row.solution, seen.g, *shares, seen.cap, row.note


def _show_rows(plan: Plan, wide: bool, way: str = "", of_a_user: int | None = None) -> None:
    """Print the error and cost of each protocol with these users."""
    # ``of_a_user``: how many attributes each user reports, where there are several; losses and
    # bytes are then those of one attribute and those of the user.
    from loloha.planning.creation import parameters
    from loloha.planning.reason import users_of_a_key
    from loloha.privacy import rounded

    level = f"{100 * plan.level:.4g} %"
    # With eps_2 given, the other budgets follow for each protocol.
    free = () if plan.eps_2 is None else ("eps_1", "eps_inf")
    # A protocol made without a hash has the default family: rows with another one name it.
    differs = any("hash" in parameters(row.protocol) for row in plan.rows if row.protocol)
    named = ("hash",) if differs else ()
    # Computing it for every row takes longer than all else.
    changes = ("change shows",) if plan.objective == "change" else ()
    budgets = f" ({plan.budgets} an attribute)" if of_a_user else f", {plan.budgets}"

    def spent(number: float) -> tuple[float, ...]:
        """A loss, of an attribute and of a user."""
        return (number,) if of_a_user is None else (number, number * of_a_user)

    def losses(name: str) -> tuple[str, ...]:
        return (name,) if of_a_user is None else (f"{name}, attribute", f"{name}, user")

    columns = (
        "protocol", "g", f"{level} error", "visible from", *losses("cap"),
        *losses("eps_2"), *changes, *losses("bytes"), *free,
    )  # fmt: skip
    more = (*named, "all at once", "V*", "above optimum", "a key's users", "server, one round")
    console.show_table(
        columns + more * wide,
        [
            (
                f"* {row.title}" if row is plan.recommendation else f"  {row.title}",
                row.g,
                rounded.frequency(row.error_one),
                rounded.frequency(row.visible_one),
                *spent(row.cap),
                *spent(row.eps_2),
                *((None if row.change is None else rounded.digits(row.change),) if changes else ()),
                *spent(int(row.report_bytes)),
                *((row.eps_1, row.eps_inf) if free else ()),
                *((getattr(row.protocol, "hash", None),) if named else ()),
                rounded.frequency(row.error_all),
                rounded.digits(row.variance, 3),
                None if row.above_optimum is None else rounded.percent(row.above_optimum),
                users_of_a_key(row),
                row.server_cost,
            )[: len(columns) + len(more) * wide]
            for row in plan.rows
            if row.protocol is not None
        ],
        title=f"{way}{counted(plan.n, 'report')} a round over {plan.k} values{budgets}; "
        "* recommended",
    )


def _show_made(plan: Plan) -> None:
    """Print how to create the recommended protocol, and its weaknesses."""
    from loloha.planning.accuracy_check import weaknesses

    if plan.command is None or plan.recommendation is None:
        return
    console.show(f"As a campaign: {plan.command}")
    console.show(f"(or --domain FILE in place of the range: a file of the {plan.k} labels)")
    console.show(f"In Python: {plan.python}")
    protocol = plan.recommendation.protocol
    for weakness in () if protocol is None else weaknesses(protocol):
        console.warn(weakness)
