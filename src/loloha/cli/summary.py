"""A run in a terminal: its errors, and the top values beside the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loloha.checks import counted
from loloha.cli import console

if TYPE_CHECKING:
    from loloha.campaign.domain import Scale
    from loloha.population.trial import Trial

FEW = 8
NAMES = {"mse": "MSE", "coverage": "coverage"}
STEPS = "in steps 0..k-1 of the domain"
OUTSIDE = (
    "An unbiased estimate can fall below 0; its interval holds possible frequencies alone, so the "
    "estimate can lie outside."
)
UNITS = f"{STEPS}; --campaign FILE has its units"


def show_summary(trial: Trial) -> None:
    """Print the run, its errors beside the expected ones, and the budget spent."""
    data, measured = trial.dataset, trial.evaluation.to_dict()
    level, means = f"{100 * trial.level:.4g} %", f"of the mean of {trial.result.every} rounds"
    console.show(console.visible(data.provenance))
    console.show(repr(trial.protocol))
    errors = (
        []
        if trial.numbers is not None
        else [
            ("MSE, unbiased", measured["mse"], "of the estimates as they are"),
            ("  expected", measured["expected_mse"], "exact variance, averaged over the values"),
            ("  V*", measured["v_star"], "variance of a value that nobody holds"),
            (
                "MSE, clipped",
                measured["mse_clipped"],
                "clipped at 0 and renormalised, which biases",
            ),
            ("MSE, uniform", measured["mse_uniform"], "of always answering 'uniform'"),
        ]
    )
    console.show_table(
        ("mean over rounds", "", "what it is"),
        [
            *errors,
            *_of_numbers(trial),
            ("coverage", trial.coverage, f"share of {level} intervals that hold the truth"),
            *((f"{NAMES[name]}, window", number, means) for name, number in trial.windows.items()),
            *_spent(trial),
            ("reports", float(trial.result.n.mean()), f"a round, of {counted(data.n, 'user')}"),
        ],
    )
    if trial.numbers is not None:
        return
    clipped, uniform = measured["mse_clipped"], measured["mse_uniform"]
    if clipped is not None and clipped >= uniform:
        console.warn(
            "noise swamps the frequencies: answering 'uniform' would be as close; unless they are "
            "uniform, it takes more users, a larger eps or a smaller domain (see `loloha plan`)"
        )


def show_top(trial: Trial, top: int) -> None:
    """Print, of the last round, the values that are the most frequent over all rounds."""
    series = trial.series
    row = series.last_round()
    picked = series.top(top)
    ends = [line[row, picked] for line in (series.frequencies, series.lower, series.upper)]
    shown = [
        (
            str(series.labels[column]),
            *(
                f"{100 * float(numbers[row, column]):.2f} %"
                for numbers in (series.truth, series.frequencies, series.lower, series.upper)
                if numbers is not None
            ),
        )
        for column in picked
    ]
    console.show_table(
        ("value", "truth", "estimate", f"{100 * trial.level:.4g} % interval from", "to"),
        shown,
        title=f"Round {console.visible(str(series.rounds[row]))}: the values most frequent in "
        "truth over all rounds",
    )
    if any(not low <= at <= high for at, low, high in zip(*ends, strict=True)):
        console.show_text(OUTSIDE)


def show_numbers(trial: Trial) -> None:
    """Print mean and quantiles beside the truth, of the newest rounds."""
    summary = {name: row[-FEW:] for name, row in (trial.numbers or {}).items()}
    rounds = [console.visible(str(round)) for round in trial.dataset.rounds[-FEW:]]
    title = f"Numbers, {unit_of(trial.scale)}; truth first"
    show_number_table(rounds, summary, trial.level, title)


def _of_numbers(trial: Trial) -> list[tuple[str, float, str]]:
    """Errors of mean and quantiles, and how often their intervals hold the truth."""
    import numpy as np

    rows, numbers = [], trial.numbers or {}
    for name in [name for name in numbers if f"{name}_truth" in numbers]:
        truth, low, high = (numbers[f"{name}_{end}"] for end in ("truth", "lower", "upper"))
        known = np.isfinite(numbers[name])
        error = float(np.sqrt(np.square(numbers[name] - truth)[known].mean()))
        covered = float(((low <= truth) & (truth <= high))[known].mean())
        title = name.replace("_", " ")
        rows.append((f"{title}, error", error, f"root mean square, {unit_of(trial.scale)}"))
        rows.append(("  coverage", covered, f"share of its {100 * trial.level:.4g} % intervals"))
    return rows


def _spent(trial: Trial) -> list[tuple[str, float, str]]:
    """The users' losses, unless only devices know them."""
    spent = trial.evaluation.eps_avg
    cap = f"its cap is {trial.protocol.cap:.4g}"
    if not trial.protocol.longitudinal:
        cap = "no cap: every report spends again"
    meaning = f"budget spent by a user; {cap}"
    return [] if math.isnan(spent) else [("eps_avg", spent, meaning)]


def unit_of(scale: Scale | None, why: str = STEPS) -> str:
    """The names of the numbers."""
    return why if scale is None else "in the units of the domain"


def show_number_table(
    rounds: Sequence[Any], summary: Mapping[str, Any], level: float, title: str, n: Any = None
) -> None:
    """Print mean and quantiles, a row a round; see `Numbers.summary`."""
    import numpy as np

    names = [name for name in summary if f"{name}_lower" in summary]
    columns = {name: np.atleast_1d(numbers) for name, numbers in summary.items()}
    rows = [
        [round, *([] if n is None else [n[at]]), *(_cell(columns, name, at) for name in names)]
        for at, round in enumerate(rounds)
    ]
    head = ["round", *([] if n is None else ["n"]), *(name.replace("_", " ") for name in names)]
    console.show_table(head, rows, title=f"{title}; in brackets {100 * level:.4g} % intervals")


def _cell(columns: Mapping[str, Any], name: str, at: int) -> str:
    ends = (columns[name], columns[f"{name}_lower"], columns[f"{name}_upper"])
    if math.isnan(ends[0][at]):
        return "none"
    shown = "{:.4g} [{:.4g}, {:.4g}]".format(*(float(end[at]) for end in ends))
    truth = columns.get(f"{name}_truth")
    return shown if truth is None else f"{float(truth[at]):.4g} / {shown}"
