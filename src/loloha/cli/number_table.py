"""Means and quantiles of numbers in a terminal, and as columns of tables of estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loloha.cli import console

if TYPE_CHECKING:
    from loloha.campaign.domain import Scale

STEPS = "in steps 0..k-1 of the domain, whose labels are no integers in equal steps"


def unit(scale: Scale | None, why: str = STEPS) -> str:
    """What the numbers are, in words."""
    return why if scale is None else "in the units of the domain"


def show(
    rounds: Sequence[Any], summary: Mapping[str, Any], level: float, title: str, n: Any = None
) -> None:
    """Print mean and quantiles, a row a round; see `Numbers.summary`."""
    import numpy as np

    names = [name for name in summary if f"{name}_lower" in summary]
    columns = {name: np.atleast_1d(numbers) for name, numbers in summary.items()}
    rows = [
        [
            round,
            *([] if n is None else [n[at]]),
            *(_cell(columns, name, at) for name in names),
        ]
        for at, round in enumerate(rounds)
    ]
    head = ["round", *([] if n is None else ["n"]), *(name.replace("_", " ") for name in names)]
    console.show_table(head, rows, title=f"{title}; in brackets {100 * level:.4g} % intervals")


def _cell(columns: Mapping[str, Any], name: str, at: int) -> str:
    ends = (columns[name], columns[f"{name}_lower"], columns[f"{name}_upper"])
    shown = "{:.4g} [{:.4g}, {:.4g}]".format(*(float(end[at]) for end in ends))
    truth = columns.get(f"{name}_truth")
    return shown if truth is None else f"{float(truth[at]):.4g} / {shown}"
