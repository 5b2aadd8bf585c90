"""Filtering of what is unknown of a user: the cell of the value, the memo of each cell."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from loloha_lab.attacks.memo import Memos

# Clouds know nothing of each other, so each is an unbiased judge of what the others choose.
CLOUDS = 4
PARTICLES = 125
# Cells with which the present one exchanges what is ascribed to them, a round.
_EXCHANGES = 16
_LEAST = 1e-300


def exact(
    memos: Memos, weight: Any, change: float, ys: Any, rng: np.random.Generator
) -> Iterator[Any]:
    """Posterior of the cell, float64[n, 1, cells], round by round: over (table of memos, cell).

    Drawing all memos beforehand has the distribution of drawing each at its first visit. ``ys``
    holds what each user sent, in order.
    """
    tables, chance = memos.chances()
    state = chance[None, :, None] * weight[:, None, :]
    for t in range(ys.shape[1]):
        if t:
            anew = state.sum(axis=2, keepdims=True) * weight[:, None, :]
            state = (1 - change) * state + change * anew
        state = state * memos.by_symbol(memos.evidence(ys[:, t]))[:, tables]
        state /= state.sum(axis=(1, 2), keepdims=True)
        yield state.sum(axis=1, keepdims=True)


def particles(
    memos: Memos, weight: Any, change: float, ys: Any, rng: np.random.Generator
) -> Iterator[Any]:
    """The same by clouds of particles, float64[n, CLOUDS, cells].

    A particle is a path of cells; memos are averaged over, not drawn. It is weighed by how well it
    foresaw an answer, and its next cell is drawn given the answer (Rao-Blackwellised, fully
    adapted). Reports of one cell soon tell that they are of one, but for long not of which: a plain
    filter settles that early and for good. So each round the present cell exchanges all that is
    ascribed to it with others (resample-move: the posterior of the path stays).
    """
    n, cells = weight.shape
    clouds = _Clouds(memos, np.repeat(weight, CLOUDS, axis=0), change)
    for t in range(ys.shape[1]):
        clouds.hear(memos.evidence(np.repeat(ys[:, t], CLOUDS, axis=0)), rng)
        yield clouds.exchange(rng).reshape(n, CLOUDS, cells)


class _Clouds:
    """A cloud of particles for each row of weights."""

    def __init__(self, memos: Memos, weight: Any, change: float) -> None:
        n, cells = weight.shape
        self.memos, self.weight, self.change = memos, weight, change
        self.stay = 1 - change + change * weight
        # What is ascribed to one cell is a row; which row is whose changes by exchange.
        self.memo = np.empty((n, PARTICLES, *memos.blind.shape))
        self.begun, self.stayed = np.empty((2, n, PARTICLES, cells))
        self.row = np.empty((n, PARTICLES, cells), dtype=np.int64)
        self.cell = np.empty((n, PARTICLES), dtype=np.int64)
        self.share = np.empty((n, PARTICLES))
        self.place = np.arange(n)[:, None], np.arange(PARTICLES)
        self.start = np.arange(n * PARTICLES).reshape(n, PARTICLES) * cells
        self._forget(np.arange(n))

    def _forget(self, clouds: Any) -> None:
        self.memo[clouds] = self.memos.blind
        self.row[clouds] = np.arange(self.row.shape[2])
        self.begun[clouds], self.stayed[clouds], self.cell[clouds] = 0, 0, -1
        self.share[clouds] = 1 / PARTICLES

    def hear(self, evidence: Any, rng: np.random.Generator) -> None:
        """One more answer: particles are weighed, resampled where few count, and moved."""
        chance = self._next(evidence)
        lost = (self.share * chance.sum(axis=2)).sum(axis=1) <= 0
        if lost.any():
            # No particle allows what was sent: only memos that are sent as they are forbid any.
            self._forget(lost)
            chance = self._next(evidence)
        self.share *= chance.sum(axis=2)
        self.share /= self.share.sum(axis=1, keepdims=True)
        poor = np.flatnonzero(1 / (self.share**2).sum(axis=1) < PARTICLES / 2)
        if poor.size:
            resampled = _resampled(self.share[poor], rng)
            for array in (self.memo, self.begun, self.stayed, self.row, self.cell, chance):
                array[poor] = array[poor[:, None], resampled]
            self.share[poor] = 1 / PARTICLES
        steps = np.cumsum(chance, axis=2)
        at = rng.random(self.cell.shape) * steps[:, :, -1]
        cell = (at[:, :, None] > steps[:, :, :-1]).sum(axis=2)
        here = *self.place, self.row[*self.place, cell]
        self.stayed[here] += cell == self.cell
        self.begun[here] += cell != self.cell
        self.memo[here] = self.memos.learned(self.memo[here], evidence)
        self.cell = cell

    def _next(self, evidence: Any) -> Any:
        """Pr[the next cell, and what was sent], float64[n, particles, cells]."""
        started = self.cell >= 0
        moved = np.where(started, self.change, 1.0)[:, :, None] * self.weight[:, None]
        moved[*self.place, self.cell] += np.where(started, 1 - self.change, 0.0)
        return moved * self.memos.foreseen(self.memo, self.row, evidence)

    def exchange(self, rng: np.random.Generator) -> Any:
        """The present cell exchanges its row with that of another (Metropolis), some times."""
        cells = self.row.shape[2]
        rows, time, cell = self.row.reshape(-1), np.zeros(self.row.size), self.cell
        for _ in range(_EXCHANGES):
            other = (cell + rng.integers(1, cells, size=cell.shape)) % cells
            here, there = self.start + cell, self.start + other
            ours, theirs = rows[here], rows[there]
            chance = self._willing(ours, theirs, cell, other)
            time[there] += chance
            time[here] += 1 - chance
            taken = rng.random(cell.shape) < chance
            rows[here], rows[there] = np.where(taken, (theirs, ours), (ours, theirs))
            cell = np.where(taken, other, cell)
        self.cell = cell
        return np.einsum("np,npc->nc", self.share, time.reshape(self.row.shape)) / _EXCHANGES

    def _willing(self, ours: Any, theirs: Any, cell: Any, other: Any) -> Any:
        """Chance that two cells exchange their rows, float64[n, particles]."""
        cells = self.row.shape[2]
        our_row, their_row = self.start + ours, self.start + theirs
        own, others, of_ours, of_theirs = (
            self.memos.suits(self.memo.take(row * cells + symbol))
            for row, symbol in (
                (our_row, cell),
                (their_row, other),
                (our_row, other),
                (their_row, cell),
            )
        )
        gain = np.log(np.maximum(of_ours * of_theirs, _LEAST) / np.maximum(own * others, _LEAST))
        user = np.arange(len(cell))[:, None] * cells
        for times, chance in ((self.begun, self.weight), (self.stayed, self.stay)):
            log = np.log(np.maximum(chance, _LEAST))
            more = times.take(our_row) - times.take(their_row)
            gain += more * (log.take(user + other) - log.take(user + cell))
        return np.exp(np.minimum(gain, 0.0))


def _resampled(share: Any, rng: np.random.Generator) -> Any:
    """Systematic resampling of each row."""
    points = (np.arange(PARTICLES) + rng.random((len(share), 1))) / PARTICLES
    steps = np.cumsum(share, axis=1)
    steps[:, -1] = math.inf
    return np.stack([np.searchsorted(row, at) for row, at in zip(steps, points, strict=True)])
