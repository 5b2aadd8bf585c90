"""Did the value change? The likelihood-ratio test on what users of a population sent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loloha.design.change import repeated_answers
from loloha.design.likelihood import scores_of_bits, scores_of_counts
from loloha.design.roc import Roc
from loloha.rules import checks
from loloha.rules.counting.arrays import Array
from loloha.rules.protocols import Protocol
from loloha.study.attacks.stretch import Stretch, moving_values, observe

MOST_REPORTS = 1000


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
        Curve, area and their errors. `loloha.privacy.change_area` gives the area without a
        population.

    Raises
    ------
    ParameterError
        If a number is out of range, or the protocol's encoding is unknown here.
    """
    reports = checks.integer("reports", reports, 1, MOST_REPORTS, "count those of one stretch")
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
    if protocol.longitudinal and (second is None or not second.q):
        return _score_repeats(protocol, before.counts, after.counts, before.reports)
    if protocol.longitudinal and protocol.g is None:
        return scores_of_bits(protocol, before.counts, after.counts, before.reports)
    channel = second if protocol.longitudinal else first
    ratio = protocol.encoding.odds(channel.p, channel.q)
    return scores_of_counts(before.counts, after.counts, math.log(ratio))


def _score_repeats(protocol: Protocol, before: Array, after: Array, reports: int) -> Any:
    """Where the memo is sent as it is: another answer is proof, an old one is not."""
    same = (before == after).all(axis=-1)
    if protocol.g is not None:
        return np.where(same, 0.0, np.inf)
    stayed, repeated = repeated_answers(protocol, np.arange(before.shape[-1] + 1))
    odds = np.divide(repeated, stayed, out=np.zeros(len(stayed)), where=stayed > 0)
    return np.where(same, odds[(before.sum(axis=-1) // reports)], np.inf)
