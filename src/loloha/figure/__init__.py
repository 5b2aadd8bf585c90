"""Pictures of estimates: values over rounds and one round's histogram, with intervals and truth."""

from __future__ import annotations

from loloha.figure.lines import plot_lines
from loloha.figure.run import MOST_PANELS, NOTE_WIDTH, draw_run
from loloha.figure.series import Series
from loloha.figure.style import COLOURS, FAINT, LINES, LOOK, MARKERS, TRUTH, save, style

__all__ = [
    "COLOURS",
    "FAINT",
    "LINES",
    "LOOK",
    "MARKERS",
    "MOST_PANELS",
    "NOTE_WIDTH",
    "TRUTH",
    "Series",
    "draw_run",
    "plot_lines",
    "save",
    "style",
]
