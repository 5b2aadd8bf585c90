"""Populations that send one bit of a number: whether it reaches a threshold of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from loloha.arrays import Ints
from loloha.population.samplers.draws import Draws
from loloha.population.samplers.sample import Chain, Progress, Reports
from loloha.population.samplers.symbol import count_cells, memoise, reports_of
from loloha.population.samplers.visits import Block, Visits, merge


def sample_thresholds(
    encoding: Any, chain: Chain, visits: Visits, draws: Draws, progress: Progress
) -> tuple[Ints, Iterator[Ints]]:
    """A memoised bit for each side of the threshold; then a fresh one for each report."""
    rows = _rows(encoding, visits, draws)
    memos, answers = memoise(2, partial(_sides, rows), chain, visits, draws, progress)
    keys = rows if encoding.key_bits else None
    return answers, count_cells(encoding, chain, keys, memos, draws, progress)


def report_thresholds(
    encoding: Any, chain: Chain, visits: Visits, draws: Draws
) -> Iterator[Reports]:
    """The draws of `sample_thresholds`, round by round, and not counted."""
    rows = _rows(encoding, visits, draws)
    memos, _ = memoise(2, partial(_sides, rows), chain, visits, draws, lambda _: None)
    return reports_of(chain, rows + 1 if encoding.key_bits else None, memos, draws)


def _rows(encoding: Any, visits: Visits, draws: Draws) -> Ints:
    """Row of counts of each user, int64[n]: one below the threshold."""
    rows: Ints = draws.below(encoding.k - 1, visits.n).astype("int64")
    return rows


def _sides(rows: Ints, block: Block) -> tuple[Any, Any, Any]:
    symbols = (block.values > rows[block.part][block.users]).astype("int32")
    cell_of, firsts = merge(block.users, symbols, 2)
    return block.users[firsts], symbols[firsts], cell_of
