"""The engine that needs pyarrow alone: batches of Parquet files through the library's kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from loloha.address import Location, at
from loloha.encodings import Encoding
from loloha.engines.base import Engine, RoundCounts, library
from loloha.engines.replay import admit, among, repeated, starts_of
from loloha.protocols import Protocol
from loloha.reportlog import REPORTER_BYTES, LogFile, column, from_arrow
from loloha.reportlog.arrow import answers_from_arrow
from loloha.reportlog.folder import rows_of

if TYPE_CHECKING:
    from loloha.arrays import Array, Ints

BATCH_BYTES = 1 << 21
"""Small enough that memory is used again, and stays in the cache: twice the speed of 2^24."""
PASS_BYTES = 1 << 30
"""Most bytes of reports that the guard holds at once; a larger round is read several times."""
PIECE_ROWS = 1 << 18
MOST_SHARES = 1 << 16


class Local(Engine):
    """In this process, with threads; also for hashes that SQL does not know."""

    name: ClassVar[str] = "local"
    summary: ClassVar[str] = "pyarrow and the library's kernels in this process"

    def __init__(self, *, threads: int | None = None) -> None:
        self.threads = threads or os.cpu_count() or 1

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        return OSError, library("pyarrow", "engines").ArrowException

    def count(
        self, protocol: Protocol, rounds: Mapping[int, Sequence[LogFile]], *, guard: bool
    ) -> Iterator[RoundCounts]:
        count = self._guarded if guard else self._trusted
        for round, files in rounds.items():
            part = count(protocol, files)
            yield RoundCounts(round, part.counts, part.n, part.duplicates, part.conflicts)

    def _trusted(self, protocol: Protocol, files: Sequence[LogFile]) -> _PartialCounts:
        pieces = [piece for file in files for piece in _pieces(file)]
        threads = max(1, min(self.threads, len(pieces)))
        parts = [_PartialCounts(protocol) for _ in range(threads)]

        def count(thread: int) -> None:
            for piece in pieces[thread::threads]:
                for batch in piece.batches(
                    protocol.encoding, list(column.types(protocol.encoding))
                ):
                    parts[thread].count(*answers_from_arrow(protocol.encoding, batch))

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(count, range(threads)))
        for part in parts[1:]:
            parts[0].add(part)
        return parts[0]

    def _guarded(self, protocol: Protocol, files: Sequence[LogFile]) -> _PartialCounts:
        """Count what no other row can contradict at once, and look closely at the rest."""
        size = rows_of(files) * _row_bytes(protocol.encoding)
        passes = min(1 + size // PASS_BYTES, MOST_SHARES)
        pieces = [piece for file in files for piece in _pieces(file)]
        total = _PartialCounts(protocol)
        with ThreadPoolExecutor(self.threads) as pool:
            for number in range(passes):
                read = partial(_read_share, protocol, share=(number, passes))
                batches = [batch for piece in pool.map(read, pieces) for batch in piece]
                few = self._repeated(batches, pool)
                suspects = self._count_others(batches, few, total, pool)
                if suspects:
                    _count_suspects(suspects, total)
        return total

    def _repeated(self, batches: Sequence[_Batch], pool: ThreadPoolExecutor) -> Any:
        """Starts of pseudonyms that come more than once, ascending, by a share a thread."""

        def of_share(share: int) -> Any:
            # By the lowest byte, so that neither passes nor threads are all in one share.
            here = [s[(s & np.uint64(255)) % np.uint64(self.threads) == share] for s in starts]
            return repeated(np.concatenate(here))

        starts = [batch.starts for batch in batches]
        return np.sort(np.concatenate(list(pool.map(of_share, range(self.threads)))))

    def _count_others(
        self, batches: Sequence[_Batch], few: Array, total: _PartialCounts, pool: ThreadPoolExecutor
    ) -> list[_Batch]:
        """Count all rows but the suspects, and return these."""
        parts = [_PartialCounts(total.protocol) for _ in range(self.threads)]

        def count(thread: int) -> list[_Batch]:
            suspects = []
            for batch in batches[thread :: self.threads]:
                if len(few) and (here := among(batch.starts, few)).any():
                    suspects.append(batch.select(here))
                    batch = batch.select(~here)
                parts[thread].count(batch.keys, batch.ys)
            return suspects

        suspects = [one for share in pool.map(count, range(self.threads)) for one in share]
        for part in parts:
            total.add(part)
        return suspects


class _PartialCounts:
    """Counts of some of a round's reports."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.counts: Ints = np.zeros(protocol.encoding.cells, dtype=np.int64)
        self.n = self.duplicates = self.conflicts = 0

    def count(self, keys: Array | None, ys: Array) -> None:
        """Add those reports that are valid."""
        encoding = self.protocol.encoding
        if not encoding.admit(self.counts, keys, ys):
            keys, ys = _select(encoding.valid(keys, ys), keys, ys)
            encoding.count(self.counts, keys, ys)
        self.n += len(ys)

    def add(self, other: _PartialCounts) -> None:
        self.counts += other.counts
        self.n += other.n
        self.duplicates += other.duplicates
        self.conflicts += other.conflicts


@dataclass(frozen=True)
class _Piece:
    """Some row groups of a file: what one thread reads at a time."""

    path: Location
    groups: list[int]
    footer: Any

    def batches(self, encoding: Encoding, columns: list[str] | None = None) -> Iterator[Any]:
        """Its rows, some at a time, of these columns or all, without reading the footer again."""
        rows = max(1, BATCH_BYTES // _row_bytes(encoding))
        with _open(self.path, metadata=self.footer) as parquet:
            yield from parquet.iter_batches(
                rows, row_groups=self.groups, columns=columns, use_threads=False
            )


def _pieces(file: LogFile) -> Iterator[_Piece]:
    with _open(file.path) as parquet:
        groups, rows = list[int](), 0
        for group in range(parquet.num_row_groups):
            groups.append(group)
            rows += parquet.metadata.row_group(group).num_rows
            if rows >= PIECE_ROWS:
                yield _Piece(file.path, groups, parquet.metadata)
                groups, rows = [], 0
        if groups:
            yield _Piece(file.path, groups, parquet.metadata)


def _open(path: Location, **known: Any) -> AbstractContextManager[Any]:
    parquet = library("pyarrow.parquet", "engines")
    where, filesystem = at(path)
    opened: AbstractContextManager[Any] = parquet.ParquetFile(
        where, filesystem=filesystem, pre_buffer=filesystem is not None, **known
    )
    return opened


class _Batch(NamedTuple):
    """Reports with their reporters, and the first eight bytes of these."""

    reporters: Any
    keys: Any
    ys: Any
    starts: Any

    def select(self, rows: Array) -> _Batch:
        return _Batch(*_select(rows, *self))


def _read_share(protocol: Protocol, piece: _Piece, *, share: tuple[int, int]) -> list[_Batch]:
    """Valid reports of one of several equal shares of all pseudonyms."""
    encoding = protocol.encoding
    number, passes = share
    batches = []
    for batch in piece.batches(encoding):
        reporters, keys, ys = from_arrow(protocol, batch)
        chosen = encoding.valid(keys, ys)
        if passes > 1:
            # Pseudonyms are as good as random: two bytes split them evenly.
            bytes_in = reporters[:, 8].astype(np.int64) << 8 | reporters[:, 9]
            chosen &= bytes_in * passes >> 16 == number
        reporters, keys, ys = _select(chosen, reporters, keys, ys)
        batches.append(_Batch(reporters, keys, ys, starts_of(reporters)))
    return batches


def _count_suspects(suspects: Sequence[_Batch], total: _PartialCounts) -> None:
    """Count one report of each reporter; all rows of each are here."""
    reporters, keys, ys, _ = (
        None if column[0] is None else np.concatenate(column)
        for column in zip(*suspects, strict=True)
    )
    rows, duplicates, conflicts = admit(np.asarray(reporters), keys, np.asarray(ys))
    total.duplicates += duplicates
    total.conflicts += conflicts
    total.count(*_select(rows, keys, ys))


def _select(rows: Array, *columns: Any) -> Any:
    """The chosen rows, without a copy where that is all of them."""
    if rows.all():
        return columns
    return tuple(None if column is None else column[rows] for column in columns)


def _row_bytes(encoding: Encoding) -> int:
    """Bytes that a report takes in arrays, its reporter included."""
    return REPORTER_BYTES + sum(encoding.row_bytes)
