"""The AUC of a change where every value has a bit of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.privacy.likelihood import BitTables, binomial, bit_tables, log_own, second_bits
from loloha.privacy.roc import AUC, SEED, best_auc
from loloha.protocols import Protocol

if TYPE_CHECKING:
    from loloha.arrays import Array, Floats

_FEWEST, _MOST = 1 << 11, 1 << 15
# Bits that are drawn of all cases of a kind, and pairs of counts that are distinguished instead.
_NUMBERS, _PAIRS_AT_MOST = 1 << 19, 1 << 8
# Values that are looked at of a larger domain.
_VALUES = 1 << 7


def auc(protocol: Protocol, reports: int) -> AUC:
    """Of the best test of so many reports before and after a change."""
    cases = _Cases(protocol, reports)
    few = (reports + 1) ** 2 <= _PAIRS_AT_MOST
    if few and (reports + 1) ** 2 < protocol.k:
        ratios = [cases.by_pair(moved) for moved in (False, True)]
    else:
        ratios = [cases.by_bit(moved) for moved in (False, True)]
    # Each case stands for both kinds, as likely as it is under either.
    with np.errstate(over="ignore"):
        stayed = 1 / (1 + np.exp(np.stack(ratios, axis=1)))
    return best_auc(stayed, 1 - stayed, drawn=True)


class _Cases:
    """Of users whose values stayed, or moved: ln of the likelihood ratios of what they sent."""

    def __init__(self, protocol: Protocol, reports: int) -> None:
        self.rng = np.random.default_rng(SEED)
        self.k, self.reports = protocol.k, reports
        first: Any = protocol.first_channel
        own, other = (first.p, first.q) if protocol.longitudinal else (1, 0)
        self.memo = float(own), float(other)
        self.second = second_bits(protocol)
        self.tables: BitTables = bit_tables(protocol, reports)

    def by_bit(self, moved: bool) -> Any:
        """Bit by bit; of many, those of the user's value and some others that the server knows."""
        shown = min(self.k, _VALUES)
        cases = int(np.clip(_NUMBERS // shown, _FEWEST, _MOST))
        before = self._drawn(cases, shown, 0, None)
        after = self._drawn(cases, shown, int(moved), None if moved else before)
        counts = [part[1] for part in (before, after)]
        places = counts[0] * (self.reports + 1) + counts[1]
        scores = log_own(
            self.tables.stayed.ravel()[places],
            self.tables.moved[counts[0]],
            self.tables.moved[counts[1]],
        )
        if self.memo[1]:
            scores += self.tables.common.ravel()[places].sum(axis=-1)
            scores += self._rest(cases, self.k - shown, moved)
        return scores

    def _drawn(self, cases: int, shown: int, value: int, given: Any) -> tuple[Any, Any]:
        """Memos, drawn unless they are given, and how often each bit was sent as 1."""
        if given is None:
            chances = np.full(shown, self.memo[1])
            chances[value] = self.memo[0]
            memo = self.rng.random((cases, shown)) < chances
        else:
            memo = given[0]
        sent = np.empty(memo.shape, dtype=np.int64)
        for bits, p in zip((memo, ~memo), self.second, strict=True):
            sent[bits] = self.rng.binomial(self.reports, p, size=int(bits.sum()))
        return memo, sent

    def _rest(self, cases: int, bits: int, moved: bool) -> Any:
        """Of bits of no value that the server knows."""
        if not bits:
            return 0.0
        # Between which of these scores each bit's lies: as if it were one of the two, which of them
        # being as likely as keeps both distributions. That shows more, if anything.
        stayed, apart = (pmf.ravel() for pmf in self._other())
        scores = self.tables.common.ravel()
        order = np.argsort(scores)
        steps = np.cumsum((stayed + apart)[order]) / 2
        edges = order[
            np.searchsorted(steps, np.linspace(0, 1, _PAIRS_AT_MOST)).clip(max=len(order) - 1)
        ]
        grid = np.unique(scores[np.append(edges, [order[0], order[-1]])])
        low = np.maximum(np.searchsorted(grid, scores) - 1, 0)
        high = np.minimum(low + 1, len(grid) - 1)
        whole = np.expm1(grid[low] - grid[high])
        share = np.divide(np.expm1(grid[low] - scores), whole, where=whole < 0, out=scores * 0)
        if moved:
            weights = apart
        else:
            weights, share = stayed, share * np.exp(scores - grid[high])
        pmf = np.bincount(low, weights=weights * (1 - share), minlength=len(grid))
        pmf += np.bincount(high, weights=weights * share, minlength=len(grid))
        drawn = self.rng.multinomial(bits, pmf / pmf.sum(), size=cases)
        return drawn @ grid

    def by_pair(self, moved: bool) -> Any:
        """By how many bits were sent how often before and after."""
        pairs = (self.reports + 1) ** 2
        cases = int(np.clip(2 * _NUMBERS // pairs, _FEWEST, _MOST))
        other = self._other()[int(moved)].ravel()
        counts = self.rng.multinomial(self.k - 1 - moved, other / other.sum(), size=cases)
        own, none = (self._alone(p) for p in self.memo)
        owned = (
            [np.outer(own, none), np.outer(none, own)] if moved else [self._together(self.memo[0])]
        )
        for pmf in owned:
            place = self.rng.choice(pairs, size=cases, p=pmf.ravel() / pmf.sum())
            counts[np.arange(cases), place] += 1
        before, after = np.divmod(np.arange(pairs), self.reports + 1)
        shape = counts.shape
        scores = log_own(
            np.broadcast_to(self.tables.stayed.ravel(), shape),
            np.broadcast_to(self.tables.moved[before], shape),
            np.broadcast_to(self.tables.moved[after], shape),
            counts,
        )
        return scores + counts @ self.tables.common.ravel()

    def _alone(self, p: float) -> Floats:
        """Distribution of how often a bit is sent as 1, if its memo is set with this chance."""
        one, zero = (binomial(self.reports, sent, 1 - sent) for sent in self.second)
        pmf: Floats = p * one + (1 - p) * zero
        return pmf

    def _together(self, p: float) -> Array:
        one, zero = (binomial(self.reports, sent, 1 - sent) for sent in self.second)
        pmf: Array = p * np.outer(one, one) + (1 - p) * np.outer(zero, zero)
        return pmf

    def _other(self) -> tuple[Any, Any]:
        """Distribution of a bit of neither value: if the value stayed, and if it moved."""
        none = self._alone(self.memo[1])
        return self._together(self.memo[1]), np.outer(none, none)
