"""Counts in parts: only those that a commit touches are read and written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.collector.work import CELLS

if TYPE_CHECKING:
    from loloha.arrays import Ints

Place = tuple[int, int]
"""A round, and the number of a part of its counts."""
_WIDTHS = (np.dtype("u1"), np.dtype("<u2"), np.dtype("<u4"), np.dtype("<i8"))


def split(cells: Ints, added: Ints) -> list[tuple[int, Ints, Ints]]:
    """Cells and what is added to them, as `Encoding.increments` gives them, part by part."""
    if not cells.size:
        # As a report whose bits are all unset: it counts, and adds to no cell.
        return []
    numbers = cells // CELLS
    edges = np.flatnonzero(np.diff(numbers)) + 1
    places = zip(np.split(cells, edges), np.split(added, edges), strict=True)
    return [(int(few[0] // CELLS), few, more) for few, more in places]


def add_to_part(packed: bytes | None, number: int, cells: Ints, added: Ints, total: int) -> bytes:
    """One part after adding."""
    first = number * CELLS
    size = min(CELLS, total - first)
    counts = np.zeros(size, dtype=np.int64) if packed is None else unpack_part(packed, size)
    counts[cells - first] += added
    return pack_part(counts)


def add_parts(
    parts: dict[Place, bytes], more: dict[Place, bytes], total: int
) -> dict[Place, bytes]:
    """The parts that ``more`` has, by round and number, after adding those of ``parts``."""
    added = {}
    for place, packed in more.items():
        size = min(CELLS, total - place[1] * CELLS)
        counts = unpack_part(packed, size)
        if place in parts:
            counts += unpack_part(parts[place], size)
        added[place] = pack_part(counts)
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
