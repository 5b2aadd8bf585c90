"""Groups of values in one round: sums, with the covariances of their estimates, and ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha import checks
from loloha.arrays import Bools, Floats, Ints
from loloha.encodings import Hashed, OneHot, SampledBuckets, Symbols, for_encoding
from loloha.encodings.part import JOINT
from loloha.errors import ParameterError
from loloha.server.frame import Framed
from loloha.server.interval import Inversion, Scatter
from loloha.server.projection import project_simplex
from loloha.server.variance import Channel, drawn_from, spread

if TYPE_CHECKING:
    from loloha.protocols import Protocol

__all__ = ["EstimatedRanks", "EstimatedSum", "ranks", "total"]

MOST_HASHES = 1 << 22
"""Hashes of values by which the variance of one sum is found: exact where there are no more."""
MOST_OTHERS = 1 << 12
_SEED = 19
ROUNDING = 1e-12
"""Of a mean square, that is a variance of 0."""


@dataclass(frozen=True, eq=False, repr=False)
class EstimatedSum:
    """The frequency of a group of values in one round.

    Attributes
    ----------
    estimate : float
        Unbiased, so possibly negative.
    standard_error : float
        With the covariances of the values' estimates, of a fixed population.
    """

    estimate: float
    standard_error: float
    inversion: Inversion

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end, in [0, 1], of an interval for a group chosen beforehand."""
        lower, upper = self.inversion.interval(level)
        return float(lower[0]), float(upper[0])

    def __repr__(self) -> str:
        return f"EstimatedSum({self.estimate:.6g}, standard_error={self.standard_error:.3g})"


@dataclass(frozen=True, eq=False)
class EstimatedRanks(Framed):
    """The most frequent values of a round, and which ranks each could have.

    Attributes
    ----------
    value : int64[count]
        The most frequent first.
    estimate, standard_error : float64[count]
    first, last : int64[count]
        Ranks, from 1 on: all intervals of ranks, of all values, hold at once with the level.
    level : float
    """

    value: Ints
    estimate: Floats
    standard_error: Floats
    first: Ints
    last: Ints
    level: float

    def records(self) -> list[dict[str, Any]]:
        """A dict for each value."""
        names = ("value", "estimate", "standard_error", "first", "last")
        columns = zip(*(getattr(self, name).tolist() for name in names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in columns]


class EstimatedRound(NamedTuple):
    """A round as the joint moments of its estimates need it."""

    protocol: Protocol
    n: int
    users: int  # Of whom the n were drawn, or these n.
    eligible: Any
    shares: Floats  # About how frequent the values are: >= 0, of sum 1.

    @classmethod
    def of(cls, estimate: Any) -> EstimatedRound:
        if hasattr(estimate, "scatter"):
            raise ParameterError(
                "sums must be of one round, got a mean of rounds, which share noise; take that of "
                "one, or see loloha.series"
            )
        shares = project_simplex(np.nan_to_num(estimate.frequencies))
        users = drawn_from(estimate.population, estimate.n)
        return cls(estimate.protocol, estimate.n, users, estimate.eligible, shares)

    @property
    def drawn(self) -> float:
        """What drawing the n adds to a variance, over f(1 - f): 0 where they are all users."""
        return float((self.users - self.n) / (max(self.users - 1, 1) * self.n))

    @property
    def channel(self) -> Channel:
        return Channel.realised(self.protocol)

    def within(self, group: Any) -> Floats:
        """Shares of values inside a group, adding up to 1; equal ones where all are 0."""
        inside = self.shares[group]
        whole = inside.sum()
        return inside / whole if whole > 0 else np.full(len(inside), 1 / max(1, len(inside)))


class Spread(NamedTuple):
    """How the sum of a group varies.

    Attributes
    ----------
    variance : callable
        At any true frequency of the group.
    skew : tuple of float
        As of `Inversion`, of the group's count.
    """

    variance: Callable[[float], float]
    skew: tuple[float, float]


SpreadOf = Callable[[EstimatedRound, Bools], Spread]
"""Of a round and a group, bool[bins]."""


def total(
    estimate: Any, values: Sequence[Any], labels: Sequence[Any] | None = None
) -> EstimatedSum:
    """The frequency of a group of bins or, with ``labels``, one for each bin, of some of these."""
    spread_of: SpreadOf = JOINT.required(estimate.protocol.encoding)
    bins = range(len(estimate.frequencies))
    named = bins if labels is None else labels
    if len(named) != len(bins):
        raise ParameterError(
            f"labels must be {len(bins)}, one per bin, got {len(named)}; give all, in their order"
        )
    place = dict(zip(named, bins, strict=True))
    whose = "labels of the estimate"
    if labels is None:
        whose = f"bins 0..{len(bins) - 1} of the estimate (or its labels, with labels=)"
    group: Bools = np.zeros(len(bins), dtype=bool)
    group[checks.places("values", values, place, whose)] = True
    if not group.any():
        raise ParameterError("values must be at least one, got none; name those of the group")
    if unknown := int(np.isnan(estimate.frequencies[group]).sum()):
        raise ParameterError(
            f"values must have eligible users, got {unknown} without eligible users; leave them out"
        )
    variance, skew = spread_of(EstimatedRound.of(estimate), group)
    frequency = float(estimate.frequencies[group].sum())
    channel = Channel.realised(estimate.protocol)
    # A report that supports many values of the group at once moves the count by as many: counts of
    # jumps of one size are as skewed as that size.
    jump = max(1.0, *skew)
    unit = jump / (float(estimate.eligible[group].min()) * channel.contrast)
    # Of all values together the frequency is 1, whatever the estimate.
    scatter = Scatter.through(lambda f: np.array([max(variance(1.0 if group.all() else f), 0.0)]))
    above, below = skew
    test = Inversion(np.array([frequency]), scatter, unit, (above / jump, below / jump))
    spread_here = max(float(scatter.at(min(max(frequency, 0.0), 1.0))[0]), 0.0)
    return EstimatedSum(frequency, spread_here**0.5, test)


def ranks(estimate: Any, count: int = 10, level: float = 0.95) -> EstimatedRanks:
    """The ``count`` most frequent values and the ranks that noise could exchange."""
    # Values exchange ranks unless one's interval lies above the other's. The intervals hold for all
    # values at once, so it does not matter that those shown are picked by their estimates.
    if not estimate.protocol.histogram:
        raise ParameterError(
            f"ranks must be of values, got the thresholds of {estimate.protocol.name}; see its "
            "mean and quantiles"
        )
    known = np.flatnonzero(np.isfinite(estimate.frequencies))
    if not len(known):
        raise ParameterError("ranks must be of values with eligible users, got none; wait for some")
    count = checks.integer("count", count, 1, 1 << 24, "10 are easy to read")
    lower, upper = estimate.interval(level, simultaneous=True, bins=known)
    order = np.argsort(-estimate.frequencies[known], kind="stable")[:count]
    shown = known[order]
    above = len(known) - np.searchsorted(np.sort(lower), upper[order], side="right")
    below = np.searchsorted(np.sort(upper), lower[order], side="left")
    return EstimatedRanks(
        shown, estimate.frequencies[shown], estimate.standard_errors[shown], 1 + above,
        len(known) - below, float(level),
    )  # fmt: skip


@for_encoding(JOINT.name, Symbols)
def _of_symbols(round: EstimatedRound, group: Bools) -> Spread:
    """A report is in the group or not: one more channel."""
    p, q, contrast = round.channel
    size = int(group.sum())
    # Of all values every report is one.
    inside, outside = min(1.0, p + (size - 1) * q), min(1.0, size * q)
    both = Channel(inside, outside, contrast)
    return Spread(lambda f: float(spread(both, round.users, round.n, f)), both.skew)


@for_encoding(JOINT.name, OneHot)
def _of_bits(round: EstimatedRound, group: Bools) -> Spread:
    """Given a user's value, bits are independent."""
    p, q, contrast = round.channel
    size, scale = int(group.sum()), round.n * contrast**2

    def variance(f: float) -> float:
        bits = f * (p * (1 - p)) + (size - f) * (q * (1 - q))
        return bits / scale + round.drawn * f * (1 - f)

    return Spread(variance, round.channel.skew)


@for_encoding(JOINT.name, SampledBuckets)
def _of_buckets(round: EstimatedRound, group: Bools) -> Spread:
    """Bits are independent given values and samples; samples of two buckets overlap."""
    within, eligible = round.within(group), round.eligible[group]
    exchanged = _exchanged(round)

    def variance(f: float) -> float:
        shares = f * within
        own = spread(round.channel, round.users, eligible, shares).sum()
        return float(own + exchanged * (shares.sum() ** 2 - (shares**2).sum()))

    return Spread(variance, round.channel.skew)


def _exchanged(round: EstimatedRound) -> float:
    """Covariance of two buckets' samples over the product of their frequencies."""
    # ``overlap`` is the chance that who samples one bucket samples another, over that of anybody.
    encoding: Any = round.protocol.encoding
    overlap = (encoding.d - 1) * encoding.b / (encoding.d * (encoding.b - 1))
    return float((1 - overlap * round.users / round.n) / max(round.users - 1, 1))


@for_encoding(JOINT.name, Hashed)
def _of_hashes(round: EstimatedRound, group: Bools) -> Spread:
    """Of a report, how many values of the group it supports: those in its cell of the key."""
    # With N_c values of the group in cell c, E N^2 is that of the user's own cell and of the
    # others; the latter needs collisions of pairs alone, the former of triples, which are counted.
    # So are those of four for E N^3, where the cubes of all cells are the squares that members see.
    p, q = _symbol_channel(round)
    size, c0 = int(group.sum()), float(round.protocol.encoding.collision)
    q_star = c0 * p + (1 - c0) * q
    own = _own_cells(round, group)
    all_squares = size + size * (size - 1) * c0
    all_cubes = size * own.squares
    variances, skews = [], [0.0]
    for mean, square, cube in zip(
        (p + (size - 1) * q_star, size * q_star),
        own.weighted_squares,
        own.weighted_cubes,
        strict=True,
    ):
        second = (p - q) * square + q * all_squares
        variances.append(second - mean**2)
        third = (p - q) * cube + q * all_cubes - 3 * mean * second + 2 * mean**3
        if variances[-1] > ROUNDING * second:
            skews.append(third / variances[-1])
    inside, outside = variances
    scale = round.n * (p - q_star) ** 2
    return Spread(
        lambda f: (f * inside + (1 - f) * outside) / scale + round.drawn * f * (1 - f),
        (max(skews), -min(skews)),
    )


def _symbol_channel(round: EstimatedRound) -> tuple[float, float]:
    """Chances of the own symbol and of another one, as devices draw."""
    rules = round.protocol
    p, q = rules.chained(rules.first_channel, rules.second_channel)
    return float(p), float(q)


class OwnCells(NamedTuple):
    """How many values of a group are in the cell of a user, over keys: means of powers.

    Attributes
    ----------
    weighted_squares, weighted_cubes : list of float
        Of users who hold a value of the group, by its share, and of others.
    squares : float
        Of values of the group, each alike.
    """

    weighted_squares: list[float]
    weighted_cubes: list[float]
    squares: float


def _own_cells(round: EstimatedRound, group: Bools) -> OwnCells:
    encoding: Any = round.protocol.encoding
    family, rng = encoding.family, np.random.default_rng(_SEED)
    members, others = np.flatnonzero(group), np.flatnonzero(~group)
    weights = round.within(group), round.within(~group)
    if len(others) > MOST_OTHERS:
        others = rng.choice(others, MOST_OTHERS, p=weights[1])
        weights = weights[0], np.full(MOST_OTHERS, 1 / MOST_OTHERS)
    values = np.concatenate([members, others])
    most = max(64, MOST_HASHES // len(values))
    if family.members <= most:
        keys = np.arange(family.least_key, family.least_key + family.members)
    else:
        keys = family.draw_many(most, rng)
    # Of each value, and of members and others.
    squares, cubes = np.zeros((2, len(values)))
    step = max(1, (MOST_HASHES >> 3) // len(values))
    for start in range(0, len(keys), step):
        some = keys[start : start + step, None]
        cells = family.hash_many(some, values[None]) + family.g * np.arange(len(some))[:, None]
        counted = np.bincount(cells[:, : len(members)].ravel(), minlength=family.g * len(some))
        counts = counted.astype(np.float64)[cells]
        squares += (counts**2).sum(axis=0) / len(keys)
        cubes += (counts**3).sum(axis=0) / len(keys)
    inside, outside = weights
    both = [
        [float(powers[: len(members)] @ inside), float(powers[len(members) :] @ outside)]
        for powers in (squares, cubes)
    ]
    return OwnCells(both[0], both[1], float(squares[: len(members)].mean()))
