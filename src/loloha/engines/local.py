"""The engine that needs pyarrow alone: batches of Parquet files through the library's kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
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
    from loloha.arrays import Array

BATCH_BYTES = 1 << 21
"""Small enough to reuse memory and stay in the cache: twice the speed of 2^24."""
SHARE_ROWS = 1 << 25
"""Pseudonyms that the guard holds at once, some 32 bytes each; more are read several times."""
SUSPECTS = 1 << 22
"""Pseudonyms that come more than once, whose rows are in memory at once."""
HALF = np.uint64(32)
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
            counts = count(protocol, files)
            counts.round = round
            yield counts

    def _trusted(self, protocol: Protocol, files: Sequence[LogFile]) -> PartialCounts:
        pieces = [piece for file in files for piece in pieces_of(file)]
        threads = max(1, min(self.threads, len(pieces)))
        parts = [PartialCounts(protocol) for _ in range(threads)]

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

    def _guarded(self, protocol: Protocol, files: Sequence[LogFile]) -> PartialCounts:
        """Count rows with unique pseudonyms at once, and the others by the guard."""
        pieces = [piece for file in files for piece in pieces_of(file)]
        shares = min(1 + rows_of(files) // SHARE_ROWS, MOST_SHARES)
        with ThreadPoolExecutor(self.threads) as pool:
            repeated = [self._repeated(protocol, pieces, (n, shares), pool) for n in range(shares)]
        few = np.sort(np.concatenate(repeated))
        if not len(few):
            return self._trusted(protocol, files)
        total = PartialCounts(protocol)
        for number, some in enumerate(np.array_split(few, 1 + len(few) // SUSPECTS)):
            suspects = self._suspects(pieces, few if number == 0 else None, some, total)
            if suspects:
                count_suspects(suspects, total)
        return total

    def _repeated(
        self, protocol: Protocol, pieces: list[RowGroups], share: tuple[int, int], pool: Executor
    ) -> Any:
        """Starts of pseudonyms that come more than once, among one of several shares of them."""
        number, shares = map(np.uint64, share)

        def read(piece: RowGroups) -> Any:
            starts = [
                starts_of(column.rows_in(batch, "reporter", REPORTER_BYTES))
                for batch in piece.batches(protocol.encoding, ["reporter"])
            ]
            together = np.concatenate(starts) if starts else np.empty(0, np.uint64)
            return together if shares == 1 else together[(together >> HALF) % shares == number]

        def of_thread(thread: int) -> Any:
            # By the lowest byte: shares are by others.
            here = [s[(s & np.uint64(255)) % np.uint64(self.threads) == thread] for s in starts]
            return repeated(np.concatenate(here))

        starts = list(pool.map(read, pieces))
        return np.concatenate(list(pool.map(of_thread, range(self.threads)))) if starts else starts

    def _suspects(
        self, pieces: list[RowGroups], few: Array | None, some: Array, total: PartialCounts
    ) -> list[ValidReports]:
        """The rows whose pseudonyms start as ``some`` do; counts those that start as no ``few``."""
        parts = [PartialCounts(total.protocol) for _ in range(self.threads)]

        def read(thread: int) -> list[ValidReports]:
            suspects = []
            for piece in pieces[thread :: self.threads]:
                for batch in batches_of(total.protocol, piece):
                    starts = starts_of(batch.reporters)
                    if (here := among(starts, some)).any():
                        suspects.append(batch.select(here))
                    if few is not None:
                        others = batch.select(
                            ~(here if len(few) == len(some) else among(starts, few))
                        )
                        parts[thread].count(others.keys, others.ys)
            return suspects

        with ThreadPoolExecutor(self.threads) as pool:
            suspects = [
                suspect for share in pool.map(read, range(self.threads)) for suspect in share
            ]
        for part in parts:
            total.add(part)
        return suspects


class PartialCounts(RoundCounts):
    """Counts of some of a round's reports."""

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(-1, np.zeros(protocol.encoding.cells, dtype=np.int64))
        self.protocol = protocol

    def count(self, keys: Array | None, ys: Array) -> None:
        """Add those reports that are valid."""
        encoding = self.protocol.encoding
        if not encoding.admit(self.counts, keys, ys):
            keys, ys = _select(encoding.valid(keys, ys), keys, ys)
            encoding.count(self.counts, keys, ys)
        self.n += len(ys)


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a file: what one thread reads at a time."""

    path: Location
    groups: list[int]
    footer: Any
    rows: int

    def batches(self, encoding: Encoding, columns: list[str] | None = None) -> Iterator[Any]:
        """Its rows, some at a time, of these columns or all, without reading the footer again."""
        rows = max(1, BATCH_BYTES // row_bytes(encoding))
        with _open(self.path, metadata=self.footer) as parquet:
            yield from parquet.iter_batches(
                rows, row_groups=self.groups, columns=columns, use_threads=False
            )


def pieces_of(file: LogFile) -> Iterator[RowGroups]:
    """A file in parts that are read one by one."""
    with _open(file.path) as parquet:
        groups, rows = list[int](), 0
        for group in range(parquet.num_row_groups):
            groups.append(group)
            rows += parquet.metadata.row_group(group).num_rows
            if rows >= PIECE_ROWS:
                yield RowGroups(file.path, groups, parquet.metadata, rows)
                groups, rows = [], 0
        if groups:
            yield RowGroups(file.path, groups, parquet.metadata, rows)


def _open(path: Location, **known: Any) -> AbstractContextManager[Any]:
    parquet = library("pyarrow.parquet", "engines")
    where, filesystem = at(path)
    opened: AbstractContextManager[Any] = parquet.ParquetFile(
        where, filesystem=filesystem, pre_buffer=filesystem is not None, **known
    )
    return opened


class ValidReports(NamedTuple):
    """Valid reports with their reporters."""

    reporters: Any
    keys: Any
    ys: Any

    def select(self, rows: Array) -> ValidReports:
        return ValidReports(*_select(rows, *self))


def batches_of(protocol: Protocol, piece: RowGroups) -> Iterator[ValidReports]:
    """The valid reports of a part, some at a time."""
    for rows in piece.batches(protocol.encoding):
        batch = ValidReports(*from_arrow(protocol, rows))
        yield batch.select(protocol.encoding.valid(batch.keys, batch.ys))


def count_suspects(suspects: Sequence[ValidReports], total: PartialCounts) -> None:
    """Count one report of each reporter; all rows of each are here."""
    reporters, keys, ys = (
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


def row_bytes(encoding: Encoding) -> int:
    """Bytes that a report takes in arrays, its reporter included."""
    return REPORTER_BYTES + sum(encoding.row_bytes)
