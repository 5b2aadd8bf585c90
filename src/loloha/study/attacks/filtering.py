"""What is not known of a user, filtered: the cell of the value, and the memo of each cell."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from loloha.rules.protocols import Protocol
from loloha.rules.rng import SCALE

PARTICLES = 500


class SymbolMemos(NamedTuple):
    """Memos that are symbols: odds of each, float64[..., symbols]."""

    first: Any
    """Pr[memo | cell], float64[cells, symbols]."""
    second: Any
    """Pr[answer | memo], float64[symbols, symbols]."""
    joint: Any
    """Pr of all memos of a user, by their row in `tables`, if they are drawn together."""

    @classmethod
    def of(cls, protocol: Protocol) -> SymbolMemos:
        channels: Any = (protocol.first_channel, protocol.second_channel)
        first, second = (
            np.full((one.g, one.g), float(one.q)) + np.eye(one.g) * float(one.p - one.q)
            for one in channels
        )
        return cls(first, second, _one_table(channels[0]) if protocol.joint else None)

    @property
    def prior(self) -> Any:
        return self.first

    @property
    def tables(self) -> int:
        """In how many ways the memos of all cells may be."""
        ways: int = self.first.shape[1] ** len(self.first)
        return ways

    def chances(self) -> tuple[Any, Any]:
        """All ways, int64[tables, cells] of symbols, and the chance of each."""
        cells, symbols = self.first.shape
        tables = np.array(list(itertools.product(range(symbols), repeat=cells)))
        each = self.first[np.arange(cells), tables].prod(axis=1)
        return tables, each if self.joint is None else self.joint

    def evidence(self, ys: Any) -> Any:
        """Pr[what was sent | memo], float64[n, symbols]."""
        return self.second[:, ys].T

    def by_symbol(self, evidence: Any) -> Any:
        """The same for each memo of `chances`."""
        return evidence

    def foreseen(self, memo: Any, evidence: Any) -> Any:
        """Pr of what was sent from each cell, where the memos have these odds."""
        return np.einsum("npcx,nx->npc", memo, evidence)

    def learned(self, memo: Any, evidence: Any) -> Any:
        """Odds of a cell's memo once it is known to have sent that."""
        odds = memo * evidence[:, None, :]
        return odds / odds.sum(axis=2, keepdims=True)


class BitMemos(NamedTuple):
    """Memos of independent bits: the chance that each is set, float64[..., bits]."""

    prior: Any
    """float64[cells, bits]."""
    second: tuple[float, float]
    """Pr[a bit is sent as set | it is, or is not]: 1 and 0 where memos are sent as they are."""

    @classmethod
    def of(cls, protocol: Protocol) -> BitMemos:
        first: Any = protocol.first_channel
        second: Any = protocol.second_channel
        encoding: Any = protocol.encoding
        # Where no bucket of the sample holds the value no bit stands for it.
        own = np.eye(encoding.memo_symbols, encoding.size)
        prior = float(first.q) + own * float(first.p - first.q)
        return cls(prior, (1.0, 0.0) if second is None else (float(second.p), float(second.q)))

    @property
    def tables(self) -> int:
        ways: int = 1 << self.prior.size
        return ways

    def chances(self) -> tuple[Any, Any]:
        """A memo is a number here, of which the bits are those of `_settings`."""
        cells, size = self.prior.shape
        tables = np.array(list(itertools.product(range(1 << size), repeat=cells)))
        bits = _settings(size)[tables]
        return tables, np.where(bits, self.prior, 1 - self.prior).prod(axis=(1, 2))

    def evidence(self, ys: Any) -> Any:
        """Pr[each bit that was sent | it is set], and | it is not, float64[2, n, bits]."""
        size = self.prior.shape[1]
        sent = np.unpackbits(ys, axis=1, count=size, bitorder="little").astype(bool)
        return np.stack([np.where(sent, chance, 1 - chance) for chance in self.second])

    def by_symbol(self, evidence: Any) -> Any:
        one, zero = evidence[:, :, None, :]
        return np.where(_settings(self.prior.shape[1]), one, zero).prod(axis=2)

    def foreseen(self, memo: Any, evidence: Any) -> Any:
        one, zero = evidence[:, :, None, None, :]
        return (zero + memo * (one - zero)).prod(axis=3)

    def learned(self, memo: Any, evidence: Any) -> Any:
        one, zero = evidence[:, :, None, :]
        total = zero + memo * (one - zero)
        return np.divide(memo * one, total, out=memo.copy(), where=total > 0)


Memos = SymbolMemos | BitMemos


def exact(
    memos: Memos, weight: Any, change: float, ys: Any, rng: np.random.Generator
) -> Iterator[Any]:
    """Posterior of the cell, float64[n, cells], round by round: over (memo table, cell).

    Drawing all memos beforehand has the law of drawing each at its first visit. ``ys`` holds what
    each user sent, in order.
    """
    tables, chance = memos.chances()
    state = chance[None, :, None] * weight[:, None, :]
    for t in range(ys.shape[1]):
        if t:
            anew = state.sum(axis=2, keepdims=True) * weight[:, None, :]
            state = (1 - change) * state + change * anew
        state = state * memos.by_symbol(memos.evidence(ys[:, t]))[:, tables]
        state /= state.sum(axis=(1, 2), keepdims=True)
        yield state.sum(axis=1)


def particles(
    memos: Memos, weight: Any, change: float, ys: Any, rng: np.random.Generator
) -> Iterator[Any]:
    """The same over paths of cells, with the memo of each cell averaged over, not drawn.

    A particle holds the odds of each cell's memo. Its next cell is drawn given the answer, so its
    weight is how well the answer was foreseen (Rao-Blackwellised, locally optimal proposal). Memos
    never change, so what resampling loses of them is lost for good: of 12 values of RAPPOR after 40
    rounds it believes to be right in 30 % of cases, and is in 17 %.
    """
    n, cells = weight.shape
    memo = np.broadcast_to(memos.prior, (n, PARTICLES, *memos.prior.shape)).copy()
    share = np.full((n, PARTICLES), 1 / PARTICLES)
    users, places = np.arange(n)[:, None], np.arange(PARTICLES)[None]
    cell = np.zeros((n, PARTICLES), dtype=np.int64)
    for t in range(ys.shape[1]):
        evidence = memos.evidence(ys[:, t])
        moved = np.broadcast_to(weight[:, None, :], (n, PARTICLES, cells)).copy()
        if t:
            moved *= change
            moved[users, places, cell] += 1 - change
        joint = moved * memos.foreseen(memo, evidence)
        lost = (share * joint.sum(axis=2)).sum(axis=1) <= 0
        if lost.any():
            # No particle allows what was sent: only memos that are sent as they are forbid any.
            memo[lost], share[lost], moved[lost] = memos.prior, 1 / PARTICLES, weight[lost][:, None]
            joint = moved * memos.foreseen(memo, evidence)
        total = joint.sum(axis=2)
        posterior = (share[:, :, None] * joint).sum(axis=1)
        yield posterior / posterior.sum(axis=1, keepdims=True)
        share = share * total
        share /= share.sum(axis=1, keepdims=True)
        steps = np.cumsum(joint / np.where(total > 0, total, 1.0)[:, :, None], axis=2)
        cell = (rng.random((n, PARTICLES, 1)) > steps[:, :, :-1]).sum(axis=2)
        memo[users, places, cell] = memos.learned(memo[users, places, cell], evidence)
        poor = 1 / (share**2).sum(axis=1) < PARTICLES / 2
        if poor.any():
            kept = _resampled(share[poor], rng)
            rows = np.flatnonzero(poor)[:, None]
            memo[poor], cell[poor] = memo[rows, kept], cell[rows, kept]
            share[poor] = 1 / PARTICLES


def _one_table(channel: Any) -> Any:
    """Chance of each table that answers all cells: the identity, one symbol, or a permutation."""
    g, w = channel.g, float(channel.p - channel.q)
    m0 = (1 - w) * channel.constant / SCALE
    tables = list(itertools.product(range(g), repeat=g))
    orders = (1 - w - m0) / math.factorial(g)
    return np.array(
        [
            w * (table == tuple(range(g)))
            + m0 / g * (len(set(table)) == 1)
            + orders * (len(set(table)) == g)
            for table in tables
        ]
    )


def _settings(size: int) -> Any:
    """The bits of all numbers, bool[2^size, size], lowest first."""
    return (np.arange(1 << size)[:, None] >> np.arange(size) & 1).astype(bool)


def _resampled(share: Any, rng: np.random.Generator) -> Any:
    """Systematic resampling of each row."""
    points = (np.arange(PARTICLES) + rng.random((len(share), 1))) / PARTICLES
    steps = np.cumsum(share, axis=1)
    steps[:, -1] = math.inf
    return np.stack([np.searchsorted(row, at) for row, at in zip(steps, points, strict=True)])
