"""The AUC of a change where memoised bits are sent unchanged: one repetition shows all.

Another answer proves a change, and an answer that is repeated tells of the value. Buckets hold so
many values, or one more; how many of either kind are sampled, and how many of these are 1, is all
that matters.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha.privacy.roc import AUC, best_auc
from loloha.protocols import Protocol

if TYPE_CHECKING:
    from loloha.arrays import Floats, Ints

# Answers that are distinguished; of more the memo is taken to be known.
_ANSWERS_AT_MOST = 1 << 19
# Standard deviations beyond which nothing is sampled.
DEVIATIONS = 12
# Stands for a chance of 0 where it is divided by.
_LEAST = 1e-120


class Buckets(NamedTuple):
    """Small and large buckets of a protocol of bits: values in one, and how many there are."""

    values: tuple[int, int]
    number: tuple[int, int]

    @classmethod
    def of(cls, protocol: Protocol) -> Buckets:
        """One bit a value: buckets of one."""
        b = protocol.bins
        return cls((protocol.k // b, protocol.k // b + 1), (b - protocol.k % b, protocol.k % b))


def likelihoods(
    protocol: Protocol, sampled: Any, ones: Any, ways: Any = 0.0, *, users: bool = False
) -> tuple[Any, Any]:
    """Chances that an answer is sent twice: if the value stayed, and if it moved."""
    k = protocol.k
    p, q = (
        max(float(chance), _LEAST)
        for chance in (protocol.first_channel.p, protocol.first_channel.q)
    )
    kinds = list(zip(Buckets.of(protocol).values, sampled, ones, strict=True))
    rest = k - sum(values * buckets for values, buckets, _ in kinds)
    set_bits, size = sum(ones), sum(sampled)
    blank = set_bits * math.log(q) + (size - set_bits) * math.log1p(-q)
    # Sums over values of how much likelier the answer is of theirs than of a value that is not
    # sampled: once, squared, and by cell: of pairs in one, and the square of all of it.
    once, square, pairs, cells = rest, rest, rest * (rest - 1.0), rest * float(1) * rest
    for values, buckets, own in kinds:
        for number, gain in ((own, p / q), (buckets - own, (1 - p) / (1 - q))):
            once = once + number * values * gain
            square = square + number * values * gain**2
            pairs = pairs + number * values * (values - 1) * gain
            cells = cells + number * (values * gain) ** 2
    alone, again = np.exp(ways + blank), np.exp(blank)
    if users:
        moved = again * (once**2 - square)
    else:
        moved = pairs + again * np.maximum(once**2 - cells, 0.0)
    return alone * once / k, alone * np.maximum(moved, 0.0) / (k * (k - 1.0))


def auc(protocol: Protocol, *, users: bool = False) -> AUC:
    """Of the best test of a report before and one after, key included; ``users``: of one or two."""
    # Two users hold different values, and sampled the same buckets.
    buckets = Buckets.of(protocol)
    large, weight = _sampled(protocol, buckets)
    size: int = protocol.encoding.size  # type: ignore[attr-defined]
    if float(((large + 1.0) * (size - large + 1.0)).sum()) > _ANSWERS_AT_MOST:
        return AUC(1.0, 0.0, bound=True) if users else _memo_known(protocol, large, weight)
    pmfs = []
    for m, chance in zip(large.tolist(), weight.tolist(), strict=True):
        ones = np.arange(size - m + 1)[:, None], np.arange(m + 1)[None]
        ways = _log_ways(size - m)[:, None] + _log_ways(m)[None] + math.log(chance)
        pmfs.append(likelihoods(protocol, (size - m, m), ones, ways, users=users))
    stayed, moved = (
        np.concatenate([pmf.ravel() for pmf in kind]) for kind in zip(*pmfs, strict=True)
    )
    return _proven(stayed, moved)


def _proven(stayed: Floats, moved: Floats) -> AUC:
    """What is not repeated is a move."""
    rest = max(0.0, 1 - float(moved.sum()))
    return best_auc(np.append(stayed, 0.0)[None], np.append(moved, rest)[None])


def _memo_known(protocol: Protocol, large: Ints, weight: Floats) -> AUC:
    """At most: as if the server saw the memo itself."""
    k, buckets = protocol.k, Buckets.of(protocol)
    size: int = protocol.encoding.size  # type: ignore[attr-defined]
    sampled = size - large, large
    rest = k - sum(n * m for n, m in zip(buckets.values, sampled, strict=True))
    kinds = [*zip(buckets.values, sampled, strict=True), (rest, np.ones(len(large)))]
    stayed = np.concatenate([weight * n * m / k for n, m in kinds])
    moved = np.concatenate([weight * n * (n - 1.0) * m / (k * (k - 1.0)) for n, m in kinds])
    return _proven(stayed, moved)._replace(bound=True)


def _sampled(protocol: Protocol, buckets: Buckets) -> tuple[Ints, Floats]:
    """How many large buckets are sampled, and how likely each number is."""
    size: int = protocol.encoding.size  # type: ignore[attr-defined]
    small, large = buckets.number
    mean = size * large / (small + large)
    width = DEVIATIONS * math.sqrt(mean * small / (small + large) + 1)
    least = max(0, size - small, math.floor(mean - width))
    numbers = np.arange(least, min(size, large, math.ceil(mean + width)) + 1)
    below = numbers[:-1].astype(float)
    steps = (large - below) * (size - below) / ((below + 1) * (small - size + below + 1))
    logs = np.append(0.0, np.cumsum(np.log(steps)))
    pmf = np.exp(logs - logs.max())
    return numbers, pmf / pmf.sum()


def _log_ways(n: int) -> Any:
    """ln C(n, m) for m = 0..n."""
    m = np.arange(n)
    return np.append(0.0, np.cumsum(np.log((n - m) / (m + 1))))
