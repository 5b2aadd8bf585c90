"""The figures of what was measured, with theory in the same panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from loloha.figure import FAINT, TRUTH
from loloha_lab.paper.drawing import (
    OURS,
    THEORY,
    UNIFORM,
    UNIFORM_BUCKETS,
    add_frame,
    add_legend,
    draw_curve,
    name_panels,
    picture,
    set_ticks,
    shades,
    span_of,
)
from loloha_lab.paper.exact_figures import EPS_LABEL
from loloha_lab.paper.gain import accuracy_gain, against_usual
from loloha_lab.paper.grid_results import Results
from loloha_lab.paper.method import METHODS, PAPER, PUBLISHED, TIGHT, Method
from loloha_lab.paper.result_table import data_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MSE, BUDGET = r"MSE$_\mathrm{avg}$", r"$ε_\mathrm{avg}$"
LARGEST_Z = 4.5
ERRORS = {
    "mse": "Figure 3a. MSE of the unbiased estimates: measured points, theory lines.",
    "mse_clipped": "Figure 3b. MSE after clipping and renormalising; thin: theory, unbiased.",
}


def draw_errors(results: Results, column: str) -> Figure:
    """Fig. 3: MSE_avg over eps_inf, a row for each alpha and a column for each data set."""
    return _draw_grid(results, column, MSE, ERRORS[column], PAPER, theory=True)


def draw_series(results: Results) -> Figure:
    """Not in the paper: Fig. 3b at the middle alpha, with rounds estimated together."""
    grid, alpha = results.grid, results.grid.middle_alpha
    caption = (
        f"Figure 3c. Figure 3b at α = {alpha:g} with all rounds estimated together (smoother, one "
        "run); thin: single rounds."
    )
    with picture(1.1 + 2.75 * len(grid.workloads), 4.6, caption, _note(results)) as figure:
        panels = figure.subplots(1, len(grid.workloads), squeeze=False)
        for panel, workload in zip(panels[0], grid.workloads, strict=True):
            for method in PAPER:
                single = results.curve(workload, method, PUBLISHED, alpha, "mse_clipped")
                panel.plot(grid.eps_inf, single, color=method.style["color"], linewidth=0.5)
                points = results.along(workload, method, PUBLISHED, alpha)
                together = [results.together(point, "mse_smoothed") for point in points]
                draw_curve(panel, grid.eps_inf, together, method, ours=False)
            _draw_uniform(panel, results, workload, alpha)
            _scale(panel, grid.eps_inf, free=True)
        name_panels(panels, grid.workloads, ())
        add_frame(figure, panels, EPS_LABEL, MSE, ours=False, single=True)
    return figure


def draw_budgets(results: Results) -> Figure:
    """Fig. 4: eps_avg over eps_inf, a row for each alpha and a column for each data set."""
    caption = "Figure 4. Budget that a user has spent after all rounds, on average."
    methods = results.grid.methods
    return _draw_grid(results, "eps_avg", BUDGET, caption, methods, theory=False)


def draw_gains(results: Results) -> Figure:
    """Not in the paper: the error of OLOLOHA as 0.1.0 makes it over that of least-prime hashing."""
    grid = results.grid
    prime = METHODS["ololoha-prime"]
    caption = (
        "MSE of OLOLOHA as 0.1.0 makes it over that of least-prime hashing: measured, with one "
        "standard error; lines are theory. Above 1 least-prime hashing is better."
    )
    with picture(1.1 + 2.75 * len(grid.workloads), 3.5, caption, _note(results)) as figure:
        panels = figure.subplots(1, len(grid.workloads), sharey=True, squeeze=False)
        colours = shades(len(grid.alphas))
        for panel, workload in zip(panels[0], grid.workloads, strict=True):
            for alpha, colour in zip(grid.alphas, colours, strict=True):
                _draw_gain(panel, results, workload, prime, alpha, colour)
            panel.axhline(1, zorder=1, **UNIFORM)
            panel.set_xlabel(EPS_LABEL)
            panel.set_xticks(_whole(grid.eps_inf))
        panels[0, 0].set_ylabel("MSE ratio")
        name_panels(panels, grid.workloads, ())
        add_legend(
            figure,
            {f"α = {alpha:g}": {"color": colour, "marker": "o", "markersize": 4}
             for alpha, colour in zip(grid.alphas, colours, strict=True)},
        )  # fmt: skip
    return figure


def _draw_gain(
    panel: Axes, results: Results, workload: str, method: Method, alpha: float, colour: object
) -> None:
    pairs = against_usual(results, workload, method, alpha)
    gains = [accuracy_gain(results, *pair) for pair in pairs]
    xs = np.array(results.grid.eps_inf) + 0.06 * (alpha - results.grid.middle_alpha) / 0.1
    panel.errorbar(
        xs, [gain.measured for gain in gains], np.nan_to_num([gain.error for gain in gains]),
        color=colour, marker="o", markersize=3, linestyle="none", linewidth=0.9,
    )  # fmt: skip
    expected = [gain.expected for gain in gains]
    panel.plot(results.grid.eps_inf, expected, color=colour, linewidth=0.9, gid=THEORY)


def draw_agreement(results: Results) -> Figure:
    """Ratio of measured to expected MSE_avg of every point, and the distribution of its z."""
    caption = "Measured over expected MSE of every point, and how the points' z are spread."
    with picture(10.0, 3.8, caption, _note(results)) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[2, 1])
        _draw_ratios(left, results)
        _draw_distribution(right, results)
    return figure


def _draw_ratios(panel: Axes, results: Results) -> None:
    methods = results.grid.methods
    rng = np.random.default_rng(0)
    for place, method in enumerate(methods):
        ratios = [
            deviation.ratio
            for point, deviation in results.deviations.items()
            if point.method == method.key
        ]
        panel.plot(
            place + rng.uniform(-0.28, 0.28, len(ratios)), ratios, linestyle="none", markersize=3,
            marker=method.style["marker"], color=method.style["color"], alpha=0.6,
        )  # fmt: skip
    panel.axhline(1, color=TRUTH, linewidth=0.9)
    labels = [method.label.replace(", ", ",\n") for method in methods]
    panel.set_xticks(range(len(methods)), labels, fontsize=7.5)
    panel.tick_params(axis="x", rotation=20)
    panel.set_ylabel("measured / expected")


def _draw_distribution(panel: Axes, results: Results) -> None:
    zs = np.array([deviation.z for deviation in results.deviations.values()])
    xs = np.linspace(-LARGEST_Z, LARGEST_Z, 181)
    panel.hist(
        np.clip(zs[~np.isnan(zs)], -LARGEST_Z, LARGEST_Z),
        bins=np.arange(-LARGEST_Z, LARGEST_Z + 0.25, 0.5).tolist(),
        density=True, color=FAINT, edgecolor="white", label="points",
    )  # fmt: skip
    panel.plot(
        xs, np.exp(-(xs**2) / 2) / np.sqrt(2 * np.pi), color=TRUTH, linewidth=1.2,
        label="standard normal",
    )  # fmt: skip
    panel.set_xlabel("z of a point")
    panel.legend(loc="upper right", fontsize=7, borderaxespad=0)
    panel.set_ylim(top=max(0.55, 1.25 * panel.get_ylim()[1]))


def _draw_grid(
    results: Results,
    column: str,
    quantity: str,
    caption: str,
    methods: Sequence[Method],
    *,
    theory: bool,
) -> Figure:
    grid = results.grid
    rows, columns = len(grid.alphas), len(grid.workloads)
    with picture(1.1 + 2.75 * columns, 1.4 + 2.15 * rows, caption, _note(results)) as figure:
        panels = figure.subplots(
            rows, columns, sharex=True, sharey="col" if theory else "row", squeeze=False
        )
        for i, alpha in enumerate(grid.alphas):
            for j, workload in enumerate(grid.workloads):
                for method in methods:
                    _draw_method(
                        panels[i, j], results, workload, method, alpha, column, theory=theory
                    )
                if theory:
                    _draw_uniform(panels[i, j], results, workload, alpha)
                _scale(panels[i, j], grid.eps_inf, free=column == "mse_clipped")
        name_panels(panels, grid.workloads, grid.alphas)
        ours = any(
            results.differs(workload, method, alpha, spending=not theory)
            for workload in grid.workloads
            for method in PAPER
            for alpha in grid.alphas
        )
        add_frame(figure, panels, EPS_LABEL, quantity, ours=ours, theory=theory, methods=methods)
    return figure


def _draw_method(
    panel: Axes,
    results: Results,
    workload: str,
    method: Method,
    alpha: float,
    column: str,
    *,
    theory: bool,
) -> None:
    """The curves of one method: published, tight where that is another one, and theory."""
    eps_inf = results.grid.eps_inf
    for calibration in _calibrations(results, workload, method, alpha, spending=not theory):
        ours = calibration == TIGHT and not method.ours
        numbers = results.curve(workload, method, calibration, alpha, column)
        draw_curve(panel, eps_inf, numbers, method, ours, joined=column != "mse")
        if not theory:
            continue
        points = results.along(workload, method, calibration, alpha)
        panel.plot(
            eps_inf,
            [results.expected(point) for point in points],
            color=method.style["color"],
            linewidth=0.9 if column == "mse" else 0.5,
            linestyle=OURS["linestyle"] if ours else method.style["linestyle"],
            gid=THEORY,
        )


def _calibrations(
    results: Results, workload: str, method: Method, alpha: float, *, spending: bool
) -> list[str]:
    if method.ours:
        return [TIGHT]
    measured = results.grid.calibrations
    calibrations = [PUBLISHED] if PUBLISHED in measured else []
    if TIGHT in measured and (
        not calibrations or results.differs(workload, method, alpha, spending=spending)
    ):
        calibrations.append(TIGHT)
    return calibrations


def _draw_uniform(panel: Axes, results: Results, workload: str, alpha: float) -> None:
    """The error of answering "uniform", for values and, where they are others, for buckets."""
    first, *_ = results.along(workload, METHODS["rappor"], PUBLISHED, alpha)
    panel.axhline(results.uniform(first), zorder=1, **UNIFORM)
    bucketed, *_ = results.along(workload, METHODS["bbitflippm"], PUBLISHED, alpha)
    if results.protocol(bucketed).bins != results.protocol(first).bins:
        panel.axhline(results.uniform(bucketed), zorder=1, **UNIFORM_BUCKETS)


def _scale(panel: Axes, eps_inf: Sequence[float], *, free: bool) -> None:
    """A log axis over what was measured; theory may leave it where it is ``free`` to."""
    panel.set_yscale("log")
    low, high = span_of(panel)
    if free:
        # Theory speaks of the unbiased estimates; let it leave the panel, not squeeze the rest.
        panel.set_ylim(low / 2, high * 4)
    set_ticks(panel, low, high)
    panel.set_xticks(_whole(eps_inf))


def _whole(eps_inf: Sequence[float]) -> list[int]:
    return [x for x in range(1, 6) if x <= max(eps_inf)]


def _note(results: Results) -> str:
    return f"Mean of {results.grid.runs} runs. {data_note(results)}"
