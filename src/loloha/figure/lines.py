"""One set of axes for a notebook: values over rounds, one round, errors of protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha import checks
from loloha.figure.histogram import draw_round
from loloha.figure.series import Series
from loloha.figure.style import COLOURS, MARKERS, TRUTH, one_line, percent, style, ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Tick labels that fit below axes of the usual width.
TICKS_WIDTH = 60


def plot_lines(series: Series, top: int, ax: Axes | None = None) -> Axes:
    """The ``top`` most frequent values over the rounds: estimate, interval and truth."""
    top = checks.integer("top", top, 1, len(COLOURS), "to_frame() has all of them")
    axes: Any = new_axes() if ax is None else ax
    times = np.arange(len(series.rounds))
    marker = "o" if len(times) == 1 else ""
    for place, column in enumerate(series.top(top)):
        colour = COLOURS[place]
        low, high = series.lower[:, column], series.upper[:, column]
        axes.fill_between(times, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(
            times,
            series.frequencies[:, column],
            color=colour,
            marker=marker or (MARKERS[place] if len(times) <= 30 else ""),
            markersize=3,
            label=one_line(series.labels[column]),
        )
        if series.truth is not None:
            axes.plot(times, series.truth[:, column], color=colour, linestyle=(0, (1, 1.5)))
    ticks(axes, series.rounds, TICKS_WIDTH)
    percent(axes)
    axes.set_xlabel("round")
    axes.set_ylabel("frequency" + (" (dotted: truth)" if series.truth is not None else ""))
    # Beside the axes, where it hides no estimate.
    axes.legend(title="value", fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return axes  # type: ignore[no-any-return]


def plot_round(series: Series, title: str, ax: Axes | None = None) -> Axes:
    """All values of the one round of ``series``, with intervals."""
    axes: Any = new_axes() if ax is None else ax
    draw_round(axes, series, 0, COLOURS[0], TICKS_WIDTH)
    axes.set_title(title, loc="left", parse_math=False)
    return axes  # type: ignore[no-any-return]


def draw_errors(
    labels: Sequence[str],
    names: Sequence[str],
    errors: Mapping[str, Sequence[float | None]],
    average: float,
    ax: Axes | None = None,
) -> Axes:
    """A row for each protocol with its errors, and a line at the average frequency."""
    axes: Any = new_axes() if ax is None else ax
    for name, numbers in errors.items():
        first = name == next(iter(errors))
        for place, (protocol, number) in enumerate(zip(names, numbers, strict=True)):
            look = style(protocol)
            axes.plot(
                [np.nan if number is None else number],
                [place],
                linestyle="none",
                color=look["color"],
                marker=look["marker"] if first else "|",
                markersize=7,
                label=name if not place else None,
            )
    axes.axvline(average, color=TRUTH, linewidth=0.9, linestyle="--", label="average frequency")
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("error")
    axes.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
    return axes  # type: ignore[no-any-return]


def new_axes() -> Axes:
    """Axes of a new figure, which a notebook shows by itself."""
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]
