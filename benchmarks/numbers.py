"""Errors and coverage of means and quantiles, by one bit of each user and from a histogram.

``python -m benchmarks.numbers --out docs/numbers-table.md``; exit code 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import loloha
from loloha.postprocess import project_simplex

BUDGETS = {"eps_inf": 2.0, "eps_1": 1.0}
SIZES, USERS, RUNS, HISTOGRAMS = (33, 96, 365), 20_000, 1000, 300
USUAL = "lognormal, σ = 0.6"
FEWER = {33: 17.0, 96: 100.0}
"""Goals: how many times fewer users than a projected histogram takes."""
COVERED = 0.93, 0.97
COVERED_QUANTILE = 0.95
"""At least, of smooth populations: intervals of quantiles keep their level at a gap, too."""
WIDTH = 0.45
"""At most, of intervals of quantiles: a share of the range."""
HEAD = (
    "k | values | mean, % of the range | n Var / range² | median, bins"
    " | 90 % quantile, bins (% of the range) | mean covered | median covered | 90 % covered"
    " | widths, bins | times the users, projected histogram"
    " | times the users, linear in the histogram"
)


class Measured(NamedTuple):
    """Of one domain size: errors as shares of the range, coverage, ratios of users."""

    k: int
    name: str
    noise: float
    mean: float
    median: float
    high: float
    covered: tuple[float, float, float]
    widths: tuple[float, float]
    projected: tuple[float, float]
    linear: tuple[float, float]

    @property
    def missed(self) -> Iterator[str]:
        """The goals of the issue that are not reached."""
        if self.noise > 1.2:
            yield f"n Var(mean) must be at most 1.2 squared ranges, is {self.noise:.3f}"
        times, error = self.projected
        if self.name == USUAL and times + 2 * error < FEWER.get(self.k, 0):
            yield f"users must be {FEWER[self.k]:g} times fewer, are {times:.1f} ± {error:.1f}"
        if self.high > 0.05:
            yield f"the 90 % quantile must be within 5 % of the range, is {100 * self.high:.1f} %"
        mean, *quantiles = self.covered
        least, most = COVERED
        if not least <= mean <= most:
            yield f"intervals of a mean must cover {least} to {most}, cover {mean:.3f}"
        for what, share, width in zip(
            ("a median", "a 90 % quantile"), quantiles, self.widths, strict=True
        ):
            if share < COVERED_QUANTILE or width > WIDTH * self.k:
                yield (
                    f"intervals of {what} must cover {COVERED_QUANTILE} and take {WIDTH} of the "
                    f"range, cover {share:.3f} and take {width / self.k:.2f}"
                )

    @property
    def row(self) -> str:
        """A line of the table."""
        steps = self.k - 1
        cells = [
            f"{self.k}", self.name, f"{100 * self.mean:.2f}", f"{self.noise:.2f}",
            f"{steps * self.median:.1f}", f"{steps * self.high:.1f} ({100 * self.high:.1f} %)",
            *(f"{one:.3f}" for one in self.covered), "{:.1f}, {:.1f}".format(*self.widths),
            *("{:.0f} ± {:.0f}".format(*one) for one in (self.projected, self.linear)),
        ]  # fmt: skip
        return "| " + " | ".join(cells) + " |"


def populations(k: int) -> dict[str, np.ndarray]:
    """Values of some users; what lies beyond the range counts as its last value."""
    rng = np.random.default_rng(0)
    peaks = np.where(rng.random(USERS) < 0.6, 0.25, 0.75)
    drawn = {
        "lognormal, σ = 0.6": rng.lognormal(math.log(1 / 6), 0.6, USERS),
        "lognormal, σ = 0.9": rng.lognormal(math.log(1 / 6), 0.9, USERS),
        "two peaks": rng.normal(peaks, 0.08),
        "even": rng.random(USERS),
    }
    return {name: np.clip(k * one, 0, k - 1).astype(np.int64) for name, one in drawn.items()}


def measure(k: int, name: str, values: np.ndarray) -> Measured:
    """By `RUNS` rounds of the same users."""
    truth = [values.mean(), *(np.quantile(values, a, method="inverted_cdf") for a in (0.5, 0.9))]
    protocol, steps = loloha.OneBit(k=k, **BUDGETS), k - 1
    errors, held, widths = [], [], []
    for run in range(RUNS):
        one = loloha.simulate(protocol, values[:, None], rng=run, keep_tallies=False)
        ends = [one.mean_interval(), one.quantile_interval(0.5), one.quantile_interval(0.9)]
        found = one.mean[0], one.median[0], one.quantile(0.9)[0]
        errors.append((np.array(found) - truth) / steps)
        held.append([low[0] <= t <= high[0] for (low, high), t in zip(ends, truth, strict=True)])
        widths.append([high[0] - low[0] for low, high in ends[1:]])
    squares = np.square(errors).mean(axis=0)
    by_histogram = []
    for run in range(HISTOGRAMS):
        one = loloha.simulate(loloha.OLOLOHA(k=k, **BUDGETS), values[:, None], rng=run)
        centred = (np.arange(k) - steps / 2) / steps
        aim = truth[0] / steps - 0.5
        by_histogram.append(
            [project_simplex(one.estimates[0]) @ centred - aim, one.estimates[0] @ centred - aim]
        )
    others = np.square(by_histogram)
    ratios = others.mean(axis=0) / squares[0]
    # Both are means of squares of normal errors.
    chance = np.sqrt((others.std(axis=0) / others.mean(axis=0)) ** 2 / HISTOGRAMS + 2 / RUNS)
    covered = np.mean(held, axis=0).tolist()
    return Measured(
        k, name, USERS * squares[0], *np.sqrt(squares), tuple(covered),
        tuple(np.mean(widths, axis=0).tolist()), *zip(ratios, ratios * chance, strict=True),
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.numbers", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the table there")
    out = parser.parse_args().out
    measured = [measure(k, *one) for k in SIZES for one in populations(k).items()]
    lines = [f"| {HEAD} |", "|" + "---|" * (HEAD.count("|") + 1), *(one.row for one in measured)]
    text = "\n".join(lines) + "\n"
    if out is not None:
        out.write_text(text, encoding="utf-8")
    print(text)
    missed = [f"k = {one.k}, {one.name}: {goal}" for one in measured for goal in one.missed]
    print("\n".join(missed) or "All goals are reached.")
    return len(missed) > 0


if __name__ == "__main__":
    sys.exit(main())
