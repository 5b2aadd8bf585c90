"""Exact mean squared errors of a mean of rounds, whoever changes: what two rounds share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loloha.arrays import Array, Floats
from loloha.protocols import Protocol
from loloha.server.variance import Channel, expected_eligible, spread, variance


def windows(tau: int, length: int) -> list[slice]:
    """The full windows of so many rounds that follow each other."""
    return [slice(start, start + length) for start in range(0, tau - length + 1, length)]


def unchanged(values: Array, window: slice) -> Floats:
    """Share of users with the same value in each two rounds of a window, float64[T, T]."""
    columns = np.ascontiguousarray(np.asarray(values)[:, window].T)
    shares = np.eye(len(columns))
    for t, column in enumerate(columns[1:], 1):
        shares[t, :t] = shares[:t, t] = (columns[:t] == column).mean(axis=1)
    return shares


def shared(channel: Channel, collision: float, same: Any, k: int, n: int) -> Any:
    """Covariance of two rounds of n users, mean over k values, by the share of unchanged ones.

    Parameters
    ----------
    channel : Channel
        Of the memo that both rounds tell, or of the more exact of them, of which the other one is
        a noisier copy.
    collision : float
        With which chance another value has the same memo; 0 where each has its own.

    Notes
    -----
    A user who did not change adds the memo's variance. One who moved from v to w shares it where
    they collide: c0 times it for v and for w themselves, and c0 times it less
    c0^2 / (1 - c0) for any other value, whose own collisions with v and w exclude each other where
    these do not collide. Three hashes are taken as independent: exact but for values on a line of
    the linear family, g - 2 of k.
    """
    own, absent, mean = (float(spread(channel, n, n, f)) for f in (1.0, 0.0, 1 / k))
    other = collision * absent - collision**2 / (1 - collision) / n
    moved = 2 / k * collision * own + (1 - 2 / k) * other
    return same * mean + (1 - same) * moved


def of_protocol(protocol: Protocol, n: int, same: Sequence[Floats]) -> float:
    """Mean squared error of the mean of a window in which all n users report in each round.

    ``same`` is `unchanged` of each window. Values are averaged over: a variance is linear in f.
    """
    k, encoding = protocol.k, protocol.encoding
    once = float(variance(protocol, n, 1 / k, eligible=expected_eligible(protocol, n)))
    if not protocol.longitudinal:
        return once / len(same[0])
    memo = Channel.memoised(protocol)
    family = getattr(encoding, "family", None)
    collision = float(family.collision) if family else 0.0
    fresh = once - float(spread(memo, n, n, 1 / k))
    means = [shared(memo, collision, share, k, n).mean() + fresh / len(share) for share in same]
    return float(np.mean(means))


def of_refined(rules: Sequence[Protocol], n: int, same: Floats) -> float:
    """The same of one window in which each round's answer is a noisier copy of the next one's."""
    k, total = rules[0].k, 0.0
    for t, rule in enumerate(rules):
        encoding: Any = rule.encoding
        collision = float(encoding.family.collision)
        row = shared(Channel.formula(rule), collision, same[t, : t + 1], k, n)
        total += 2 * float(row.sum()) - float(row[-1])
    return total / len(rules) ** 2
