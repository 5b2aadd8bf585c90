"""A simulated run compared with the truth: its metrics, its table and its picture."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from loloha import __version__, checks, privacy
from loloha.campaign.domain import Scale
from loloha.errors import ParameterError
from loloha.figure import Series, draw_run, save
from loloha.population.evaluation import evaluate
from loloha.population.simulation import Simulation
from loloha.server.frame import written
from loloha.server.number import QUANTILES
from loloha.server.series import EstimatedSeries
from loloha.server.series import series as of_rounds

FEWEST_ROUNDS, MOST_TOGETHER = 4, 1 << 20
"""Rounds from which on, and rounds times values up to which a picture estimates them together."""
SEEDED = "a seed was given: repeatable, and so without any privacy"
UNSEEDED = "entropy of the operating system, not stored"


class Trial:
    """One run of a protocol over a data set, beside the truth.

    Parameters
    ----------
    result : Simulation
        Of a data set.
    level : float
        Level of the intervals.
    seed : int or None
        What the run was seeded with.
    scale : Scale, optional
        The numbers that values stand for; steps 0..k-1 by default.

    Attributes
    ----------
    dataset : Dataset
        Whose values were simulated.
    protocol : Protocol
        The rules of the run.
    truth : float64[tau, bins]
        True frequencies.
    series : Series
        Estimates, intervals and truth.
    evaluation : Evaluation
        Errors, and the budget spent.
    coverage : float
        Share of all intervals that hold the truth.

    Raises
    ------
    ParameterError
        If the simulation was not that of a data set.
    """

    def __init__(
        self, result: Simulation, level: float, seed: int | None, scale: Scale | None = None
    ) -> None:
        if result.dataset is None or result.truth is None:
            raise ParameterError(
                "result must be that of a data set, got bare values; "
                "simulate a loloha.datasets.Dataset"
            )
        self.result, self.level, self.seed, self.scale = result, level, seed, scale
        self.dataset, self.protocol, self.truth = result.dataset, result.protocol, result.truth
        self.series = result.series(level)
        self.evaluation = evaluate(
            self.protocol, result.estimates, self.truth, result.n, result.loss, result.every
        )
        self.coverage = result.coverage(level)

    @cached_property
    def windows(self) -> dict[str, float]:
        """Mean squared error and coverage of the means of full windows of ``every`` rounds."""
        # Their truth is the mean frequency over the window.
        every = self.result.every
        if every == 1 or len(self.truth) < every:
            return {}
        table = self.result.table(self.level).more
        estimate, lower, upper = (
            np.array(table[f"window_{name}"][every - 1 :], dtype=np.float64)
            for name in ("estimate", "lower", "upper")
        )
        truth = sliding_window_view(self.truth, every, axis=0).mean(axis=-1)
        known = np.isfinite(estimate)
        covered = (lower <= truth) & (truth <= upper)
        return {
            "mse": float(((estimate - truth)[known] ** 2).mean()),
            "coverage": float(covered[known].mean()),
        }

    @cached_property
    def numbers(self) -> dict[str, Any] | None:
        """`Numbers.summary` and the truth of each, float64[tau]; None where none are asked for."""
        if self.protocol.histogram:
            return None
        summary = self.result.numbers.summary(self.level, self.scale)
        start, step, _ = self.scale or (0.0, 1.0, 0.0)
        below = np.cumsum(self.dataset.frequencies(), axis=-1)
        mean = self.protocol.k - 1 - below[:, :-1].sum(axis=-1)
        truth = {"mean": start + step * mean}
        for level in QUANTILES:
            name = f"quantile_{100 * level:.0f}"
            if name in summary:
                # Sums of shares are exact but for rounding.
                value = (below < level - 1e-9).sum(axis=-1)
                truth[name] = start + step * np.where(np.isnan(mean), np.nan, value)
        return summary | {f"{name}_truth": row for name, row in truth.items()}

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
        numbers = {
            name: [checks.finite(number) for number in row.tolist()]
            for name, row in (self.numbers or {}).items()
        }
        every = self.result.every
        return {
            "loloha": __version__,
            "data_set": {
                "name": data.name,
                "source": data.source,
                "provenance": data.provenance,
                "n": data.n,
                "k": data.k,
                "tau": data.tau,
            },
            "protocol": self.protocol.to_dict(),
            "fingerprint": self.protocol.fingerprint,
            "realised": self.protocol.numbers,
            "seed": self.seed,
            "randomness": UNSEEDED if self.seed is None else SEEDED,
            "level": self.level,
            "coverage": self.coverage,
            **({"every": every, "window": self.windows} if every > 1 else {}),
            **({"numbers": numbers} if numbers else {}),
            "cap": self.protocol.cap,
            **measured,
            "rounds": [
                {"round": round, "start": start, **numbers}
                for round, (start, numbers) in enumerate(zip(data.rounds, rounds, strict=True))
            ],
            "privacy": privacy.explain(self.protocol, every=self.result.every).to_dict(),
        }

    @cached_property
    def _estimated(self) -> EstimatedSeries | None:
        """Rounds estimated together, of domains and runs that are not huge."""
        tau, size = len(self.series.rounds), self.result.estimates.size
        if tau < FEWEST_ROUNDS or size > MOST_TOGETHER or not self.result.n.any():
            return None
        return of_rounds(self.result, level=self.level)

    def _together(self) -> Series | None:
        if self._estimated is None:
            return None
        lines = map(self._placed, (self._estimated.estimates, *self._estimated.interval()))
        return Series(self.series.labels, self.series.rounds, *lines)

    def _placed(self, rows: Any) -> Any:
        """Rows of the rounds estimated together among all of them; NaN outside."""
        placed = np.full((len(self.series.rounds), *rows.shape[1:]), np.nan)
        placed[[] if self._estimated is None else self._estimated.rounds] = rows
        return placed

    def _number_lines(self) -> Series | None:
        """Mean and quantiles over the rounds, where numbers are asked for."""
        if self.numbers is None:
            return None
        names = [name for name in self.numbers if f"{name}_truth" in self.numbers]

        def lines(summary: dict[str, Any], together: Series | None = None) -> Series:
            columns = [
                np.stack([np.asarray(summary[f"{name}{end}"]) for name in names], axis=1)
                for end in ("", "_lower", "_upper", "_truth")
                if f"mean{end}" in summary
            ]
            labels = [f"{name.split('_')[-1]} % quantile" for name in names]
            labels[0] = "mean"
            return Series(labels, self.series.rounds, *columns, together=together)

        if self._estimated is None:
            return lines(self.numbers)
        summary = self._estimated.numbers.summary(self.level, self.scale)
        placed = {name: self._placed(row) for name, row in summary.items()}
        return lines(self.numbers, lines(placed))

    def save(self, folder: Path) -> None:
        """Write estimates.parquet and .csv into a folder."""
        about = {
            "note": self.note,
            "parameters": {"protocol": self.protocol.to_dict(), **self.protocol.numbers},
        }
        table = self.result.table(self.level)
        table = replace(table, about=about).with_numbers({"": self.numbers or {}})
        for form in ("parquet", "csv"):
            with (folder / f"estimates.{form}").open("wb") as file:
                file.writelines(written(table.pieces(), form))

    def draw(self, folder: Path, top: int) -> None:
        """Write frequencies.png and .svg into a folder, with ``top`` values over the rounds."""
        shares = replace(self.series, together=self._together())
        if self.numbers is not None and self.scale is not None:
            # A share is that of the numbers from the lower edge of its label on.
            start, step, half = self.scale
            edges = (start - half + step * v for v in range(1, self.protocol.k))
            shares = replace(shares, labels=[f"\u2265 {edge:.6g}" for edge in edges])
        figure = draw_run(
            shares,
            self.protocol,
            title=f"{self.dataset.name}: estimates by {self.protocol.name} and the truth",
            note=self.note,
            level=self.level,
            top=top,
            numbers=self._number_lines(),
            unit="number" if self.scale is not None else "step of the domain, 0..k-1",
        )
        save(figure, folder / "frequencies")
