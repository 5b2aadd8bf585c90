"""Whole populations under a budget for changes, by array code of the device's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha import _moved
from loloha.arrays import Array, Ints
from loloha.counting.decode import linear_support
from loloha.datasets import Dataset
from loloha.datasets.dataset import Seed
from loloha.errors import ParameterError
from loloha.population.samplers import Draws, History
from loloha.population.samplers.draws import unpack
from loloha.rng import SCALE
from loloha_lab.dyadic.protocol import DyadicLH, Lies, ways
from loloha_lab.dyadic.tally import DyadicEstimate, DyadicTally

__all__ = ["DyadicEstimate", "DyadicLH", "DyadicSimulation", "DyadicTally", "simulate"]


@dataclass(frozen=True, eq=False)
class DyadicSimulation:
    """What the server learned of a simulated population.

    Attributes
    ----------
    tally : DyadicTally
    estimate : DyadicEstimate
    used_up : float
        Share of (user, round) pairs whose bit stays an older one, as the user's changes are used
        up: the source of bias.
    """

    tally: DyadicTally
    estimate: DyadicEstimate
    used_up: float

    held = _moved.renamed("held", "used_up")


def simulate(protocol: DyadicLH, values: Array, *, rng: Seed) -> DyadicSimulation:
    """Sanitise and estimate: every user's device over all rounds, then the server.

    Parameters
    ----------
    protocol : DyadicLH
    values : int[n, tau] or Dataset
        Value of each user in each round, 0..k-1, in the first tau <= rounds of the series.
    rng : int, SeedSequence or Generator
        Equal seeds give equal results.

    Returns
    -------
    DyadicSimulation

    Raises
    ------
    DomainError
        If a value is outside the domain; it is not shown.
    ParameterError
        If ``values`` is not an array [n, tau] of integers, has gaps or more rounds than the
        series, or ``rng`` is none of the above.
    """
    history = History(values.values if isinstance(values, Dataset) else values, protocol.k)
    if history.tau > protocol.rounds or int(history.reports.sum()) < history.n * history.tau:
        raise ParameterError(
            f"values must be one for each user in each of at most {protocol.rounds} rounds, got "
            f"{history.tau} rounds or gaps; repeat the value before in a gap"
        )
    tally = protocol.tally()
    used_up = population(protocol, history, Draws(rng), tally)
    return DyadicSimulation(tally, tally.estimate(), used_up)


def squared_bias(
    protocol: DyadicLH, values: Array, windows: Sequence[slice], rng: Seed
) -> tuple[float, float]:
    """Mean squared bias of rounds, and of means of rounds: of the changes that do not count.

    The product of two estimates of it under independent hashes, which share no chance.
    """
    history, draws = History(values, protocol.k), Draws(rng)
    rounds, means = [], []
    for _ in range(2):
        seeds = draws.keys(protocol.family, history.n)
        stale, _ = _counted(protocol, history, seeds, protocol.changes)
        every, _ = _counted(protocol, history, seeds, history.tau)
        counts = np.zeros((history.tau, 2 * protocol.family.size), dtype=np.int64)
        for t, (bits, all_bits) in enumerate(zip(stale, every, strict=True)):
            np.add.at(counts[t], seeds * 2 + bits, 1)
            np.subtract.at(counts[t], seeds * 2 + all_bits, 1)
        support = linear_support(counts, protocol.family)
        bias = 2 * support / history.n / protocol.spread
        rounds.append(bias)
        means.append(np.stack([bias[window].mean(axis=0) for window in windows]))
    return float(np.mean(rounds[0] * rounds[1])), float(np.mean(means[0] * means[1]))


def population(protocol: DyadicLH, history: History, draws: Draws, tally: DyadicTally) -> float:
    """Count what all users send; the share of (user, round) pairs whose bit is an older one."""
    n = history.n
    seeds = draws.keys(protocol.family, n)
    levels = draws.below(protocol.levels, n).astype(np.int64)
    bits, used_up = _counted(protocol, history, seeds, protocol.changes)
    for level, rule in enumerate(protocol.lies):
        users = np.flatnonzero(levels == level)
        ends = bits[(1 << level) - 1 :: 1 << level, users]
        lies = _lies(rule, len(users), draws)
        answers = _answers(ends, lies, draws)
        keys = np.column_stack([seeds[users], levels[users]])
        for index, ys in enumerate(answers):
            tally.update(keys, ys, round=((index + 1) << level) - 1)
    return used_up


def _counted(protocol: DyadicLH, history: History, seeds: Ints, changes: int) -> tuple[Any, float]:
    """Bits of all rounds, uint8[tau, n], stale once a user's changes are used up; their share."""
    bits = np.empty((history.tau, history.n), dtype=np.uint8)
    left = np.full(history.n, changes)
    used_up = 0
    for t, values in enumerate(history.rounds(protocol.k)):
        bits[t] = protocol.family.hash_many(seeds, values.astype(np.int64))
        if t:
            moved = bits[t] != bits[t - 1]
            late = moved & (left == 0)
            bits[t, late] = bits[t - 1, late]
            left -= moved & ~late
            used_up += int(np.count_nonzero(late))
    return bits, used_up / max(bits.size, 1)


def _lies(rule: Lies, n: int, draws: Draws) -> Any:
    """Which answers of ``n`` users are lies, bool[n, size]; the distribution of `Lies.draw`."""
    lies = np.zeros((n, rule.size), dtype=bool)
    few = unpack(draws.bits(rule.few, n), n)
    for group, most in ((few, rule.most), (~few, rule.size - rule.most - 1)):
        users = np.flatnonzero(group)
        numbers = draws.below(ways(rule.size, most), len(users)).astype(np.int64)
        left = np.full(len(users), most)
        for place in range(rule.size):
            without = np.array([ways(rule.size - place - 1, m) for m in range(most + 1)])[left]
            chosen = numbers >= without
            numbers -= np.where(chosen, without, 0)
            left -= chosen
            lies[users, place] = chosen
    lies[~few] ^= True
    return lies


def _answers(ends: Any, lies: Array, draws: Draws) -> Any:
    """Answers of users of one level, uint8[intervals, users], to their bits at the ends."""
    news = np.ones(ends.shape, dtype=bool)
    news[1:] = ends[1:] != ends[:-1]
    used = np.cumsum(news, axis=0) - 1
    bits = ends ^ lies[np.arange(ends.shape[1]), np.where(news, used, 0)]
    answers = np.where(news, bits, 0).astype(np.uint8)
    quiet = int(np.count_nonzero(~news))
    answers[~news] = unpack(draws.bits(SCALE // 2, quiet), quiet)
    return answers
