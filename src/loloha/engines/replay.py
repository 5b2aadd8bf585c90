"""The replay guard over arrays: one report of each reporter, chosen as the SQL statement does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from loloha.arrays import Array, Bools, Bytes, Ints


class CountedRows(NamedTuple):
    """Which rows count, bool[n], and how many of the others repeat or contradict them."""

    rows: Bools
    duplicates: int
    conflicts: int


def starts_of(reporters: Bytes) -> Any:
    """The first eight bytes of each pseudonym as one number, uint64[n]."""
    return np.ascontiguousarray(reporters[:, :8]).view(np.uint64).ravel()


def repeated(starts: Array) -> Any:
    """The starts that come more than once, ascending: few or none in an honest log."""
    ordered = np.sort(starts)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def among(starts: Array, few: Array) -> Bools:
    """Which of ``starts`` are among ``few``, ascending and at least one; bool[n]."""
    place = np.searchsorted(few, starts)
    place[place == len(few)] = 0
    matches: Bools = few[place] == starts
    return matches


def admit(reporters: Bytes, keys: Array | None, ys: Array) -> CountedRows:
    """Choose one report of each reporter."""
    rows = np.zeros(len(reporters), dtype=bool)
    if not len(rows):
        return CountedRows(rows, 0, 0)
    _, who = np.unique(_whole(reporters), return_inverse=True)
    rank = _rank(keys, ys)
    order = np.lexsort((rank, who))
    who, rank = who[order], rank[order]
    first = np.flatnonzero(np.r_[True, who[1:] != who[:-1]])
    last = np.r_[first[1:], len(who)] - 1
    smallest = reporters[order[first], 0] < 0x80
    rows[order[np.where(smallest, first, last)]] = True
    further, agree = last - first, rank[first] == rank[last]
    return CountedRows(rows, int(further[agree].sum()), int(further[~agree].sum()))


def _rank(keys: Array | None, ys: Array) -> Ints:
    """Equal for equal reports, ascending with (key, y)."""
    columns = [] if keys is None else [keys.reshape(len(ys), -1)]
    if ys.ndim == 1:
        columns.append(ys[:, None])
    elif keys is None:
        columns.append(ys)
    else:
        bits = np.unpackbits(ys, axis=1, count=keys.shape[1], bitorder="little")
        # As the log writes sampled bits: 2 bucket + bit.
        columns = [2 * keys + bits]
    table = np.concatenate(columns, axis=1) if len(columns) > 1 else columns[0]
    # Valid reports are not negative: big-endian bytes compare as the numbers do.
    wide = np.ascontiguousarray(table.astype(table.dtype.newbyteorder(">")))
    _, rank = np.unique(_whole(wide), return_inverse=True)
    return rank


def _whole(rows: Array) -> Any:
    """Each row as one value that compares by its bytes."""
    packed = np.ascontiguousarray(rows)
    return packed.view(np.dtype((np.void, packed.shape[1] * packed.itemsize))).ravel()
