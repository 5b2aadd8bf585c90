"""The figures: those of the paper, with theory and measurement in one panel, and two of ours."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.arrays import Floats
from loloha.estimate import variance
from loloha.figure import FAINT, LOOK, TRUTH
from loloha.paper.contender import CONTENDERS, PUBLISHED, TIGHT, TWO_ROUNDS, Contender
from loloha.paper.pattern import WORST_REPORTS, pattern_losses, worst_losses
from loloha.paper.results import Results
from loloha.paper.tables import data_note
from loloha.protocols import OLOLOHA, BiLOLOHA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EPS_INF = tuple(step / 2 for step in range(1, 11))
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
FEW_DECADES = 100.0
N = 10_000
K = 96
# Ours is drawn in the colour of its protocol, thin and dotted, with an open marker.
OURS: dict[str, Any] = {"linestyle": ":", "markerfacecolor": "white"}
MARKER_SIZE = 4.2
THEORY = "theory"
GREY = "#555555"
UNIFORM: dict[str, Any] = {"color": TRUTH, "linestyle": (0, (5, 2)), "linewidth": 0.9}
UNIFORM_BUCKETS = UNIFORM | {"linestyle": (0, (1, 2))}
# Curves that lie on each other stay visible: the earlier one has the larger marker.
SIZES = {"rappor": 7.0, "l-osue": 5.5, "ololoha": 3.0}
EPS_LABEL, MSE, BUDGET = "$ε_∞$", r"MSE$_\mathrm{avg}$", r"$ε_\mathrm{avg}$"
TITLES = {PUBLISHED: "published calibration", TIGHT: "tight calibration (ours)"}


def draw_optimal_g() -> Figure:
    """Fig. 1: the g of OLOLOHA over eps_inf and alpha, under both calibrations."""
    with _look():
        figure = _new(9.0, 3.6)
        panels = figure.subplots(1, 2, sharey=True)
        colours = _shades(len(ALPHAS))
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
        _finish(
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
    with _look():
        figure = _new(10.0, 6.2)
        panels = figure.subplots(2, 3, sharex=True, sharey=True)
        for panel, alpha in zip(panels.flat, ALPHAS, strict=True):
            unit = np.ones(len(EPS_INF))
            if relative:
                unit = _variances(CONTENDERS["l-osue"], alpha, PUBLISHED)
            for contender in TWO_ROUNDS:
                for calibration in (PUBLISHED, TIGHT) if contender.calibrated else (PUBLISHED,):
                    numbers = _variances(contender, alpha, calibration) / unit
                    _line(panel, EPS_INF, numbers, contender, calibration == TIGHT)
            panel.set_title(f"α = {alpha:g}", loc="left")
            panel.set_xticks(range(1, 6))
            if relative:
                panel.set_ylim(0.95, 2.05)
            else:
                panel.set_yscale("log")
                panel.minorticks_off()
        up = "V* / V* of L-OSUE" if relative else "V*"
        _frame(figure, panels, EPS_LABEL, up, ours=True, contenders=TWO_ROUNDS)
        _finish(
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
    with _look():
        figure = _new(6.4, 3.6)
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
        _finish(
            figure,
            "Exact loss between two sequences of values over the number of reports.",
            "Exact, no data: BiLOLOHA, $ε_∞$ = 1, $ε_1$ = 0.5; two hash cells.",
        )
    return figure


def draw_agreement(results: Results) -> Figure:
    """Ratio of measured to expected MSE_avg of every point, and the law of its z."""
    with _look():
        figure = _new(10.0, 3.8)
        left, right = figure.subplots(1, 2, width_ratios=[2, 1])
        found = results.agreements
        rng = np.random.default_rng(0)
        for place, contender in enumerate(CONTENDERS.values()):
            ratios = [
                agreement.ratio
                for point, agreement in found.items()
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
        zs = np.array([agreement.z for agreement in found.values()])
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
        _finish(
            figure,
            "Measured over expected MSE of every point, and how the points' z are spread.",
            f"Mean of {results.settings.runs} runs. {data_note(results)}",
        )
    return figure


def _draw_grid(
    results: Results, column: str, quantity: str, caption: str, *, theory: bool
) -> Figure:
    settings = results.settings
    rows, columns = len(settings.alphas), len(settings.workloads)
    with _look():
        figure = _new(1.1 + 2.75 * columns, 1.4 + 2.15 * rows)
        panels = figure.subplots(
            rows, columns, sharex=True, sharey="col" if theory else "row", squeeze=False
        )
        for i, alpha in enumerate(settings.alphas):
            for j, workload in enumerate(settings.workloads):
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
            for workload in settings.workloads
            for contender in CONTENDERS.values()
            for alpha in settings.alphas
        )
        _frame(figure, panels, EPS_LABEL, quantity, ours=ours, theory=theory)
        _finish(figure, caption, f"Mean of {results.settings.runs} runs. {data_note(results)}")
    return figure


def _draw_panel(
    panel: Axes, results: Results, workload: str, alpha: float, column: str, *, theory: bool
) -> None:
    eps_inf = results.settings.eps_inf
    for contender in CONTENDERS.values():
        curves = [PUBLISHED] if PUBLISHED in results.settings.calibrations else []
        if TIGHT in results.settings.calibrations and (
            not curves or results.differs(workload, contender, alpha, spending=not theory)
        ):
            curves.append(TIGHT)
        for calibration in curves:
            ours = calibration == TIGHT
            numbers = results.curve(workload, contender, calibration, alpha, column)
            _line(panel, eps_inf, numbers, contender, ours, joined=column != "mse_unbiased")
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
    low, high = _span(panel)
    if theory and column != "mse_unbiased":
        # Theory speaks of the unbiased estimates; let it leave the panel, not squeeze the rest.
        panel.set_ylim(low / 2, high * 4)
    _tick(panel, low, high)
    panel.set_xticks([x for x in range(1, 6) if x <= max(eps_inf)])


def _tick(panel: Axes, low: float, high: float) -> None:
    """Ticks of a log axis: powers of ten, and 2 and 5 between them where they are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    if high / low < FEW_DECADES:
        panel.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda y, place: f"{y:g}"))
    panel.minorticks_off()


def _span(panel: Axes) -> tuple[float, float]:
    """Least and largest of what was measured in a panel, and of the uniform lines."""
    heights = [
        np.asarray(line.get_ydata(), dtype=np.float64)
        for line in panel.get_lines()
        if line.get_gid() != THEORY
    ]
    together = np.concatenate(heights)
    return float(together.min()), float(together.max())


def _line(
    panel: Axes,
    xs: Sequence[float],
    ys: Sequence[float] | Floats,
    contender: Contender,
    ours: bool,
    *,
    joined: bool = True,
) -> None:
    look: dict[str, Any] = dict(contender.style) | (OURS if ours else {})
    if not joined:
        look["linestyle"] = "none"
    size = SIZES.get(contender.key, MARKER_SIZE)
    panel.plot(xs, ys, markersize=size, markeredgewidth=0.8, linewidth=1.2, **look)


def _frame(
    figure: Figure,
    panels: Any,
    across: str,
    up: str,
    *,
    ours: bool,
    theory: bool = False,
    contenders: Sequence[Contender] = tuple(CONTENDERS.values()),
) -> None:
    """Labels of the axes, and one legend for all panels."""
    for panel in panels[-1]:
        panel.set_xlabel(across)
    for panel in panels[:, 0]:
        panel.set_ylabel(up)
    looks: dict[str, dict[str, Any]] = {
        contender.label: {"markersize": MARKER_SIZE} | contender.style for contender in contenders
    }
    if ours:
        looks["tight (ours)"] = {"color": GREY, "marker": "o", "markersize": MARKER_SIZE} | OURS
    if theory:
        looks["theory"] = {"color": GREY, "linewidth": 0.9}
        looks["always uniform"] = UNIFORM
        looks["… of the buckets"] = UNIFORM_BUCKETS
    handles = [_handle(label, look) for label, look in looks.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 6))


def _finish(figure: Figure, caption: str, note: str) -> None:
    """Say what the figure shows and, in a small line below, where the numbers come from."""
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(note, int(width * 17))
    below = (0.06 + 0.13 * len(lines)) / height
    figure.text(0.01, 0.04 / height, "\n".join(lines), va="bottom", fontsize=7, color=GREY)
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, below, 1, 1 - below))
    figure.set_label(caption)
    # Laid out once, not again for each file.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def _handle(label: str, look: dict[str, Any]) -> Any:
    """An entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **({"linewidth": 1.2} | look))


def _new(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _shades(count: int) -> list[Any]:
    """Colours from dark to light, apart in grey too."""
    import matplotlib

    return list(matplotlib.colormaps["viridis"](np.linspace(0, 0.82, count)))


@contextmanager
def _look() -> Iterator[None]:
    """The look of all our pictures, whatever the user's settings."""
    import matplotlib

    settings: Any = {
        key: value
        for key, value in (matplotlib.rcParamsDefault | LOOK).items()
        if not key.startswith("backend")
    }
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        matplotlib.rcParams.update(settings)
        yield
