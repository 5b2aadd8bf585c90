"""Protocols side by side on one population: error, coverage, budgets and what shows of changes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha import checks
from loloha.datasets import Dataset, table
from loloha.errors import ParameterError
from loloha.population.archive import Archive, Row, measure_each
from loloha.population.point import MEASURED, BudgetPoint, measure, name_of, points_of
from loloha.privacy.transcript import eps_2
from loloha.protocols import Protocol
from loloha.server.frame import Printed, Shown, Tabular, records_to_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROTOCOLS = ("rappor", "l-osue", "l-grr", "biloloha", "ololoha")
"""What is compared by default: the paper's protocols with two rounds."""
MEASUREMENT = 2
MOST_RUNS = 10_000
CHANGES = ("change_seen", "changes", "change_alarms", "stays")
LINES = ("mse", "expected_mse", "mse_clipped", "eps_avg", "coverage", "change_seen")


@dataclass(frozen=True, repr=False)
class Comparison(Tabular, Shown):
    """What was measured of each protocol at each budget.

    Attributes
    ----------
    rows : tuple of dict
        One for each protocol and budget:

        protocol, eps_inf, eps_1, eps_2, g, cap, runs
            What was in force. eps_2 is the loss of any one round when all others are known.
        mse, mse_standard_error
            Mean squared error of the unbiased estimates over values and rounds: mean of the runs,
            and its standard error.
        expected_mse, mse_clipped, mse_uniform
            What theory expects of it; the same after clipping at 0 and renormalising; the same of
            always answering "uniform".
        coverage
            Share of the intervals that hold the truth.
        eps_avg, eps_max
            Budget spent by a user, mean and largest.
        change_seen, change_alarms
            Share of the rounds after which the answer differs, where the value changed and where it
            did not: alike, a changed report says next to nothing about a changed value.
        changes, stays
            How many rounds of users each of these two is a share of: up to 6000 reports of real
            clients in the first run. Its standard error is about sqrt(share (1 - share) / count).
    level : float
    note : str
        Which data.
    backend : str or None
        Kind of frame that the data came in.
    """

    rows: tuple[Row, ...]
    level: float
    note: str
    backend: str | None = None

    def to_frame(self, *, backend: str | None = None) -> Any:
        """A row for each protocol and budget.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the kind of frame that the data came in, else pyarrow.
        """
        return records_to_frame(self.rows, backend or self.backend)

    def plot(self, y: str = "mse", *, ax: Axes | None = None) -> Axes:
        """Draw a line for each protocol over eps_inf.

        Parameters
        ----------
        y : {"mse", "expected_mse", "mse_clipped", "eps_avg", "coverage", "change_seen"}
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        """
        from loloha.figure.lines import new_axes
        from loloha.figure.style import TRUTH, style

        checks.choice("y", y, LINES)
        axes: Any = new_axes() if ax is None else ax
        for label in dict.fromkeys(row["protocol"] for row in self.rows):
            line = [row for row in self.rows if row["protocol"] == label]
            axes.plot(
                [row["eps_inf"] for row in line],
                [row[y] for row in line],
                label=label,
                markersize=4,
                **style(line[0]["name"]),
            )
        if "mse" in y:
            uniform = self.rows[0]["mse_uniform"]
            axes.axhline(uniform, color=TRUTH, linestyle="--", linewidth=0.9, label="uniform")
            axes.set_yscale("log")
        elif y == "coverage":
            axes.axhline(self.level, color=TRUTH, linestyle="--", linewidth=0.9, label="wanted")
        axes.set_xlabel("eps_inf")
        axes.set_ylabel(y)
        axes.legend(fontsize="small")
        return axes  # type: ignore[no-any-return]

    def _shown(self) -> Printed:
        names = ("protocol", "eps_inf", "mse", "mse_clipped", "coverage", "eps_avg", "eps_2")
        rows = [[row[name] for name in names] for row in self.rows]
        return ("Protocols side by side", names, rows, self.note)

    def __repr__(self) -> str:
        return f"Comparison({len(self.rows)} rows)"


def compare(
    data: Any,
    protocols: Iterable[str | Protocol] | str | Protocol = PROTOCOLS,
    eps_inf: Iterable[float] | float = (1.0, 2.0, 4.0),
    *,
    alpha: float = 0.5,
    runs: int = 3,
    level: float = 0.95,
    calibration: str = "tight",
    seed: int = 0,
    jobs: int = 1,
    keep: str | Path | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Comparison:
    """Simulate every protocol at every budget on one population, and hold it against the truth.

    Parameters
    ----------
    data : Dataset, or what `loloha.datasets.table` takes
    protocols : iterable of str or Protocol
        Names in the registry. One-round ones stand at eps = eps_1; dBitFlipPM has rows for 1, 16
        and all of its buckets. A protocol, as `loloha.plan` recommends it, stands once, at its own
        budgets.
    eps_inf : iterable of float
    alpha : float
        eps_1 / eps_inf, in (0, 1).
    runs : int
        Repetitions of each.
    level : float
        Of the intervals whose coverage is counted.
    calibration : {"tight", "published"}
    seed : int
        Equal seeds give equal numbers, whatever else is compared.
    jobs : int
        Processes; more than one needs ``loloha[paper]``.
    keep : path, optional
        A file to which each run is added as soon as it is made: a comparison that was stopped
        goes on where it was.
    progress : callable
        Called with the runs done and all runs.

    Returns
    -------
    Comparison

    Raises
    ------
    ParameterError
        If a parameter is out of range or no protocol is left.
    """
    dataset = data if isinstance(data, Dataset) else table(data)
    runs = checks.integer("runs", runs, 1, MOST_RUNS, "3 are enough for a first look")
    seed = checks.integer("seed", seed, 0, (1 << 63) - 1, "any number will do")
    jobs = checks.integer("jobs", jobs, 1, 1 << 10, "one a core is best")
    level = checks.level(level)
    keep = None if keep is None else Path(keep)
    if keep is not None and not keep.parent.is_dir():
        raise ParameterError(
            f"keep must lie in an existing folder, got {str(keep)!r}; make the folder first"
        )
    points = points_of(dataset, protocols, eps_inf, alpha, calibration)
    archive = Archive(keep)
    identity = identity_of(dataset, level, seed)
    tasks = {name_of(point, run): (point, run) for point in points for run in range(runs)}
    stored = {name: archive.find(name, identity) for name in tasks}
    rows = {name: row for name, row in stored.items() if row is not None}
    missing = [name for name in tasks if name not in rows]
    progress(len(rows), len(tasks))
    measured = partial(measure, dataset=dataset, level=level, seed=seed, tasks=tasks)
    for name, row in measure_each(measured, missing, jobs):
        archive.keep(name, identity, row)
        rows[name] = row
        progress(len(rows), len(tasks))
    return Comparison(
        tuple(
            _summary(point, [rows[name_of(point, run)] for run in range(runs)]) for point in points
        ),
        level,
        f"{dataset.provenance} {checks.counted(runs, 'run')} each, eps_1 = {alpha:g} eps_inf.",
        dataset.backend,
    )


def identity_of(dataset: Dataset, level: float, seed: int) -> str:
    """What decides the numbers of a run, beside its name."""
    values = np.ascontiguousarray(dataset.values, dtype=np.int64)
    digest = hashlib.sha256(values.tobytes()).hexdigest()
    return json.dumps([MEASUREMENT, digest, list(values.shape), dataset.k, level, seed])


def _summary(point: BudgetPoint, runs: list[Row]) -> Row:
    protocol = point.protocol
    errors = [row["mse"] for row in runs]
    spread = float(np.std(errors, ddof=1) / math.sqrt(len(runs))) if len(runs) > 1 else None
    means = {name: float(np.mean([row[name] for row in runs])) for name in MEASURED}
    return {
        "protocol": point.label,
        "name": protocol.name,
        "eps_inf": point.eps_inf,
        "eps_1": protocol.asked_first,
        "eps_2": eps_2(protocol),
        "g": protocol.g,
        "cap": protocol.cap,
        "runs": len(runs),
        "mse": means.pop("mse"),
        "mse_standard_error": spread,
        **means,
        **{name: runs[0][name] for name in CHANGES},
    }
