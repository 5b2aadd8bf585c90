"""The exact loss between two histories, over everything that could be sent.

Rounds in which the two histories visit one pair of cells are exchangeable: what is sent in them
matters only by how often each answer occurs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.encodings import Hashed, OneHot, SampledBuckets, Symbols, for_encoding
from loloha.encodings.part import HISTORIES
from loloha.rng import SCALE

if TYPE_CHECKING:
    from loloha.arrays import Floats, Ints
    from loloha.privacy.labelling import Pairs
    from loloha.protocols import Protocol

MOST_STATES = 1 << 21
"""Of what can be sent, times its length: more is not looked through."""

Evidence = Callable[[int, Any], "Floats"]
"""ln of the probability of what was sent from one cell, up to a term that all cells share."""


def exact_loss(protocol: Protocol, pairs: Pairs) -> float | None:
    """Largest absolute log-ratio of the pmfs of all that is sent; None where it is too much."""
    pmf = HISTORIES.of(protocol.encoding)
    if pmf is None:
        return None
    if protocol.second_channel is None or not protocol.second_channel.q:
        return _memoised_alone(protocol, pairs)
    loss: float | None = (_tables if protocol.joint else pmf)(protocol, pairs)
    return loss


@for_encoding(HISTORIES.name, Symbols, Hashed)
def _symbols(protocol: Protocol, pairs: Pairs) -> float | None:
    """Of symbols: a cell shows the sum over its memo of first(memo | cell) (p2/q2)^(times sent)."""
    first, second = _rounds(protocol)
    g = first.g
    if not _few((math.comb(n + g - 1, g - 1) for n in pairs.times.tolist()), g):
        return None
    rise, low = float(first.p - first.q), float(first.q)
    log_ratio = math.log(second.p / second.q)

    def evidence(cell: int, times: Any) -> Floats:
        shown = log_ratio * times
        most = shown.max(axis=-1, keepdims=True)
        likelihoods = np.exp(shown - most)
        pmf: Floats = most[..., 0] + np.log(
            low * likelihoods.sum(axis=-1) + rise * likelihoods[..., cell]
        )
        return pmf

    sent = [_compositions(int(n), g) for n in pairs.times]
    there, back = _ratios(pairs, sent, evidence)
    return max(there, back)


def _tables(protocol: Protocol, pairs: Pairs) -> float | None:
    """Of symbols that one table answers: the identity, one symbol for all, or a permutation."""
    first, second = _rounds(protocol)
    g = first.g
    visited = [np.unique(cells).tolist() for cells in (pairs.one, pairs.two)]
    ways = [math.perm(g, max(map(len, visited)))]
    if not _few([*ways, *(math.comb(n + g - 1, g - 1) for n in pairs.times.tolist())], g):
        return None
    w = float(first.p - first.q)
    m0 = (1 - w) * first.constant / SCALE
    log_ratio = math.log(second.p / second.q)
    sent = [_compositions(int(n), g) for n in pairs.times]

    def log_pmf(cells: Ints) -> Floats:
        times = dict(_times(cells, sent))
        tables = [(w, tuple(times)), *((m0 / g, (y,) * len(times)) for y in range(g))]
        each = (1 - w - m0) / math.perm(g, len(times))
        tables += [(each, answers) for answers in itertools.permutations(range(g), len(times))]
        total: Floats = np.full((1,) * len(sent), -math.inf)
        for chance, answers in tables:
            if chance:
                sums = sum(seen[..., y] for seen, y in zip(times.values(), answers, strict=True))
                total = np.logaddexp(total, math.log(chance) + log_ratio * sums)
        return total

    ratio = log_pmf(pairs.one) - log_pmf(pairs.two)
    return float(np.abs(ratio).max())


@for_encoding(HISTORIES.name, OneHot)
def _bits(protocol: Protocol, pairs: Pairs) -> float | None:
    """Of bits: each is independent of the others, so the worst transcript is the worst of each."""
    if not _few((n + 1 for n in pairs.times.tolist()), 2):
        return None
    first, second = _rounds(protocol)
    high, low = (np.log([float(p), float(1 - p)]) for p in (second.p, second.q))
    sent = [_compositions(int(n), 2) for n in pairs.times]

    def worst(bit: int) -> tuple[float, float]:
        def evidence(cell: int, times: Any) -> Floats:
            is_set = float(first.p if cell == bit else first.q)
            pmf: Floats = np.logaddexp(
                math.log(is_set) + times @ high, math.log1p(-is_set) + times @ low
            )
            return pmf

        return _ratios(pairs, sent, evidence)

    visited = pairs.values.tolist()
    # The bits of values that neither history holds are all alike.
    others = protocol.encoding.memo_symbols - len(visited)
    each = [worst(bit) for bit in visited] + ([worst(-1)] * others if others else [])
    return max(sum(there for there, _ in each), sum(back for _, back in each))


@for_encoding(HISTORIES.name, SampledBuckets)
def _buckets(protocol: Protocol, pairs: Pairs) -> float | None:
    """Not with a second round: which bits a bucket has depends on the sample."""
    return None


def _rounds(protocol: Protocol) -> tuple[Any, Any]:
    return protocol.first_channel, protocol.second_channel


def _few(ways: Iterable[int], length: int) -> bool:
    """Whether so many ways for each pair of cells can be looked through together."""
    states = length
    for number in ways:
        states *= number
        if states > MOST_STATES:
            return False
    return True


def _ratios(pairs: Pairs, sent: list[Ints], evidence: Evidence) -> tuple[float, float]:
    """Largest log-ratio of one history's distribution to the other's, and back."""
    ratio = _log_pmf(pairs.one, sent, evidence) - _log_pmf(pairs.two, sent, evidence)
    return float(ratio.max()), float(-ratio.min())


def _log_pmf(cells: Ints, sent: list[Ints], evidence: Evidence) -> Floats:
    """ln of the pmf, an axis for each pair of cells: how often its rounds sent each answer."""
    total: Floats = np.zeros(1)
    for cell, times in _times(cells, sent):
        total = total + evidence(cell, times)
    return total


def _times(cells: Ints, sent: list[Ints]) -> Iterator[tuple[int, Any]]:
    """Each visited cell, and how often its rounds sent each answer: an axis a pair, and one."""
    for cell in np.unique(cells).tolist():
        times: Any = np.zeros(1)
        for axis, numbers in enumerate(sent):
            if cells[axis] == cell:
                shape = [1] * len(sent)
                shape[axis] = len(numbers)
                times = times + numbers.reshape(*shape, numbers.shape[1])
        yield cell, times


def _compositions(n: int, parts: int) -> Ints:
    """All ways to write n as a sum of so many integers >= 0, int64[ways, parts]."""
    rows = np.arange(n + 1)[:, None]
    for _ in range(parts - 2):
        rest = n - rows.sum(axis=1)
        grown = np.repeat(rows, rest + 1, axis=0)
        starts = np.repeat(np.cumsum(rest + 1) - rest - 1, rest + 1)
        rows = np.column_stack([grown, np.arange(len(grown)) - starts])
    return np.column_stack([rows, n - rows.sum(axis=1)])


def _memoised_alone(protocol: Protocol, pairs: Pairs) -> float:
    """Where the memo itself is sent: equal cells send equal answers, others need not."""
    if not pairs.alike:
        return math.inf
    first, symbols = protocol.first_channel, protocol.encoding.memo_symbols
    moved = pairs.one != pairs.two
    if protocol.g is not None:
        return int(moved.sum()) * math.log(first.p / first.q)
    ones, zeros = math.log(first.p / first.q), math.log((1 - first.q) / (1 - first.p))
    # The last symbol of sampled bits stands for none of them: no bit of it is set.
    bits = symbols if type(protocol.encoding) is OneHot else symbols - 1
    one, two = (int((part[moved] < bits).sum()) for part in (pairs.one, pairs.two))
    return max(one * ones + two * zeros, two * ones + one * zeros)
