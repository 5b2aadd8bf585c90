"""How figures look: one colour, marker and line a protocol, and settings of our own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loloha import checks
from loloha.protocols import REGISTRY

if TYPE_CHECKING:
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
    """Find places for everything, once and not again for each file, the same every time.

    The solver takes its unknowns by their places in memory, so its last digits vary: they are cut.
    """
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
