"""Packed rows of bits: memoised unary answers, and the preimages of reported symbols."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.arrays import Array, Bytes, Ints, Words
from loloha.channels import BitChannel
from loloha.counting.compiled import compiled
from loloha.hashing import HashFamily, ModularHash
from loloha.population.samplers.draws import Draws, unpack
from loloha.rng import SCALE

# Elements that are expanded at once, so that temporaries stay small.
AT_ONCE = 1 << 22


def memo_rows(symbols: Array, width: int, channel: BitChannel, draws: Draws) -> Any:
    """The memoised answer of each cell, uint64[cells, words]; a symbol ``width`` sets no bit."""
    rows = draws.rows(channel.unset, len(symbols), width)
    bits = draws.bits(channel.set, int(np.count_nonzero(symbols < width)))
    loops = compiled("rows", rows.size)
    if loops:
        loops.place(rows, symbols, width, bits)
        return rows
    inside = np.flatnonzero(symbols < width)
    word, bit = symbols[inside] >> 6, np.uint64(1) << (symbols[inside] & 63).astype(np.uint64)
    others = rows[inside, word] & ~bit
    rows[inside, word] = np.where(unpack(bits, len(inside)), others | bit, others)
    return rows


def fresh_rows(memo: Array, width: int, channel: BitChannel | None, draws: Draws) -> Any:
    """A fresh answer to each memoised one, uint64[n, words]; without channel the same."""
    if channel is None:
        return memo
    flipped = draws.rows(channel.unset, len(memo), width)
    if channel.set + channel.unset == SCALE:
        return memo ^ flipped
    return (memo & draws.rows(channel.set, len(memo), width)) | (~memo & flipped)


def octets(rows: Words) -> Bytes:
    """Packed rows, eight bits to a byte, uint8[n, 8 ceil(width / 64)]."""
    packed: Bytes = rows.astype("<u8", copy=False).view(np.uint8)
    return packed


def add_scattered(sums: Ints, buckets: Array, words: Words, cell_of: Array, slots: Ints) -> None:
    """sums[t, buckets[u, l]] += bit l of words[cell_of[slots[t, u]]], where slots[t, u] >= 0."""
    d = buckets.shape[1]
    loops = compiled("rows", slots.size * d)
    if loops:
        loops.add_scattered(sums, buckets, words, cell_of, slots)
        return
    packed = octets(words)
    step = max(1, AT_ONCE // d)
    for t, pairs in enumerate(slots):
        users = np.flatnonzero(pairs >= 0)
        for start in range(0, len(users), step):
            some = users[start : start + step]
            taken = packed[cell_of[pairs[some]]]
            bits = np.unpackbits(taken, axis=1, count=d, bitorder="little").astype(bool)
            sums[t] += np.bincount(buckets[some][bits], minlength=sums.shape[1])


def preimages(family: HashFamily, keys: Ints, users: Array, symbols: Array) -> Any:
    """Bit v of each row: whether the user's hash maps v to the symbol; users ascend."""
    width = (family.k + 63) // 64
    rows = np.zeros((len(users), width), dtype=np.uint64)
    loops = compiled("rows", len(keys) * family.k)
    if loops and isinstance(family, ModularHash):
        a, b = family.split(keys)
        loops.modular_preimages(rows, a, b, users, symbols, family.k, family.modulus, family.g)
        return rows
    values = np.arange(family.k, dtype=np.int64)
    step = max(1, AT_ONCE // family.k)
    for first in range(0, len(keys), step):
        # The values of a user are hashed once, whatever the number of symbols.
        hashed = family.hash_many(keys[first : first + step, None], values)
        taken = slice(*np.searchsorted(users, [first, first + step]))
        bits = hashed[users[taken] - first] == symbols[taken, None]
        packed = np.zeros((len(bits), 8 * width), dtype=np.uint8)
        filled = np.packbits(bits, axis=1, bitorder="little")
        packed[:, : filled.shape[1]] = filled
        rows[taken] = packed.view("<u8")
    return rows
