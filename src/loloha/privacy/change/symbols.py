"""Likelihoods of reported symbols, plain or hashed, with and without a change of value.

The key is known, and with it how many values each cell holds. That is all that matters of it.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha.privacy.change.known_key import CERTAIN, CellChannels, CellSizes
from loloha.privacy.likelihood import AT_ONCE
from loloha.privacy.roc import AUC, SEED, best_auc

if TYPE_CHECKING:
    from loloha.arrays import Array

# Numbers of all outcomes that are gone through, else cases are drawn.
_NUMBERS_AT_MOST, _DRAWN_NUMBERS = 1 << 21, 1 << 21
_FEWEST, _MOST = 1 << 9, 1 << 15
# Symbols beyond which only those that were sent are looked at.
_DENSE = 64


def auc(chain: CellChannels, cells: CellSizes, reports: int, *, users: bool = False) -> AUC:
    """Of the best test of so many reports before and after a move; ``users``: of one or two."""
    # Two users hold different values, under one key.
    if chain.certain:
        return limit(chain, cells, users=users)
    if reports == 1 and (cells.sizes is None or cells.sizes.size * chain.g <= _NUMBERS_AT_MOST):
        return _single(chain, cells, users)
    ways = math.comb(reports + chain.g - 1, chain.g - 1)
    if ways**2 * chain.g * len(cells.weight) <= _NUMBERS_AT_MOST:
        return _enumerated(chain, cells, reports, users)
    return _drawn(chain, cells, reports, users)


def limit(chain: CellChannels, cells: CellSizes, *, users: bool = False) -> AUC:
    """Of ever more reports: both memos are known in the end. No number of reports shows more."""
    if cells.unseen == 1:
        return AUC(1.0, 0.0, bound=True)
    rows = len(cells.weight)
    times = chain.g if cells.sizes is None else 1
    symbols = np.arange(chain.g // times)[None, :, None]
    own = np.arange(rows)[:, None]
    ones = np.ones((1, 1, 1))
    sent = _Sent(own, symbols, ones, ones, np.full(symbols.shape, True))
    # They coincide, or prove a move.
    alike = [
        pmf * times for pmf in _likelihoods(chain._replace(log_ratio=CERTAIN), cells, sent, users)
    ]
    proven = 1 - alike[1].sum(axis=1, keepdims=True)
    stayed = np.append(alike[0], np.zeros((rows, 1)), axis=1)
    return _auc(cells, stayed, np.append(alike[1], np.maximum(proven, 0.0), axis=1))


class _Sent(NamedTuple):
    """How often symbols were sent in two stretches; those that are not among them never were."""

    rows: Any
    symbols: Any
    before: Any
    after: Any
    shown: Any


def _likelihoods(
    chain: CellChannels, cells: CellSizes, sent: _Sent, users: bool
) -> tuple[Any, Any]:
    """Of what was sent, if the value stayed, and if it moved (or two users sent it)."""
    # Up to a factor that both have, and that is e^(-log_ratio) to the most often sent symbol of
    # each stretch.
    p, q, k = chain.p1, chain.q1, cells.values
    shown = sent.shown
    tops = [part.max(axis=-1, keepdims=True) for part in (sent.before, sent.after)]
    shares = np.where(shown, cells.values_in(sent.rows[..., None], sent.symbols) / k, 0.0)
    ratios = [
        np.where(shown, np.exp(chain.log_ratio * (part - top)), 0.0)
        for part, top in zip((sent.before, sent.after), tops, strict=True)
    ]
    never = [np.exp(-chain.log_ratio * top[..., 0]) for top in tops]
    # What symbols that were never sent add: so many, their share of values, and its squares.
    rest = [
        chain.g - shown.sum(axis=-1),
        np.maximum(1 - shares.sum(axis=-1), 0.0),
        np.maximum(cells.squares(sent.rows) / k**2 - (shares**2).sum(axis=-1), 0.0),
    ]

    def total(power: int, *stretches: int) -> Any:
        """Sum over symbols of share^power times their likelihood ratios in these stretches."""
        terms, last = shares**power, rest[power]
        for stretch in stretches:
            terms, last = terms * ratios[stretch], last * never[stretch]
        return terms.sum(axis=-1) + last

    def by_cell(power: int) -> Any:
        """Sum over cells of share^power times both stretches' ratios, by memos of their own."""
        crossed = plain[0] * total(power, 1) + plain[1] * total(power, 0)
        alone = np.asarray(total(power)) * plain[0] * plain[1]
        return q * q * alone + q * (p - q) * crossed + (p - q) ** 2 * total(power, 0, 1)

    plain = total(0, 0), total(0, 1)
    own_cell = total(1, 0), total(1, 1)
    once, twice, both = total(1, 0, 1), total(2, 0, 1), total(0, 0, 1)
    stayed = q * both + (p - q) * once
    memos = [q * share + (p - q) * own for share, own in zip(plain, own_cell, strict=True)]
    if users:
        return stayed, np.maximum(k * memos[0] * memos[1] - by_cell(1), 0.0) / (k - 1)
    collide = (k * total(2) - 1) / (k - 1)
    within = q * both * collide + (p - q) * (k * twice - once) / (k - 1)
    if chain.table is None:
        across = k * (memos[0] * memos[1] - by_cell(2)) / (k - 1)
    else:
        identity, constant, permuted = chain.table
        across = identity * k * (own_cell[0] * own_cell[1] - twice) / (k - 1)
        apart = (plain[0] * plain[1] - both) / (chain.g * (chain.g - 1))
        across += (1 - collide) * (constant * both / chain.g + permuted * apart)
    return stayed, np.maximum(within, 0.0) + np.maximum(across, 0.0)


def _single(chain: CellChannels, cells: CellSizes, users: bool) -> AUC:
    """Of one report before and one after: they agree on a symbol, or are two."""
    rows, g = len(cells.weight), chain.g
    even = cells.sizes is None
    one, two = np.nonzero(~np.eye(2 if even else g, dtype=bool))
    pairs = np.stack([one, two], axis=-1)[None]
    own = np.arange(rows)[:, None]
    alike = _Sent(own, np.arange(1 if even else g)[None, :, None], *[np.ones((1, 1, 1))] * 3)
    apart = _Sent(own, pairs, np.array([1, 0]), np.array([0, 1]), np.ones(pairs.shape))
    pmfs = []
    for sent, times in ((alike, g), (apart, g * (g - 1) / 2)):
        likelihoods = _likelihoods(chain, cells, sent._replace(shown=sent.shown == 1), users)
        pmfs.append([pmf * (times if even else 1) for pmf in likelihoods])
    stayed, moved = (np.concatenate(parts, axis=1) for parts in zip(*pmfs, strict=True))
    return _auc(cells, stayed, moved)


def _enumerated(chain: CellChannels, cells: CellSizes, reports: int, users: bool) -> AUC:
    """Over how often every symbol can be sent."""
    counts = np.array(list(_compositions(reports, chain.g)))
    ways = [math.lgamma(reports + 1) - sum(math.lgamma(m + 1) for m in row) for row in counts]
    logs = np.array(ways) + chain.log_ratio * counts.max(axis=1)
    times = np.exp(logs - logs.max())
    rows = np.arange(len(cells.weight))[:, None, None]
    symbols = np.arange(chain.g)[None, None, None]
    shown = np.full(symbols.shape, True)
    sent = _Sent(rows, symbols, counts[None, :, None], counts[None, None], shown)
    stayed, moved = (
        (pmf * times[:, None] * times).reshape(len(cells.weight), -1)
        for pmf in _likelihoods(chain, cells, sent, users)
    )
    return _auc(cells, stayed, moved)


def _compositions(total: int, parts: int) -> Any:
    """All ways to send so many reports of so many symbols."""
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        ends = (-1, *bars, total + parts - 1)
        yield [b - a - 1 for a, b in itertools.pairwise(ends)]


def _auc(cells: CellSizes, stayed: Array, moved: Array) -> AUC:
    weight = cells.weight[:, None]
    return _seen(cells, best_auc(weight * stayed, weight * moved, drawn=cells.drawn))


def _seen(cells: CellSizes, auc: AUC) -> AUC:
    """At most, if the keys that were not drawn tell all."""
    if not cells.drawn:
        return auc
    return auc._replace(auc=auc.auc + cells.unseen * (1 - auc.auc))


def _drawn(chain: CellChannels, cells: CellSizes, reports: int, users: bool) -> AUC:
    """Over cases of both kinds; each stands for both, as likely as it is under either."""
    rng = np.random.default_rng(SEED)
    rows = len(cells.weight)
    width = 2 * min(chain.g, _DENSE) if chain.g <= _DENSE else 4 * reports
    each = max(1, int(np.clip(_DRAWN_NUMBERS // width, _FEWEST, _MOST)) // rows)
    if cells.drawn:
        own = np.repeat(np.arange(rows), each)
    else:
        own = np.sort(rng.choice(rows, rows * each, p=cells.weight))
    shares = []
    for moved in (False, True):
        memos = _memos(chain, cells, own, moved, users, rng)
        parts = [_report(chain, memo, reports, rng) for memo in memos]
        stay, move = _by_parts(chain, cells, own, parts, users)
        shares.append(stay / (stay + move))
    stayed = np.stack(shares, axis=1)
    if cells.drawn:
        stayed = stayed.reshape(rows, -1)
    return _seen(cells, best_auc(stayed, 1 - stayed, drawn=True))


def _by_parts(
    chain: CellChannels, cells: CellSizes, rows: Array, sent: list[Any], users: bool
) -> Any:
    """`_likelihoods` of cases, as many at a time as stay in the cache."""
    before, after = sent
    step = max(1, AT_ONCE // before.shape[1])
    pieces = [
        _likelihoods(chain, cells, _sent(chain, rows[part], before[part], after[part]), users)
        for part in (slice(first, first + step) for first in range(0, len(rows), step))
    ]
    return (np.concatenate(pmf) for pmf in zip(*pieces, strict=True))


def _memos(
    chain: CellChannels, cells: CellSizes, rows: Array, moved: bool, users: bool, rng: Any
) -> tuple[Any, Any]:
    """What is memoised before, and after."""
    k, g, cases = cells.values, chain.g, len(rows)
    values = rng.integers(0, k, size=cases)
    others = (values + rng.integers(1, k, size=cases)) % k if moved else values
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    blocks = list(zip(starts, np.append(starts[1:], cases), strict=True))
    one, two = (
        np.concatenate([cells.find(rows[a], part[a:b]) for a, b in blocks])
        for part in (values, others)
    )

    def memo(cell: Array) -> Any:
        return np.where(rng.random(cases) < chain.p1, cell, _other(cell, g, rng))

    before = memo(one)
    if users and moved:
        return before, memo(two)
    after = memo(two)
    if chain.table is not None:
        kind = rng.choice(3, size=cases, p=np.array(chain.table) / sum(chain.table))
        symbol = rng.integers(0, g, size=cases)
        before = np.where(kind == 0, one, symbol)
        after = np.choose(kind, [two, symbol, _other(symbol, g, rng)])
    return before, np.where(one == two, before, after)


def _other(symbols: Array, g: int, rng: Any) -> Any:
    other = rng.integers(0, g - 1, size=symbols.shape)
    return other + (other >= symbols)


def _report(chain: CellChannels, memos: Array, reports: int, rng: Any) -> Any:
    """Counts int[cases, g] where g is small, else the symbols themselves int[cases, reports]."""
    if chain.g <= _DENSE:
        own = np.arange(chain.g) == memos[:, None]
        chances = np.where(own, chain.p2, (1 - chain.p2) / (chain.g - 1))
        return rng.multinomial(reports, chances / chances.sum(axis=1, keepdims=True))
    sent = np.broadcast_to(memos[:, None], (len(memos), reports))
    return np.where(rng.random(sent.shape) < chain.p2, sent, _other(sent, chain.g, rng))


def _sent(chain: CellChannels, rows: Array, before: Array, after: Array) -> _Sent:
    if chain.g <= _DENSE:
        symbols = np.broadcast_to(np.arange(chain.g), before.shape)
        return _Sent(rows, symbols, before, after, np.full(before.shape, True))
    both = np.concatenate([before, after], axis=1)
    order = np.argsort(both, axis=1, kind="stable")
    ranked = np.take_along_axis(both, order, axis=1)
    rank = np.cumsum(np.diff(ranked, axis=1, prepend=-1) != 0, axis=1) - 1
    cases, width = both.shape
    places = rank + width * np.arange(cases)[:, None]
    symbols = np.zeros(cases * width, dtype=np.int64)
    symbols[places] = ranked
    counts = [
        np.bincount(places[part], minlength=cases * width).reshape(cases, width)
        for part in (order < before.shape[1], order >= before.shape[1])
    ]
    shown = counts[0] + counts[1] > 0
    return _Sent(rows, symbols.reshape(cases, width), counts[0], counts[1], shown)


def log_ratios(chain: CellChannels, k: int, sizes: Array, before: Array, after: Array) -> Any:
    """ln of the likelihood ratio of a move, of users of whom each has such cells: float64[n]."""
    cells = CellSizes(sizes, k, np.ones(len(sizes)))
    shown = np.full(sizes.shape, True)
    sent = _Sent(np.arange(len(sizes)), np.broadcast_to(np.arange(chain.g), sizes.shape), before,
                 after, shown)  # fmt: skip
    stay, move = _likelihoods(chain, cells, sent, users=False)
    with np.errstate(divide="ignore"):
        return np.log(move) - np.log(stay)
