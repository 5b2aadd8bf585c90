"""Pictures of estimates: values over rounds and one round's histogram, with intervals and truth."""

from __future__ import annotations

import itertools
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha import checks
from loloha.arrays import Floats, Ints
from loloha.errors import ParameterError
from loloha.protocols import REGISTRY, Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which stay apart under every common colour blindness, and one more. There
# are more protocols than such colours: those that share one differ in marker and line.
COLOURS = (
    "#882255",
    "#CC79A7",
    "#56B4E9",
    "#0072B2",
    "#E69F00",
    "#D55E00",
    "#009E73",
    "#DDCC77",
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
LINES = ("-", "--", ":")
TRUTH = "#222222"
FAINT = "#B8B8B8"
WIDTH = 10.0
COLUMNS = 4
MOST_PANELS = 40
MOST_BARS = 64
MOST_TICKS = 12
LONGEST_LABEL = 24
# Characters of tick labels that fit below a panel, and below the histogram.
PANEL_ROOM, HISTOGRAM_ROOM = 24, 130
NOTE_ROOM = 175
LOOK = {
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "loloha",
}


@dataclass(frozen=True, eq=False)
class Series:
    """Estimated frequencies over rounds.

    Parameters
    ----------
    labels : sequence of bins labels
    rounds : sequence of tau labels
    frequencies, lower, upper : float64[tau, bins]
        Estimates with the ends of their intervals; nan where there is none.
    truth : float64[tau, bins], optional
        What the estimates are held against, where it is known.

    Raises
    ------
    ParameterError
        If the shapes do not fit each other.
    """

    labels: Sequence[Any]
    rounds: Sequence[Any]
    frequencies: Floats
    lower: Floats
    upper: Floats
    truth: Floats | None = None

    def __post_init__(self) -> None:
        shape = (len(self.rounds), len(self.labels))
        given = [self.frequencies, self.lower, self.upper]
        given += [] if self.truth is None else [self.truth]
        if 0 in shape or any(np.shape(one) != shape for one in given):
            raise ParameterError(
                f"frequencies, lower, upper and truth must be of shape {shape}, got "
                f"{[np.shape(one) for one in given]}; give one row a round, one column a label"
            )

    def top(self, count: int) -> Ints:
        """Columns of the ``count`` largest means over the rounds: of the truth where known."""
        ranked = self.frequencies if self.truth is None else self.truth
        with warnings.catch_warnings():
            # A bin that nobody's report could support has no mean: it comes last.
            warnings.simplefilter("ignore", RuntimeWarning)
            means = np.nan_to_num(np.nanmean(ranked, axis=0), nan=-np.inf)
        return np.argsort(-means, kind="stable")[:count]

    def last_round(self) -> int:
        """Row of the last round with estimates; 0 if there is none."""
        rows = np.flatnonzero(~np.isnan(self.frequencies).all(axis=1))
        return int(rows[-1]) if rows.size else 0


def style(name: str) -> dict[str, str]:
    """How the protocol ``name`` looks in every figure: color, marker and linestyle.

    The place in the registry decides, so a protocol added at its end changes no other.
    """
    place = list(REGISTRY).index(checks.choice("name", name, REGISTRY))
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place // len(COLOURS) % len(LINES)],
    }


def draw_run(
    series: Series,
    protocol: Protocol,
    *,
    title: str = "",
    note: str = "",
    level: float = 0.95,
    top: int = 8,
    row: int | None = None,
) -> Figure:
    """Top values over the rounds with bands, and one round's histogram.

    Parameters
    ----------
    series : Series
    protocol : Protocol
        Decides the colour of the estimates.
    title, note : str
        A headline, and a small line below that says where the numbers come from.
    level : float
        Level of the intervals, for the legend.
    top : int
        How many values to show over the rounds, 1..40; none of them if there is but one round.
    row : int, optional
        Round of the histogram; the last one with estimates by default.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: nothing is shown, and nothing global is touched.

    Raises
    ------
    ParameterError
        If ``top`` or ``row`` is out of range.
    """
    top = checks.integer("top", top, 1, MOST_PANELS, "8 are easy to read")
    last = len(series.rounds) - 1
    row = series.last_round() if row is None else checks.integer("row", row, 0, last, "see rounds")
    columns = series.top(top) if last else np.empty(0, np.int64)
    with _look():
        from matplotlib.figure import Figure

        lines = -(-len(columns) // COLUMNS)
        figure: Any = Figure(figsize=(WIDTH, 1.75 * lines + 3.9), layout="constrained")
        if lines:
            heights = [1.75 * lines + 0.55, 3.35]
            above, below = figure.subfigures(2, 1, height_ratios=heights, hspace=0.0)
            _draw_panels(above, series, columns, protocol, level)
        else:
            below = figure.subfigures(1, 1)
        _draw_histogram(below, series, row, protocol)
        if title:
            figure.suptitle(_plain(title, 120), fontsize=11, fontweight="bold", parse_math=False)
        if note:
            lines_of_note = textwrap.fill(_plain(note, 3 * NOTE_ROOM), NOTE_ROOM)
            figure.supxlabel(
                lines_of_note, x=0.01, ha="left", fontsize=7, color="#555555", parse_math=False
            )
        # Laid out once, not again for each file.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    drawn: Figure = figure
    return drawn


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write the figure beside each other as PNG (150 dpi) and SVG, the same bytes every time."""
    paths = [stem.with_suffix(suffix) for suffix in (".png", ".svg")]
    with _look():
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
            figure.savefig(path, dpi=150, metadata=metadata)
    return paths


def _draw_panels(
    figure: Any, series: Series, columns: Ints, protocol: Protocol, level: float
) -> None:
    lines = -(-len(columns) // COLUMNS)
    across = -(-len(columns) // lines)
    axes = figure.subplots(lines, across, sharex=True, squeeze=False).ravel()
    times = np.arange(len(series.rounds))
    look = style(protocol.name)
    dots = "o" if len(times) <= 30 else ""
    for panel, column in zip(axes, columns, strict=False):
        panel.fill_between(
            times,
            series.lower[:, column],
            series.upper[:, column],
            color=look["color"],
            alpha=0.22,
            linewidth=0,
            label=f"{100 * level:.4g} % interval",
        )
        panel.plot(
            times,
            series.frequencies[:, column],
            color=look["color"],
            linewidth=1.2,
            marker=dots,
            markersize=2.8,
            label=f"estimate ({protocol.name})",
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
        panel.set_title(_plain(series.labels[column]), loc="left", parse_math=False)
        _percent(panel)
        _ticks(panel, series.rounds, PANEL_ROOM)
        panel.margins(x=0.02)
    for at in range(len(columns), len(axes)):
        axes[at].set_visible(False)
        axes[at - across].tick_params(labelbottom=True)
    figure.supxlabel("round", fontsize=9)
    figure.supylabel("frequency", fontsize=9)
    handles, names = axes[0].get_legend_handles_labels()
    order = np.argsort([name != "truth" for name in names], kind="stable")
    figure.legend(
        [handles[i] for i in order],
        [names[i] for i in order],
        loc="outside upper center",
        ncols=len(names),
    )


def _draw_histogram(figure: Any, series: Series, row: int, protocol: Protocol) -> None:
    axes = figure.subplots()
    places = np.arange(len(series.labels))
    look = style(protocol.name)
    estimate, lower, upper = (one[row] for one in (series.frequencies, series.lower, series.upper))
    if len(places) <= MOST_BARS:
        if series.truth is not None:
            axes.bar(places, series.truth[row], color=FAINT, label="truth")
        reaches = np.stack([estimate - lower, upper - estimate])
        axes.errorbar(
            places,
            estimate,
            reaches,
            color=look["color"],
            marker="o",
            markersize=3.5,
            linestyle="none",
            elinewidth=1.2,
            capsize=2.0,
            label="estimate with interval",
        )
    else:
        edges = np.arange(len(places) + 1) - 0.5
        axes.stairs(upper, edges, baseline=lower, fill=True, color=look["color"], alpha=0.25)
        axes.plot(
            places,
            estimate,
            color=look["color"],
            marker="o",
            markersize=2.2 if len(places) < 400 else 1.2,
            linestyle="none",
            label="estimate with interval",
        )
        if series.truth is not None:
            axes.stairs(series.truth[row], edges, color=TRUTH, linewidth=0.9, label="truth")
    axes.axhline(0, color="#888888", linewidth=0.8)
    axes.set_title(
        f"All {len(places)} values in round {_plain(series.rounds[row])}",
        loc="left",
        parse_math=False,
    )
    axes.set_xlabel("value")
    axes.set_ylabel("frequency")
    axes.margins(x=0.01)
    axes.grid(visible=False, axis="x")
    _percent(axes)
    _ticks(axes, series.labels, HISTOGRAM_ROOM)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)


def _percent(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda f, _: f"{100 * f:.4g}%"))


def _ticks(axes: Axes, labels: Sequence[Any], room: int) -> None:
    """Label as many places of an axis as ``room`` characters allow, evenly, on round numbers."""
    texts = [_plain(label) for label in labels]
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


def _plain(label: Any, longest: int = LONGEST_LABEL) -> str:
    """A label on one line, without what cannot be seen, not too long."""
    text = "".join(char if char.isprintable() else " " for char in str(label))
    return text if len(text) <= longest else text[: longest - 1] + "…"


@contextmanager
def _look() -> Iterator[None]:
    """Our own look, whatever the user's settings; a script without glyphs shows boxes, silently."""
    import matplotlib

    look: Any = LOOK
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(look)
        yield
