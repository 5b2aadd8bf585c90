"""How likely what was sent is under a change of value, against none: scores for the best test.

By Neyman and Pearson no test beats the likelihood ratio. Where all that matters is how often each
symbol was sent, n before and m after, and a report is r times likelier from its own symbol than
from another, the ratio falls with

    sum r^(n + m) / (sum r^n  sum r^m).                                      MATH section 12
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.rules.protocols import Protocol

if TYPE_CHECKING:
    from loloha.rules.counting.arrays import Array, Floats, Ints


def scores_of_counts(before: Array, after: Array, log_ratio: float, rest: int = 0) -> Floats:
    """Scores that rise with the likelihood of a change, from how often each symbol was sent.

    Parameters
    ----------
    before, after : int[..., symbols]
        Reports of each symbol, or that support each value.
    log_ratio : float
        ln r: how much likelier a report is from its own symbol.
    rest : int
        Symbols beside these that were never sent.
    """
    joint = _log_sum(log_ratio * (before + after), rest)
    scores: Floats = _log_sum(log_ratio * before, rest) + _log_sum(log_ratio * after, rest) - joint
    return scores


def scores_of_bits(protocol: Protocol, before: Array, after: Array, reports: int) -> Floats:
    """ln of the likelihood ratio of a change, from how often each bit was sent as 1.

    Parameters
    ----------
    protocol : Protocol
        Two rounds of bits, one bit a value.
    before, after : int[..., k]
        0..reports.
    reports : int
        In each stretch.
    """
    common, own, own_before, own_after = bit_tables(protocol, reports)
    k = before.shape[-1]
    places = before * (reports + 1) + after
    moved_from, moved_to = own_before[before], own_after[after]
    # The value itself is unknown: average over where it stood, and over where it went.
    stayed = own[places].mean(axis=-1)
    every = moved_from.sum(axis=-1) * moved_to.sum(axis=-1)
    moved = np.asarray(every - (moved_from * moved_to).sum(axis=-1))
    # Where one value outweighs all others, the difference would be left to rounding.
    lost = moved < 1e-6 * every
    if lost.any():
        one, other = np.broadcast_arrays(moved_from, moved_to)
        moved[lost] = _apart(one[lost], other[lost])
    scores: Floats = common[places].sum(axis=-1) + np.log(moved / (k * (k - 1))) - np.log(stayed)
    return scores


def _apart(one: Array, other: Array) -> Floats:
    """Sum of one[v] other[w] over all v != w along the last axis, of numbers >= 0."""
    rest = np.zeros_like(other)
    rest[..., 1:] += np.cumsum(other[..., :-1], axis=-1)
    rest[..., :-1] += np.cumsum(other[..., :0:-1], axis=-1)[..., ::-1]
    total: Floats = (one * rest).sum(axis=-1)
    return total


def second_bits(protocol: Protocol) -> tuple[float, float]:
    """Pr[a bit is sent as 1] from a memo bit that is set, and from one that is not."""
    second: Any = protocol.second_channel
    return float(second.p), float(second.q)


def bit_tables(protocol: Protocol, reports: int) -> tuple[Any, Any, Any, Any]:
    """By numbers of ones before and after: the score of a bit, and what its own value changes."""
    times = np.arange(reports + 1)
    shown = [np.log([p, 1 - p]) @ np.stack([times, reports - times]) for p in second_bits(protocol)]
    laws = {}
    for name, p in (("own", protocol.first_channel.p), ("other", protocol.first_channel.q)):
        one, zero = math.log(p), math.log1p(-float(p))
        alone = np.logaddexp(one + shown[0], zero + shown[1])
        both = np.logaddexp(
            one + np.add.outer(shown[0], shown[0]), zero + np.add.outer(shown[1], shown[1])
        )
        laws[name] = alone, both
    alone, both = laws["other"]
    moved = np.exp(laws["own"][0] - alone)
    stayed = np.exp(laws["own"][1] - both)
    common = np.add.outer(alone, alone) - both
    return common.ravel(), stayed.ravel(), moved, moved


def binomial(n: int, p: float, q: float, times: Ints | None = None) -> Floats:
    """C(n, m) p^m q^(n - m), without overflow.

    Parameters
    ----------
    times : int[], optional
        Each m, in a row without gaps; by default 0..n. Beyond 0..n there is nothing.
    """
    times = np.arange(n + 1) if times is None else times
    law = np.zeros(len(times))
    known = (times >= 0) & (times <= n)
    m = times[known]
    if len(m):
        first = int(m[0])
        start = math.lgamma(n + 1) - math.lgamma(first + 1) - math.lgamma(n - first + 1)
        ways = np.append(0.0, np.cumsum(np.log((n - m[:-1]) / m[1:])))
        law[known] = np.exp(start + ways + m * math.log(p) + (n - m) * math.log(q))
    return law


def _log_sum(logs: Array, rest: int) -> Any:
    """ln(sum of e^logs + rest) along the last axis."""
    most = logs.max(axis=-1, keepdims=True)
    return most[..., 0] + np.log(np.exp(logs - most).sum(axis=-1) + rest * np.exp(-most[..., 0]))
