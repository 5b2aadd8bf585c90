"""The figures: those of the paper, with theory and measurement in one panel, and two of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.rules.counting.arrays import Floats
from loloha.rules.protocols import OLOLOHA, BiLOLOHA
from loloha.server.estimate import variance
from loloha.study.figure import FAINT, TRUTH
from loloha.study.paper.contender import CONTENDERS, PUBLISHED, TIGHT, TWO_ROUNDS, Contender
from loloha.study.paper.drawing import (
    MARKER_SIZE,
    OURS,
    THEORY,
    UNIFORM,
    UNIFORM_BUCKETS,
    add_frame,
    draw_curve,
    finish,
    look,
    new_figure,
    set_ticks,
    shades,
    span_of,
)
from loloha.study.paper.pattern import WORST_REPORTS, pattern_losses, worst_losses
from loloha.study.paper.results import Results
from loloha.study.paper.table import data_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EPS_INF = tuple(step / 2 for step in range(1, 11))
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
N, K = 10_000, 96
EPS_LABEL, MSE, BUDGET = "$ε_∞$", r"MSE$_\mathrm{avg}$", r"$ε_\mathrm{avg}$"
TITLES = {PUBLISHED: "published calibration", TIGHT: "tight calibration (ours)"}


def draw_optimal_g() -> Figure:
    """Fig. 1: the g of OLOLOHA over eps_inf and alpha, under both calibrations."""
    with look():
        figure = new_figure(9.0, 3.6)
        panels = figure.subplots(1, 2, sharey=True)
        colours = shades(len(ALPHAS))
        for panel, calibration in zip(panels, (PUBLISHED, TIGHT), strict=True):
            for alpha, colour in zip(ALPHAS, colours, strict=True):
                chosen = [optimal_g(eps_inf, alpha, calibration) for eps_inf in EPS_INF]
                panel.plot(EPS_INF, chosen, color=colour, marker="o", markersize=3.5)
                panel.annotate(
                    f"α = {alpha:g}",
                    (EPS_INF[-1], chosen[-1]),
                    (6, 0),
                    textcoords="offset points",
                    va="center",
                    color=colour,
                    fontsize=8,
                )
            panel.set_title(TITLES[calibration], loc="left")
            panel.set_xlabel(EPS_LABEL)
            panel.set_xlim(0.3, 5.9)
            panel.set_xticks(range(1, 6))
            panel.set_yscale("log", base=2)
            panel.set_yticks([2, 3, 4, 6, 8, 12, 16, 20])
            panel.yaxis.set_major_formatter("{x:.0f}")
            panel.minorticks_off()
        panels[0].set_ylabel("g of least variance")
        finish(
            figure,
            "Figure 1. The g of least variance over ε∞, for each α.",
            "Theory, no data: c₀ = 1/g as in the paper, so that k and n do not matter.",
        )
    return figure


def optimal_g(eps_inf: float, alpha: float, calibration: str) -> int:
    """The g of OLOLOHA where hashes collide with probability 1/g, as the paper assumes."""
    chosen = OLOLOHA(
        k=K, eps_inf=eps_inf, eps_1=alpha * eps_inf, calibration=calibration, hash="xxhash"
    )
    return chosen.symbols


def theoretical_variance(
    contender: Contender, eps_inf: float, alpha: float, calibration: str, k: int = K
) -> float:
    """V* of a two-round protocol at n = 10 000 with c0 = 1/g: one number of Fig. 2."""
    hashes = contender.protocol in (BiLOLOHA.name, OLOLOHA.name)
    family: dict[str, Any] = {"hash": "xxhash"} if hashes else {}
    return float(variance(contender.build(k, eps_inf, alpha, calibration, **family), N))


def draw_variances(*, relative: bool = False) -> Figure:
    """Fig. 2: V* of the two-round protocols, under both calibrations.

    Parameters
    ----------
    relative : bool
        Over the V* of L-OSUE, where curves that nearly coincide can be told apart.
    """
    with look():
        figure = new_figure(10.0, 6.2)
        panels = figure.subplots(2, 3, sharex=True, sharey=True)
        for panel, alpha in zip(panels.flat, ALPHAS, strict=True):
            unit = np.ones(len(EPS_INF))
            if relative:
                unit = _variances(CONTENDERS["l-osue"], alpha, PUBLISHED)
            for contender in TWO_ROUNDS:
                for calibration in (PUBLISHED, TIGHT) if contender.calibrated else (PUBLISHED,):
                    numbers = _variances(contender, alpha, calibration) / unit
                    draw_curve(panel, EPS_INF, numbers, contender, calibration == TIGHT)
            panel.set_title(f"α = {alpha:g}", loc="left")
            panel.set_xticks(range(1, 6))
            if relative:
                panel.set_ylim(0.95, 2.05)
            else:
                panel.set_yscale("log")
                panel.minorticks_off()
        up = "V* / V* of L-OSUE" if relative else "V*"
        add_frame(figure, panels, EPS_LABEL, up, ours=True, contenders=TWO_ROUNDS)
        finish(
            figure,
            "Figure 2. V* over ε∞, for each α" + (", in units of L-OSUE's." if relative else "."),
            f"Theory, no data: n = {N}, k = {K} (for L-GRR), c₀ = 1/g.",
        )
    return figure


def _variances(contender: Contender, alpha: float, calibration: str) -> Floats:
    return np.array(
        [theoretical_variance(contender, eps_inf, alpha, calibration) for eps_inf in EPS_INF]
    )


def draw_errors(results: Results, column: str) -> Figure:
    """Fig. 3: MSE_avg over eps_inf, a row for each alpha and a column for each data set.

    Parameters
    ----------
    results : Results
    column : {"mse_unbiased", "mse_clipped"}
    """
    caption = {
        "mse_unbiased": "Figure 3a. MSE of the unbiased estimates: measured points, theory lines.",
        "mse_clipped": "Figure 3b. MSE after clipping and renormalising; thin: theory, unbiased.",
    }[column]
    return _draw_grid(results, column, MSE, caption, theory=True)


def draw_budgets(results: Results) -> Figure:
    """Fig. 4: eps_avg over eps_inf, a row for each alpha and a column for each data set."""
    caption = "Figure 4. Budget that a user has spent after all rounds, on average."
    return _draw_grid(results, "eps_avg", BUDGET, caption, theory=False)


def draw_patterns(most: int = 10) -> Figure:
    """Not in the paper: what a change pattern reveals, beyond g eps_inf (MATH section 8)."""
    protocol = BiLOLOHA(k=2, eps_inf=1.0, eps_1=0.5)
    colour = CONTENDERS["biloloha"].style["color"]
    with look():
        figure = new_figure(6.4, 3.6)
        panel = figure.subplots()
        reports = np.arange(1, most + 1)
        worst = worst_losses(protocol, WORST_REPORTS)
        panel.plot(
            reports[: len(worst)],
            worst,
            marker="s",
            markersize=MARKER_SIZE,
            color=TRUTH,
            label="worst pair of value sequences (exhaustive)",
        )
        panel.plot(
            reports,
            pattern_losses(protocol, most),
            marker="o",
            markersize=MARKER_SIZE,
            color=colour,
            label="constant against alternating value",
        )
        panel.axhline(protocol.cap, color="#777777", linestyle="--", linewidth=1)
        panel.annotate(
            r"$g\,ε_∞$ = 2", (most, protocol.cap), (0, 4), textcoords="offset points",
            fontsize=9, ha="right",
        )  # fmt: skip
        panel.set_xlabel("reports")
        panel.set_ylabel("exact loss")
        panel.set_xticks(reports)
        panel.set_ylim(0)
        panel.legend(loc="upper left")
        finish(
            figure,
            "Exact loss between two sequences of values over the number of reports.",
            "Exact, no data: BiLOLOHA, $ε_∞$ = 1, $ε_1$ = 0.5; two hash cells.",
        )
    return figure


def draw_agreement(results: Results) -> Figure:
    """Ratio of measured to expected MSE_avg of every point, and the law of its z."""
    with look():
        figure = new_figure(10.0, 3.8)
        left, right = figure.subplots(1, 2, width_ratios=[2, 1])
        found = results.deviations
        rng = np.random.default_rng(0)
        for place, contender in enumerate(CONTENDERS.values()):
            ratios = [
                deviation.ratio
                for point, deviation in found.items()
                if point.contender == contender.key
            ]
            spread = place + rng.uniform(-0.28, 0.28, len(ratios))
            left.plot(
                spread, ratios, linestyle="none", marker=contender.style["marker"],
                color=contender.style["color"], markersize=3, alpha=0.6,
            )  # fmt: skip
        left.axhline(1, color=TRUTH, linewidth=0.9)
        left.set_xticks(range(len(CONTENDERS)), [one.label for one in CONTENDERS.values()])
        left.tick_params(axis="x", rotation=20)
        left.set_ylabel("measured / expected")
        zs = np.array([deviation.z for deviation in found.values()])
        grid = np.linspace(-4.5, 4.5, 181)
        right.hist(
            np.clip(zs[~np.isnan(zs)], -4.5, 4.5), bins=np.arange(-4.5, 4.75, 0.5), density=True,
            color=FAINT, edgecolor="white", label="points",
        )  # fmt: skip
        right.plot(
            grid, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), color=TRUTH, linewidth=1.2,
            label="standard normal",
        )  # fmt: skip
        right.set_xlabel("z of a point")
        right.legend(loc="upper right", fontsize=7, borderaxespad=0)
        right.set_ylim(top=0.55)
        finish(
            figure,
            "Measured over expected MSE of every point, and how the points' z are spread.",
            f"Mean of {results.grid.runs} runs. {data_note(results)}",
        )
    return figure


def _draw_grid(
    results: Results, column: str, quantity: str, caption: str, *, theory: bool
) -> Figure:
    grid = results.grid
    rows, columns = len(grid.alphas), len(grid.workloads)
    with look():
        figure = new_figure(1.1 + 2.75 * columns, 1.4 + 2.15 * rows)
        panels = figure.subplots(
            rows, columns, sharex=True, sharey="col" if theory else "row", squeeze=False
        )
        for i, alpha in enumerate(grid.alphas):
            for j, workload in enumerate(grid.workloads):
                panel = panels[i, j]
                _draw_panel(panel, results, workload, alpha, column, theory=theory)
                if i == 0:
                    panel.set_title(workload, loc="left", fontweight="bold")
                if j == columns - 1:
                    panel.annotate(
                        f"α = {alpha:g}",
                        (1.03, 0.5),
                        xycoords="axes fraction",
                        rotation=-90,
                        va="center",
                        fontsize=9,
                    )
        ours = any(
            results.differs(workload, contender, alpha)
            for workload in grid.workloads
            for contender in CONTENDERS.values()
            for alpha in grid.alphas
        )
        add_frame(figure, panels, EPS_LABEL, quantity, ours=ours, theory=theory)
        finish(figure, caption, f"Mean of {results.grid.runs} runs. {data_note(results)}")
    return figure


def _draw_panel(
    panel: Axes, results: Results, workload: str, alpha: float, column: str, *, theory: bool
) -> None:
    eps_inf = results.grid.eps_inf
    for contender in CONTENDERS.values():
        curves = [PUBLISHED] if PUBLISHED in results.grid.calibrations else []
        if TIGHT in results.grid.calibrations and (
            not curves or results.differs(workload, contender, alpha, spending=not theory)
        ):
            curves.append(TIGHT)
        for calibration in curves:
            ours = calibration == TIGHT
            numbers = results.curve(workload, contender, calibration, alpha, column)
            draw_curve(panel, eps_inf, numbers, contender, ours, joined=column != "mse_unbiased")
            if theory:
                points = results.along(workload, contender, calibration, alpha)
                expected = [results.expected(point) for point in points]
                panel.plot(
                    eps_inf,
                    expected,
                    color=contender.style["color"],
                    linewidth=0.9 if column == "mse_unbiased" else 0.5,
                    linestyle=OURS["linestyle"] if ours else contender.style["linestyle"],
                    gid=THEORY,
                )
    if theory:
        first, *_ = results.along(workload, CONTENDERS["rappor"], PUBLISHED, alpha)
        panel.axhline(results.uniform(first), zorder=1, **UNIFORM)
        bucketed, *_ = results.along(workload, CONTENDERS["bbitflippm"], PUBLISHED, alpha)
        if results.protocol(bucketed).bins != results.protocol(first).bins:
            panel.axhline(results.uniform(bucketed), zorder=1, **UNIFORM_BUCKETS)
    panel.set_yscale("log")
    low, high = span_of(panel)
    if theory and column != "mse_unbiased":
        # Theory speaks of the unbiased estimates; let it leave the panel, not squeeze the rest.
        panel.set_ylim(low / 2, high * 4)
    set_ticks(panel, low, high)
    panel.set_xticks([x for x in range(1, 6) if x <= max(eps_inf)])
