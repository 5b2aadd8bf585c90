"""Plans along a range of budgets: how error, eps_1, eps_2 and eps_inf are traded for each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loloha import checks
from loloha.errors import ParameterError
from loloha.planning.holding import check_fixed
from loloha.planning.planning import prospects
from loloha.planning.prospect import Prospect
from loloha.privacy.rounded import product
from loloha.privacy.transcript import eps_2
from loloha.protocols import Protocol
from loloha.server.frame import HTML_ROWS, Framed, Printed, Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALPHAS = tuple(step / 20 for step in range(2, 20))
AXES = ("eps_1", "eps_2", "eps_inf")
COLUMNS = ("g", "variance", "rmse", "error_one", "error_all", "visible_one", "visible_all", "cap")


@dataclass(frozen=True, repr=False)
class Sweep(Framed, Shown):
    """What protocols see at many budgets.

    Attributes
    ----------
    k, n : int
    level : float
    rows : tuple of (eps_inf, eps_1, Prospect)
        Of the protocols that keep both budgets.
    """

    k: int
    n: int
    level: float
    rows: tuple[tuple[float, float, Prospect], ...]

    def records(self) -> list[dict[str, Any]]:
        """A dict a row: protocol, eps_inf, eps_1, eps_2 and what is seen."""
        records = []
        for eps_inf, eps_1, row in self.rows:
            shown = row.to_dict()
            records.append(
                {
                    "protocol": row.label,
                    "eps_inf": eps_inf,
                    "eps_1": eps_1,
                    "eps_2": None if row.protocol is None else eps_2(row.protocol),
                    **{name: shown[name] for name in COLUMNS},
                }
            )
        return records

    def plot(self, x: str = "eps_1", y: str = "error_one", *, ax: Axes | None = None) -> Axes:
        """Draw a line for each protocol and value of the fixed budget.

        Parameters
        ----------
        x : {"eps_1", "eps_2", "eps_inf"}
            eps_2 is the loss of any one round when all others are known: at a fixed eps_inf it
            falls as eps_1 does, which costs error.
        y : str
            A column of `to_frame`.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        """
        from loloha.figure.lines import new_axes
        from loloha.figure.style import style

        checks.choice("x", x, AXES)
        checks.choice("y", y, COLUMNS)
        axes: Any = new_axes() if ax is None else ax
        other = "eps_1" if x == "eps_inf" else "eps_inf"
        records = self.records()
        places = {
            at: place for place, at in enumerate(sorted({record[other] for record in records}))
        }
        several = len(places) > 1
        names = {row.label: row.name for *_, row in self.rows}
        for label, at in dict.fromkeys((record["protocol"], record[other]) for record in records):
            line = [
                record for record in records if (record["protocol"], record[other]) == (label, at)
            ]
            axes.plot(
                [point[x] for point in line],
                [point[y] for point in line],
                label=f"{label}, {other} = {at:g}" if several else label,
                markersize=3,
                alpha=1 - 0.6 * places[at] / len(places),
                **style(names[label]),
            )
        axes.set_yscale("log")
        if x == "eps_2":
            axes.set_xscale("log")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.legend(fontsize="small")
        return axes  # type: ignore[no-any-return]

    def _shown(self) -> Printed:
        names = ("protocol", "eps_inf", "eps_1", "eps_2", "error_one", "cap")
        least = sorted(self.records(), key=lambda row: row["error_one"])[:HTML_ROWS]
        reports = checks.counted(self.n, "report")
        return (
            f"{reports} a round over {self.k} values, {checks.counted(len(self.rows), 'plan')}",
            names,
            [[row[name] for name in names] for row in least],
            "Those of least error; all of them: to_frame(), plot().",
        )

    def __repr__(self) -> str:
        return f"Sweep(k={self.k}, n={self.n}, {len(self.rows)} rows)"


def sweep(
    k: int,
    n: int,
    eps_inf: float | Iterable[float],
    eps_1: float | Iterable[float] | None = None,
    *,
    level: float = 0.95,
    calibration: str = "tight",
    protocols: Iterable[str | Protocol] | None = None,
) -> Sweep:
    """Plans for every pair of budgets.

    Parameters
    ----------
    k, n : int
    eps_inf : float or iterable of float
    eps_1 : float or iterable of float, optional
        Those below eps_inf are taken; by default 0.1 to 0.95 times eps_inf.
    level, calibration, protocols
        As for `loloha.plan`.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or no pair has eps_1 < eps_inf.
    """
    names = None if protocols is None else _listed(protocols)
    rows = []
    for whole in _listed(eps_inf):
        parts = [product(alpha, whole) for alpha in ALPHAS] if eps_1 is None else _listed(eps_1)
        for part in parts:
            if part < whole:
                fixed = check_fixed(eps_inf=whole, eps_1=part)
                prospected = prospects(
                    k, n, fixed, level=level, calibration=calibration, protocols=names
                )
                rows += [(whole, part, row) for row in prospected if row.eligible]
    if not rows:
        raise ParameterError(
            "eps_1 must be below eps_inf for a protocol that keeps both, got none; see loloha.plan"
        )
    return Sweep(k, n, level, tuple(rows))


def _listed(given: Any) -> list[Any]:
    """One, or several of them, as a list."""
    return [given] if isinstance(given, float | int | str | Protocol) else list(given)
