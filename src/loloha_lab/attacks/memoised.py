"""The attack of Table 2 on memoised bits that are sent as they are, for whole populations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha.arrays import Ints
from loloha.channels import BitChannel
from loloha.encodings import SampledBuckets
from loloha.errors import ParameterError
from loloha.population.distinct import Detection
from loloha.population.samplers import Draws
from loloha.population.samplers.rows import memo_rows
from loloha.protocols import Protocol

WORD = 64
CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Distinct:
    """Each user with each different bucket that the user's values fall into.

    Attributes
    ----------
    n : int
        Users.
    users, buckets : int64[rows]
        Ordered by user.
    """

    n: int
    users: Ints
    buckets: Ints


def visited(values: Ints) -> Distinct:
    """The different values of each user.

    Parameters
    ----------
    values : int[n, tau]
        Values, or their buckets.
    """
    ordered = np.sort(values, axis=1)
    first = np.ones(ordered.shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    users, places = np.nonzero(first)
    return Distinct(len(values), users, ordered[users, places].astype(np.int64))


def detect_memoised(protocol: Protocol, visits: Distinct, rng: np.random.Generator) -> Detection:
    """The attack of Table 2 on a whole population whose memoised answers are sent as they are.

    Parameters
    ----------
    protocol : Protocol
        dBitFlipPM: no second round.
    visits : Distinct
        Of the buckets of the users' values.
    rng : numpy.random.Generator

    Returns
    -------
    Detection
        Only `users` and `exposed` are counted.

    Raises
    ------
    ParameterError
        If the protocol has another form.

    Notes
    -----
    Draws the memoised bits of every user, and those beyond the first some only where they decide
    whether two answers are equal: the distribution is that of the clients.
    """
    encoding: Any = protocol.encoding
    channel: Any = protocol.first_channel
    if type(encoding) is not SampledBuckets:
        raise ParameterError(
            f"protocol must send memoised bits of sampled buckets, got {protocol.name!r}; record "
            "its answers with record_answers"
        )
    return Detection(visits.n, exposed(encoding, channel, visits, Draws(rng)))


def exposed(encoding: SampledBuckets, channel: BitChannel, visits: Distinct, draws: Draws) -> int:
    """Users of whom all different buckets get different answers."""
    if encoding.d == encoding.b:
        return visits.n - len(_colliding(visits, encoding.b, channel, draws))
    return _exposed_by_sample(visits, encoding, channel, draws)


def _exposed_by_sample(
    visits: Distinct, encoding: SampledBuckets, channel: BitChannel, draws: Draws
) -> int:
    """The same where only d buckets are sampled."""
    # All buckets outside the sample share one answer: a user who visits two of them is safe.
    starts = np.searchsorted(visits.users, np.arange(visits.n + 1))
    few = np.flatnonzero(np.diff(starts) <= encoding.d + 1)
    exposed, step = 0, max(1, CELLS_AT_ONCE // encoding.b)
    for start in range(0, len(few), step):
        chosen = few[start : start + step]
        sizes = np.diff(starts)[chosen]
        users = np.repeat(np.arange(len(chosen)), sizes)
        within = np.arange(len(users)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        buckets = visits.buckets[starts[chosen][users] + within]
        sampled = draws.subsets(encoding.b, encoding.d, len(chosen))
        # Position of the bucket among the sampled ones, d for all others.
        own = np.where(sampled, np.cumsum(sampled, axis=1) - 1, encoding.d)[users, buckets]
        answers = memo_rows(own, encoding.d, channel, draws)
        alike = np.bincount(users[own == encoding.d], minlength=len(chosen)) > 1
        kinds = np.unique(np.column_stack([users.astype(np.uint64), answers]), axis=0)[:, 0]
        different = np.bincount(kinds.astype(np.int64), minlength=len(chosen)) == sizes
        exposed += int((different & ~alike).sum())
    return exposed


def _colliding(visits: Distinct, b: int, channel: BitChannel, draws: Draws) -> Ints:
    """Users with two equal answers among those to their visited buckets, b bits each."""
    # Answers are drawn a word at a time, and on only for rows that are equal so far: those of one
    # class.
    rows, classes, start = np.arange(len(visits.users)), visits.users, 0
    while len(rows) and start < b:
        # Classes are numbered from 0: one word holds a row's class and its next bits.
        width = min(b - start, WORD - int(classes.max()).bit_length())
        words = _draw_words(visits.buckets[rows] - start, width, channel, draws)
        labelled = words | classes.astype(np.uint64) << np.uint64(width)
        ordered = np.sort(labelled)
        repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        places = np.searchsorted(repeated, labelled)
        places[places == len(repeated)] = 0
        equal = np.flatnonzero(repeated[places] == labelled) if len(repeated) else places[:0]
        rows, classes, start = rows[equal], places[equal], start + width
    return np.unique(visits.users[rows])


def _draw_words(own: Ints, width: int, channel: BitChannel, draws: Draws) -> Any:
    """The next ``width`` bits of each answer, uint64[rows]; ``own`` is which of them is set."""
    words = draws.bits(channel.unset, WORD * len(own))
    holders = np.flatnonzero((own >= 0) & (own < width))
    bit = np.uint64(1) << own[holders].astype(np.uint64)
    ones = draws.bits(channel.set, WORD * len(holders)) & np.uint64(1)
    words[holders] = np.where(ones, words[holders] | bit, words[holders] & ~bit)
    return words & np.uint64((1 << width) - 1)
