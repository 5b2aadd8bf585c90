"""Exact coverage of intervals: ``python -m loloha_lab.tables.coverage`` lists it.

The table of ``docs/intervals.md``. Nothing is drawn: the distribution of a count is that of a sum
of two binomials, of users who hold the value and of users who do not.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from loloha.arrays import Floats
from loloha.protocols import GRR, LGRR, LOSUE, OLOLOHA, OUE, RAPPOR, DBitFlipPM, Protocol
from loloha.server.frame import normal_quantile
from loloha.server.unbiased import inversion, unbiased
from loloha.server.variance import Channel
from loloha_lab.tables import markdown

LEVEL = 0.95
NEGLIGIBLE = 1e-12
SIZES = (50, 100, 300, 1000, 10_000)
HEAD = ("protocol", "normal, n = 100", *(f"n = {n}" for n in SIZES))
CASES: tuple[Protocol, ...] = (
    OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0),
    OLOLOHA(k=1000, eps_inf=8.0, eps_1=4.0),
    LGRR(k=10, eps_inf=2.0, eps_1=1.0),
    LGRR(k=1000, eps_inf=5.0, eps_1=3.0),
    RAPPOR(k=96, eps_inf=2.0, eps_1=1.0),
    LOSUE(k=96, eps_inf=5.0, eps_1=4.5),
    OUE(k=96, eps=1.0),
    OUE(k=96, eps=5.0),
    GRR(k=2, eps=1.0),
    GRR(k=100, eps=4.0),
    GRR(k=10, eps=8.0),
    DBitFlipPM(k=96, b=10, d=1, eps_inf=5.0),
    DBitFlipPM(k=96, b=10, d=5, eps_inf=2.0),
)


class Coverage(NamedTuple):
    """Chances that an interval holds the true frequency: at each that was asked for."""

    users: Sequence[int]
    chances: Floats


def coverage(
    protocol: Protocol,
    n: int,
    users: Iterable[int],
    *,
    level: float = LEVEL,
    eligible: int | None = None,
    normal: bool = False,
) -> Coverage:
    """Exact coverage of the interval of one value that so many of n users hold."""
    p, q, *_ = Channel.realised(protocol)
    reached = (
        max(1, round(protocol.encoding.expected_eligible(n))) if eligible is None else eligible
    )
    support = np.arange(reached + 1)
    reaches = np.full(len(support), reached)
    frequencies = unbiased(protocol, support, reaches)
    test = inversion(protocol, n, frequencies, reaches)
    low, high = test.interval(level)
    if normal:
        width = normal_quantile((1 + level) / 2) * np.sqrt(
            test.scatter.at(np.clip(frequencies, 0, 1))
        )
        low, high = frequencies - width, frequencies + width
    counts = list(users)
    chances = []
    for some in counts:
        first, pmf = _of_sample(n, some, reached, p, q)
        of = slice(first, first + len(pmf))
        # Ends are rounded: an end that is the frequency holds it.
        inside = (low[of] <= some / n + 1e-12) & (some / n - 1e-12 <= high[of])
        chances.append(float(pmf[inside].sum()))
    return Coverage(counts, np.array(chances))


def grid(n: int, steps: int = 40) -> list[int]:
    """Counts of holders: of frequencies 0, 1/steps, ..., 1, and the few next to 0 and n."""
    even = {round(n * step / steps) for step in range(steps + 1)}
    return sorted(even | set(range(min(12, n))) | set(range(max(0, n - 4), n + 1)))


def row(protocol: Protocol) -> list[str]:
    """A line of the table: least coverage and, in brackets, its mean over the frequencies."""
    normal = coverage(protocol, 100, range(101), normal=True).chances.min()
    cells = []
    for n in SIZES:
        chances = coverage(protocol, n, grid(n)).chances
        mean = coverage(protocol, n, [round(n * step / 40) for step in range(41)]).chances.mean()
        cells.append(f"{_down(chances.min())} ({_down(mean)})")
    budgets = {name: value for name, value in protocol.get_params().items() if name[:3] == "eps"}
    sampled = {"b": protocol.bins, "d": protocol.d} if isinstance(protocol, DBitFlipPM) else {}
    named = {"k": protocol.k} | sampled | budgets
    texts = ", ".join(f"{name} = {value:g}" for name, value in named.items())
    return [f"{protocol.name}, {texts}", _down(normal), *cells]


def text() -> str:
    """The table, in Markdown."""
    return markdown(HEAD, map(row, CASES))


def _down(chance: float) -> str:
    """Rounded down, so that nothing looks better than it is."""
    return f"{math.floor(1000 * chance + 1e-9) / 1000:.3f}"


def _of_sample(n: int, users: int, reached: int, p: float, q: float) -> tuple[int, Floats]:
    """Pmf of the support among ``reached`` of n users, ``users`` of whom hold the value."""
    if reached == n:
        return _pmf(n, users, p, q)
    logs = _factorials(n)
    some = np.arange(max(0, users - (n - reached)), min(users, reached) + 1)
    drawn = np.exp(
        _ways(logs, users, some) + _ways(logs, n - users, reached - some) - _ways(logs, n, reached)
    )
    total = np.zeros(reached + 1)
    for ours in some[drawn > NEGLIGIBLE].tolist():
        first, pmf = _pmf(reached, ours, p, q)
        total[first : first + len(pmf)] += drawn[ours - some[0]] * pmf
    return 0, total


def _pmf(n: int, users: int, p: float, q: float) -> tuple[int, Floats]:
    """Its smallest likely value, and the distribution from there on."""
    (first, ours), (second, others) = _binomial(users, p), _binomial(n - users, q)
    return first + second, np.convolve(ours, others)


@lru_cache(maxsize=1 << 14)
def _binomial(n: int, p: float) -> tuple[int, Floats]:
    width = 8 * math.sqrt(n * p * (1 - p)) + 25
    first, last = max(0, math.floor(n * p - width)), min(n, math.ceil(n * p + width))
    s = np.arange(first, last + 1)
    # Where p is 0 or 1 but for rounding only the sure count has a chance.
    up, down = (math.log(max(chance, 1e-300)) for chance in (p, 1 - p))
    return first, np.exp(_ways(_factorials(n), n, s) + s * up + (n - s) * down)


@lru_cache
def _factorials(n: int) -> Floats:
    """Logarithms of 0!..n!."""
    return np.append(0.0, np.cumsum(np.log(np.arange(1, n + 1))))


def _ways(logs: Floats, n: int, s: Any) -> Any:
    """Logarithm of the number of subsets."""
    return logs[n] - logs[s] - logs[n - s]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    sys.stdout.write(text())
