"""Memos that an observer does not know: their posterior, updated by reports."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from loloha.protocols import Protocol
from loloha.rng import SCALE


class SymbolMemos(NamedTuple):
    """Memos that are symbols: probability of each, float64[..., cells, symbols]."""

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
            np.full((channel.g, channel.g), float(channel.q))
            + np.eye(channel.g) * float(channel.p - channel.q)
            for channel in channels
        )
        return cls(first, second, _one_table(channels[0]) if protocol.joint else None)

    @property
    def blind(self) -> Any:
        """Distribution of a memo of which not even the cell is known, float64[cells, symbols]."""
        return np.full(self.first.shape, 1 / self.first.shape[1])

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

    def suits(self, own: Any) -> Any:
        """How well a memo suits a cell, up to a factor, by its share of the cell's own symbol."""
        p, q = self.first[0, 0], self.first[0, 1]
        return q + (p - q) * own

    def foreseen(self, memo: Any, row: Any, evidence: Any) -> Any:
        """Pr of what was sent from each cell, float64[n, particles, cells].

        ``memo`` holds what reports taught, from `blind` on; ``row`` says which is the cell's.
        """
        own, blind = own_of(memo, row), np.einsum("npcx,nx->npc", memo, evidence)
        p, q = self.first[0, 0], self.first[0, 1]
        each = q * np.take_along_axis(blind, row, axis=2) + (p - q) * own * evidence[:, None]
        return each / self.suits(own)

    def learned(self, memo: Any, evidence: Any) -> Any:
        """Posterior of one memo each, float64[n, particles, symbols], once it has sent that."""
        posterior = memo * evidence[:, None, :]
        return posterior / posterior.sum(axis=2, keepdims=True)


class BitMemos(NamedTuple):
    """Memos of independent bits: the chance that each is set, float64[..., cells, bits]."""

    prior: Any
    """float64[cells, bits]: one chance for the bit of the cell itself, one for all others."""
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
    def blind(self) -> Any:
        """As if no bit were its cell's own, float64[cells, cells]: one for each, sent or not."""
        return np.full((len(self.prior),) * 2, self.prior[-1, 0])

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
        """Pr[each bit that was sent | it is set], and | it is not, float64[2, n, cells]."""
        cells, size = self.prior.shape
        sent = np.unpackbits(ys, axis=1, count=size, bitorder="little").astype(bool)
        likelihoods = np.ones((2, len(ys), cells))
        likelihoods[:, :, :size] = [np.where(sent, chance, 1 - chance) for chance in self.second]
        return likelihoods

    def by_symbol(self, evidence: Any) -> Any:
        size = self.prior.shape[1]
        one, zero = evidence[:, :, None, :size]
        return np.where(_settings(size), one, zero).prod(axis=2)

    def suits(self, own: Any) -> Any:
        p, q = self.prior[0, 0], self.prior[-1, 0]
        return (1 - p) / (1 - q) * (1 - own) + p / q * own

    def foreseen(self, memo: Any, row: Any, evidence: Any) -> Any:
        own = own_of(memo, row)
        one, zero = evidence[:, :, None, None, :]
        blind = (zero + memo * (one - zero)).prod(axis=3)
        gain = self.suits(self.learned(own, evidence)) / self.suits(own)
        return np.take_along_axis(blind, row, axis=2) * gain

    def learned(self, memo: Any, evidence: Any) -> Any:
        one, zero = evidence[:, :, None, :]
        total = zero + memo * (one - zero)
        return np.divide(memo * one, total, out=memo.copy(), where=total > 0)


Memos = SymbolMemos | BitMemos


def own_of(memo: Any, row: Any) -> Any:
    """The probability of each cell's own bit or symbol in its row of ``memo``."""
    n, particles, cells = row.shape
    return memo[np.arange(n)[:, None, None], np.arange(particles)[:, None], row, np.arange(cells)]


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
