"""The tables of ``docs/budget.md``: ``python -m loloha_lab.tables.budget`` writes them."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from loloha.arrays import Floats, Ints
from loloha.datasets import adult, syn
from loloha.planning.holding import hold_chain
from loloha.population import supports
from loloha.privacy.transcript import worst_loss
from loloha.protocols import OLH, OLOLOHA
from loloha.server.unbiased import unbiased
from loloha.server.variance import variance
from loloha_lab.dyadic import simulation as dyadic
from loloha_lab.dyadic.protocol import DyadicLH
from loloha_lab.tables import Section, titled

K, ROUNDS = 360, 120
BUDGETS = (1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0)
CHANGES = (1, 3, 10)
HORIZONS = (8, 32, 120, 365, 1024)
MEASURED = (2.0, 8.0, 16.0)
# Moves of a user over the whole series, on average, and the changes of his bit that count.
MOVES = ((1.0, 1), (4.0, 3))

# Shares of the loss that one constant value may have.
_SHARES = (0.1, 0.2, 0.3, 0.5, 1.0)
_STEPS = 12


def text() -> str:
    """All tables, in Markdown."""
    return titled(by_budget(), by_horizon(), measured())


# -- what is compared


@cache
def proven(k: int, rounds: int, eps: float, g: int = 2) -> OLOLOHA:
    """The OLOLOHA of least variance whose loss is proven to be at most eps, whatever changes."""
    return _best(k, rounds, eps, g, rounds, "upper")


@cache
def at_best(k: int, rounds: int, eps: float) -> OLOLOHA:
    """The OLOLOHA of least variance whose loss is not known to be above eps.

    Two histories with a single change at most reach eps already: what holds eps is noisier. Two
    symbols, because all that they send can be enumerated; for losses this small they are the best.
    """
    return _best(k, rounds, eps, 2, 1, "lower")


def _best(k: int, rounds: int, eps: float, g: int, changes: int, end: str) -> OLOLOHA:
    """Of each eps_inf that with the largest eps_2, by bisection: the loss rises with eps_2."""
    protocols = []
    for share in _SHARES:
        low, high, best = eps / rounds / 4, 8 * eps / rounds, None
        for _ in range(_STEPS):
            middle = (low * high) ** 0.5
            chain = hold_chain(OLOLOHA, {"eps_inf": share * eps, "eps_2": middle}, {"k": k, "g": g})
            if getattr(worst_loss(chain, rounds, changes), end) <= eps:
                low, best = middle, chain
            else:
                high = middle
        if best is not None:
            protocols.append(best)
    return min(protocols, key=lambda protocol: protocol.noise)


def once(k: int, rounds: int, eps: float) -> float:
    """n Var of a value of 1/k where each user answers chain round, drawn at enrolment, by OLH.

    V* of n / rounds reports, and f (1 - f) (rounds - 1) for who speaks in a round: a sample of the
    n users, whatever eps is.
    """
    return rounds * float(variance(OLH(k=k, eps=eps), 1)) + (rounds - 1) * (k - 1) / k**2


def mean_noise(protocol: DyadicLH) -> float:
    """n V*, on average over the rounds."""
    return float(np.mean([protocol.noise(t) for t in range(protocol.rounds)]))


# -- by formula


def noises(rounds: int, eps: float, changes: Sequence[int]) -> list[str]:
    """What each costs at one loss of everything that is sent in so many rounds."""
    dyadic = [DyadicLH(k=K, eps=eps, rounds=rounds, changes=most) for most in changes]
    ololoha = (rule(K, rounds, eps).noise for rule in (proven, at_best))
    return [*map(_short, [*map(mean_noise, dyadic), *ololoha, once(K, rounds, eps)])]


def budget_row(eps: float) -> list[str]:
    """A row over the loss."""
    return [f"{eps:g}", *noises(ROUNDS, eps, CHANGES)]


def by_budget() -> Section:
    """Over the loss."""
    return (
        f"Noise of a rare value, n times its variance, mean of {ROUNDS} rounds, k = {K}",
        ("eps", *(f"budget, C = {c}" for c in CHANGES), "OLOLOHA, proven", "OLOLOHA, at best",
         "OLH, one round each"),
        map(budget_row, BUDGETS),
    )  # fmt: skip


def horizon_row(rounds: int) -> list[str]:
    """A row over the number of rounds."""
    return [str(rounds), *noises(rounds, 1.0, (1,))]


def by_horizon() -> Section:
    """Over the number of rounds."""
    return (
        f"Noise of a rare value, n times its variance, mean of the rounds, eps = 1, k = {K}",
        ("rounds", "budget, C = 1", "OLOLOHA, proven", "OLOLOHA, at best", "OLH, one round each"),
        map(horizon_row, HORIZONS),
    )


# -- by simulation


class Errors(NamedTuple):
    """Mean square errors over all rounds and values."""

    budget: float
    predicted: float
    used_up: float
    ololoha: float
    once: float
    uniform: float


def seldom(column: Any, tau: int, change: float, rng: np.random.Generator) -> Ints:
    """A column that stays as a whole: each round those who move exchange their values."""
    values = np.empty((len(column), tau), dtype=np.int64)
    values[:, 0] = rng.permutation(column)
    for t in range(1, tau):
        values[:, t] = values[:, t - 1]
        moving = np.flatnonzero(rng.random(len(column)) < change)
        values[moving, t] = values[rng.permutation(moving), t - 1]
    return values


def only_once(values: Ints, seed: int) -> Ints:
    """The values of which each user tells one, of a round drawn at enrolment; -1 elsewhere."""
    n, tau = values.shape
    drawn_values = np.full_like(values, -1)
    # A stream of its own: the one of the values must not choose the rounds of reports.
    rows, drawn = np.arange(n), np.random.default_rng([seed, n, tau]).integers(0, tau, n)
    drawn_values[rows, drawn] = values[rows, drawn]
    return drawn_values


def errors(values: Ints, k: int, eps: float, changes: int, seed: int) -> Errors:
    """All errors on one population."""
    n, tau = values.shape
    truth = np.stack([np.bincount(values[:, t], minlength=k) / n for t in range(tau)])
    protocol = DyadicLH(k=k, eps=eps, rounds=tau, changes=changes)
    simulation = dyadic.simulate(protocol, values, rng=seed)
    alone = only_once(values, seed)

    def of(rule: Any, sent: Ints) -> float:
        counts = supports(rule, sent, rng=seed)
        return _mean_square(unbiased(rule, counts.supports, counts.eligible) - truth)

    return Errors(
        budget=_mean_square(simulation.estimate.frequencies - truth),
        predicted=mean_noise(protocol) / n,
        used_up=simulation.used_up,
        ololoha=of(at_best(k, tau, eps), values),
        once=of(OLH(k=k, eps=eps), alone),
        uniform=_mean_square(1 / k - truth),
    )


def measured() -> Section:
    """On populations that seldom change."""
    head = ("data, moves", "eps", "C", "used up", "budget", "by formula", "OLOLOHA, at best",
            "OLH, one round each", "always 1/k")  # fmt: skip
    rows = []
    for (name, values, k, changes), eps in itertools.product(_populations(), MEASURED):
        outcome = errors(values, k, eps, changes, seed=1)
        numbers = (
            outcome.budget,
            outcome.predicted,
            outcome.ololoha,
            outcome.once,
            outcome.uniform,
        )
        rows.append([name, f"{eps:g}", str(changes), f"{100 * outcome.used_up:.1f} %",
                     *(f"{number:.2g}" for number in numbers)])  # fmt: skip
    return f"Mean square error, {ROUNDS} rounds, one run", head, rows


def _populations() -> Iterable[tuple[str, Ints, int, int]]:
    hours = adult(tau=1, rng=1)
    for moves, changes in MOVES:
        values = syn(change=moves / ROUNDS, tau=ROUNDS, rng=1).values.astype(np.int64)
        yield f"Syn, {moves:g}", values, K, changes
    for moves, changes in MOVES:
        generator = np.random.default_rng(1)
        values = seldom(hours.values[:, 0], ROUNDS, moves / ROUNDS, generator)
        yield f"Adult, {moves:g}", values, hours.k, changes


def _mean_square(differences: Floats) -> float:
    return float(np.mean(differences**2))


def _short(noise: float) -> str:
    return f"{noise:.0f}" if noise >= 100 else f"{noise:.3g}"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    sys.stdout.write(text())
