"""Many devices side by side, each report of which is kept: what clients do, over arrays.

Draws are exact: `numpy.random.Generator.random` gives multiples of 2^-53, and thresholds are
integers out of 2^53.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.rules.channels import BitChannel, SymbolChannel
from loloha.rules.encodings import Encoding, Hashed, OneHot, SampledBuckets
from loloha.rules.protocols import Protocol
from loloha.rules.rng import SCALE

if TYPE_CHECKING:
    from loloha.rules.counting.arrays import Ints

# Bits that are drawn at once, so that temporaries stay small.
_BITS_AT_ONCE = 1 << 22
# A table of all cells of all users is quicker than numbering the cells that are visited.
_CELLS_A_ROUND = 4


def reports(
    protocol: Protocol, values: Ints, rng: np.random.Generator
) -> Iterator[tuple[Any, Any, Any]]:
    """What new users who hold ``values`` send, round by round.

    Parameters
    ----------
    protocol : Protocol
    values : int[n, tau]
        0..k-1; -1 where a user does not report.
    rng : numpy.random.Generator

    Yields
    ------
    rows : bool[n]
        Who reports in the round.
    keys, ys : arrays
        Their reports, as `Tally.update` takes them.

    Notes
    -----
    The law is the one of `Client`: a key for ever, one permanent answer for each memo symbol that
    a user visits, a fresh answer each round; one-round rules draw all of it anew.
    """
    there = values >= 0
    held = np.where(there, values, 0)
    if not protocol.longitudinal:
        for t in range(values.shape[1]):
            rows = there[:, t]
            keys = draw_keys(protocol.encoding, int(rows.sum()), rng)
            x = memo_indices(protocol.encoding, keys, held[rows, t])
            yield rows, keys, _first(protocol, x, rng)
        return
    keys = draw_keys(protocol.encoding, len(values), rng)
    symbols = np.stack(
        [memo_indices(protocol.encoding, keys, held[:, t]) for t in range(values.shape[1])], axis=1
    )
    cells, owners = _cells(symbols, protocol.encoding.memo_symbols)
    memo = _first(protocol, owners, rng)
    for t in range(values.shape[1]):
        rows = there[:, t]
        sent = None if keys is None else keys[rows]
        yield rows, sent, _second(protocol, memo[cells[rows, t]], rng)


def _cells(symbols: Ints, size: int) -> tuple[Ints, Ints]:
    """Which memo cell each symbol is, int64[n, tau], and the symbol of each cell."""
    n, tau = symbols.shape
    cells = symbols + size * np.arange(n)[:, None]
    if size <= _CELLS_A_ROUND * tau:
        return cells, np.tile(np.arange(size), n)
    visited, numbered = np.unique(cells, return_inverse=True)
    return numbered.reshape(cells.shape), visited % size


def draw_keys(encoding: Encoding, n: int, rng: np.random.Generator) -> Any:
    """The keys of n users."""
    if isinstance(encoding, Hashed):
        return encoding.family.draw_many(n, rng)
    if isinstance(encoding, SampledBuckets):
        rank = rng.random((n, encoding.b)).argsort(axis=1)
        return np.sort(rank[:, : encoding.d], axis=1)
    return None


def memo_indices(encoding: Encoding, keys: Any, values: Ints) -> Ints:
    """The memo symbols of n values under n keys."""
    if isinstance(encoding, Hashed):
        return encoding.family.hash_many(keys, values)
    if isinstance(encoding, SampledBuckets):
        here = keys == (values * encoding.b // encoding.k)[:, None]
        return np.where(here.any(axis=1), here.argmax(axis=1), encoding.d)
    return values


def _first(protocol: Protocol, x: Ints, rng: np.random.Generator) -> Any:
    """Permanent answers to memo symbols."""
    channel = protocol.first_channel
    if isinstance(channel, SymbolChannel):
        return _draw_symbols(channel, x, rng)
    places = np.arange(_size(protocol.encoding))
    return _draw_bits(channel, len(x), len(places), rng, lambda rows: x[rows, None] == places)


def _second(protocol: Protocol, answers: Any, rng: np.random.Generator) -> Any:
    """Fresh answers to permanent ones."""
    channel = protocol.second_channel
    if channel is None:
        return answers
    if isinstance(channel, SymbolChannel):
        return _draw_symbols(channel, answers, rng)
    size = _size(protocol.encoding)

    def are_set(rows: slice) -> Any:
        return np.unpackbits(answers[rows], axis=1, count=size, bitorder="little").astype(bool)

    return _draw_bits(channel, len(answers), size, rng, are_set)


def _draw_symbols(channel: SymbolChannel, x: Ints, rng: np.random.Generator) -> Ints:
    lies = np.flatnonzero(rng.random(len(x)) >= channel.keep / SCALE)
    y = x.copy()
    if channel.g == 2:
        y[lies] ^= 1
        return y
    others = rng.integers(0, channel.g - 1, size=len(lies))
    y[lies] = others + (others >= x[lies])
    return y


def _draw_bits(
    channel: BitChannel,
    n: int,
    size: int,
    rng: np.random.Generator,
    are_set: Callable[[slice], Any],
) -> Any:
    """Packed rows of ``size`` bits, uint8[n, bytes]."""
    packed = np.empty((n, (size + 7) // 8), dtype=np.uint8)
    step = max(1, _BITS_AT_ONCE // size)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        bits = are_set(rows)
        chances = np.where(bits, channel.set / SCALE, channel.unset / SCALE)
        packed[rows] = np.packbits(rng.random(bits.shape) < chances, axis=1, bitorder="little")
    return packed


def _size(encoding: Any) -> int:
    """Bits of an answer."""
    return int(encoding.k if isinstance(encoding, OneHot) else encoding.d)
