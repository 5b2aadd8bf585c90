"""Loops over reports: counting answers into cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.arrays import Ints
from loloha.hashing import HashFamily

# Rows of a batch that are expanded at once, so that temporaries stay small.
PAIRS_AT_ONCE = 1 << 22


def count_symbols(counts: Ints, ys: Ints) -> None:
    """counts[y] += 1 for each y; int64[k] and int64[n]."""
    counts += np.bincount(ys, minlength=len(counts))


def count_pairs(counts: Ints, keys: Ints, ys: Ints, g: int) -> None:
    """counts[key * g + y] += 1 for each report; int64[g^m * g], int64[n], int64[n]."""
    counts += np.bincount(keys * g + ys, minlength=len(counts))


def count_preimages(counts: Ints, family: HashFamily, keys: Ints, ys: Ints) -> None:
    """counts[v] += 1 for each report and each v that its hash maps to its symbol; int64[k]."""
    step = max(1, PAIRS_AT_ONCE // family.k)
    values = np.arange(family.k, dtype=np.int64)
    for start in range(0, len(keys), step):
        part = slice(start, start + step)
        hashed = family.hash_many(keys[part, None], values)
        counts += (hashed == ys[part, None]).sum(axis=0)


def count_bits(counts: Ints, ys: Any) -> None:
    """counts[v] += bit v of each packed row; int64[k] and uint8[n, ceil(k / 8)]."""
    step = max(1, PAIRS_AT_ONCE // len(counts))
    for start in range(0, len(ys), step):
        rows = np.unpackbits(ys[start : start + step], axis=1, count=len(counts), bitorder="little")
        counts += rows.sum(axis=0, dtype=np.int64)
