"""One round as a histogram: estimates with intervals, and truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.figure.series import Series
from loloha.figure.style import FAINT, HISTOGRAM_WIDTH, TRUTH, one_line, percent, ticks

MOST_BARS = 64
PEAKS = 3
"""Largest values whose labels stand at their tops, where there are more than `MOST_BARS`."""


def draw_round(
    axes: Any, series: Series, row: int, colour: str, width: int = HISTOGRAM_WIDTH
) -> None:
    """All values of one round: estimates with intervals, and the truth where it is known."""
    # ``width`` is how many characters of labels fit below the axes.
    places = np.arange(len(series.labels))
    estimate, lower, upper = (
        numbers[row] for numbers in (series.frequencies, series.lower, series.upper)
    )
    if len(places) <= MOST_BARS:
        if series.truth is not None:
            axes.bar(places, series.truth[row], color=FAINT, label="truth")
        # An estimate outside of [0, 1] lies outside of its interval.
        reaches = np.maximum(np.stack([estimate - lower, upper - estimate]), 0)
        axes.errorbar(
            places,
            estimate,
            reaches,
            color=colour,
            marker="o",
            markersize=3.5,
            linestyle="none",
            elinewidth=1.2,
            capsize=2.0,
            label="estimate with interval",
        )
        axes.set_xlim(-0.6, len(places) - 0.4)
    else:
        edges = np.arange(len(places) + 1) - 0.5
        axes.stairs(upper, edges, baseline=lower, fill=True, color=colour, alpha=0.25)
        axes.plot(
            places,
            estimate,
            color=colour,
            marker="o",
            markersize=2.2 if len(places) < 400 else 1.2,
            linestyle="none",
            label="estimate with interval",
        )
        if series.truth is not None:
            axes.stairs(series.truth[row], edges, color=TRUTH, linewidth=0.9, label="truth")
        axes.margins(x=0.01)
        _name_peaks(axes, series, row, np.fmax(estimate, upper), width)
    axes.axhline(0, color="#888888", linewidth=0.8)
    axes.set_xlabel("value")
    axes.set_ylabel("frequency")
    axes.grid(visible=False, axis="x")
    percent(axes)
    ticks(axes, series.labels, width)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)


def _name_peaks(axes: Any, series: Series, row: int, tops: Any, width: int) -> None:
    """Label the largest values of a round, but none beside a larger one that it would touch."""
    named: list[tuple[float, float]] = []
    highest = tops if series.truth is None else np.fmax(tops, series.truth[row])
    for column in np.argsort(-np.nan_to_num(highest, nan=-np.inf), kind="stable")[:PEAKS]:
        text = one_line(series.labels[column])
        half = len(text) / 2 * len(tops) / width + 1
        if all(abs(column - place) > half + other for place, other in named):
            named.append((column, half))
            axes.annotate(
                text,
                (column, highest[column]),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=7,
                parse_math=False,
            )
    axes.margins(y=0.12)
