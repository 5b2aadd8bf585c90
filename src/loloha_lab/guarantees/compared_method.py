"""Methods compared under a guarantee, with their parameters, or why they cannot meet it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from loloha.arrays import Array, Floats
from loloha.hashing import admissible_primes
from loloha.planning.holding import hold
from loloha.population import History, simulate
from loloha.privacy import growth
from loloha.protocols import LGRR, LOSUE, OLH, OLOLOHA, RAPPOR, BiLOLOHA, DBitFlipPM, Protocol
from loloha.server.mean import mean_variance
from loloha.server.series import series
from loloha.server.variance import variance
from loloha_lab.dyadic import simulation as dyadic
from loloha_lab.dyadic.protocol import DyadicLH
from loloha_lab.guarantees.absorption import Absorption, GradualRelease
from loloha_lab.guarantees.window_error import of_protocol, of_refined, unchanged, windows

EPS_INF, EPS_1, LOSS, WINDOW = 2.0, 1.0, 2.0, 30
MEMO_EPS_INF = 2 * LOSS
"""Of all reports of one value, under the other guarantees: of what memoises alone."""
ONE_VALUE, ANY_WINDOW, TRANSCRIPT = "one value", "any window", "whole transcript"
GUARANTEES = {
    ONE_VALUE: f"a first report loses {EPS_1:g}, all reports of one value {EPS_INF:g}",
    ANY_WINDOW: f"any {WINDOW} rounds lose {LOSS:g}",
    TRANSCRIPT: f"all rounds together lose {LOSS:g}",
}
PANELS = "LOLOHA in panels"
CHANGES = 3
"""Of a user's bit that DyadicLH follows."""


class Population:
    """Values of all users, and what all methods need of them."""

    def __init__(self, name: str, values: Array, k: int, source: str = "synthetic") -> None:
        self.name, self.k, self.source = name, k, source
        self.values = np.ascontiguousarray(values)
        self.n, self.tau = self.values.shape

    @cached_property
    def history(self) -> History:
        return History(self.values, self.k)

    @cached_property
    def truth(self) -> Floats:
        """Frequencies of each round, float64[tau, k]."""
        columns = self.values.T
        shares: Floats = (
            np.stack([np.bincount(column, minlength=self.k) for column in columns]) / self.n
        )
        return shares

    @cached_property
    def windows(self) -> list[slice]:
        return windows(self.tau, WINDOW)

    @cached_property
    def unchanged(self) -> list[Floats]:
        return [unchanged(self.values, window) for window in self.windows]

    def means(self, estimates: Floats) -> Floats:
        """Of each full window, float64[windows, k]."""
        return np.stack([estimates[window].mean(axis=0) for window in self.windows])


class Outcome(NamedTuple):
    """Of one run: estimates of rounds and of windows, and the mean squared errors expected.

    ``smoothed`` are those of the rounds taken together, by `loloha.series`; None if not asked for.
    """

    estimates: Floats
    means: Floats
    expected_round: float
    expected_mean: float
    smoothed: Floats | None = None


@dataclass(frozen=True)
class ComparedMethod:
    """A method under a guarantee.

    Attributes
    ----------
    name, parameters : str
    why : str
        How the guarantee is met, or why it cannot be.
    run : callable or None
        From a population and a seed to an `Outcome`; None where the guarantee cannot be met.
    protocol : Protocol or None
        What devices follow, where it is a registered protocol.
    every : int
        In how many rounds a user reports once, at most.
    """

    name: str
    parameters: str
    why: str
    run: Callable[[Population, int], Outcome] | None = None
    protocol: Protocol | None = None
    every: int = 1


def methods(guarantee: str, population: Population) -> Iterator[ComparedMethod]:
    """All methods, ours first."""
    yield from _chains(guarantee, population)
    yield _buckets(guarantee, population.k)
    yield from _fresh(guarantee, population)
    yield _dyadic(guarantee, population)
    yield _gradual(guarantee, population)


# -- memos and a fresh round


def _chains(guarantee: str, population: Population) -> Iterator[ComparedMethod]:
    k, tau = population.k, population.tau
    classes = {"OLOLOHA": OLOLOHA, "RAPPOR": RAPPOR, "L-OSUE": LOSUE, "L-GRR": LGRR}
    for method, cls in classes.items():
        if guarantee == ONE_VALUE:
            if method == "OLOLOHA":
                two = BiLOLOHA(k=k, eps_inf=EPS_INF, eps_1=EPS_1)
                yield _chain("BiLOLOHA", two, "by its ε", smooth=True)
            protocol = cls(k=k, eps_inf=EPS_INF, eps_1=EPS_1)
            yield _chain(method, protocol, "by its ε", smooth=True)
        else:
            rounds = WINDOW if guarantee == ANY_WINDOW else tau
            fixed = {"eps_inf": MEMO_EPS_INF, "eps_2": LOSS / rounds}
            why = f"ε₂ = {LOSS:g}/{rounds}" + (", least noise at g = 2" if cls is OLOLOHA else "")
            yield _chain(method, hold(cls, fixed, {"k": k}), why)
        if method == "OLOLOHA":
            yield _panels(guarantee, population)


def _panels(guarantee: str, population: Population) -> ComparedMethod:
    k, method = population.k, PANELS
    if guarantee == ONE_VALUE:
        protocol: Protocol = OLOLOHA(k=k, eps_inf=EPS_INF, eps_1=EPS_1)
        return _chain(method, protocol, "by its ε; panels keep more than this", WINDOW, smooth=True)
    if guarantee == ANY_WINDOW:
        protocol = hold(OLOLOHA, {"eps_inf": MEMO_EPS_INF, "eps_2": LOSS}, {"k": k})
        return _chain(
            method, protocol, f"ε₂ = {LOSS:g}, one report in {WINDOW}", WINDOW, smooth=True
        )
    protocol = OLOLOHA(k=k, eps_inf=MEMO_EPS_INF, eps_1=LOSS)
    return _chain(
        method, protocol, f"ε₁ = {LOSS:g}, one report for all", population.tau, smooth=True
    )


def _chain(
    method: str, protocol: Protocol, why: str, every: int = 1, *, smooth: bool = False
) -> ComparedMethod:
    g = f", g = {protocol.g}" if isinstance(protocol, OLOLOHA) else ""
    budgets = {"ε∞": getattr(protocol, "eps_inf", None), "ε₁": getattr(protocol, "eps_1", None)}
    budgets["ε"] = getattr(protocol, "eps", None)
    numbers = ", ".join(f"{name} = {eps:.3g}" for name, eps in budgets.items() if eps is not None)
    panel = f", 1 round in {every}" if every > 1 else ""

    def run(population: Population, seed: int) -> Outcome:
        return _simulated(protocol, every, population, seed, smooth)

    return ComparedMethod(method, numbers + g + panel, why, run, protocol, every)


def _simulated(
    protocol: Protocol, every: int, population: Population, seed: int, smooth: bool
) -> Outcome:
    result = simulate(protocol, population.history, every=every, keep_tallies=False, rng=seed)
    # One run in which it is shown is enough: fitting costs more than all of the others.
    smoothed = series(result, every=every).estimates if smooth and seed == 0 else None
    n, k, truth = population.n, population.k, population.truth
    if every == 1:
        once = float(variance(protocol, n, 1 / k))
        mean = of_protocol(protocol, n, population.unchanged)
        means = population.means(result.estimates)
        return Outcome(result.estimates, means, once, mean, smoothed)
    sizes = result.n
    rounds = [
        mean_variance(protocol, [int(size)], f, every=every, population=n)
        for size, f in zip(sizes, truth, strict=True)
    ]
    of_windows, expected = [], []
    for window in population.windows:
        # Each of the window's users once: rounds weigh by their reports.
        shares = sizes[window] / sizes[window].sum()
        of_windows.append(shares @ result.estimates[window])
        noise = mean_variance(
            protocol, sizes[window].tolist(), truth[window].mean(axis=0), every=every, population=n
        )
        lean = shares @ truth[window] - truth[window].mean(axis=0)
        expected.append(float(np.mean(noise + lean**2)))
    stated = float(np.mean(rounds)), float(np.mean(expected))
    return Outcome(result.estimates, np.stack(of_windows), *stated, smoothed)


def _buckets(guarantee: str, k: int) -> ComparedMethod:
    if guarantee != ONE_VALUE:
        why = "cannot: the memoised answer is sent as it is, so ε₂ is infinite: a change shows"
        return ComparedMethod("dBitFlipPM", "", why)
    protocol = DBitFlipPM(k=k, eps_inf=EPS_1)
    why = "the first report loses all of ε∞, so ε∞ = ε₁; d = b = k"
    return _chain("dBitFlipPM", protocol, why)


# -- fresh reports


def _fresh(guarantee: str, population: Population) -> Iterator[ComparedMethod]:
    k, tau = population.k, population.tau
    rounds = WINDOW if guarantee == ANY_WINDOW else tau
    each = OLH(k=k, eps=LOSS / rounds)
    known = "" if guarantee == ANY_WINDOW else f"for {tau} rounds, no longer: "
    yield _chain("fresh OLH (LBU)", each, f"{known}{LOSS:g}/{rounds} a report")
    # One report loses eps_1 at most, and two of one value eps_inf.
    eps, twice = (EPS_1, 2) if guarantee == ONE_VALUE else (LOSS, 1)
    every, count = -(-rounds // twice), "two reports" if twice == 2 else "one report"
    rule = OLH(k=k, eps=eps)
    yield _chain("OLH of a panel (LPU)", rule, f"{known}{count} of {eps:g}", every, smooth=True)
    yield _absorbed(rule, every, f"{known}{count} of {eps:g}")


def _absorbed(rule: OLH, window: int, why: str) -> ComparedMethod:
    def run(population: Population, seed: int) -> Outcome:
        absorption, truth = Absorption(rule, population.n, window), population.truth
        published = absorption.simulate(population.values, seed)
        return Outcome(
            published.estimates,
            population.means(published.estimates),
            absorption.expected(published, truth),
            absorption.expected_mean(published, truth, WINDOW),
        )

    parameters = f"ε = {rule.eps:.3g}, windows of {window}"
    return ComparedMethod("OLH with absorption (LPA)", parameters, why, run, rule, window)


# -- others of the laboratory


def _dyadic(guarantee: str, population: Population) -> ComparedMethod:
    eps = EPS_1 if guarantee == ONE_VALUE else LOSS
    rule = DyadicLH(k=population.k, eps=eps, rounds=population.tau, changes=CHANGES)

    def run(population: Population, seed: int) -> Outcome:
        estimates = dyadic.simulate(rule, population.values, rng=seed).estimate.frequencies
        bias, of_means = dyadic.squared_bias(rule, population.values, population.windows, seed)
        noise = float(np.mean([rule.noise(t) for t in range(population.tau)])) / population.n
        means = [rule.noise_of_mean(window) / population.n for window in population.windows]
        return Outcome(
            estimates, population.means(estimates), noise + bias, np.mean(means) + of_means
        )

    why = f"all {population.tau} rounds lose {eps:g}"
    if guarantee == ONE_VALUE:
        why = f"a first report may tell all of ε, so ε = ε₁: {why}"
    return ComparedMethod("DyadicLH", f"ε = {eps:g}, {CHANGES} changes", why, run)


def _gradual(guarantee: str, population: Population) -> ComparedMethod:
    method = "gradual release"
    if guarantee != ONE_VALUE:
        why = "cannot: refined answers end in a memo that is sent as it is, so ε₂ is infinite"
        return ComparedMethod(method, "", why)
    k = population.k
    reports = np.arange(1, population.tau + 1)
    usual: Any = growth(OLOLOHA(k=k, eps_inf=EPS_INF, eps_1=EPS_1), reports)
    losses = tuple(np.asarray(usual).tolist())
    rule = min(
        (GradualRelease(k, g, losses) for g in admissible_primes(k) if g <= 13),
        key=lambda candidate: sum(float(variance(rule, 1)) for rule in candidate.rules),
    )

    def run(population: Population, seed: int) -> Outcome:
        estimates, n = rule.simulate(population.values, seed), population.n
        once = [float(variance(part, n, 1 / k)) for part in rule.rules]
        means = [
            of_refined(rule.rules[window], n, same)
            for window, same in zip(population.windows, population.unchanged, strict=True)
        ]
        return Outcome(
            estimates, population.means(estimates), float(np.mean(once)), float(np.mean(means))
        )

    why = "after any number of reports of one value as much as OLOLOHA; a new cell starts there"
    return ComparedMethod(method, f"ε from {EPS_1:g} to {EPS_INF:g}, g = {rule.g}", why, run)
