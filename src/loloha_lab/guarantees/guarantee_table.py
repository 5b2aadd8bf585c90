"""The tables of a comparison under equal guarantees, in Markdown: first where LOLOHA loses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from loloha import figure
from loloha_lab.guarantees.compared_method import GUARANTEES, PANELS, WINDOW
from loloha_lab.guarantees.method_score import GuaranteeScores, Score
from loloha_lab.paper.drawing import GREY, UNIFORM, add_legend, picture
from loloha_lab.paper.theory import chance_beyond

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUANTITIES: dict[str, Callable[[Score], float]] = {
    "a round": lambda row: row.round.measured if row.round else math.nan,
    f"mean of {WINDOW}": lambda row: row.mean.measured if row.mean else math.nan,
    "a round, projected": lambda row: row.projected_round,
    f"mean of {WINDOW}, projected": lambda row: row.projected_mean,
}
LIMIT = 3.0
REST = "<!-- all else -->"
"""Where a page parts the table of losses from the others."""
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


def is_ours(score: Score) -> bool:
    """Whether it is LOLOHA."""
    return "LOLOHA" in score.method.name


def text(scores: GuaranteeScores) -> str:
    """All tables."""
    sections = [("Where LOLOHA loses, and by which factor", _losses(scores))]
    for guarantee, sentence in GUARANTEES.items():
        for kind in ("", ", projected"):
            title = f"Mean squared error{kind}, where {sentence}: a round / the mean of {WINDOW}"
            sections.append((title, _summary(scores, guarantee, kind)))
        title = f"Rounds estimated together (`loloha.series`), where {sentence}"
        sections.append((title, _smoothed(scores, guarantee)))
    sections.append(("How each meets the guarantee, and measured over expected", _cells(scores)))
    first, *rest = (f"**{title}**\n\n{_table(rows)}" for title, rows in sections)
    tables = "\n\n".join((first, REST, *rest))
    data = "; ".join(f"{name} ({caption})" for name, caption in scores.captions.items())
    return f"{tables}\n\nData: {data}. {agreement(scores)}\n"


def agreement(scores: GuaranteeScores) -> str:
    """In one sentence: how many cells are further from theory than chance has them."""
    deviations = [
        error for row in scores.rows for error in (row.round, row.mean) if error is not None
    ]
    beyond = sum(abs(deviation.z) > LIMIT for deviation in deviations)
    chance = chance_beyond(beyond, len(deviations), LIMIT)
    return (
        f"{beyond} of {len(deviations)} errors lie beyond |z| = {LIMIT:g} of theory, in standard "
        f"errors of {deviations[0].runs} runs (probability of as many by chance: {chance:.2f})."
    )


def _losses(scores: GuaranteeScores) -> Iterator[Sequence[str]]:
    yield ("guarantee", "error", *scores.captions)
    for guarantee in GUARANTEES:
        for quantity, error in QUANTITIES.items():
            yield (guarantee, quantity, *_beaten(scores, guarantee, error))


def _beaten(
    scores: GuaranteeScores, guarantee: str, error: Callable[[Score], float]
) -> Iterator[str]:
    for data in scores.captions:
        rows = [row for row in scores.of(guarantee, data) if row.round is not None]
        ours = min(error(row) for row in rows if is_ours(row))
        best = min(rows, key=error)
        factor = ours / error(best)
        yield "–" if is_ours(best) else f"{best.method.name}, {factor:.3g}"


def _summary(scores: GuaranteeScores, guarantee: str, kind: str) -> Iterator[Sequence[str]]:
    names = [name for name in QUANTITIES if name.endswith(kind) and (kind or "," not in name)]
    yield ("method", *scores.captions)
    methods = [row.method.name for row in scores.of(guarantee, next(iter(scores.captions)))]
    for place, method in enumerate(methods):
        rows = [scores.of(guarantee, data)[place] for data in scores.captions]
        yield (method, *(_errors(row, names) for row in rows))
    if kind:
        yield ("always “uniform”, a round", *(f"{error:.1e}" for error in scores.uniform.values()))


def _smoothed(scores: GuaranteeScores, guarantee: str) -> Iterator[Sequence[str]]:
    """Beside absorption, which takes rounds together too."""
    yield ("method", *scores.captions)
    for place, score in enumerate(scores.of(guarantee, next(iter(scores.captions)))):
        rows = [scores.of(guarantee, data)[place] for data in scores.captions]
        if not math.isnan(score.smoothed):
            yield (score.method.name, *(f"{row.smoothed:.1e}" for row in rows))
        elif "LPA" in score.method.name:
            shown = (f"{row.projected_round:.1e}" for row in rows)
            yield (f"{score.method.name}, projected", *shown)


def _errors(score: Score, names: Iterable[str]) -> str:
    if score.round is None:
        return "cannot"
    return " / ".join(f"{QUANTITIES[name](score):.1e}" for name in names)


def _cells(scores: GuaranteeScores) -> Iterator[Sequence[str]]:
    yield ("guarantee", "data", "method", "parameters", "how it is met", "round: ratio, z",
           "mean: ratio, z")  # fmt: skip
    yield from map(cell_row, scores.rows)


def cell_row(score: Score) -> Sequence[str]:
    """Parameters of one method on one data set, and its errors over those expected."""
    method = score.method
    ratios = [
        "–" if part is None else f"{part.ratio:.2f}, {part.z:.1f}"
        for part in (score.round, score.mean)
    ]
    return (score.guarantee, score.data, method.name, method.parameters, method.why, *ratios)


def _table(rows: Iterable[Sequence[str]]) -> str:
    head, *lines = rows
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


def draw(scores: GuaranteeScores) -> Figure:
    """A column for each guarantee; errors of rounds above, of means of rounds below."""
    caption = (
        "Mean squared error of unbiased estimates, under the same guarantee; dashed: “uniform”."
    )
    note = (
        "Data: "
        + "; ".join(f"{name}, {caption}" for name, caption in scores.captions.items())
        + "."
    )
    with picture(11.0, 6.6, caption, note) as drawn:
        panels = drawn.subplots(2, len(GUARANTEES), sharex=True, sharey="row", squeeze=False)
        looks: dict[str, dict[str, Any]] = {}
        for column, (guarantee, sentence) in enumerate(GUARANTEES.items()):
            panels[0, column].set_title(sentence, loc="left")
            for row, panel in enumerate(panels[:, column]):
                _draw_panel(panel, scores, guarantee, row, looks)
        panels[0, 0].set_ylabel("MSE of a round")
        panels[1, 0].set_ylabel(f"MSE of the mean of {WINDOW}")
        add_legend(drawn, looks | {"always “uniform”": UNIFORM})
    return drawn


def _draw_panel(
    panel: Any, scores: GuaranteeScores, guarantee: str, row: int, looks: dict[str, dict[str, Any]]
) -> None:
    for place, data in enumerate(scores.captions):
        rows = scores.of(guarantee, data)
        for index, entry in enumerate(rows):
            look = looks.setdefault(entry.method.name, _look(entry))
            deviation = (entry.round, entry.mean)[row]
            if deviation is not None:
                across = place + 0.7 * (index / max(len(rows) - 1, 1) - 0.5)
                panel.plot([across], [deviation.measured], **look)
        if row == 0:
            panel.plot([place - 0.4, place + 0.4], [scores.uniform[data]] * 2, **UNIFORM)
    panel.set_yscale("log")
    panel.set_xticks(range(len(scores.captions)), list(scores.captions))


def _look(score: Score) -> dict[str, Any]:
    method = score.method
    registered = figure.style(method.protocol.name) if method.protocol else {}
    own = LOOKS.get(method.name, {})
    return registered | {"linestyle": "none", "markersize": SIZE} | own
