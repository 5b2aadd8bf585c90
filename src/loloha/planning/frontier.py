"""The price of a lower loss of one round: V* over eps_2 at a fixed eps_inf."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from loloha import checks
from loloha.errors import ParameterError
from loloha.planning import limits
from loloha.planning.holding import check_fixed, hold_chain
from loloha.protocols import OLOLOHA

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 12


class Point(NamedTuple):
    """The best chain over symbols that holds eps_inf and eps_2.

    Attributes
    ----------
    eps_2, eps_1 : float
        Loss of any one round, all others known; of the first report.
    g : int
    noise : float
        n V*.
    optimum : float
        The least n V* of any first report that loses eps_1.
    """

    eps_2: float
    eps_1: float
    g: int
    noise: float
    optimum: float


def frontier(
    k: int, eps_inf: float, *, eps_2: Sequence[float] | None = None, hash: str | None = None
) -> tuple[Point, ...]:
    """For each eps_2 the most accurate OLOLOHA that holds it and eps_inf."""
    # Without a second round, as eps_2 goes to infinity, eps_1 is eps_inf: V* falls all the way. A
    # given pair of budgets needs at least ``limits.eps_2``. Source: MATH section 16.
    k, eps_inf = limits.checked_k(k), checks.eps("eps_inf", eps_inf)
    if eps_2 is not None:
        if not len(eps_2):
            raise ParameterError("eps_2 must hold at least one number, got none; leave it out")
        return tuple(_point(k, eps_inf, once, hash) for once in eps_2)
    points = []
    for i in range(POINTS):
        once = eps_inf * 0.2 * 10 ** (i / (POINTS - 1))
        if checks.SMALLEST_EPS <= once <= checks.LARGEST_EPS:
            with suppress(ParameterError):
                points.append(_point(k, eps_inf, once, hash))
    if not points:
        # The reason: the hash, or a first report that would lose less than can be computed.
        _point(k, eps_inf, max(eps_inf, checks.SMALLEST_EPS), hash)
    return tuple(points)


def _point(k: int, eps_inf: float, once: float, hash: str | None) -> Point:
    protocol = hold_chain(OLOLOHA, check_fixed(eps_2=once, eps_inf=eps_inf), {"k": k, "hash": hash})
    return Point(
        eps_2=float(once),
        eps_1=protocol.eps_1,
        g=int(protocol.g or 0),
        noise=protocol.noise,
        optimum=limits.variance(k, protocol.eps_1),
    )


def plot(points: Sequence[Point], *, ax: Axes | None = None) -> Axes:
    """Draw n V* over eps_2, and the least n V* that the eps_1 of each point allows."""
    from matplotlib.ticker import FuncFormatter

    from loloha.figure.lines import new_axes
    from loloha.figure.style import TRUTH, style

    axes: Any = new_axes() if ax is None else ax
    over = [point.eps_2 for point in points]
    axes.plot(over, [point.noise for point in points], label="OLOLOHA", **style(OLOLOHA.name))
    axes.plot(
        over,
        [point.optimum for point in points],
        color=TRUTH,
        linestyle=":",
        label="least of any first report with the same eps_1",
    )
    for point in points:
        axes.annotate(
            f"g = {point.g}",
            (point.eps_2, point.noise),
            xytext=(4, 4),
            textcoords="offset points",
            fontsize="x-small",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain = FuncFormatter(lambda number, _: f"{number:g}")
    axes.xaxis.set_major_formatter(plain)
    axes.xaxis.set_minor_formatter(plain)
    axes.yaxis.set_major_formatter(plain)
    axes.set_xlabel("eps_2: loss of any one round, all others known")
    axes.set_ylabel("n V*")
    axes.legend(fontsize="small")
    return axes  # type: ignore[no-any-return]
