"""``loloha plan``: which protocol for so many users and such budgets, what it sees and costs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from loloha.cli import console
from loloha.cli.console import AsJson

if TYPE_CHECKING:
    from loloha.design.planning import Plan


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan)


def plan(
    *,
    k: Annotated[int, typer.Option(help="Domain size: how many values there are.")],
    n: Annotated[int, typer.Option(help="Reports expected in each round.")],
    eps_inf: Annotated[float, typer.Option(help="Budget of all reports of one value, for ever.")],
    eps_1: Annotated[float, typer.Option(help="Budget of the first report, below eps_inf.")],
    level: Annotated[float, typer.Option(help="Level of the errors.")] = 0.95,
    calibration: Annotated[
        str,
        typer.Option(metavar="tight|published", help="Of the protocols that have both."),
    ] = "tight",
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Compare only these (repeat it); else all.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare protocols for one survey before anything is collected, and recommend one."""
    import loloha

    found = loloha.plan(
        k, n, eps_inf, eps_1, level=level, calibration=calibration, protocols=protocol or None
    )
    if as_json:
        console.show_json(found.to_dict())
        return
    _show_rows(found)
    for row in found.rows:
        if row.note:
            console.show_text(f"- {row.label}: {row.note}")
    console.show()
    console.show_text(f"Recommended: {found.reason}")
    if found.warning:
        console.warn(found.warning)


def _show_rows(found: Plan) -> None:
    """Print what each protocol can see with these users, and what it costs."""
    percent = f"{100 * found.level:.4g} %"
    console.show_table(
        (
            "protocol", "g", "V*", f"{percent} error", "all at once", "visible from", "bytes",
            "cap", "server, one round",
        ),
        [
            (
                f"* {row.label}" if row is found.recommendation else f"  {row.label}",
                row.g,
                row.variance,
                _share(row.error_one),
                _share(row.error_all),
                _share(row.visible_one),
                row.report_bytes,
                row.cap,
                row.server_cost,
            )
            for row in found.rows
            if row.protocol is not None
        ],
        title=f"{found.n} reports a round over {found.k} values, eps_inf = {found.eps_inf:.4g}, "
        f"eps_1 = {found.eps_1:.4g}; * recommended",
    )  # fmt: skip


def _share(frequency: float | None) -> str:
    """A frequency as people read it; none where not even 100 % would do."""
    if frequency is None or math.isinf(frequency):
        return "none"
    return f"{100 * frequency:.3g} %"
