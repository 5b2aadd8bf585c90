"""The values that each user ever has, as a simulation needs them, computed once."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from loloha.arrays import Array, Ints
from loloha.counting.compiled import compiled
from loloha.counting.kernels import count_symbols

# Users of a block: their rows of memoised bits should stay in the second cache.
USERS_AT_ONCE = 512
# Reports of a block: at least, so that short histories make long blocks, and at most.
FEWEST_AT_ONCE, MOST_AT_ONCE = 1 << 16, 1 << 18


class Block(NamedTuple):
    """Some users and their distinct (user, value) pairs, in the order of their first visit."""

    part: slice  # The users, of all users.
    slots: Any  # int32[tau, users]: which pair each report comes from, -1 where there is none.
    users: Any  # int32[pairs], ascending, counted from the first of the block.
    values: Any  # int32[pairs], as what follows.
    rounds: Any  # Of the first visit.
    visits: Any  # Reports of each pair.


class Visits:
    """The values 0..size-1 that each user holds, int[n, tau]; -1 where one sends nothing."""

    def __init__(self, values: Array, size: int, blocks: list[Block] | None = None) -> None:
        self.n, self.tau = values.shape
        self.size = size
        self.blocks = _blocks(values, size) if blocks is None else blocks

    @classmethod
    def of_round(cls, values: Array, size: int) -> Visits:
        """The only round of users who all send."""
        n = len(values)
        users = np.arange(n, dtype=np.int32)
        never, once = np.zeros(n, dtype=np.int32), np.ones(n, dtype=np.int32)
        block = Block(slice(0, n), users[None], users, int32(values), never, once)
        return cls(values[:, None], size, [block] if n else [])

    @cached_property
    def per_user(self) -> Ints:
        """Number of distinct values of each user, int64[n]."""
        parts = [np.bincount(block.users, minlength=block.slots.shape[1]) for block in self.blocks]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    @cached_property
    def present(self) -> Ints:
        """Number of reports of each round, int64[tau]."""
        total = np.zeros(self.tau, dtype=np.int64)
        for block in self.blocks:
            everybody = int(block.visits.sum()) == block.slots.size
            total += block.slots.shape[1] if everybody else (block.slots >= 0).sum(axis=1)
        return total

    @cached_property
    def single(self) -> Ints:
        """Reports of each round and value that are the only one of their pair, int64[tau, size]."""
        single = np.zeros((self.tau, self.size), dtype=np.int64)
        for block in self.blocks:
            once = np.flatnonzero(block.visits == 1)
            cells = block.rounds[once].astype(np.int64) * self.size + block.values[once]
            count_symbols(single.reshape(-1), cells)
        return single


def int32(values: Array) -> Any:
    """``values`` as a contiguous array of 32-bit integers, which the compiled loops take."""
    return np.ascontiguousarray(values, dtype=np.int32)


def merge(users: Array, symbols: Array, size: int) -> tuple[Any, Any]:
    """The number of each pair in order of first visits, and where each was first; users ascend."""
    merged, firsts = np.empty((2, len(users)), dtype=np.int32)
    loops = compiled("cells", len(users))
    if loops:
        count = loops.merge(users, symbols, size, merged, firsts)
        return merged, firsts[:count]
    _, first, inverse = np.unique(
        users.astype(np.int64) * size + symbols, return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[inverse], first[order].astype(np.int32)


def _blocks(values: Array, size: int) -> list[Block]:
    n, tau = values.shape
    users = min(max(USERS_AT_ONCE, FEWEST_AT_ONCE // max(1, tau)), MOST_AT_ONCE // max(1, tau))
    step = max(1, users)
    parts = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    return [_block(part, int32(values[part]), size) for part in parts]


def _block(part: slice, values: Array, size: int) -> Block:
    n, tau = values.shape
    slots = np.empty((tau, n), dtype=np.int32)
    loops = compiled("cells", values.size)
    if loops:
        pairs = np.empty((4, n * min(tau, size)), dtype=np.int32)
        count = loops.number_visits(values, size, slots, *pairs)
        return Block(part, slots, *pairs[:, :count].copy())
    sent = values >= 0
    users, rounds = (indices.astype(np.int32) for indices in np.nonzero(sent))
    visited = values[sent]
    pairs, firsts = merge(users, visited, size)
    numbered = np.full((n, tau), -1, dtype=np.int32)
    numbered[sent] = pairs
    slots[:] = numbered.T
    visits = np.bincount(pairs, minlength=len(firsts)).astype(np.int32)
    return Block(part, slots, users[firsts], visited[firsts], rounds[firsts], visits)
