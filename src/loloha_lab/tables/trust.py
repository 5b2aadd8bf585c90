"""The price of local privacy, and the gain of memos: ``python -m loloha_lab.tables.trust``.

The tables of ``docs/local-or-central.md``; exact but for the budgets, which are of simulated users.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from loloha.planning import limits, plan
from loloha.population import supports
from loloha.protocols import OLOLOHA, RAPPOR, BiLOLOHA
from loloha.server.variance import variance
from loloha_lab.guarantees.compared_method import EPS_1, EPS_INF, LOSS, WINDOW
from loloha_lab.guarantees.method_score import BROWSERS, populations
from loloha_lab.paper.workload import WORKLOADS
from loloha_lab.tables import markdown

K = 96
USERS = (1_000, 10_000, 50_000, 1_000_000)
LIFE_COURSE = 3.4
"""Values of a person in the monthly life courses that are no part of the data here."""


def discrete_laplace(eps: float) -> float:
    """Variance of the noise of one count where a user's exchange of values moves two by one."""
    q = math.exp(-eps / 2)
    return 2 * q / (1 - q) ** 2


def error_row(n: int) -> list[str]:
    """Standard errors of one rare value in one round, in percentage points, at eps_1."""
    local = math.sqrt(variance(OLOLOHA(k=K, eps_inf=EPS_INF, eps_1=EPS_1), n))
    least = math.sqrt(limits.variance(K, EPS_1) / n)
    trusted = math.sqrt(discrete_laplace(EPS_1)) / n
    shared = math.sqrt(2) * trusted
    errors = (f"{100 * error:.2g}" for error in (local, least, trusted, shared))
    return [f"{n:,}", *errors, f"{local / trusted:.0f}", f"{local / shared:.0f}"]


def window_row(n: int) -> list[str]:
    """The same where any 30 rounds lose 2: of panels, and of a sum with a 30th for each round."""
    panels = plan(K, n, window=WINDOW, loss=LOSS).ways[0]
    shared = math.sqrt(2 * discrete_laplace(LOSS / WINDOW)) / n
    rounds, means = math.sqrt(panels.mse_round), math.sqrt(panels.mse_window)
    errors = (rounds, shared, means, shared / math.sqrt(WINDOW))
    return [f"{n:,}", *(f"{100 * error:.2g}" for error in errors),
            f"{errors[0] / errors[1]:.0f}", f"{errors[2] / errors[3]:.0f}"]  # fmt: skip


def budget_rows(folder: Path | None) -> Iterator[list[str]]:
    """Budget that a user has spent on average, as the paper counts it, in units of eps_inf."""
    for dataset in populations(folder, (*WORKLOADS, BROWSERS)):
        spent = [
            float(supports(cls(k=dataset.k, eps_inf=EPS_INF, eps_1=EPS_1), dataset.history, rng=1)
                  .loss.mean()) / EPS_INF
            for cls in (RAPPOR, OLOLOHA, BiLOLOHA)
        ]  # fmt: skip
        yield _budget(f"{dataset.name}, {dataset.tau} rounds", spent)
    spent = [LIFE_COURSE, *(cells(LIFE_COURSE, g) for g in (3, 2))]
    yield _budget(f"{LIFE_COURSE} values a person, by formula", spent)


def cells(values: float, g: int) -> float:
    """Expected hash cells of so many values; users have the whole number above or below."""
    low = math.floor(values)
    few, many = (g * (1 - (1 - 1 / g) ** m) for m in (low, low + 1))
    return few + (values - low) * (many - few)


def _budget(name: str, spent: Sequence[float]) -> list[str]:
    values, ololoha, biloloha = spent
    numbers = (values, ololoha, biloloha, values / ololoha, values / biloloha)
    return [name, *(f"{number:.3g}" for number in numbers)]


def text(folder: Path | None) -> Iterator[str]:
    """All tables, in Markdown."""
    errors = ("users", "OLOLOHA", "least of any local report", "trusted sum", "secret-shared sum",
              "OLOLOHA / trusted", "OLOLOHA / shared")  # fmt: skip
    months = ("users", "panels, a round", "shared sum, a round", "panels, mean of 30",
              "shared sum, mean of 30", "ratio, a round", "ratio, mean of 30")  # fmt: skip
    budgets = ("data", "RAPPOR: values", "OLOLOHA: cells", "BiLOLOHA: cells", "RAPPOR / OLOLOHA",
               "RAPPOR / BiLOLOHA")  # fmt: skip
    yield table(f"Standard error of a rare value in a round, %; k = {K}, ε₁ = {EPS_1:g}", errors,
                map(error_row, USERS))  # fmt: skip
    yield table(f"The same where any {WINDOW} rounds lose {LOSS:g}", months, map(window_row, USERS))
    yield table("Budget spent by a user on average, in ε∞", budgets, budget_rows(folder))


def table(title: str, head: Sequence[str], rows: Iterator[list[str]]) -> str:
    """One table below its title."""
    return f"**{title}**\n\n{markdown(head, rows)}\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the files of adult and acs")
    sys.stdout.write("".join(text(parser.parse_args().data)))
