"""The picture of a comparison under equal promises: errors of all methods on all data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loloha import figure
from loloha_lab.paper.drawing import GREY, UNIFORM, add_legend, picture
from loloha_lab.promises.entrant import PANELS, PROMISES, WINDOW
from loloha_lab.promises.promise_score import PromiseScores, Score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = 6.0
# Grey: what is not registered, or not of this use; open: in panels.
LOOKS: dict[str, dict[str, Any]] = {
    PANELS: {"marker": "D", "markerfacecolor": "white"},
    "fresh OLH (LBU)": {"color": GREY, "marker": "v"},
    "OLH of a panel (LPU)": {"color": GREY, "marker": "s"},
    "OLH with absorption (LPA)": {"color": GREY, "marker": "o"},
    "DyadicLH": {"color": GREY, "marker": "x"},
    "gradual release": {"color": GREY, "marker": "*", "markersize": 8.0},
}


def draw(scores: PromiseScores) -> Figure:
    """A column for each promise; errors of rounds above, of means of rounds below."""
    caption = "Mean squared error of unbiased estimates, at the same promise; dashed: “uniform”."
    note = "Data: " + "; ".join(f"{name}, {one}" for name, one in scores.captions.items()) + "."
    with picture(11.0, 6.6, caption, note) as drawn:
        panels = drawn.subplots(2, len(PROMISES), sharex=True, sharey="row", squeeze=False)
        looks: dict[str, dict[str, Any]] = {}
        for column, (promise, sentence) in enumerate(PROMISES.items()):
            panels[0, column].set_title(sentence, loc="left")
            for row, panel in enumerate(panels[:, column]):
                _draw_panel(panel, scores, promise, row, looks)
        panels[0, 0].set_ylabel("MSE of a round")
        panels[1, 0].set_ylabel(f"MSE of the mean of {WINDOW}")
        add_legend(drawn, looks)
    return drawn


def _draw_panel(
    panel: Any, scores: PromiseScores, promise: str, row: int, looks: dict[str, dict[str, Any]]
) -> None:
    for place, data in enumerate(scores.captions):
        rows = scores.of(promise, data)
        for index, one in enumerate(rows):
            look = looks.setdefault(one.entrant.method, _look(one))
            deviation = (one.round, one.mean)[row]
            if deviation is not None:
                across = place + 0.7 * (index / max(len(rows) - 1, 1) - 0.5)
                panel.plot([across], [deviation.measured], **look)
        if row == 0:
            panel.plot([place - 0.4, place + 0.4], [scores.uniform[data]] * 2, **UNIFORM)
    panel.set_yscale("log")
    panel.set_xticks(range(len(scores.captions)), list(scores.captions))


def _look(one: Score) -> dict[str, Any]:
    entrant = one.entrant
    registered = figure.style(entrant.protocol.name) if entrant.protocol else {}
    own = LOOKS.get(entrant.method, {})
    return registered | {"linestyle": "none", "markersize": SIZE} | own
