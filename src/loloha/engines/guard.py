"""The replay guard over arrays: one report of each reporter, chosen as the SQL statement does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from loloha.arrays import Bools, Bytes, Ints


class Admitted(NamedTuple):
    """Which rows count, bool[n], and how many of the others repeat or contradict them."""

    rows: Bools
    duplicates: int
    conflicts: int


def admit(reporters: Bytes, keys: Any, ys: Any) -> Admitted:
    """Choose one report of each reporter.

    Parameters
    ----------
    reporters : uint8[n, 16]
        All rows of a reporter must be here.
    keys, ys : arrays
        Valid reports, in the array form of the protocol's encoding.

    Returns
    -------
    Admitted
        In whatever order the rows come, the same reports are counted.
    """
    rows = np.ones(len(reporters), dtype=bool)
    suspects = _sharing_a_start(reporters)
    if not len(suspects):
        return Admitted(rows, 0, 0)
    _, who = np.unique(_whole(reporters[suspects]), return_inverse=True)
    rank = _rank(None if keys is None else keys[suspects], ys[suspects])
    order = np.lexsort((rank, who))
    suspects, who, rank = suspects[order], who[order], rank[order]
    starts = np.flatnonzero(np.r_[True, who[1:] != who[:-1]])
    ends = np.r_[starts[1:], len(who)] - 1
    smallest = reporters[suspects[starts], 0] < 0x80
    rows[suspects] = False
    rows[suspects[np.where(smallest, starts, ends)]] = True
    further = ends - starts
    agree = rank[starts] == rank[ends]
    return Admitted(rows, int(further[agree].sum()), int(further[~agree].sum()))


def _sharing_a_start(reporters: Bytes) -> Ints:
    """Rows whose first eight bytes come more than once: all that can share a reporter."""
    starts = np.ascontiguousarray(reporters[:, :8]).view(np.uint64).ravel()
    ordered = np.sort(starts)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(repeated):
        return np.zeros(0, dtype=np.int64)
    place = np.searchsorted(repeated, starts)
    place[place == len(repeated)] = 0
    return np.flatnonzero(repeated[place] == starts)


def _rank(keys: Any, ys: Any) -> Ints:
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


def _whole(rows: Any) -> Any:
    """Each row as one value that compares by its bytes."""
    packed = np.ascontiguousarray(rows)
    return packed.view(np.dtype((np.void, packed.shape[1] * packed.itemsize))).ravel()
