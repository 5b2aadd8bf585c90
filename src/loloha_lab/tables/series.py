"""The gain of estimating rounds together: ``python -m loloha_lab.tables.series``.

The tables of ``docs/series-table.md``: errors of single rounds over those of series, how often 95 %
intervals hold the truth, and alarms beside how many are stated. ``--burst FILE`` draws what series
make of a burst, docs/images/burst.svg.
Populations are drawn, but for those of the paper and browsers; ``--data`` names the paper's files,
without which DB_MT and DB_DE are left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha.arrays import Floats, Ints
from loloha.datasets import acs_weights, adult, browsers, syn
from loloha.figure.style import COLOURS, FAINT, TRUTH, lay_out, our_look, percent, write
from loloha.population import simulate
from loloha.postprocess import project_simplex
from loloha.protocols import LGRR, LOSUE, OLOLOHA, RAPPOR, BiLOLOHA, DBitFlipPM, Protocol
from loloha.server.series import EstimatedSeries, series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

K, N, TAU, RUNS, ALARM_RUNS = 32, 10_000, 60, 12, 40
CHURNS = (0.0, 0.02, 0.1, 0.5)
DRIFT, ZIPF = 0.02, 1.1
EVERY, OWN = 7, 5
HEAD = (
    "population", "protocol", "filter", "smoother", "filter's intervals", "smoother's",
    "of a change", "alarms a round, 1 expected",
)  # fmt: skip
ALARM_HEAD = ("protocol", "users", "0.1 expected", "1 expected", "false rate of 10 % stated")


class SeriesScores(NamedTuple):
    """Of one run: gains of filter and smoother, coverage of both and of a change, alarms."""

    filtered: float
    smoothed: float
    held_filtered: float
    held_smoothed: float
    held_change: float
    alarms: float


class SeriesCase(NamedTuple):
    """A row: values by seed, of users who report in some rounds; in one of ``every``."""

    name: str
    protocol: Protocol
    values: Callable[[int], Ints]
    runs: int = RUNS
    silent: float = 0.0
    every: int = 1


def protocols(k: int = K, eps_inf: float = 2.0, eps_1: float = 1.0) -> tuple[Protocol, ...]:
    """The protocols that are compared."""
    chained = (OLOLOHA, BiLOLOHA, LGRR, RAPPOR, LOSUE)
    return (
        *(cls(k=k, eps_inf=eps_inf, eps_1=eps_1) for cls in chained),
        DBitFlipPM(k=k, b=k, d=k // 4, eps_inf=eps_inf),
    )


def drifting(churn: float, seed: int, n: int = N, tau: int = TAU, k: int = K) -> Ints:
    """Users of a Zipf distribution that drifts, a share of whom draws a new value each round."""
    rng = np.random.default_rng(seed)
    weights = -ZIPF * np.log(np.arange(1, k + 1))
    values = np.empty((n, tau), dtype=np.int64)
    for t in range(tau):
        shares = np.exp(weights)
        shares /= shares.sum()
        moves = rng.random(n) < (churn if t else 1.0)
        values[:, t] = np.where(moves, rng.choice(k, n, p=shares), values[:, t - 1])
        weights = weights + rng.normal(0, DRIFT, k)
    return values


def returning(seed: int, own: int = OWN, n: int = N, tau: int = TAU, k: int = K) -> Ints:
    """Users who hold one of a few values of their own in each round, each as likely."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, k + 1.0) ** -ZIPF
    values = rng.choice(k, (n, own), p=shares / shares.sum())
    chosen: Ints = np.take_along_axis(values, rng.integers(0, own, (n, tau)), axis=1)
    return chosen


def reporting(case: SeriesCase, values: Ints, seed: int) -> Ints:
    """The values with -1 where a user does not report."""
    rng = np.random.default_rng([seed, 1])
    n, tau = values.shape
    due = np.ones((n, tau), dtype=bool)
    if case.every > 1:
        due = np.arange(tau) % case.every == rng.integers(0, case.every, (n, 1))
    return np.where(due & (rng.random((n, tau)) >= case.silent), values, -1)


def score(case: SeriesCase, seed: int) -> SeriesScores:
    """One run."""
    values = case.values(seed)
    truth = np.array(
        [np.bincount(column, minlength=case.protocol.k) / len(values) for column in values.T]
    )
    result = simulate(case.protocol, reporting(case, values, seed), rng=seed, keep_tallies=False)
    seen = result.observations()
    if case.every > 1:
        # The simulation takes who is not due for missing.
        seen = replace(seen, population=None)
    smoothed = series(seen, every=case.every)
    filtered = series(seen, every=case.every, smooth=False)

    def error(estimates: Floats) -> float:
        return float(((estimates - truth) ** 2).mean())

    single = error(project_simplex(np.nan_to_num(result.estimates)))
    tau = len(truth)
    late, early = tau - tau // 4, tau // 4
    change = smoothed.change(late, early)
    low, high = change.interval()
    grown = truth[late] - truth[early]
    return SeriesScores(
        single / error(filtered.estimates),
        single / error(smoothed.estimates),
        _held(filtered, truth),
        _held(smoothed, truth),
        float(((low <= grown) & (grown <= high)).mean()),
        float(smoothed.alarms(expected=1.0)[1:].sum()) / (tau - 1),
    )


def _held(estimated: EstimatedSeries, truth: Floats) -> float:
    low, high = estimated.interval()
    return float(((low <= truth) & (truth <= high)).mean())


def cases() -> Iterator[SeriesCase]:
    """Drawn populations."""
    for protocol in protocols():
        for churn in CHURNS:
            yield SeriesCase(
                f"{100 * churn:g} % move a round", protocol,
                partial(drifting, churn),
            )  # fmt: skip
        yield SeriesCase(f"users return to {OWN} values of their own", protocol, returning)
    ololoha, _, l_grr, rappor, *_ = protocols()
    for protocol in (ololoha, l_grr, rappor):
        for churn in (0.02, 0.1):
            yield SeriesCase(
                f"{100 * churn:g} % move, 30 % are silent", protocol,
                partial(drifting, churn), silent=0.3,
            )  # fmt: skip
    # Where reports lie little, who is silent is most of the noise.
    large = OLOLOHA(k=ololoha.k, eps_inf=5.0, eps_1=4.0)
    yield SeriesCase(
        "2 % move, 30 % are silent, at 5, 4", large, partial(drifting, 0.02), silent=0.3
    )
    for protocol in (ololoha, l_grr):
        for churn in (0.0, 0.02, 0.1):
            yield SeriesCase(
                f"{100 * churn:g} % move, {3 * N} users report in one round of {EVERY}", protocol,
                partial(drifting, churn, n=3 * N), every=EVERY,
            )  # fmt: skip
    for churn in (0.0, 0.02, 0.1):
        yield SeriesCase(
            f"{100 * churn:g} % move, 1000 users", ololoha,
            partial(drifting, churn, n=1000),
        )  # fmt: skip


def real(folder: Path | None) -> Iterator[SeriesCase]:
    """Populations of the paper, and browsers."""
    for eps_inf, eps_1 in ((2.0, 1.0), (3.0, 1.5)):
        budgets: dict[str, Any] = {"eps_inf": eps_inf, "eps_1": eps_1}
        named = f"at {eps_inf:g}, {eps_1:g}"
        yield SeriesCase(
            f"browsers, 60 rounds, {named}", OLOLOHA(k=97, **budgets),
            lambda seed: browsers(20_000, tau=60, rng=seed).values, 4,
        )  # fmt: skip
        yield SeriesCase(
            f"browsers, 169 rounds, {named}", OLOLOHA(k=97, **budgets),
            lambda seed: browsers(20_000, rng=seed).values, 2,
        )  # fmt: skip
        yield SeriesCase(
            f"Syn, 40 rounds, {named}", OLOLOHA(k=360, **budgets),
            lambda seed: syn(tau=40, rng=seed).values, 2,
        )  # fmt: skip
        yield SeriesCase(
            f"Adult, 40 rounds, {named}", OLOLOHA(k=96, **budgets),
            lambda seed: adult(folder, tau=40, rng=seed).values, 2,
        )  # fmt: skip
        for state in ("MT", "DE") if folder else ():
            data = acs_weights(state, folder)
            yield SeriesCase(
                f"DB_{state}, {named}", OLOLOHA(k=data.k, **budgets),
                partial(_whole, data.values), 2,
            )  # fmt: skip


def _whole(values: Ints, _: int) -> Ints:
    return values


def row(case: SeriesCase) -> list[str]:
    """A line of the first table."""
    scores = np.array([score(case, seed) for seed in range(case.runs)]).mean(axis=0)
    gains, rest = scores[:2], scores[2:]
    return [
        case.name, case.protocol.name, *(f"{gain:.1f}" for gain in gains),
        *(f"{number:.3f}" for number in rest[:3]), f"{rest[3]:.2f}",
    ]  # fmt: skip


def alarm_row(protocol: Protocol, n: int, runs: int = ALARM_RUNS) -> list[str]:
    """A line of the second table: alarms on a still population, over what is stated."""
    counts = np.zeros(3)
    for seed in range(runs):
        values = np.repeat(drifting(0.0, seed, n, 1), TAU, axis=1)
        estimated = series(simulate(protocol, values, rng=seed, keep_tallies=False))
        few, many = (estimated.alarms(expected=rate)[1:].sum() for rate in (0.1, 1.0))
        # Nothing changes, so that any discovery of a round is a false one.
        counts += [few, many, estimated.alarms(fdr=0.1)[1:].any(axis=1).sum()]
    rates = counts / (runs * (TAU - 1))
    return [protocol.name, str(n), f"{rates[0]:.3f}", f"{rates[1]:.2f}", f"{100 * rates[2]:.1f} %"]


def text(folder: Path | None) -> Iterator[str]:
    """Both tables, in Markdown, line by line."""
    for head, lines in (
        (HEAD, (row(case) for some in (cases(), real(folder)) for case in some)),
        (ALARM_HEAD, (alarm_row(protocol, n) for protocol in protocols() for n in (1000, N))),
    ):
        yield f"| {' | '.join(head)} |\n|{'---|' * len(head)}\n"
        for line in lines:
            yield f"| {' | '.join(line)} |\n"
        yield "\n"


def draw_burst(value: int = 5, expected: float = 0.01) -> Figure:
    """Rounds of one value one by one, together and as they were; below, what alarms.

    Of 2000 users 35 % hold it in one round alone.
    """
    values = drifting(0.05, 1, 2000, 20, 6)
    values[:700, 12] = value
    simulation = simulate(OLOLOHA(k=6, eps_inf=2.0, eps_1=1.0), values, rng=2)
    estimated = series(simulation)
    low, high = estimated.interval()
    rounds = np.arange(len(low))
    innovations = estimated.innovations[:, value]
    alarmed = estimated.alarms(expected=expected)[:, value]
    with our_look():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        above.fill_between(rounds, low[:, value], high[:, value], color=COLOURS[3], alpha=0.18)
        above.plot(
            rounds, estimated.estimates[:, value], color=COLOURS[3], label="all rounds together"
        )
        single = simulation.estimates[:, value]
        above.plot(rounds, single, "o", color=COLOURS[4], markersize=4, label="single rounds")
        above.plot(rounds, (values == value).mean(axis=0), ":", color=TRUTH, label="truth")
        percent(above)
        above.set_ylabel("frequency")
        above.legend(loc="upper left")
        below.bar(rounds, innovations, 0.5, color=np.where(alarmed, COLOURS[5], FAINT).tolist())
        below.set_xticks(rounds[::2])
        below.set_ylabel("innovation, in\nstandard deviations")
        below.set_xlabel(f"round (red: alarms at {expected:g} false ones expected a round)")
        lay_out(figure)
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the files of adult and acs")
    parser.add_argument("--burst", type=Path, help="draw a burst into this file, and end")
    options = parser.parse_args()
    if options.burst:
        write(draw_burst(), options.burst)
        sys.exit()
    for part in text(options.data):
        sys.stdout.write(part)
        sys.stdout.flush()
