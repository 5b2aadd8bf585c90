"""What a lower loss of one round costs in accuracy: V* over eps_2 at a fixed eps_inf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loloha.design import limits
from loloha.errors import ParameterError
from loloha.rules import checks
from loloha.rules.protocols import OLOLOHA

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
    """For each eps_2 the most accurate OLOLOHA that holds it and eps_inf.

    Parameters
    ----------
    k : int
        Domain size, 2..2^24.
    eps_inf : float
        Loss of all reports of one value, for ever.
    eps_2 : sequence of float, optional
        By default twelve numbers from 0.2 to 2 times eps_inf.
    hash : str, optional
        Family of the hashes, linear by default.

    Returns
    -------
    tuple of Point

    Raises
    ------
    ParameterError
        If a parameter lies outside its range.

    Notes
    -----
    Without a second round, as eps_2 goes to infinity, eps_1 is eps_inf: V* falls all the way. A
    given pair of budgets needs at least ``limits.eps_2``. Source: MATH section 16.
    """
    k, eps_inf = limits.checked_k(k), checks.eps("eps_inf", eps_inf)
    if eps_2 is None:
        eps_2 = [eps_inf * 0.2 * 10 ** (i / (POINTS - 1)) for i in range(POINTS)]
    if not len(eps_2):
        raise ParameterError("eps_2 must hold at least one number, got none; leave it out")
    found = []
    for once in eps_2:
        protocol = OLOLOHA.holding(k=k, eps_inf=eps_inf, eps_2=once, hash=hash)
        found.append(
            Point(
                eps_2=float(once),
                eps_1=protocol.eps_1,
                g=protocol.symbols,
                noise=protocol.noise,
                optimum=limits.variance(k, protocol.eps_1),
            )
        )
    return tuple(found)
