"""Axes that stay readable: few round ticks, percent, labels on one line."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TICKS = 12
LONGEST_LABEL = 24
# Characters of tick labels that fit below a panel, and below the histogram.
PANEL_ROOM, HISTOGRAM_ROOM = 24, 130


def percent(axes: Axes) -> None:
    """Read the frequencies of the upright axis in percent."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda f, _: f"{100 * f:.4g}%"))


def ticks(axes: Axes, labels: Sequence[Any], room: int) -> None:
    """Label as many places of an axis as ``room`` characters allow, evenly, on round numbers."""
    texts = [one_line(label) for label in labels]
    widest = max(map(len, texts))
    fit = max(2, room // (widest + 2))
    # Slanted labels need height, which only the histogram has.
    slanted = len(texts) > fit and widest > 8 and len(texts) <= room // 3 and room > PANEL_ROOM
    most = len(texts) if len(texts) <= fit or slanted else min(fit, MOST_TICKS)
    places = {0, len(texts) - 1}
    if most > 2:
        step = _nice_step(len(texts) - 1, most - 1)
        slack = max(step // 2 - 1, 0)
        places = {0} | {_roundest(labels, at, slack) for at in range(step, len(texts), step)}
    shown = sorted(places)
    axes.set_xticks(
        shown,
        [texts[place] for place in shown],
        parse_math=False,
        rotation=35 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor",
    )


def _nice_step(length: int, parts: int) -> int:
    """The least of 1, 2, 5, 10, 20, 50, ... that divides ``length`` into at most ``parts``."""
    step, factors = 1, itertools.cycle((2, 2.5, 2))
    while step * parts < length:
        step = int(step * next(factors))
    return step


def _roundest(labels: Sequence[Any], place: int, slack: int) -> int:
    """The place within ``slack`` whose label is the roundest integer; ``place`` if none is one."""
    near = range(max(0, place - slack), min(len(labels), place + slack + 1))

    def roundness(at: int) -> tuple[int, int]:
        label = labels[at]
        whole = isinstance(label, int) and not isinstance(label, bool)
        divisors = sum(label % unit == 0 for unit in (2, 5, 10, 50, 100, 500)) if whole else 0
        return divisors, -abs(at - place)

    return max(near, key=roundness)


def one_line(label: Any, longest: int = LONGEST_LABEL) -> str:
    """A label on one line, without what cannot be seen, not too long."""
    text = "".join(char if char.isprintable() else " " for char in str(label))
    return text if len(text) <= longest else text[: longest - 1] + "…"
