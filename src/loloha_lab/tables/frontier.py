"""The tables of ``docs/frontier.md``: ``python -m loloha_lab.tables.frontier`` writes them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from loloha.planning import limits
from loloha.planning.frontier import frontier
from loloha.privacy.change import change_auc
from loloha.privacy.transcript import eps_2
from loloha.protocols import LGRR, LOSUE, OLOLOHA, Protocol
from loloha.server.variance import variance
from loloha_lab.tables import Section, titled

OPTIMUM = ((16, 1.0), (16, 1.7), (20, 2.0), (50, 2.8), (96, 1.0), (96, 2.8), (1000, 1.0))
TABLES = ((2.0, 2), (2.0, 3), (2.0, 4), (4.0, 8), (5.0, 13))


def text() -> str:
    """All tables, in Markdown."""
    return titled(_optimum(), *_memo())


def _optimum() -> Section:
    def row(k: int, eps_1: float) -> list[str]:
        budgets: dict[str, Any] = {"k": k, "eps_inf": 2 * eps_1, "eps_1": eps_1}
        linear, prime = OLOLOHA(**budgets, hash="linear"), OLOLOHA(**budgets, hash="prime")
        best = limits.variance(k, eps_1)
        noises = [
            float(variance(protocol, 1))
            for protocol in (linear, LGRR(**budgets), LOSUE(**budgets), prime)
        ]
        above = min(noises[0], noises[1], noises[3]) / best - 1
        return [
            f"{k}, {eps_1}",
            *(f"{noise:.4g}" for noise in noises[:3]),
            f"{noises[3]:.4g} (g = {prime.g})",
            f"{best:.4g}",
            f"{100 * above:.1f} %",
        ]

    head = ("k, eps_1", "linear", "L-GRR", "L-OSUE", "least prime", "optimum", "best above it")
    return "n V* of the first report", head, [row(*point) for point in OPTIMUM]


def _memo() -> Iterable[Section]:
    rows, shows = [], []
    for eps_inf, g in TABLES:
        budgets: dict[str, Any] = {
            "k": 96,
            "eps_inf": eps_inf,
            "eps_1": eps_inf / 2,
            "g": g,
            "hash": "prime",
        }
        apart = OLOLOHA(**budgets)
        usual, bare = (OLOLOHA(**budgets, memo="joint", m0=m0) for m0 in (None, 0.0))
        rows.append(
            [
                f"{eps_inf:g}, {g}",
                *(f"{protocol.cap:.4g}" for protocol in (apart, usual, bare)),
                # Of two cells and no third one, none can be exchanged.
                f"{usual.spent(2):.4g}" if g > 2 else "-",
                f"{eps_2(usual):.4g}",
            ]
        )
        shows.append([f"{eps_inf:g}, {g}", *(_auc(protocol) for protocol in (apart, usual, bare))])
    yield (
        "The cap of jointly drawn permanent responses, eps_1 = eps_inf / 2",
        (
            "eps_inf, g",
            "g eps_inf",
            "B_g",
            "B_g at m0 = 0",
            "B_2: one of two cells exchanged",
            "eps_2",
        ),
        rows,
    )
    yield (
        "How surely a change shows at most to 10 reports a side (AUC over users of drawn keys)",
        ("eps_inf, g", "independent", "one table", "m0 = 0"),
        shows,
    )
    points = frontier(96, 2.0)
    yield (
        "What a lower loss of one round costs: k = 96, eps_inf = 2, linear family",
        ("eps_2", "eps_1", "g", "n V*", "optimum at this eps_1"),
        [
            [f"{point.eps_2:.3f}", f"{point.eps_1:.3f}", str(point.g), f"{point.noise:.4g}",
             f"{point.optimum:.4g}"]
            for point in points
        ],
    )  # fmt: skip


def _auc(protocol: Protocol) -> str:
    shown = change_auc(protocol, 10)
    return "-" if shown is None else f"{shown.auc:.2f}"


if __name__ == "__main__":
    sys.stdout.write(text())
