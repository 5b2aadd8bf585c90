"""The gain of decoding a window by likelihood: ``python -m loloha_lab.tables.window``.

The table of ``docs/frontier.md``; equal seeds give equal figures, with numba or without.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from loloha.datasets import adult, browsers, syn
from loloha.engines.window import decode
from loloha.population import linked
from loloha.protocols import OLOLOHA
from loloha_lab.tables import markdown

USERS, K, RUNS = 10_000, 96, 10
HEAD = (
    "population", "rounds", "saved if nobody changes", "saved", "as the reports show it",
    "likelihood chosen", "saved with the choice",
)  # fmt: skip


class Case(NamedTuple):
    """A population, and how many rounds of it."""

    name: str
    rounds: int
    values: Callable[[int, int], Any]
    """Of so many rounds, by a seed."""
    k: int = K


def _syn(change: float) -> Callable[[int, int], Any]:
    return lambda rounds, seed: syn(n=USERS, k=K, tau=rounds, change=change, rng=seed).values


def _constant(rounds: int, seed: int) -> Any:
    return np.repeat(adult(tau=1, rng=seed).values, rounds, axis=1)


CASES = (
    Case("Syn, nobody changes", 4, _syn(0.0)),
    Case("Syn, nobody changes", 10, _syn(0.0)),
    Case("Syn, nobody changes", 30, _syn(0.0)),
    Case("Syn, 1 % change a round", 10, _syn(0.01)),
    Case("Syn, 5 % change a round", 10, _syn(0.05)),
    Case("Syn, 25 % change a round", 10, _syn(0.25)),
    Case("Adult, nobody changes", 10, _constant),
    Case(
        "Adult, permuted in each round", 10, lambda rounds, seed: adult(tau=rounds, rng=seed).values
    ),
    Case(
        "Browsers, 1 to 4 % change a round",
        10,
        lambda rounds, seed: browsers(USERS, tau=rounds, rng=seed).values,
        k=97,
    ),
)


def row(case: Case) -> list[str]:
    """A line of the table: means of all runs, of OLOLOHA at eps_inf = 2, eps_1 = 1."""
    protocol = OLOLOHA(k=case.k, eps_inf=2.0, eps_1=1.0)
    squares = {"mean": 0.0, "likelihood": 0.0, "auto": 0.0}
    gain, seen, likely = 0.0, 0.0, 0
    for run in range(RUNS):
        values = case.values(case.rounds, run)
        truth = np.bincount(values.ravel(), minlength=case.k) / values.size
        keys, ys = linked(protocol, values, rng=run)
        for method in squares:
            decoded = decode(protocol, keys, ys, method=method)
            squares[method] += float(((decoded.frequencies - truth) ** 2).sum())
        # The last one chose for itself.
        gain, seen = decoded.gain or 0.0, seen + (decoded.seen or 0.0) / RUNS
        likely += decoded.method == "likelihood"
    plain = squares["mean"]
    saved, chosen = (1 - squares[method] / plain for method in ("likelihood", "auto"))
    shares = [f"{100 * share:.1f} %" if abs(share) < 1 else f"{100 * share:.0f} %"
              for share in (gain, saved, seen, chosen)]  # fmt: skip
    return [case.name, str(case.rounds), *shares[:3], f"{likely} of {RUNS}", shares[3]]


def text() -> str:
    """The table, in Markdown."""
    return markdown(HEAD, map(row, CASES))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    sys.stdout.write(text())
