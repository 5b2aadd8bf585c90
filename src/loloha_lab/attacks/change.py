"""Did the value change? The likelihood-ratio test on what users of a population sent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Array
from loloha.privacy.change.buckets import Buckets, likelihoods
from loloha.privacy.change.known_key import CellChannels
from loloha.privacy.change.symbols import log_ratios
from loloha.privacy.likelihood import scores_of_bits, scores_of_counts
from loloha.privacy.roc import Roc
from loloha.protocols import Protocol
from loloha_lab.attacks.stretch import Stretch, moving_values, observe

LONGEST_STRETCH = 1000

# (user, value) pairs that are hashed.
_HASHES_AT_MOST = 1 << 22


def change(protocol: Protocol, reports: int, *, n: int = 2000, rng: int) -> Roc:
    """Attack n users whose value stayed and n whose value moved, both uniformly drawn.

    Parameters
    ----------
    protocol : Protocol
    reports : int
        Before the moment and after it, 1..1000.
    n : int
        Users of each kind, at least 2.
    rng : int
        Seed.

    Returns
    -------
    Roc
        Curve, AUC and their errors. `loloha.privacy.change_auc` gives the AUC without a
        population.

    Raises
    ------
    ParameterError
        If a number is out of range, or the protocol's encoding is unknown here.
    """
    reports = checks.integer("reports", reports, 1, LONGEST_STRETCH, "count those of one stretch")
    n = checks.integer("n", n, 2, 1 << 24, "attack some users of each kind")
    values = moving_values(protocol.k, n, reports, reports, np.random.default_rng(rng))
    before, after = observe(protocol, values, [reports, reports], rng)
    scores = score_changes(protocol, before, after)
    return Roc(scores[:n], scores[n:])


def score_changes(protocol: Protocol, before: Stretch, after: Stretch) -> Any:
    """Of each user, a score that rises with the likelihood of a change, float64[n].

    The stretches are of as many reports, and broadcast against each other.
    """
    first: Any = protocol.first_channel
    second: Any = protocol.second_channel
    if protocol.longitudinal and protocol.encoding.keyed and protocol.g:
        sizes = _cell_sizes(protocol, before)
        return log_ratios(CellChannels.of(protocol), protocol.k, sizes, before.counts, after.counts)
    if protocol.longitudinal and (second is None or not second.q):
        return _score_repeats(protocol, before, after.counts)
    if protocol.longitudinal and protocol.g is None:
        return scores_of_bits(protocol, before.counts, after.counts, before.reports)
    channel = second if protocol.longitudinal else first
    ratio = protocol.encoding.likelihood_ratio(channel.p, channel.q)
    return scores_of_counts(before.counts, after.counts, math.log(ratio))


def _cell_sizes(protocol: Protocol, seen: Stretch) -> Any:
    """Values in each cell under each key; as if cells were equal, of very many or without keys."""
    keys, n, k, g = seen.keys, len(seen.counts), protocol.k, protocol.encoding.memo_symbols
    if keys is None or n * k > _HASHES_AT_MOST:
        return np.full((n, g), k / g)
    cells = protocol.encoding.memo_indices(keys, np.arange(k), n)
    places = cells + g * np.arange(n)[:, None]
    return np.bincount(places.ravel(), minlength=n * g).reshape(n, g)


def _score_repeats(protocol: Protocol, before: Stretch, after: Array) -> Any:
    """Where the memo is sent as it is: another answer is proof, an old one is not."""
    same = (before.counts == after).all(axis=-1)
    if protocol.g is not None:
        return np.where(same, 0.0, np.inf)
    keys = np.arange(protocol.bins)[None] if before.keys is None else np.asarray(before.keys)
    buckets = np.bincount(np.arange(protocol.k) * protocol.bins // protocol.k)
    large = buckets[keys] > Buckets.of(protocol).values[0]
    answer = before.counts // before.reports
    sampled, ones = (
        [(part & kind).sum(axis=-1) for kind in (~large, large)]
        for part in (np.full(answer.shape, True), answer == 1)
    )
    stayed, moved = likelihoods(protocol, sampled, ones)
    ratios = np.divide(moved, stayed, out=np.zeros(stayed.shape), where=stayed > 0)
    return np.where(same, ratios, np.inf)
