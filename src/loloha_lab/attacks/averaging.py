"""Averaging: guess a value that never changes from ever more reports of it.

Against rules without a memo it succeeds in the end, which is why answers are memoised.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha import checks
from loloha.errors import ParameterError
from loloha.privacy.likelihood import bit_tables
from loloha.protocols import Protocol
from loloha_lab.attacks.stretch import Stretch, observe

MOST_AVERAGED = 100_000


@dataclass(frozen=True, eq=False)
class Averaging:
    """How often the likeliest value is the right one.

    Attributes
    ----------
    reports : tuple of int
    success : float64[len(reports)]
        Share of users whose value is guessed; equal candidates are drawn from.
    error : float64[len(reports)]
        Standard error of that share.
    chance : float
        Success without any report, 1/k.
    """

    reports: tuple[int, ...]
    success: Any
    error: Any
    chance: float


def averaging(
    protocol: Protocol, reports: Sequence[int] = (1, 10, 100), *, n: int = 1000, rng: int
) -> Averaging:
    """Guess the uniformly drawn, unchanging values of n users after so many reports of each.

    Parameters
    ----------
    protocol : Protocol
    reports : sequence of int
        Ascending, each 1..100 000.
    n : int
        Users, at least 1.
    rng : int
        Seed.

    Raises
    ------
    ParameterError
        If a number is out of range, or the protocol's encoding is unknown here.
    """
    lengths = [checks.integer("reports", t, 1, MOST_AVERAGED, "count them") for t in reports]
    if not lengths or any(b <= a for a, b in itertools.pairwise(lengths)):
        raise ParameterError(f"reports must ascend, got {reports!r}; sort them and drop repeats")
    n = checks.integer("n", n, 1, 1 << 24, "attack some users")
    values = np.random.default_rng(rng).integers(0, protocol.k, size=n)
    steps = np.diff(lengths, prepend=0).tolist()
    parts = observe(protocol, np.repeat(values[:, None], lengths[-1], axis=1), steps, rng)
    counts, right = 0, []
    for part, length in zip(parts, lengths, strict=True):
        counts = counts + part.counts.astype(np.int64)
        scores = score_values(protocol, Stretch(part.keys, counts, length))
        likeliest = np.isclose(scores, scores.max(axis=1, keepdims=True), rtol=1e-12, atol=1e-9)
        right.append(likeliest[np.arange(n), values] / likeliest.sum(axis=1))
    shares = np.array(right)
    return Averaging(
        tuple(lengths), shares.mean(axis=1), np.sqrt(shares.var(axis=1) / n), 1 / protocol.k
    )


def score_values(protocol: Protocol, seen: Stretch) -> Any:
    """ln of the likelihood of each constant value, up to a term of each user: float64[n, k]."""
    first: Any = protocol.first_channel
    second: Any = protocol.second_channel
    counts = seen.counts
    if not protocol.longitudinal:
        return math.log(protocol.encoding.likelihood_ratio(first.p, first.q)) * counts
    if protocol.second_channel is None and protocol.g is None:
        return _score_memoised_bits(protocol, seen)
    if second is None or not second.q:
        raise ParameterError(
            f"protocol must have an instantaneous round, got {protocol!r}; "
            "its reports are the memos"
        )
    if protocol.g is None:
        return bit_tables(protocol, seen.reports).moved[counts]
    shown = math.log(second.p / second.q) * counts
    likelihoods = np.exp(shown - shown.max(axis=1, keepdims=True))
    cells = np.log(
        float(first.q) * likelihoods.sum(axis=1, keepdims=True)
        + float(first.p - first.q) * likelihoods
    )
    cell_of = protocol.encoding.memo_indices(seen.keys, np.arange(protocol.k), len(cells))
    return np.take_along_axis(cells, cell_of, axis=1)


def _score_memoised_bits(protocol: Protocol, seen: Stretch) -> Any:
    """Memoised bits sent as they are: each sampled bucket's own bit speaks for it, or against."""
    encoding: Any = protocol.encoding
    first: Any = protocol.first_channel
    one, zero = math.log(first.p / first.q), math.log((1 - first.p) / (1 - first.q))
    scores = np.zeros((len(seen.counts), encoding.b))
    spoken = np.where(seen.counts > 0, one, zero)
    np.put_along_axis(scores, np.asarray(seen.keys), spoken, axis=1)
    return scores[:, np.arange(encoding.k) * encoding.b // encoding.k]
