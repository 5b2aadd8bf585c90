"""The style of the figures: one legend, ticks that can be read, a note below."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.arrays import Floats
from loloha.figure.style import TRUTH, lay_out, our_look
from loloha_lab.paper.method import PAPER, Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Ours is drawn in the colour of its protocol, thin and dotted, with an open marker.
OURS: dict[str, Any] = {"linestyle": ":", "markerfacecolor": "white"}
MARKER_SIZE = 4.2
# Curves that lie on each other stay visible: the earlier one has the larger marker.
SIZES = {"rappor": 7.0, "l-osue": 5.5, "ololoha": 3.0}
GREY = "#555555"
UNIFORM: dict[str, Any] = {"color": TRUTH, "linestyle": (0, (5, 2)), "linewidth": 0.9}
UNIFORM_BUCKETS = UNIFORM | {"linestyle": (0, (1, 2))}
FEW_DECADES = 100.0
THEORY = "theory"
"""Marks the lines of theory, which do not decide how far a panel reaches."""


def set_ticks(panel: Axes, low: float, high: float) -> None:
    """Ticks of a log axis: powers of ten, and 2 and 5 between them where they are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    if high / low < FEW_DECADES:
        panel.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda y, place: f"{y:g}"))
    panel.minorticks_off()


def span_of(panel: Axes) -> tuple[float, float]:
    """Least and largest of what was measured in a panel, and of the uniform lines."""
    heights = [
        np.asarray(line.get_ydata(), dtype=np.float64)
        for line in panel.get_lines()
        if line.get_gid() != THEORY
    ]
    together = np.concatenate(heights)
    return float(together.min()), float(together.max())


def draw_curve(
    panel: Axes,
    xs: Sequence[float],
    ys: Sequence[float] | Floats,
    method: Method,
    ours: bool,
    *,
    joined: bool = True,
) -> None:
    """One curve in the style of its protocol, ours or the published one; or its points alone."""
    look: dict[str, Any] = dict(method.style) | (OURS if ours else {})
    if not joined:
        look["linestyle"] = "none"
    size = SIZES.get(method.key, MARKER_SIZE)
    panel.plot(xs, ys, markersize=size, markeredgewidth=0.8, linewidth=1.2, **look)


def add_frame(
    figure: Figure,
    panels: Any,
    across: str,
    up: str,
    *,
    ours: bool,
    theory: bool = False,
    single: bool = False,
    methods: Sequence[Method] = tuple(PAPER),
) -> None:
    """Labels of the axes, and one legend for all panels."""
    for panel in panels[-1]:
        panel.set_xlabel(across)
    for panel in panels[:, 0]:
        panel.set_ylabel(up)
    looks: dict[str, dict[str, Any]] = {
        method.label: {"markersize": MARKER_SIZE} | method.style for method in methods
    }
    if ours:
        looks["tight (ours)"] = {"color": GREY, "marker": "o", "markersize": MARKER_SIZE} | OURS
    if theory:
        looks["theory"] = {"color": GREY, "linewidth": 0.9}
    if single:
        looks["single rounds"] = {"color": GREY, "linewidth": 0.5}
    if theory or single:
        looks["always uniform"] = UNIFORM
        looks["uniform buckets"] = UNIFORM_BUCKETS
    add_legend(figure, looks)


def add_legend(figure: Figure, looks: Mapping[str, dict[str, Any]]) -> None:
    """One legend above all panels: what each label looks like."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], label=label, **({"linewidth": 1.2} | look)) for label, look in looks.items()
    ]
    # At half an inch for marker and gap, and 0.065 for a letter of the longest label.
    width = 0.5 + 0.065 * max(map(len, looks))
    columns = max(1, int(figure.get_size_inches()[0] / width))
    rows = -(-len(handles) // columns)
    figure.legend(handles=handles, loc="outside upper center", ncols=-(-len(handles) // rows))


def name_panels(panels: Any, across: Sequence[str], down: Sequence[float]) -> None:
    """Data sets above the columns, alphas beside the rows."""
    for panel, name in zip(panels[0], across, strict=True):
        panel.set_title(name, loc="left", fontweight="bold")
    for panel, alpha in zip(panels[:, -1], down, strict=len(down) > 0):
        panel.annotate(
            f"α = {alpha:g}", (1.03, 0.5), xycoords="axes fraction", rotation=-90, va="center",
            fontsize=9,
        )  # fmt: skip


@contextmanager
def picture(width: float, height: float, caption: str, note: str) -> Iterator[Figure]:
    """A figure to be filled, in inches and in our look, made without pyplot.

    The caption says what it shows; the note, in a small line below, where the numbers come from.
    """
    from matplotlib.figure import Figure

    with our_look():
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        lines = textwrap.wrap(note, int(width * 17))
        below = (0.06 + 0.13 * len(lines)) / height
        figure.text(0.01, 0.04 / height, "\n".join(lines), va="bottom", fontsize=7, color=GREY)
        engine: Any = figure.get_layout_engine()
        engine.set(rect=(0, below, 1, 1 - below))
        figure.set_label(caption)
        lay_out(figure)


def shades(count: int) -> list[Any]:
    """Colours from dark to light, apart in grey too."""
    import matplotlib

    return list(matplotlib.colormaps["viridis"](np.linspace(0, 0.82, count)))
