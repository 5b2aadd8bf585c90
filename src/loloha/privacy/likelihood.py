"""Likelihoods of reports with and without a change of value: scores for the best test.

By Neyman and Pearson no test beats the likelihood ratio. Where all that matters is how often each
symbol was sent, n before and m after, and a report is r times likelier from its own symbol than
from another, the ratio falls with

    sum r^(n + m) / (sum r^n  sum r^m).                                      MATH section 12
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha.protocols import Protocol

if TYPE_CHECKING:
    from loloha.arrays import Array, Floats

# Numbers of cases that are worked on at once: they, and what is made of them, stay in the cache.
AT_ONCE = 1 << 15


def scores_of_counts(before: Array, after: Array, log_ratio: float) -> Floats:
    """Scores that rise with the likelihood of a change, from how often each symbol was sent."""
    joint = _log_sum(log_ratio * (before + after))
    scores: Floats = _log_sum(log_ratio * before) + _log_sum(log_ratio * after) - joint
    return scores


def scores_of_bits(protocol: Protocol, before: Array, after: Array, reports: int) -> Floats:
    """ln of the likelihood ratio of a change, from how often each bit was sent as 1."""
    tables = bit_tables(protocol, reports)
    places = before * (reports + 1) + after
    common = tables.common.ravel()[places].sum(axis=-1)
    scores: Floats = common + log_own(
        tables.stayed.ravel()[places], tables.moved[before], tables.moved[after]
    )
    return scores


def log_own(stayed: Array, moved_from: Array, moved_to: Array, times: Any = 1) -> Any:
    """What the bits of the values themselves add to the score of a change."""
    # The value is unknown: average over where it stood, and over where it went. Numbers of
    # `BitTables`, of each bit or of ``times`` bits along the last axis.
    # One stretch may stand against many: then it is the same in every piece.
    stayed, moved_from, moved_to = np.broadcast_arrays(stayed, moved_from, moved_to)
    step = max(1, AT_ONCE // max(1, stayed.shape[-1]))
    if stayed.ndim != 2 or len(stayed) <= step:
        return _log_own(stayed, moved_from, moved_to, times)
    times = np.broadcast_to(times, stayed.shape) if np.ndim(times) == 2 else times
    rows = [slice(first, first + step) for first in range(0, len(stayed), step)]
    each = [times[part] if np.ndim(times) == 2 else times for part in rows]
    return np.concatenate(
        [
            _log_own(stayed[part], moved_from[part], moved_to[part], some)
            for part, some in zip(rows, each, strict=True)
        ]
    )


def _log_own(stayed: Array, moved_from: Array, moved_to: Array, times: Any) -> Any:
    """`log_own` of some cases."""
    k = np.broadcast_to(times, stayed.shape).sum(axis=-1)
    tops = [np.where(np.asarray(times) > 0, part, -np.inf).max(axis=-1, keepdims=True)
            for part in (moved_from, moved_to)]  # fmt: skip
    scaled = [np.exp(part - top) for part, top in zip((moved_from, moved_to), tops, strict=True)]
    # No difference of sums: where one value outweighs all others, it would be left to rounding.
    apart = _apart(times * scaled[0], times * scaled[1])
    apart += (times * (times - 1) * scaled[0] * scaled[1]).sum(axis=-1)
    most = np.where(np.asarray(times) > 0, stayed, -np.inf).max(axis=-1, keepdims=True)
    unchanged = (times * np.exp(np.minimum(stayed - most, 0))).sum(axis=-1)
    with np.errstate(divide="ignore"):
        gone = np.log(np.maximum(apart, 0.0)) + tops[0][..., 0] + tops[1][..., 0]
    return gone - np.log(unchanged) - most[..., 0] - np.log(k - 1)


def _apart(first: Array, other: Array) -> Floats:
    """Sum of one[v] other[w] over all v != w along the last axis, of numbers >= 0."""
    rest = np.zeros_like(other)
    rest[..., 1:] += np.cumsum(other[..., :-1], axis=-1)
    rest[..., :-1] += np.cumsum(other[..., :0:-1], axis=-1)[..., ::-1]
    total: Floats = (first * rest).sum(axis=-1)
    return total


def second_bits(protocol: Protocol) -> tuple[float, float]:
    """Pr[a bit is sent as 1] from a memo bit that is set, and from one that is not."""
    second: Any = protocol.second_channel if protocol.longitudinal else protocol.first_channel
    return float(second.p), float(second.q)


class BitTables(NamedTuple):
    """Of one bit, by how often it was sent as 1 before and after: 0..reports each."""

    common: Any
    stayed: Any
    moved: Any


def bit_tables(protocol: Protocol, reports: int) -> BitTables:
    """Of a protocol of one bit a value; without a memo, a bit's memo is the bit."""
    first: Any = protocol.first_channel
    times = np.arange(reports + 1)
    shown = [np.log([p, 1 - p]) @ np.stack([times, reports - times]) for p in second_bits(protocol)]
    pmfs = {}
    chances = (first.p, first.q) if protocol.longitudinal else (1, 0)
    for name, p in zip(("own", "other"), chances, strict=True):
        one, zero = (math.log(part) if part else -math.inf for part in (float(p), 1 - float(p)))
        alone = np.logaddexp(one + shown[0], zero + shown[1])
        both = np.logaddexp(
            one + np.add.outer(shown[0], shown[0]), zero + np.add.outer(shown[1], shown[1])
        )
        pmfs[name] = alone, both
    alone, both = pmfs["other"]
    return BitTables(
        np.add.outer(alone, alone) - both, pmfs["own"][1] - both, pmfs["own"][0] - alone
    )


def binomial(n: int, p: float, q: float) -> Floats:
    """C(n, m) p^m q^(n - m), without overflow."""
    m = np.arange(n + 1)
    ways = np.append(0.0, np.cumsum(np.log((n - m[:-1]) / m[1:])))
    pmf: Floats = np.exp(ways + m * math.log(p) + (n - m) * math.log(q))
    return pmf


def _log_sum(logs: Array) -> Any:
    """ln(sum of e^logs) along the last axis."""
    most = logs.max(axis=-1, keepdims=True)
    return most[..., 0] + np.log(np.exp(logs - most).sum(axis=-1))
