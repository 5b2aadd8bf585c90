"""Loops over reports: counting answers into cells."""

from __future__ import annotations

import numpy as np

from loloha.arrays import Array, Bytes, Ints, Words
from loloha.counting.compiled import compiled
from loloha.hashing import HashFamily, ModularHash

# Elements of a batch that are expanded at once, so that temporaries stay small.
AT_ONCE = 1 << 22

_COUNTING, _ROWS = "counting", "rows"


def count_symbols(counts: Ints, ys: Ints) -> bool:
    """counts[y] += 1 for each y; nothing, and False, if one is out of range."""
    loops = compiled(_COUNTING, len(ys))
    if loops:
        return bool(loops.count_symbols(counts, ys))
    if not _within(ys, 0, len(counts)):
        return False
    _add_one(counts, ys)
    return True


def count_pairs(counts: Ints, keys: Ints, ys: Ints, g: int, least: int) -> bool:
    """counts[key * g + y] += 1 for each report; nothing, and False, if one is out of range."""
    loops = compiled(_COUNTING, len(ys))
    if loops:
        return bool(loops.count_pairs(counts, keys, ys, g, least))
    if not (_within(keys, least, len(counts) // g) and _within(ys, 0, g)):
        return False
    _add_one(counts, keys * g + ys)
    return True


def count_rounds(counts: Ints, keys: Ints | None, ys: Array, g: int) -> None:
    """counts[t, key * g + y] += 1 for each y >= 0 of int[tau, n]; without keys [t, y]."""
    starts = np.zeros(0, dtype=np.int64) if keys is None else keys
    loops = compiled(_COUNTING, ys.size)
    if loops:
        loops.count_rounds(counts, starts, ys, g)
        return
    for t, answers in enumerate(ys):
        sent = answers >= 0
        cells = answers[sent].astype(np.int64)
        _add_one(counts[t], cells if keys is None else keys[sent] * g + cells)


def count_lines(counts: Ints, lines: Ints, factors: Ints, ys: Array) -> None:
    """counts[t, line, factor * y mod g] += 1 for each y >= 0 of int[tau, n]."""
    loops = compiled(_COUNTING, ys.size)
    if loops:
        loops.count_lines(counts, lines, factors, ys)
        return
    g = counts.shape[2]
    for each, answers in zip(counts, ys, strict=True):
        sent = answers >= 0
        symbols = factors[sent] * answers[sent] % g
        _add_one(each.reshape(-1), lines[sent] * g + symbols)


def count_preimages(counts: Ints, family: HashFamily, keys: Ints, ys: Ints) -> None:
    """counts[v] += 1 for each valid report and each v that its hash maps to its symbol."""
    loops = compiled(_COUNTING, len(keys) * family.k)
    if loops and isinstance(family, ModularHash):
        loops.count_modular(counts, *family.split(keys), ys, family.modulus, family.g)
        return
    step = max(1, AT_ONCE // family.k)
    values = np.arange(family.k, dtype=np.int64)
    for start in range(0, len(keys), step):
        part = slice(start, start + step)
        hashed = family.hash_many(keys[part, None], values)
        counts += (hashed == ys[part, None]).sum(axis=0)


def count_bits(counts: Ints, ys: Bytes) -> None:
    """counts[v] += bit v of each valid row, packed eight to a byte, first bit lowest."""
    bins, width = len(counts), (len(counts) + 63) // 64
    step = max(1, AT_ONCE // bins)
    for start in range(0, len(ys), step):
        rows = np.zeros((len(ys[start : start + step]), 8 * width), dtype=np.uint8)
        rows[:, : ys.shape[1]] = ys[start : start + step]
        each = np.arange(len(rows), dtype=np.int32)
        add_rows(counts[None], rows.view("<u8").astype(np.uint64, copy=False), each, each[None])


def count_buckets(ones: Ints, buckets: Ints, ys: Bytes) -> None:
    """ones[buckets[i, l]] += bit l of each valid row, packed as for `count_bits`."""
    loops = compiled(_COUNTING, buckets.size)
    if loops:
        loops.count_buckets(ones, buckets, ys)
        return
    step = max(1, AT_ONCE // buckets.shape[1])
    for start in range(0, len(ys), step):
        part = slice(start, start + step)
        bits = np.unpackbits(ys[part], axis=1, count=buckets.shape[1], bitorder="little")
        ones += np.bincount(buckets[part][bits.astype(bool)], minlength=len(ones))


def add_rows(sums: Ints, rows: Words, row_of: Array, slots: Array) -> None:
    """sums[t, v] += bit v of rows[row_of[slots[t, u]]], over all u; -1 means none in both."""
    # Rows are uint64[any, ceil(bins / 64)], first bit lowest.
    loops = compiled(_ROWS, slots.size * rows.shape[1])
    if loops:
        loops.add_rows(sums, rows, row_of, slots)
        return
    packed = rows.astype("<u8", copy=False).view(np.uint8)
    bins = sums.shape[1]
    step = max(1, AT_ONCE // bins)
    for t, chosen in enumerate(slots):
        present = row_of[chosen[chosen >= 0]]
        present = present[present >= 0]
        for start in range(0, len(present), step):
            taken = packed[present[start : start + step]]
            bits = np.unpackbits(taken, axis=1, count=bins, bitorder="little")
            sums[t] += bits.sum(axis=0, dtype=np.int64)


def _within(numbers: Ints, low: int, high: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= low and numbers.max() < high)


def _add_one(counts: Ints, cells: Ints) -> None:
    if len(cells) * 8 < len(counts):
        # A few reports must not cost a pass over a table of millions of cells.
        np.add.at(counts, cells, 1)
    else:
        counts += np.bincount(cells, minlength=len(counts))
