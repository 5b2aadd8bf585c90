"""Populations that send bits: unary encoding in one round or two, and sampled buckets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from loloha.arrays import Array, Bools, Ints
from loloha.channels import BitChannel
from loloha.counting.kernels import add_rows
from loloha.population.samplers import rows
from loloha.population.samplers.draws import Draws
from loloha.population.samplers.sample import Chain, Progress, Reports
from loloha.population.samplers.visits import Block, Visits, merge

# Words of memoised bits, or sampled buckets, that are in memory at once.
WORDS_AT_ONCE = 1 << 22


def sample_bits(
    encoding: Any, chain: Chain, visits: Visits, draws: Draws, progress: Progress
) -> tuple[Ints, Iterator[Ints]]:
    """A row of memoised bits for each cell; the fresh bits only as counts."""
    # Bits are independent, so two things need only be counted, with the same joint distribution:
    # answers that are reported once, and the second round of all answers.
    if not encoding.key_bits:
        ones = _one_hot(visits, encoding.k, chain.first, draws, progress)
        return visits.per_user, iter(_fresh(ones, visits.present[:, None], chain, draws))
    b, d = encoding.b, encoding.d
    if d == b:
        answers = visits.per_user
        ones = _one_hot(visits, b, chain.first, draws, progress)
        eligible: Any = np.broadcast_to(visits.present[:, None], ones.shape)
    else:
        answers = np.zeros(visits.n, dtype=np.int64)
        ones, eligible = np.zeros((2, visits.tau, b), dtype=np.int64)
        for block in visits.blocks:
            answers[block.part] = _sampled(ones, eligible, block, d, chain, draws)
            progress(block.part.stop / visits.n)
    fresh = _fresh(ones, eligible, chain, draws)
    return answers, (np.concatenate(both) for both in zip(fresh, eligible, strict=True))


def report_bits(encoding: Any, chain: Chain, visits: Visits, draws: Draws) -> Iterator[Reports]:
    """A row of memoised bits for each cell, and a fresh one for each report."""
    width, memo, cells = encoding.size, [], []
    keys: Any = np.empty((visits.n, width), dtype=np.int64) if encoding.key_bits else None
    for block in visits.blocks:
        if keys is None:
            drawn = rows.memo_rows(block.values, width, chain.first, draws)
            cell_of = np.arange(len(drawn))
        else:
            b, users = encoding.b, block.slots.shape[1]
            sampled = np.ones((users, b), dtype=bool)
            if width < b:
                sampled = draws.subsets(b, width, users)
            keys[block.part], cell_of, _, drawn = _memoise(
                block.users, block.values, sampled, width, chain, draws
            )
        memo.append(drawn)
        cells.append(cell_of)
    size = (width + 7) // 8
    for t in range(visits.tau):
        slots = [block.slots[t] for block in visits.blocks]
        senders = np.concatenate([np.zeros(0, dtype=bool), *(slot >= 0 for slot in slots)])
        packed = np.empty((int(senders.sum()), size), dtype=np.uint8)
        start = 0
        for slot, drawn, cell_of in zip(slots, memo, cells, strict=True):
            fresh = rows.fresh_rows(drawn[cell_of[slot[slot >= 0]]], width, chain.second, draws)
            packed[start : start + len(fresh)] = rows.octets(fresh)[:, :size]
            start += len(fresh)
        yield Reports(senders, None if keys is None else keys[senders], packed)


def _one_hot(
    visits: Visits, bins: int, channel: BitChannel, draws: Draws, progress: Progress
) -> Ints:
    """Ones among the memoised bits, int64[tau, bins]."""
    ones = np.zeros((visits.tau, bins), dtype=np.int64)
    step = max(1, WORDS_AT_ONCE // ((bins + 63) // 64))
    for block in visits.blocks:
        repeated = np.flatnonzero(block.visits > 1)
        for start in range(0, len(repeated), step):
            pairs = repeated[start : start + step]
            row_of = np.full(len(block.users), -1, dtype=np.int32)
            row_of[pairs] = np.arange(len(pairs), dtype=np.int32)
            memo = rows.memo_rows(block.values[pairs], bins, channel, draws)
            add_rows(ones, memo, row_of, block.slots)
        progress(block.part.stop / visits.n)
    single = visits.single
    ones += draws.binomial(single, channel.set)
    ones += draws.binomial(single.sum(axis=1, keepdims=True) - single, channel.unset)
    return ones


def _sampled(ones: Ints, eligible: Ints, block: Block, d: int, chain: Chain, draws: Draws) -> Ints:
    """Add what users who sampled d buckets memoise, and which they sampled; cells of each user."""
    n, b = block.slots.shape[1], ones.shape[1]
    answers = np.zeros(n, dtype=np.int64)
    step = max(1, WORDS_AT_ONCE // b)
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        pairs = slice(*np.searchsorted(block.users, [part.start, part.stop]))
        users, slots = block.users[pairs] - start, block.slots[:, part]
        slots = np.where(slots < 0, -1, slots - pairs.start)
        sampled = draws.subsets(b, d, part.stop - start)
        buckets, cell_of, firsts, memo = _memoise(
            users, block.values[pairs], sampled, d, chain, draws
        )
        rows.add_scattered(ones, buckets, memo, cell_of, slots)
        answers[part] = np.bincount(users[firsts], minlength=part.stop - start)
        eligible += _reached(slots >= 0, sampled)
    return answers


def _memoise(
    users: Array, values: Array, sampled: Bools, d: int, chain: Chain, draws: Draws
) -> tuple[Any, Any, Any, Any]:
    """Buckets of each user; cell of each (user, bucket) pair; a pair and the memo of each cell."""
    buckets = np.nonzero(sampled)[1].reshape(-1, d).astype(np.int32)
    position = np.full(sampled.shape, d, dtype=np.int32)
    np.put_along_axis(position, buckets, np.arange(d, dtype=np.int32)[None], axis=1)
    symbols = position[users, values]
    cell_of, firsts = merge(users, symbols, d + 1)
    return buckets, cell_of, firsts, rows.memo_rows(symbols[firsts], d, chain.first, draws)


def _reached(sent: Bools, sampled: Bools) -> Any:
    """Users who sent and who sampled the bucket, int64[tau, b]."""
    if sent.all():
        return sampled.sum(axis=0)
    return (sent.astype(np.float64) @ sampled.astype(np.float64)).astype(np.int64)


def _fresh(ones: Ints, eligible: Ints, chain: Chain, draws: Draws) -> Ints:
    """Ones after the second round, where there is one."""
    if chain.second is None:
        return ones
    still = draws.binomial(ones, chain.second.set)
    return still + draws.binomial(eligible - ones, chain.second.unset)
