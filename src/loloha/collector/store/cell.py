"""Counts in parts: only those that a commit touches are read and written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from loloha.rules.counting.arrays import Ints

CELLS = 4096
_WIDTHS = (np.dtype("u1"), np.dtype("<u2"), np.dtype("<u4"), np.dtype("<i8"))


def add_to_parts(parts: dict[int, bytes], cells: Ints, added: Ints, total: int) -> dict[int, bytes]:
    """The parts that hold ``cells``, after adding.

    Parameters
    ----------
    parts : dict of int to bytes
        Those there were, by number.
    cells, added : int64[n]
        As `Encoding.increments` gives them.
    total : int
        Cells of the whole table: the last part is shorter.
    """
    if not cells.size:
        # As a report whose bits are all unset: it counts, and adds to no cell.
        return {}
    numbers = cells // CELLS
    edges = np.flatnonzero(np.diff(numbers)) + 1
    changed = {}
    for place, more in zip(np.split(cells, edges), np.split(added, edges), strict=True):
        number = int(place[0] // CELLS)
        first = number * CELLS
        size = min(CELLS, total - first)
        packed = parts.get(number)
        counts = np.zeros(size, dtype=np.int64) if packed is None else unpack_part(packed, size)
        counts[place - first] += more
        changed[number] = pack_part(counts)
    return changed


def add_parts(parts: dict[int, bytes], more: dict[int, bytes], total: int) -> dict[int, bytes]:
    """The parts that ``more`` has, after adding those of ``parts``."""
    added = {}
    for number, packed in more.items():
        size = min(CELLS, total - number * CELLS)
        counts = unpack_part(packed, size)
        if number in parts:
            counts += unpack_part(parts[number], size)
        added[number] = pack_part(counts)
    return added


def pack_part(counts: Ints) -> bytes:
    """Counts >= 0 in the narrowest integers that hold them, little-endian."""
    largest = int(counts.max())
    width = next(width for width in _WIDTHS if largest <= np.iinfo(width).max)
    return counts.astype(width).tobytes()


def unpack_part(packed: bytes, size: int) -> Ints:
    """What `pack_part` packed; ``size`` tells how many counts it holds."""
    width = {dtype.itemsize: dtype for dtype in _WIDTHS}[len(packed) // size]
    return np.frombuffer(packed, dtype=width).astype(np.int64)


def whole(parts: Iterable[Any], total: int) -> Ints:
    """All counts of a table, int64[total]."""
    counts = np.zeros(total, dtype=np.int64)
    for number, packed in parts:
        place = counts[number * CELLS :][:CELLS]
        place[:] = unpack_part(packed, len(place))
    return counts
