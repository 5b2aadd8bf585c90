"""How surely a change of value shows: the best test of so many reports before and after it.

The value stayed, or moved to another one; T reports before and T after are seen, key included, and
values are equally likely beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.design.lattice import stray
from loloha.design.likelihood import (
    binomial,
    bit_tables,
    scores_of_bits,
    scores_of_counts,
    second_bits,
)
from loloha.design.roc import Area, Roc
from loloha.rules import checks
from loloha.rules.encodings import Encoding, Hashed, OneHot, SampledBuckets, Symbols
from loloha.rules.protocols import Protocol
from loloha.rules.rng import SCALE

if TYPE_CHECKING:
    from loloha.rules.counting.arrays import Array, Floats, Ints

MOST_REPORTS = 1000

_SEED = 12
# Cases of each kind, and numbers that are drawn for them together.
_FEWEST, _MOST, _NUMBERS = 400, 10_000, 1 << 19
# Pairs of counts that are looked through instead of drawn.
_PAIRS_AT_MOST = 1 << 20
# More bits than these add up to a normal score.
_BITS_AT_MOST = 1 << 8
# Hashes of one case beyond which none is drawn.
_HASHES_AT_MOST = 1 << 15
_VALUES_AT_MOST = 1 << 10
_DENSE = 64


@lru_cache(maxsize=256)
def change_area(protocol: Protocol, reports: int) -> Area | None:
    """How surely the best test sees whether a value changed between two stretches of reports.

    Parameters
    ----------
    protocol : Protocol
    reports : int
        Reports in each of the two stretches, 1..1000.

    Returns
    -------
    Area or None
        The same for the same arguments: what is drawn has a fixed seed. None for one-round rules
        over more values than are quickly drawn, and for encodings from elsewhere.

    Raises
    ------
    ParameterError
        If reports is not an integer in that range.
    """
    reports = checks.integer("reports", reports, 1, MOST_REPORTS, "count those of one stretch")
    view = _MEMOISED if protocol.longitudinal else _ONE_ROUND
    find = view.get(type(protocol.encoding))
    return None if find is None else find(protocol, reports)


@lru_cache(maxsize=256)
def link_area(protocol: Protocol, reports: int) -> Area | None:
    """How surely the best test sees that two stretches of reports come from one user.

    Against two users who hold different values; the value of one user stays. Parameters, errors
    and what None means are those of `change_area`.
    """
    apart = change_area(protocol, reports)
    encoding = protocol.encoding
    first: Any = protocol.first_channel
    if apart is None or not protocol.longitudinal:
        return apart
    if protocol.g is None:
        # Two users' memos are as independent as those of two values.
        return _unless_keys_differ(encoding, apart)
    second: Any = protocol.second_channel
    told = _two_memos(first.g, float(second.p) if second else 1.0, reports)
    chance = 1 / first.g
    return _unless_keys_differ(
        encoding, Area(chance / 2 + (1 - chance) * told.auc, (1 - chance) * told.error)
    )


def _unless_keys_differ(encoding: Encoding, alike: Area) -> Area:
    """Users of different keys are told apart for certain, those of equal keys as ``alike`` says."""
    return Area(1 - (1 - alike.auc) / encoding.key_count, alike.error / encoding.key_count)


# -- symbols


def _keyed_symbols(protocol: Protocol, reports: int) -> Area:
    """Where cells or memos coincide nothing can be told; else it is a question of two memos."""
    first: Any = protocol.first_channel
    second: Any = protocol.second_channel
    p, q = float(first.p), float(first.q)
    coincide = 2 * p * q + (first.g - 2) * q * q
    if first.joint:
        # Two cells of a table are answered alike only where all are.
        coincide = first.g * q * first.constant / SCALE
    encoding = protocol.encoding
    c0 = float(encoding.collision)
    coincide = c0 + (1 - c0) * coincide
    told = _two_memos(first.g, float(second.p) if second else 1.0, reports)
    return Area(coincide / 2 + (1 - coincide) * told.auc, (1 - coincide) * told.error)


def _plain_symbols(protocol: Protocol, reports: int) -> Area:
    channel: Any = protocol.first_channel
    return _two_memos(channel.g, float(channel.p), reports)


@lru_cache(maxsize=1024)
def _two_memos(g: int, p: float, reports: int) -> Area:
    """Whether so many answers of each of two stretches come from one symbol or from two."""
    q = (1 - p) / (g - 1)
    if not q:
        return Area(1.0, 0.0)
    if reports == 1:
        # Two answers agree or not, and agree more often if they come from one symbol.
        return Area(0.5 + (p - q) ** 2 / 2, 0.0)
    log_ratio = math.log(p / q)
    if g == 2 and reports**2 <= _PAIRS_AT_MOST:
        return _two_of_two(p, reports)
    rng = np.random.default_rng(_SEED)
    cases = int(np.clip(_NUMBERS // (min(g, _DENSE) + 2 * reports), _FEWEST, _MOST))
    scores = []
    for moved in (False, True):
        before = _sent(g, p, 0, reports, cases, rng)
        after = _sent(g, p, int(moved), reports, cases, rng)
        counted, rest = _counted(before, after, g)
        scores.append(scores_of_counts(*counted, log_ratio, rest))
    return Roc(*scores).area


def _two_of_two(p: float, reports: int) -> Area:
    """The same for g = 2, exactly: over how often each stretch sent the first symbol."""
    times = np.arange(reports + 1)
    often, seldom = (binomial(reports, one, 1 - one) for one in (p, 1 - p))
    grid = np.stack([times, reports - times], axis=-1)
    scores = scores_of_counts(grid[:, None], grid[None], math.log(p / (1 - p)))
    stayed = (np.outer(often, often) + np.outer(seldom, seldom)) / 2
    return Area(
        exact_area(scores, stayed, np.outer(often, seldom) / 2 + np.outer(seldom, often) / 2), 0.0
    )


def exact_area(scores: Array, absent: Array, present: Array) -> float:
    """Area under the ROC curve of scores whose two laws are given."""
    # Scores that differ by rounding only are equal.
    order = np.round(scores.ravel(), 9)
    _, place = np.unique(order, return_inverse=True)
    low, high = (np.bincount(place, weights=law.ravel()) for law in (absent, present))
    return float((high * (np.cumsum(low) - low / 2)).sum() / (low.sum() * high.sum()))


def _sent(g: int, p: float, symbol: int, reports: int, cases: int, rng: Any) -> Any:
    """Counts int[cases, g] where g is small, else the symbols themselves int[cases, reports]."""
    if g <= _DENSE:
        chances = np.full(g, (1 - p) / (g - 1))
        chances[symbol] = p
        return rng.multinomial(reports, chances / chances.sum(), size=cases)
    kept = rng.random((cases, reports)) < p
    other = rng.integers(0, g - 1, size=(cases, reports))
    return np.where(kept, symbol, other + (other >= symbol))


def _counted(before: Array, after: Array, g: int) -> tuple[tuple[Any, Any], int]:
    """Counts of the symbols of both stretches, and how many symbols these are not."""
    if g <= _DENSE:
        return (before, after), 0
    cases, reports = before.shape
    sent = np.concatenate([before, after], axis=1)
    order = np.argsort(sent, axis=1)
    ranked = np.take_along_axis(sent, order, axis=1)
    rank = np.zeros_like(sent)
    np.put_along_axis(rank, order, np.cumsum(np.diff(ranked, axis=1, prepend=-1) != 0, axis=1), 1)
    width = 2 * reports
    cells = rank - 1 + width * np.arange(cases)[:, None]
    counts = [
        np.bincount(part.ravel(), minlength=cases * width).reshape(cases, width)
        for part in (cells[:, :reports], cells[:, reports:])
    ]
    # Columns that no symbol of a row has stand for as many that were never sent.
    return (counts[0], counts[1]), g - width if g > width else 0


# -- bits


def _memoised_bits(protocol: Protocol, reports: int) -> Area:
    if protocol.second_channel is None or not protocol.second_channel.q:
        return _repeated_bits(protocol, reports)
    if protocol.k > _BITS_AT_MOST:
        return _many_bits(protocol, reports)
    rng = np.random.default_rng(_SEED)
    cases = int(np.clip(_NUMBERS // protocol.k, _FEWEST, _MOST))
    first, second = protocol.first_channel, second_bits(protocol)
    scores = []
    for moved in (False, True):
        memo = _memo_bits(first, protocol.k, 0, cases, rng)
        before = rng.binomial(reports, np.where(memo, second[0], second[1]))
        if moved:
            memo = _memo_bits(first, protocol.k, 1, cases, rng)
        after = rng.binomial(reports, np.where(memo, second[0], second[1]))
        scores.append(scores_of_bits(protocol, before, after, reports))
    return Roc(*scores).area


def _memo_bits(first: Any, k: int, value: int, cases: int, rng: Any) -> Any:
    chances = np.full(k, float(first.q))
    chances[value] = float(first.p)
    return rng.random((cases, k)) < chances


def _many_bits(protocol: Protocol, reports: int) -> Area:
    """The sum of very many bits' scores is normal; the two bits of the values are left out."""
    common = bit_tables(protocol, reports)[0].reshape(reports + 1, reports + 1)
    q1, second = float(protocol.first_channel.q), second_bits(protocol)
    ones, zeros = (binomial(reports, p, 1 - p) for p in second)
    alone = q1 * ones + (1 - q1) * zeros
    stayed = q1 * np.outer(ones, ones) + (1 - q1) * np.outer(zeros, zeros)
    moved = np.outer(alone, alone)
    means = [float((law * common).sum()) for law in (stayed, moved)]
    spread = sum(
        float((law * common**2).sum()) - mean**2
        for law, mean in zip((stayed, moved), means, strict=True)
    )
    distance = math.sqrt(protocol.k / spread) * (means[1] - means[0]) if spread > 0 else 0.0
    return Area(0.5 * math.erfc(-distance / math.sqrt(2)), 0.0)


def _one_round_bits(protocol: Protocol, reports: int) -> Area | None:
    """One-hot bits without a memo: what supports a value is its own bit."""
    p, q = float(protocol.first_channel.p), float(protocol.first_channel.q)
    k = protocol.k
    if k > _VALUES_AT_MOST:
        return None
    rng = np.random.default_rng(_SEED)
    cases = int(np.clip(_NUMBERS // k, _FEWEST, _MOST))
    chances = np.full((2, k), q)
    chances[0, 0] = chances[1, 1] = p
    log_ratio = math.log(p * (1 - q) / ((1 - p) * q))
    scores = []
    for moved in (0, 1):
        before, after = (rng.binomial(reports, chances[v], size=(cases, k)) for v in (0, moved))
        scores.append(scores_of_counts(before, after, log_ratio))
    return Roc(*scores).area


def _one_round_hashes(protocol: Protocol, reports: int) -> Area | None:
    """Local hashing with a fresh key in every report: how often each value was supported."""
    encoding: Any = protocol.encoding
    if protocol.k * reports > _HASHES_AT_MOST:
        return None
    rng = np.random.default_rng(_SEED)
    cases = int(np.clip(2 * _NUMBERS // (protocol.k * reports), _FEWEST // 2, _MOST // 4))
    channel: Any = protocol.first_channel
    values = np.arange(protocol.k)

    def supports(value: int) -> Ints:
        total = np.zeros((cases, protocol.k), dtype=np.int64)
        for _ in range(reports):
            keys = encoding.family.draw_many(cases, rng)
            cells = encoding.family.hash_many(keys[:, None], values[None])
            shift = np.where(
                rng.random(cases) < float(channel.p), 0, rng.integers(1, channel.g, cases)
            )
            total += cells == ((cells[:, value] + shift) % channel.g)[:, None]
        return total

    log_ratio = math.log(channel.p / channel.q)
    scores = [scores_of_counts(supports(0), supports(moved), log_ratio) for moved in (0, 1)]
    return Roc(*scores).area


def _repeated_bits(protocol: Protocol, reports: int) -> Area:
    """Memoised bits sent as they are: once is enough, and another answer proves a change."""
    stayed, repeated = repeated_answers(protocol, _usual_ones(protocol))
    scores = np.divide(repeated, stayed, out=np.zeros(len(stayed)), where=stayed > 0)
    proven = max(0.0, 1 - float(repeated.sum()))
    auc = exact_area(np.append(scores, np.inf), np.append(stayed, 0.0), np.append(repeated, proven))
    return Area(auc, 0.0)


def _usual_ones(protocol: Protocol) -> Ints:
    """Numbers of ones that an answer has, but for what is rarer than e^-48."""
    encoding: Any = protocol.encoding
    d, q = encoding.size, float(protocol.first_channel.q)
    reach = stray(d * q * (1 - q), 1.0) + 2
    return np.arange(max(0, math.floor(d * q - reach)), min(d, math.ceil(d * q + reach)) + 1)


def repeated_answers(protocol: Protocol, ones: Ints) -> tuple[Floats, Floats]:
    """By the number of ones: how often an answer is seen twice if the value stayed, or moved.

    Buckets are taken as equally likely; the best test knows which are larger by one value.

    Parameters
    ----------
    ones : int[]
        Numbers of ones, in a row without gaps.
    """
    encoding: Any = protocol.encoding
    k = protocol.k
    b, d = encoding.bins, encoding.size
    p, q = float(protocol.first_channel.p), float(protocol.first_channel.q)
    small, large = k // b, k % b
    same = (b * small * (small - 1) + 2 * large * small) / (k * (k - 1))
    both, one = d * (d - 1) / (b * (b - 1)), 2 * d * (b - d) / (b * (b - 1))
    # By the number of ones, laws of an answer to one pattern, and of one that two patterns share.
    own, shared = [1 - p, p], [(1 - p) * (1 - q), p * q]
    none, sampled = _ones(ones, d, q, 1 - q), _ones(ones, d, q, 1 - q, own)
    stayed = d / b * sampled + (1 - d / b) * none
    apart = (1 - both - one) * none
    if one:
        apart += one * _ones(ones, d, q * q, (1 - q) ** 2, shared)
    if both:
        apart += both * _ones(ones, d, q * q, (1 - q) ** 2, shared, shared)
    return stayed, same * stayed + (1 - same) * apart


def _ones(ones: Ints, d: int, one: float, zero: float, *own: list[float]) -> Floats:
    """Weights by the number of ones of d bits, of which some have weights of their own."""
    fewer = np.arange(int(ones[0]) - len(own), int(ones[-1]) + 1)
    law = binomial(d - len(own), one, zero, fewer)
    for weights in own:
        law = np.convolve(law, weights, mode="valid")
    return law


_MEMOISED: dict[type[Encoding], Callable[[Protocol, int], Area | None]] = {
    Symbols: _keyed_symbols,
    Hashed: _keyed_symbols,
    OneHot: _memoised_bits,
    SampledBuckets: _repeated_bits,
}
_ONE_ROUND: dict[type[Encoding], Callable[[Protocol, int], Area | None]] = {
    Symbols: _plain_symbols,
    Hashed: _one_round_hashes,
    OneHot: _one_round_bits,
}
