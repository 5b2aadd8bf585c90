"""The loss of a whole history of values: a bound that holds however values change.

Two histories are compared by all that one user sends over all rounds, key included, in both
directions. Source: MATH section 11.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha import checks
from loloha.encodings import Encoding, Hashed, OneHot, SampledBuckets, Symbols, for_encoding
from loloha.encodings.part import ONE_ROUND
from loloha.errors import DomainError, ParameterError
from loloha.privacy.enumeration import exact_loss
from loloha.privacy.labelling import Pairs, assign, labellings
from loloha.privacy.loss import counts, growth
from loloha.privacy.rounded import product
from loloha.protocols import Protocol
from loloha.protocols.base import speakable
from loloha.protocols.realised import as_asked
from loloha.report import MOST_REPORTS

if TYPE_CHECKING:
    from loloha.arrays import Ints
    from loloha.report import Key

MOST_MOVED = 128
"""Cells that the bound lets stand for others, those that differ most: all would take minutes."""

# Rounds of the histories among which a bad pair is looked for.
_ROUNDS_AT_MOST = 1 << 12


class WorstLoss(NamedTuple):
    """Between which numbers the worst loss of all pairs of histories lies.

    Attributes
    ----------
    lower : float
        Attained by a pair of histories that was looked at.
    upper : float
        A bound for all pairs; ``inf`` where there is none.
    """

    lower: float
    upper: float


class HistoryLoss(NamedTuple):
    """How far apart the reports of two histories can be.

    Attributes
    ----------
    bound : float
        At least the exact loss, in nats; ``inf`` where nothing bounds it.
    exact : float or None
        The largest log-ratio over all that could be sent; None where enumeration is too much.
    """

    bound: float
    exact: float | None


def eps_2(protocol: Protocol) -> float:
    """Loss of any one round, all other rounds known: event-level privacy, for ever.

    Parameters
    ----------
    protocol : Protocol

    Returns
    -------
    float
        In nats, from the thresholds that devices draw with; ``inf`` where the memoised answer is
        sent as it is, and where the encoding is not one of this package. One-round protocols: eps.

    Notes
    -----
    The other rounds may reveal two memos entirely, so it is the loss of the second round between
    any two of them: ln(p2/q2) for symbols; for bits all k may differ. Source: MATH section 11.
    """
    if not speakable(protocol).longitudinal:
        return as_asked(protocol.realised.eps_first, protocol.asked_first)
    second = protocol.second_channel
    if second is None or not second.q:
        return math.inf
    loss = ONE_ROUND.of(protocol.encoding)
    return math.inf if loss is None else float(loss(protocol.encoding, second))


@for_encoding(ONE_ROUND.name, Symbols, Hashed)
def _one_symbol(encoding: Encoding, second: Any) -> float:
    return _log(second.p, second.q)


@for_encoding(ONE_ROUND.name, OneHot, SampledBuckets)
def _all_bits(encoding: Encoding, second: Any) -> float:
    each = max(_log(second.p, second.q), _log(1 - second.q, 1 - second.p))
    return encoding.memo_symbols * each


def window_loss(protocol: Protocol, rounds: int) -> float:
    """Loss of any so many rounds, all other rounds known: w-event privacy, for ever.

    Parameters
    ----------
    protocol : Protocol
    rounds : int
        Rounds in which two histories differ, in a row or not, 0..2^53 - 1.

    Raises
    ------
    ParameterError
        If rounds is not an integer in that range.
    """
    rounds = checks.integer("rounds", rounds, 0, MOST_REPORTS, "count the rounds that differ")
    if not rounds:
        return 0.0
    once = eps_2(protocol)
    # Of a one-round rule it was asked for, and so prints as it was.
    return rounds * once if protocol.longitudinal else product(rounds, once)


def loss_between(protocol: Protocol, history: Any, other: Any, *, key: Key = None) -> HistoryLoss:
    """How surely all of one user's reports tell two histories of values apart.

    Parameters
    ----------
    protocol : Protocol
    history, other : int[tau]
        Value of each round, 0..k-1; of one length, at least 1.
    key : int or tuple of int, optional
        The user's key; by default the worst of all keys.

    Returns
    -------
    HistoryLoss

    Raises
    ------
    ParameterError
        If the histories are not rows of integers of one length >= 1, the key is not in the
        protocol's family, or its encoding is unknown here.
    DomainError
        If a value is outside the domain; it is not shown.

    Notes
    -----
    With c, c' the memo cells visited, M[x, y] = #{t: c_t = x, c'_t = y} and N_y the column sums,

        bound = min over permutations pi of the cells of
                sum over x of (N_pi(x) - M[x, pi(x)]) eps_2 + [pi(x) != x] eps_(N_pi(x)),

    where one table answers all cells, with B_m for the m cells visited in place of the last sum,

    or the same with c and c' exchanged: a linear assignment. Values of one cell cost nothing.
    Where there are too many keys to look through, the bound is eps_2 for each round that differs;
    where more than 128 cells differ, only those that differ most may be permuted.
    """
    pairs = Pairs.of(*_histories(speakable(protocol), history, other))
    once = eps_2(protocol)
    rounds = window_loss(protocol, pairs.differing)
    if not protocol.longitudinal:
        if key is not None:
            raise ParameterError(
                "key must be left out where every report draws its own, got one; leave it out"
            )
        return HistoryLoss(rounds, rounds)
    labelled = labellings(protocol.encoding, pairs, key)
    if labelled is None:
        return HistoryLoss(rounds, None)
    labels, real = labelled
    bound, exact = -1.0, -1.0 if real else None
    for merged in pairs.merged(labels):
        # Each round that differs costs eps_2 at most: no other key can exceed this.
        if merged.differing * once <= (bound if exact is None else exact):
            break
        there, back = _bound(protocol, merged, once), _bound(protocol, merged.swapped, once)
        bound = max(bound, min(there, back))
        if exact is not None and min(there, back) > exact:
            loss = exact_loss(protocol, merged)
            exact = None if loss is None else max(exact, loss)
    return HistoryLoss(bound, exact)


def worst_loss(protocol: Protocol, rounds: int, changes: int) -> WorstLoss:
    """Loss of the worst two histories of so many rounds that change at most so often.

    Parameters
    ----------
    protocol : Protocol
    rounds : int
        1..2^53 - 1.
    changes : int
        Most rounds, of either history, that have another value than the round before; >= 0.

    Returns
    -------
    WorstLoss
        The two numbers are equal where nothing changes, or nothing is memoised.

    Raises
    ------
    ParameterError
        If rounds or changes are not integers in their range.

    Notes
    -----
    With m = min(cells, changes + 1) cells visited at most, of the m cyclic ways to let those of one
    history stand for those of the other one leaves at most rounds (m-1)/m rounds that differ: that
    times eps_2, and m times eps_t for the names. The whole length times eps_2 bounds it as well.
    """
    rounds = checks.integer("rounds", rounds, 1, MOST_REPORTS, "count the rounds")
    changes = checks.integer("changes", changes, 0, MOST_REPORTS, "count the changes")
    whole = window_loss(protocol, rounds)
    if not protocol.longitudinal:
        return WorstLoss(whole, whole)
    constant = float(growth(protocol, rounds, realised=True))
    if not changes or rounds == 1:
        return WorstLoss(constant, constant)
    m = min(protocol.encoding.memo_cells, changes + 1)
    named = protocol.spent(m) if protocol.joint else m * constant
    upper = min(whole, window_loss(protocol, rounds * (m - 1) // m) + named)
    return WorstLoss(max(constant, _attained(protocol, rounds, min(changes, rounds - 1))), upper)


def _attained(protocol: Protocol, rounds: int, changes: int) -> float:
    """The largest loss over 1, 2, 4, ... changes, or one in each round, as far as allowed."""
    # These numbers are the same for every limit, so that a higher one never finds less.
    rounds = min(rounds, _ROUNDS_AT_MOST)
    tried = [*(1 << i for i in range((rounds - 1).bit_length())), rounds - 1]
    return max(_away(protocol, rounds, number) for number in {*tried} if number <= changes)


def _away(protocol: Protocol, rounds: int, changes: int) -> float:
    """The most that staying, or moving half a stretch later, is away from moving to and fro."""
    # Where enumeration is too much, of the first rounds: the rest can only add to it.
    worst = 0.0
    while rounds > 1 and not worst:
        stretch = -(-rounds // (changes + 1))
        moving = np.arange(rounds) // stretch % 2
        late = max(1, stretch // 2)
        delayed = np.concatenate([np.zeros(late, dtype=np.int64), moving[:-late]])
        for other in (np.zeros_like(moving), delayed):
            worst = max(worst, exact_loss(protocol, Pairs.of(moving, other)) or 0.0)
        rounds, changes = rounds // 2, min(changes, rounds // 2 - 1)
    return worst


def _histories(protocol: Protocol, history: Any, other: Any) -> tuple[Ints, Ints]:
    try:
        row = counts("history", history, -MOST_REPORTS, MOST_REPORTS)
        two = counts("other", other, -MOST_REPORTS, MOST_REPORTS)
    except ParameterError:
        raise ParameterError(
            f"history and other must be rows of integers in 0..{protocol.k - 1}, got others (not "
            "shown: they are private); give the index of each value"
        ) from None
    if row.ndim != 1 or row.shape != two.shape or not row.size:
        raise ParameterError(
            "history and other must be rows of one length >= 1, got shapes "
            f"{row.shape} and {two.shape}; give a value for each round of both"
        )
    if min(row.min(), two.min()) < 0 or max(row.max(), two.max()) >= protocol.k:
        raise DomainError(
            f"history and other must hold values in 0..{protocol.k - 1}, got others (not shown: "
            "they are private); check the domain"
        )
    return row, two


def _bound(protocol: Protocol, pairs: Pairs, once: float) -> float:
    """The assignment's least sum, over permutations of the cells that either history visits."""
    # A cell that neither visits costs nothing and saves nothing: it may stay where it is.
    if math.isinf(once):
        # One round in which the permuted cells differ costs all: only one pattern has none.
        moved = pairs.times[pairs.one != pairs.two]
        return float(_eps(protocol, moved).sum()) if pairs.alike else math.inf
    if protocol.joint:
        return _bound_of_tables(protocol, pairs, once)
    differ = pairs.one != pairs.two
    if not differ.any():
        return 0.0
    apart = np.bincount(
        np.concatenate([pairs.one[differ], pairs.two[differ]]),
        weights=np.tile(pairs.times[differ], 2),
    )
    # A cell in which both always agree stays: nothing is gained by moving it.
    moving = np.sort(np.argsort(-apart, kind="stable")[: min(MOST_MOVED, np.count_nonzero(apart))])
    inside = np.isin(pairs.one, moving) & np.isin(pairs.two, moving)
    alike = np.zeros((len(moving), len(moving)))
    places = (np.searchsorted(moving, part[inside]) for part in (pairs.one, pairs.two))
    alike[tuple(places)] = pairs.times[inside]
    visits = np.bincount(pairs.two, weights=pairs.times, minlength=len(apart))[moving]
    # What a cell costs that stands for another one, less what it saves.
    cost = visits * once + _eps(protocol, visits) - alike * once
    np.fill_diagonal(cost, (visits - alike.diagonal()) * once)
    stay = (pairs.differing - (visits - alike.diagonal()).sum()) * once
    return float(stay + cost[np.arange(len(moving)), assign(cost)].sum())


def _bound_of_tables(protocol: Protocol, pairs: Pairs, once: float) -> float:
    """The same where all cells share one table: other names cost B_m together (MATH section 15)."""
    cells = pairs.values
    alike = np.zeros((len(cells), len(cells)))
    alike[np.searchsorted(cells, pairs.one), np.searchsorted(cells, pairs.two)] = pairs.times
    visits = alike.sum(axis=0)
    cost = visits - alike
    differing = cost[np.arange(len(cells)), assign(cost)].sum()
    named = protocol.spent(int(np.count_nonzero(visits)))
    return float(min(pairs.differing * once, differing * once + named))


def _eps(protocol: Protocol, times: Any) -> Any:
    """eps_N of section 8, with eps_0 = 0."""
    visited = np.maximum(times, 1).astype(np.int64)
    return np.where(times > 0, growth(protocol, visited, realised=True), 0.0)


def _log(p: Fraction, q: Fraction) -> float:
    """ln(p/q) of exact p >= q > 0, accurate near 0."""
    return math.log1p(p / q - 1) if p < 2 * q else math.log(p / q)
