"""What a run found: the table of estimates, the metrics and the picture, and how they are saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha import __version__
from loloha.cli import console
from loloha.cli.folder import FILES
from loloha.design import privacy
from loloha.rules.counting.arrays import Floats, Ints
from loloha.rules.protocols import Protocol
from loloha.server.estimate import Estimate
from loloha.study.datasets import Dataset
from loloha.study.evaluation import Evaluation, binned, evaluate, first_values
from loloha.study.figure import Series, draw_run, save

if TYPE_CHECKING:
    from loloha.study.population import Simulation

SEEDED = "a seed was given: repeatable, and so without any privacy"
UNSEEDED = "entropy of the operating system, not kept"


@dataclass(frozen=True, eq=False)
class Outcome:
    """Estimates of a whole run beside the truth.

    Parameters
    ----------
    dataset : Dataset
    protocol : Protocol
    result : Simulation
        What `loloha.simulate` returned for them.
    level : float
        Level of the intervals.
    seed : int or None
        What the run was seeded with.
    """

    dataset: Dataset
    protocol: Protocol
    result: Simulation
    level: float
    seed: int | None

    @property
    def n(self) -> Ints:
        """Reports of each round, int64[tau]."""
        return self.result.n

    @cached_property
    def labels(self) -> list[Any]:
        """Labels of the bins: those of the values, or "first..last" of a bucket."""
        labels = self.dataset.labels
        if self.protocol.bins == len(labels):
            return list(labels)
        starts = [*first_values(self.protocol).tolist(), len(labels)]
        return [
            f"{labels[start]}..{labels[end - 1]}" if end - start > 1 else str(labels[start])
            for start, end in pairwise(starts)
        ]

    @cached_property
    def _spread(self) -> Floats:
        """Standard errors, lower and upper ends, float64[3, tau, bins]; nan without a report."""
        found = self.result
        spread = np.full((3, *found.estimates.shape), np.nan)
        for t in np.flatnonzero(found.n):
            estimate = Estimate.from_support(
                self.protocol, int(found.n[t]), found.supports[t], found.reach[t]
            )
            spread[:, t] = estimate.standard_errors, *estimate.interval(self.level)
        return spread

    @cached_property
    def series(self) -> Series:
        """Estimates, intervals and truth."""
        _, lower, upper = self._spread
        truth = binned(self.protocol, self.dataset.frequencies())
        return Series(self.labels, self.dataset.rounds, self.result.estimates, lower, upper, truth)

    @cached_property
    def evaluation(self) -> Evaluation:
        """Errors, and the budget spent."""
        truth: Any = self.series.truth
        return evaluate(self.protocol, self.result.estimates, truth, self.n, self.result.loss)

    @property
    def coverage(self) -> float:
        """Share of all intervals that hold the truth."""
        truth: Any = self.series.truth
        known = ~np.isnan(self.series.lower)
        inside = (self.series.lower <= truth) & (truth <= self.series.upper)
        return float(inside[known].mean())

    @property
    def note(self) -> str:
        """One line that says where the numbers come from."""
        seed = "" if self.seed is None else f" Seed {self.seed}."
        return f"{self.dataset.provenance} {self.protocol!r}.{seed} loloha {__version__}."

    def metrics(self) -> dict[str, Any]:
        """Everything but the single estimates, as JSON data."""
        measured = self.evaluation.to_dict()
        rounds = measured.pop("rounds")
        data = self.dataset
        return {
            "loloha": __version__,
            "dataset": {
                "name": data.name,
                "source": data.source,
                "provenance": data.provenance,
                "n": data.n,
                "k": data.k,
                "tau": data.tau,
            },
            "protocol": self.protocol.to_dict(),
            "fingerprint": self.protocol.fingerprint,
            "realised": {"g": self.protocol.g, **self.protocol.realised.to_dict()},
            "seed": self.seed,
            "randomness": UNSEEDED if self.seed is None else SEEDED,
            "level": self.level,
            "coverage": self.coverage,
            "cap": self.protocol.cap,
            **measured,
            "rounds": [
                {"round": label, **numbers}
                for label, numbers in zip(data.rounds, rounds, strict=True)
            ],
            "privacy": privacy.explain(self.protocol).to_dict(),
        }

    def table(self) -> Any:
        """A row for each round and bin, as an Arrow table."""
        import pyarrow

        tau, bins = self.series.frequencies.shape
        truth: Any = self.series.truth
        columns = {
            "round": _repeated(self.dataset.rounds, bins),
            "value": pyarrow.chunked_array([_column(self.labels)] * tau),
            "truth": truth.ravel(),
            "estimate": self.series.frequencies.ravel(),
            "standard_error": self._spread[0].ravel(),
            "lower": self.series.lower.ravel(),
            "upper": self.series.upper.ravel(),
            "n": np.repeat(self.n, bins),
        }
        table = pyarrow.table(
            {
                name: pyarrow.array(column, from_pandas=True)
                if isinstance(column, np.ndarray)
                else column
                for name, column in columns.items()
            }
        )
        return table.replace_schema_metadata({"protocol": repr(self.protocol), "note": self.note})

    def save(self, folder: Path, top: int) -> list[Path]:
        """Write `FILES` into an empty folder."""
        from pyarrow import csv, parquet

        table = self.table()
        parquet.write_table(table, folder / "estimates.parquet")
        csv.write_csv(table, folder / "estimates.csv")
        text = console.to_json(self.metrics())
        (folder / "metrics.json").write_text(text + "\n", encoding="utf-8")
        figure = draw_run(
            self.series,
            self.protocol,
            title=f"{self.dataset.name}: estimates by {self.protocol.name} and the truth",
            note=self.note,
            level=self.level,
            top=top,
        )
        save(figure, folder / "frequencies")
        return [folder / name for name in FILES]


def _repeated(labels: Sequence[Any], times: int) -> Any:
    """A column in which each label stands ``times`` times."""
    return _column(labels).take(np.repeat(np.arange(len(labels)), times))


def _column(labels: Sequence[Any]) -> Any:
    """Labels as an Arrow array: of their own type, or as text where they have several."""
    import pyarrow

    try:
        return pyarrow.array(labels)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array([str(label) for label in labels])
