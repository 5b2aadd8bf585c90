"""The style of figures: one colour, marker and line a protocol, and settings of our own."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loloha import checks
from loloha.protocols import REGISTRY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Six of Okabe and Ito's colours and two of Tol's: a test measures that they stay apart under every
# common colour blindness. Protocols that share one, as there are more, differ in marker and line.
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
SUFFIXES = (".png", ".svg")
_DIGITS = 6
TRUTH = "#222222"
FAINT = "#B8B8B8"
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
MOST_TICKS = 12
LONGEST_LABEL = 24
# Characters of tick labels that fit below a panel, and below the histogram.
PANEL_WIDTH, HISTOGRAM_WIDTH = 24, 130


def style(name: str) -> dict[str, str]:
    """How the protocol ``name`` looks in every figure: color, marker and linestyle."""
    # The place in the registry decides, so a protocol added at its end changes no other.
    place = list(REGISTRY).index(checks.choice("name", name, REGISTRY))
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place // len(COLOURS) % len(LINES)],
    }


@contextmanager
def our_look() -> Iterator[None]:
    """Our own look, whatever the user's settings; a script without glyphs shows boxes, silently."""
    import matplotlib

    look: Any = LOOK
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(look)
        yield


def lay_out(figure: Figure) -> None:
    """Find places for everything, once and not again for each file, the same every time."""
    # The solver takes its unknowns by their places in memory, so its last digits vary: they are
    # cut.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    boxes: list[Any] = [part.bbox_relative for part in figure.subfigs]
    for box in boxes:
        box.set_points(box.get_points().round(_DIGITS))
    for axes in figure.axes:
        place: Any = [round(end, _DIGITS) for end in axes.get_position().bounds]
        axes.set_position(place)


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write the figure beside each other as PNG (150 dpi) and SVG, the same bytes every time."""
    paths = [stem.with_suffix(suffix) for suffix in SUFFIXES]
    for path in paths:
        write(figure, path)
    return paths


def write(figure: Figure, path: Path) -> None:
    """Write the figure as PNG (150 dpi) or SVG, the same bytes every time."""
    checks.choice("suffix", path.suffix, SUFFIXES)
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with our_look():
        figure.savefig(path, dpi=150, metadata=metadata)


def percent(axes: Axes) -> None:
    """Read the frequencies of the upright axis in percent."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda f, _: f"{100 * f:.4g}%"))


def ticks(axes: Axes, labels: Sequence[Any], width: int) -> None:
    """Label as many places of an axis as ``width`` characters allow, evenly, on round numbers."""
    texts = [one_line(label) for label in labels]
    widest = max(map(len, texts))
    fit = max(2, width // (widest + 2))
    # Slanted labels need height, which only the histogram has.
    slanted = len(texts) > fit and widest > 8 and len(texts) <= width // 3 and width > PANEL_WIDTH
    most = len(texts) if len(texts) <= fit or slanted else min(fit, MOST_TICKS)
    places = {0, len(texts) - 1}
    parts, length = most - 1, len(texts) - 1
    if most > 2 and length >= 3 * parts and not any(map(_is_whole, labels)):
        # No name is rounder than another: they are spread from the first to the last.
        parts = next((n for n in range(parts, parts // 2, -1) if length % n == 0), parts)
        places = {round(part * length / parts) for part in range(parts + 1)}
    elif most > 2:
        step = _nice_step(length, parts)
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
        units = (2, 5, 10, 50, 100, 500) if _is_whole(label) else ()
        divisors = sum(label % unit == 0 for unit in units)
        return divisors, -abs(at - place)

    return max(near, key=roundness)


def _is_whole(label: Any) -> bool:
    return isinstance(label, int) and not isinstance(label, bool)


def one_line(label: Any, longest: int = LONGEST_LABEL) -> str:
    """A label on one line, without what cannot be seen, not too long."""
    text = "".join(char if char.isprintable() else " " for char in str(label))
    return text if len(text) <= longest else text[: longest - 1] + "…"
