"""Populations that send symbols: GRR and local hashing, in one round or two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from loloha.arrays import Array, Ints
from loloha.counting.compiled import compiled
from loloha.counting.decode import line_support
from loloha.counting.kernels import add_rows, count_lines, count_preimages, count_rounds
from loloha.encodings import Encoding, Hashed
from loloha.hashing import HashFamily, LinearHash, ModularHash, PrimeHash
from loloha.population.samplers import rows
from loloha.population.samplers.draws import Draws
from loloha.population.samplers.sample import Chain, Progress, Reports
from loloha.population.samplers.visits import Block, Visits, merge

# Cells of the counts of the rounds that are counted together, and their reports.
CELLS_AT_ONCE, REPORTS_AT_ONCE = 1 << 22, 1 << 19
# Words of the preimages of one block of users.
WORDS_AT_ONCE = 1 << 20
# Cost of a table cell per round, in words of preimages.
CELL_COST = 2


def sample_symbols(
    encoding: Any, chain: Chain, visits: Visits, draws: Draws, progress: Progress
) -> tuple[Ints, Iterator[Ints]]:
    """A memoised symbol for each value, or cell of the hash; then a fresh one for each report."""
    keys, cells_of = _keyed(encoding, visits, draws)
    memos, answers = memoise(encoding.symbols, cells_of, chain, visits, draws, progress)
    count = count_cells if keys is None or encoding.tabled else _expanded
    if count is _expanded and type(encoding.family) is LinearHash:
        count = _folded
    return answers, count(encoding, chain, keys, memos, draws, progress)


def report_symbols(encoding: Any, chain: Chain, visits: Visits, draws: Draws) -> Iterator[Reports]:
    """The draws of `sample_symbols`, round by round, and not counted."""
    keys, cells_of = _keyed(encoding, visits, draws)
    memos, _ = memoise(encoding.symbols, cells_of, chain, visits, draws, lambda _: None)
    return reports_of(chain, keys, memos, draws)


def reports_of(chain: Chain, keys: Ints | None, memos: Array, draws: Draws) -> Iterator[Reports]:
    """Fresh answers from the memoised ones of each round."""
    for round_memos in memos:
        senders = round_memos >= 0
        ys = _answers_of(chain, round_memos[senders], draws).astype(np.int64)
        yield Reports(senders, None if keys is None else keys[senders], ys)


def _keyed(encoding: Any, visits: Visits, draws: Draws) -> tuple[Ints | None, _CellsOf]:
    """The keys of all users, where they have any, and what tells the memo cells of a block."""
    if not encoding.key_bits:
        return None, _own_values
    keys = draws.keys(encoding.family, visits.n)
    return keys, partial(_hashed_values, encoding.family, keys)


def memoise(
    g: int, cells_of: _CellsOf, chain: Chain, visits: Visits, draws: Draws, progress: Progress
) -> tuple[Any, Ints]:
    """The memoised symbol of each report int[tau, n] or -1, and how many memo cells users have."""
    n, tau = visits.n, visits.tau
    answers = np.zeros(n, dtype=np.int64)
    memos = np.empty((tau, n), dtype=np.int16 if g < 1 << 15 else np.int32)
    for block in visits.blocks:
        users, symbols, cell_of = cells_of(block)
        memo = _answers(chain.first, users, symbols, block.slots.shape[1], draws).astype(
            memos.dtype
        )
        _spread(memo if cell_of is None else memo[cell_of], block.slots, memos[:, block.part])
        answers[block.part] = np.bincount(users, minlength=block.slots.shape[1])
        progress(block.part.stop / n / 2)
    return memos, answers


_CellsOf = Callable[[Block], tuple[Any, Any, Any]]
"""User and symbol of each memo cell of a block, and the cell of each of its values."""


def _own_values(block: Block) -> tuple[Any, Any, None]:
    return block.users, block.values, None


def _hashed_values(family: HashFamily, keys: Ints, block: Block) -> tuple[Any, Any, Any]:
    symbols = hashed(family, keys[block.part], block)
    cell_of, firsts = merge(block.users, symbols, family.g)
    return block.users[firsts], symbols[firsts], cell_of


def _answers(channel: Any, users: Array, symbols: Array, n: int, draws: Draws) -> Any:
    """The memoised answer of each cell; ``users``, 0..n-1, ascends."""
    if not channel.joint:
        return draws.symbols(channel, symbols)
    answers = np.empty_like(symbols)
    step = max(1, CELLS_AT_ONCE // channel.g)
    for start in range(0, n, step):
        tables = draws.tables(channel, min(step, n - start))
        cells = slice(*np.searchsorted(users, [start, start + step]))
        answers[cells] = tables[users[cells] - start, symbols[cells]]
    return answers


def quickest(encoding: Encoding, n: int, tau: int) -> Encoding:
    """The encoding to count in if no tally is wanted: a table, or the support itself."""
    # A table is cleared and decoded in every round, whatever n. Of the linear family its lines are
    # enough, g - 1 times fewer. Of the prime family a user's hash is expanded once, into rows of k
    # bits, and one row is added a report.
    if type(encoding) is not Hashed or type(encoding.family) not in (LinearHash, PrimeHash):
        return encoding
    if type(encoding.family) is LinearHash:
        return replace(encoding, expanded=encoding.family.g > 2)
    words = (encoding.family.k + 63) // 64
    expanding, tabling = n * (words * tau + encoding.family.k), CELL_COST * encoding.cells * tau
    return replace(encoding, expanded=expanding < tabling)


def hashed(family: HashFamily, keys: Ints, block: Block) -> Any:
    """Symbols of the distinct values of each user of the block, int32[pairs]."""
    users, values = block.users, block.values
    symbols = np.empty(len(users), dtype=np.int32)
    loops = compiled("cells", len(users))
    if loops and type(family) is LinearHash and family.g > 2:
        low = family.g ** ((family.m + 1) // 2)
        high_of, low_of = np.divmod(np.arange(family.k, dtype=np.int32), np.int32(low))
        loops.hash_linear(keys, users, values, family.g, low, high_of, low_of, symbols)
    elif loops and isinstance(family, ModularHash):
        loops.hash_modular(*family.split(keys), users, values, family.modulus, family.g, symbols)
    else:
        symbols[:] = family.hash_many(keys[users], values.astype(np.int64))
    return symbols


def _spread(answers: Array, slots: Array, memos: Array) -> None:
    """memos[t, u] = answers[slots[t, u]], -1 where a user sends nothing."""
    loops = compiled("cells", slots.size)
    if loops:
        loops.spread(answers, slots, memos)
    else:
        memos[:] = np.append(answers, answers.dtype.type(-1))[slots]


def count_cells(
    encoding: Any, chain: Chain, keys: Ints | None, memos: Array, draws: Draws, progress: Progress
) -> Iterator[Ints]:
    """Counts of each round where they are a table of keys and symbols."""
    tau, n = memos.shape
    answers = _answers_in_place(chain, memos, draws)
    step = max(1, min(CELLS_AT_ONCE // encoding.cells, REPORTS_AT_ONCE // max(1, n)))
    for start in range(0, tau, step):
        block = answers[start : start + step]
        counts = np.zeros((len(block), encoding.cells), dtype=np.int64)
        count_rounds(counts, keys, block, encoding.symbols)
        progress(0.5 + (start + len(block)) / tau / 2)
        yield from counts


def _folded(
    encoding: Any, chain: Chain, keys: Any, memos: Array, draws: Draws, progress: Progress
) -> Iterator[Ints]:
    """Counts of each round where they are the support, decoded from the lines of linear keys."""
    family = encoding.family
    tau, n = memos.shape
    answers = _answers_in_place(chain, memos, draws)
    lines, factors = family.lines(keys)
    cells = family.line_rows * family.g
    step = max(1, min(CELLS_AT_ONCE // cells, REPORTS_AT_ONCE // max(1, n)))
    for start in range(0, tau, step):
        block = answers[start : start + step]
        counts = np.zeros((len(block), family.line_rows, family.g), dtype=np.int64)
        count_lines(counts, lines, factors, block)
        yield from line_support(counts, family)
        progress(0.5 + (start + len(block)) / tau / 2)


def _expanded(
    encoding: Any, chain: Chain, keys: Any, memos: Array, draws: Draws, progress: Progress
) -> Iterator[Ints]:
    """Counts of each round where they are the support, and each user's hash is expanded once."""
    family = encoding.family
    tau, n = memos.shape
    counts = np.zeros((tau, family.k), dtype=np.int64)
    answers = _answers_in_place(chain, memos, draws)
    per_user = max(tau, min(tau, family.g) * ((family.k + 63) // 64))
    step = max(1, WORDS_AT_ONCE // max(1, per_user))
    for start in range(0, n, step):
        part = slice(start, start + step)
        observed = answers[:, part]
        if tau == 1:
            sent = observed[0] >= 0
            count_preimages(counts[0], family, keys[part][sent], observed[0, sent].astype(np.int64))
        else:
            reported = Visits(observed.T, family.g)
            for block in reported.blocks:
                preimages = rows.preimages(
                    family, keys[part][block.part], block.users, block.values
                )
                add_rows(counts, preimages, np.arange(len(preimages), dtype=np.int32), block.slots)
        progress(0.5 + min(n, start + step) / n / 2)
    yield from counts


def _answers_of(chain: Chain, memos: Array, draws: Draws) -> Any:
    """Answers of these reports, of the shape of ``memos``."""
    if chain.second is None:
        return memos
    return draws.symbols(chain.second, memos)


def _answers_in_place(chain: Chain, memos: Array, draws: Draws) -> Any:
    """Answers of all rounds, round by round: the same draws however they are counted."""
    step = max(1, REPORTS_AT_ONCE // max(1, memos.shape[1]))
    for start in range(0, len(memos), step):
        memos[start : start + step] = _answers_of(chain, memos[start : start + step], draws)
    return memos
