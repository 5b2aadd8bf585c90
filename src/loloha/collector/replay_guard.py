"""The replay guard of a round, in memory: first, repeated and conflicting reports.

A hash table over arrays: some 40 bytes a report, and no Python object for any of them. Whoever
chooses pseudonyms chooses nothing about the time that it takes: the hash is keyed, and a search
that goes on for too long draws another key.
"""

from __future__ import annotations

import hashlib
import secrets
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from loloha.arrays import Array, Ints

ROW_BYTES = 24
_SMALLEST = 1 << 10
_MOST_KEYS = 16
MOST_PROBES = 256
"""With half of the slots free, one row of 10^21 is displaced as far by chance."""


class Seen(IntEnum):
    """What the guard knows of a report."""

    NEW = 0
    SAME = 1
    DIFFERENT = 2


class Guard:
    """The reporters of one round, each with a digest of the report that counts."""

    def __init__(self) -> None:
        self._n = 0
        self._names = np.empty((_SMALLEST, 2), dtype=np.uint64)
        self._digests = np.empty(_SMALLEST, dtype=np.uint64)
        self._key = _new_key()
        self._slots = np.full(2 * _SMALLEST, -1, dtype=np.int64)

    def __len__(self) -> int:
        return self._n

    @property
    def capacity(self) -> int:
        """Reports for which it holds memory."""
        return len(self._digests)

    def classify(self, reporters: Array, digests: Array) -> Any:
        """A `Seen` for each of n reports, in the order in which they arrived; nothing is added."""
        # The first of several reports of one new reporter is new.
        _, first, group = np.unique(reporters, return_index=True, return_inverse=True)
        rows = self._find(_names(reporters[first]))
        known = rows >= 0
        counted = np.where(known, self._digests[np.where(known, rows, 0)], digests[first])
        seen = np.where(counted[group] == digests, Seen.SAME, Seen.DIFFERENT).astype(np.int8)
        seen[first[~known]] = Seen.NEW
        return seen

    def add(self, reporters: Array, digests: Array) -> None:
        """Add n new, distinct reporters."""
        n = len(reporters)
        self._reserve(self._n + n)
        rows = np.arange(self._n, self._n + n)
        self._names[rows] = _names(reporters)
        self._digests[rows] = digests
        self._n += n
        self._place(rows)

    def _find(self, names: Array) -> Ints:
        """Row of each name, -1 if there is none."""
        places = np.full(len(names), -1, dtype=np.int64)
        slots, waiting = self._slot(names), np.arange(len(names))
        # No row is further from its slot than `_place` allows.
        for _ in range(MOST_PROBES):
            if not waiting.size:
                break
            rows = self._slots[slots]
            same = (rows >= 0) & (self._names[rows] == names[waiting]).all(axis=1)
            places[waiting[same]] = rows[same]
            go_on = (rows >= 0) & ~same
            waiting, slots = waiting[go_on], (slots[go_on] + 1) & (len(self._slots) - 1)
        return places

    def _place(self, rows: Ints) -> None:
        for _ in range(_MOST_KEYS):
            if self._try_to_place(rows):
                return
            self._key = _new_key()
            self._slots[:] = -1
            rows = np.arange(self._n)
        raise RuntimeError("reporters must differ, got duplicates")

    def _try_to_place(self, rows: Ints) -> bool:
        slots = self._slot(self._names[rows])
        for _ in range(MOST_PROBES):
            if not rows.size:
                return True
            free = self._slots[slots] < 0
            # Of several rows for one slot the last gets it, the others probe on.
            self._slots[slots[free]] = rows[free]
            homeless = self._slots[slots] != rows
            rows, slots = rows[homeless], (slots[homeless] + 1) & (len(self._slots) - 1)
        return not rows.size

    def _slot(self, names: Array) -> Ints:
        """Multilinear hashing of the four 32-bit words: names collide with probability 1/slots."""
        low = np.uint64(0xFFFFFFFF)
        high = np.uint64(32)
        mixed = (names & low) * self._key[:2] + (names >> high) * self._key[2:4]
        shift = np.uint64(64 - (len(self._slots).bit_length() - 1))
        slots: Ints = ((mixed[:, 0] + mixed[:, 1] + self._key[4]) >> shift).astype(np.int64)
        return slots

    def _reserve(self, n: int) -> None:
        """Capacity for n rows, with at most half of the slots taken."""
        if n <= len(self._digests):
            return
        capacity = 1 << (n - 1).bit_length()
        # Memory beyond the rows is written before it is read.
        self._names = np.resize(self._names, (capacity, 2))
        self._digests = np.resize(self._digests, capacity)
        self._slots = np.full(2 * capacity, -1, dtype=np.int64)
        self._place(np.arange(self._n))


def _new_key() -> Any:
    """Five secret words, so that nobody can choose pseudonyms that collide."""
    return np.frombuffer(secrets.token_bytes(40), dtype=np.uint64)


def _names(reporters: Array) -> Any:
    return np.ascontiguousarray(reporters).view(np.uint64).reshape(-1, 2)


def digest_rows(secret: bytes, keys: Array | None, ys: Array) -> Any:
    """Keyed digests of n reports, uint64[n]: useless without the secret."""
    n = len(ys)
    if not n:
        return np.zeros(0, dtype=np.uint64)
    columns = [_bytes(column) for column in (keys, ys) if column is not None]
    rows = np.concatenate(columns, axis=1)
    width, raw = rows.shape[1], rows.tobytes()
    blake = hashlib.blake2b
    digests = [
        blake(raw[start : start + width], digest_size=8, key=secret).digest()
        for start in range(0, n * width, width)
    ]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def _bytes(column: Any) -> Any:
    return np.ascontiguousarray(column).reshape(len(column), -1).view(np.uint8)


def pack(reporters: Array, digests: Array) -> bytes:
    """The rows as bytes, in ascending order of the reporter."""
    # The order of arrival within one commit is lost; the commit of a row is not.
    order = np.argsort(reporters)
    rows = np.empty((len(order), ROW_BYTES), dtype=np.uint8)
    rows[:, :16] = _bytes(reporters[order])
    rows[:, 16:] = _bytes(digests[order])
    return rows.tobytes()


def unpack(packed: bytes) -> tuple[Any, Any]:
    """Reporters S16[n] and digests uint64[n] that `pack` wrote."""
    rows = np.frombuffer(packed, dtype=np.uint8).reshape(-1, ROW_BYTES)
    reporters = np.ascontiguousarray(rows[:, :16]).reshape(-1).view("S16")
    return reporters, np.ascontiguousarray(rows[:, 16:]).reshape(-1).view(np.uint64)
