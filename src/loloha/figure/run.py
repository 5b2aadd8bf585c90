"""The picture of a run: top values over the rounds, and one round's histogram."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha import checks
from loloha.arrays import Ints
from loloha.figure.histogram import draw_round
from loloha.figure.series import Series
from loloha.figure.style import (
    PANEL_WIDTH,
    TRUTH,
    lay_out,
    one_line,
    our_look,
    percent,
    style,
    ticks,
)
from loloha.protocols import Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 10.0
COLUMNS = 4
MOST_PANELS = 40
NOTE_WIDTH = 175


def draw_run(
    series: Series,
    protocol: Protocol,
    *,
    title: str = "",
    note: str = "",
    level: float = 0.95,
    top: int = 8,
    row: int | None = None,
    numbers: Series | None = None,
    unit: str = "number",
) -> Figure:
    """Top values, or ``numbers`` such as a mean, over the rounds with bands; one round's shares."""
    top = checks.integer("top", top, 1, MOST_PANELS, "8 are easy to read")
    last = len(series.rounds) - 1
    row = series.last_round() if row is None else checks.integer("row", row, 0, last, "see rounds")
    over_rounds = series if numbers is None else numbers
    columns = series.top(top) if numbers is None else np.arange(len(numbers.labels))
    columns = columns if last else np.empty(0, np.int64)
    with our_look():
        from matplotlib.figure import Figure

        lines = -(-len(columns) // COLUMNS)
        figure: Any = Figure(figsize=(WIDTH, 1.75 * lines + 3.9), layout="constrained")
        if lines:
            heights = [1.75 * lines + 0.55, 3.35]
            above, below = figure.subfigures(2, 1, height_ratios=heights, hspace=0.0)
            read = unit if numbers is not None else ""
            _draw_panels(above, over_rounds, columns, protocol, level, unit=read)
        else:
            below = figure.subfigures(1, 1)
        axes = below.subplots()
        draw_round(axes, series, row, style(protocol.name)["color"])
        what = f"All {len(series.labels)} values" if numbers is None else "Users who reach a value"
        headline = f"{what} in round {one_line(series.rounds[row])}"
        axes.set_title(headline, loc="left", parse_math=False)
        if title:
            figure.suptitle(one_line(title, 120), fontsize=11, fontweight="bold", parse_math=False)
        if note:
            lines_of_note = textwrap.fill(one_line(note, 3 * NOTE_WIDTH), NOTE_WIDTH)
            figure.supxlabel(
                lines_of_note, x=0.01, ha="left", fontsize=7, color="#555555", parse_math=False
            )
        lay_out(figure)
    drawn: Figure = figure
    return drawn


def _draw_panels(
    figure: Any, series: Series, columns: Ints, protocol: Protocol, level: float, *, unit: str
) -> None:
    down = -(-len(columns) // COLUMNS)
    across = -(-len(columns) // down)
    axes = figure.subplots(down, across, sharex=True, squeeze=False).ravel()
    times = np.arange(len(series.rounds))
    look = style(protocol.name)
    dots = "o" if len(times) <= 30 else ""
    # The line and its band are of all rounds together where they are known, beside single ones.
    lines = series if series.together is None else series.together
    for panel, column in zip(axes, columns, strict=False):
        panel.fill_between(
            times,
            lines.lower[:, column],
            lines.upper[:, column],
            color=look["color"],
            alpha=0.22,
            linewidth=0,
            label=f"{100 * level:.4g} % interval",
        )
        if series.together is not None:
            panel.plot(
                times,
                series.frequencies[:, column],
                color=look["color"],
                linestyle="none",
                marker="o",
                markersize=2.2,
                alpha=0.45,
                markeredgewidth=0,
                label=f"single round ({protocol.name})",
            )
        panel.plot(
            times,
            lines.frequencies[:, column],
            color=look["color"],
            linewidth=1.2,
            marker=dots if series.together is None else "",
            markersize=2.8,
            label=f"estimate ({protocol.name})" if series.together is None else "rounds together",
        )
        if series.truth is not None:
            panel.plot(
                times,
                series.truth[:, column],
                color=TRUTH,
                linestyle=(0, (4, 2)),
                linewidth=1.2,
                label="truth",
            )
        panel.set_title(one_line(series.labels[column]), loc="left", parse_math=False)
        if not unit:
            percent(panel)
        ticks(panel, series.rounds, PANEL_WIDTH)
        if [*panel.get_xticks()] == [0, len(series.rounds) - 1]:
            # Long names of rounds stay below their own panel.
            for label, side in zip(panel.get_xticklabels(), ("left", "right"), strict=False):
                label.set_horizontalalignment(side)
        panel.margins(x=0.02)
    for at in range(len(columns), len(axes)):
        axes[at].set_visible(False)
        axes[at - across].tick_params(labelbottom=True)
    figure.supxlabel("round", fontsize=9)
    figure.supylabel(unit or "frequency", fontsize=9)
    handles, names = axes[0].get_legend_handles_labels()
    order = np.argsort([name != "truth" for name in names], kind="stable")
    figure.legend(
        [handles[i] for i in order],
        [names[i] for i in order],
        loc="outside upper center",
        ncols=len(names),
    )
