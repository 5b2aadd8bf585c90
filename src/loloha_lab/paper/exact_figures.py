"""The figures that need no data: those of the paper's theory, and what is exact beyond it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.arrays import Floats
from loloha.figure import TRUTH
from loloha.privacy.transcript import eps_2
from loloha.protocols import OLOLOHA, BiLOLOHA, Protocol
from loloha.server.estimate import variance
from loloha_lab.paper.drawing import GREY, MARKER_SIZE, add_frame, draw_curve, picture, shades
from loloha_lab.paper.method import METHODS, PAPER, PUBLISHED, TIGHT, TWO_ROUNDS, Method
from loloha_lab.paper.pattern import WORST_REPORTS, change_aucs, pattern_losses, worst_losses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EPS_INF = tuple(step / 2 for step in range(1, 11))
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
N, K = 10_000, 96
EPS_LABEL = "$ε_∞$"
TITLES = {PUBLISHED: "published calibration", TIGHT: "tight calibration (ours)"}
BUDGETS = ((1.0, 0.5), (2.0, 1.0), (4.0, 2.0))
"""eps_inf and eps_1 of the panels that show changes: those of MATH section 12."""
STRETCHES = (1, 2, 3, 5, 10, 30, 100)
DOMAINS = tuple(2**power for power in range(1, 17))
ROUND_BUDGET = (2.0, 1.0)


def draw_optimal_g() -> Figure:
    """Fig. 1: the g of OLOLOHA over eps_inf and alpha, under both calibrations."""
    caption = "Figure 1. The g of least variance over ε∞, for each α."
    note = "Theory, no data: c₀ = 1/g as in the paper, so that k and n do not matter."
    with picture(9.0, 3.6, caption, note) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for panel, calibration in zip(panels, (PUBLISHED, TIGHT), strict=True):
            _draw_choices(panel, calibration)
        panels[0].set_ylabel("g of least variance")
    return figure


def _draw_choices(panel: Axes, calibration: str) -> None:
    for alpha, colour in zip(ALPHAS, shades(len(ALPHAS)), strict=True):
        chosen = [optimal_g(eps_inf, alpha, calibration) for eps_inf in EPS_INF]
        panel.plot(EPS_INF, chosen, color=colour, marker="o", markersize=3.5)
        panel.annotate(
            f"α = {alpha:g}", (EPS_INF[-1], chosen[-1]), (6, 0), textcoords="offset points",
            va="center", color=colour, fontsize=8,
        )  # fmt: skip
    panel.set_title(TITLES[calibration], loc="left")
    panel.set_xlabel(EPS_LABEL)
    panel.set_xlim(0.3, 5.9)
    panel.set_xticks(range(1, 6))
    panel.set_yscale("log", base=2)
    panel.set_yticks([2, 3, 4, 6, 8, 12, 16, 20])
    panel.yaxis.set_major_formatter("{x:.0f}")
    panel.minorticks_off()


def optimal_g(eps_inf: float, alpha: float, calibration: str) -> int:
    """The g of OLOLOHA where hashes collide with probability 1/g, as the paper assumes."""
    chosen = OLOLOHA(
        k=K, eps_inf=eps_inf, eps_1=alpha * eps_inf, calibration=calibration, hash="xxhash"
    )
    return int(chosen.g or 0)


def draw_variances(*, relative: bool = False) -> Figure:
    """Fig. 2: V* of the two-round protocols, under both calibrations.

    ``relative`` to L-OSUE's, curves that nearly coincide can be distinguished.
    """
    caption = "Figure 2. V* over ε∞, for each α" + (", in units of L-OSUE's." if relative else ".")
    note = f"Theory, no data: n = {N}, k = {K} (for L-GRR), c₀ = 1/g."
    if relative:
        note += " What is more than twice L-OSUE's is cut off, L-GRR mostly."
    with picture(10.0, 6.2, caption, note) as figure:
        panels = figure.subplots(2, 3, sharex=True, sharey=True)
        for panel, alpha in zip(panels.flat, ALPHAS, strict=True):
            _draw_variances_of(panel, alpha, relative)
        up = "V* / V* of L-OSUE" if relative else "V*"
        add_frame(figure, panels, EPS_LABEL, up, ours=True, methods=TWO_ROUNDS)
    return figure


def _draw_variances_of(panel: Axes, alpha: float, relative: bool) -> None:
    unit = _variances(METHODS["l-osue"], alpha, PUBLISHED) if relative else 1.0
    for method in TWO_ROUNDS:
        for calibration in (PUBLISHED, TIGHT) if method.calibrated else (PUBLISHED,):
            numbers = _variances(method, alpha, calibration) / unit
            draw_curve(panel, EPS_INF, numbers, method, calibration == TIGHT)
    panel.set_title(f"α = {alpha:g}", loc="left")
    panel.set_xticks(range(1, 6))
    if relative:
        panel.set_ylim(0.95, 2.05)
    else:
        panel.set_yscale("log")
        panel.minorticks_off()


def _variances(method: Method, alpha: float, calibration: str) -> Floats:
    return np.array(
        [theoretical_variance(method, eps_inf, alpha, calibration) for eps_inf in EPS_INF]
    )


def theoretical_variance(
    method: Method, eps_inf: float, alpha: float, calibration: str, k: int = K
) -> float:
    """V* of a two-round protocol at n = 10 000 with c0 = 1/g: one number of Fig. 2."""
    hashes = method.protocol in (BiLOLOHA.name, OLOLOHA.name)
    family: dict[str, Any] = {"hash": "xxhash"} if hashes else {}
    return float(variance(method.build(k, eps_inf, alpha, calibration, **family), N))


def draw_patterns(most: int = 10) -> Figure:
    """Not in the paper: what a change pattern reveals, beyond g eps_inf (MATH section 8)."""
    protocol = BiLOLOHA(k=2, eps_inf=1.0, eps_1=0.5)
    reports = np.arange(1, most + 1)
    worst = worst_losses(protocol, WORST_REPORTS)
    alternating = pattern_losses(protocol, most)
    colour = METHODS["biloloha"].style["color"]
    caption = "Exact loss between two sequences of values over the number of reports."
    note = "Exact, no data: BiLOLOHA, $ε_∞$ = 1, $ε_1$ = 0.5; two hash cells."
    with picture(6.4, 3.6, caption, note) as figure:
        panel = figure.subplots()
        panel.plot(
            reports[: len(worst)], worst, marker="s", markersize=MARKER_SIZE, color=TRUTH,
            label="worst pair of value sequences (exhaustive)",
        )  # fmt: skip
        panel.plot(
            reports, alternating, marker="o", markersize=MARKER_SIZE, color=colour,
            label="constant against alternating value",
        )  # fmt: skip
        panel.axhline(protocol.cap, color=GREY, linestyle="--", linewidth=1)
        panel.annotate(
            r"$g\,ε_∞$ = 2", (most, protocol.cap), (0, 4), textcoords="offset points",
            fontsize=9, ha="right",
        )  # fmt: skip
        panel.set_xlabel("reports")
        panel.set_ylabel("exact loss")
        panel.set_xticks(reports)
        panel.set_ylim(0)
        panel.legend(loc="upper left")
    return figure


def draw_aucs() -> Figure:
    """Not in the paper: how surely a change shows, over the reports before and after it."""
    caption = (
        "How surely the best test tells whether a value changed between T reports and T more: "
        "0.5 is guessing, 1 is certainty."
    )
    note = (
        f"Theory, no data: k = {K}, values equally likely, the key known. Where no closed form "
        "is summed, an upper bound: a seeded simulation and four of its standard errors."
    )
    with picture(10.0, 3.9, caption, note) as figure:
        panels = figure.subplots(1, len(BUDGETS), sharey=True, squeeze=False)
        for panel, (eps_inf, eps_1) in zip(panels[0], BUDGETS, strict=True):
            for method, protocol, ours in _variants(K, eps_inf, eps_1):
                draw_curve(panel, STRETCHES, change_aucs(protocol, STRETCHES), method, ours)
            panel.set_title(f"$ε_∞$ = {eps_inf:g}, $ε_1$ = {eps_1:g}", loc="left")
            panel.set_xscale("log")
            panel.set_xticks(STRETCHES, [f"{number}" for number in STRETCHES])
            panel.minorticks_off()
        add_frame(figure, panels, "T: reports before, and after", "area under ROC curve", ours=True)
    return figure


def draw_round_losses() -> Figure:
    """Not in the paper: eps_2, what one round loses when all others are known, over k."""
    eps_inf, eps_1 = ROUND_BUDGET
    caption = (
        "ε₂, the loss of any one round when all others are known, over the size of the domain."
    )
    note = (
        f"Exact, no data: $ε_∞$ = {eps_inf:g}, $ε_1$ = {eps_1:g}, "
        "from the thresholds that devices draw with. Published L-GRR, BiLOLOHA and OLOLOHA "
        "have one ε₂ by construction."
    )
    with picture(6.4, 4.4, caption, note) as figure:
        panel = figure.subplots()
        losses = [list(_variants(k, eps_inf, eps_1)) for k in DOMAINS]
        endless = []
        for of_all_k in zip(*losses, strict=True):
            method, _, ours = of_all_k[0]
            numbers = [eps_2(protocol) for _, protocol, _ in of_all_k]
            if math.isinf(numbers[-1]):
                endless.append(method.label)
            else:
                draw_curve(panel, DOMAINS, numbers, method, ours)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.minorticks_off()
        remark = f"{' and '.join(dict.fromkeys(endless))}: infinite, no second round"
        panel.annotate(
            remark, (0.02, 0.97), xycoords="axes fraction", va="top", color=GREY, fontsize=8
        )
        shown = [method for method in PAPER if method.label not in endless]
        add_frame(
            figure, np.array([[panel]]), "k: values of the domain", "$ε_2$", ours=True,
            methods=shown,
        )  # fmt: skip
    return figure


def _variants(k: int, eps_inf: float, eps_1: float) -> Iterator[tuple[Method, Protocol, bool]]:
    """The paper's rules as published, and under our calibration where that can differ."""
    alpha = eps_1 / eps_inf
    for method in PAPER:
        published = method.build(k, eps_inf, alpha, PUBLISHED)
        yield method, published, False
        if method.calibrated and method.two_rounds:
            yield method, method.build(k, eps_inf, alpha, TIGHT), True
