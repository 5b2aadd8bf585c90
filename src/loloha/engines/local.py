"""The engine that needs pyarrow alone: batches of Parquet files through the library's kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from loloha.encodings import Encoding
from loloha.engines.base import Engine, RoundCounts, library
from loloha.engines.guard import admit
from loloha.protocols import Protocol
from loloha.reportlog import REPORTER_BYTES, LogFile, from_arrow
from loloha.reportlog.arrow import answers_from_arrow

if TYPE_CHECKING:
    from loloha.arrays import Ints

BATCH_BYTES = 1 << 24
PASS_BYTES = 1 << 29
"""Most bytes of reports that the guard holds at once, for each thread."""
MOST_PASSES = 256


class Local(Engine):
    """In this process, with threads; also for hashes that SQL does not know.

    Parameters
    ----------
    threads : int, optional
        By default one a core.
    """

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

    def _trusted(self, protocol: Protocol, files: Sequence[LogFile]) -> _Part:
        pieces = [piece for file in files for piece in _pieces(file)]
        return self._together(protocol, pieces, _count_piece)

    def _guarded(self, protocol: Protocol, files: Sequence[LogFile]) -> _Part:
        size = sum(file.rows for file in files) * _row_bytes(protocol.encoding)
        passes = min(MOST_PASSES, 1 << max(0, (size - 1) // PASS_BYTES).bit_length())
        paths = [file.path for file in files]
        shares = [(paths, share, passes) for share in range(passes)]
        return self._together(protocol, shares, _count_share)

    def _together(
        self, protocol: Protocol, work: Sequence[Any], count: Callable[[Any, _Part], None]
    ) -> _Part:
        """Do all work, each thread into counts of its own, and add up."""
        threads = max(1, min(self.threads, len(work)))
        parts = [_Part(protocol) for _ in range(threads)]

        def do(thread: int) -> None:
            for one in work[thread::threads]:
                count(one, parts[thread])

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(do, range(threads)))
        for part in parts[1:]:
            parts[0].add(part)
        return parts[0]


class _Part:
    """Counts of some of a round's reports."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.counts: Ints = np.zeros(protocol.encoding.cells, dtype=np.int64)
        self.n = self.duplicates = self.conflicts = 0

    def count(self, keys: Any, ys: Any) -> None:
        """Add those reports that are valid."""
        encoding = self.protocol.encoding
        if not encoding.admit(self.counts, keys, ys):
            keys, ys = _select(encoding.valid(keys, ys), keys, ys)
            encoding.count(self.counts, keys, ys)
        self.n += len(ys)

    def add(self, other: _Part) -> None:
        self.counts += other.counts
        self.n += other.n
        self.duplicates += other.duplicates
        self.conflicts += other.conflicts


@dataclass(frozen=True)
class _Piece:
    """Some row groups of a file: what one thread reads at a time."""

    path: Path
    groups: list[int]


def _pieces(file: LogFile) -> list[_Piece]:
    with _open(file.path) as parquet:
        return [_Piece(file.path, [group]) for group in range(parquet.num_row_groups)]


def _open(path: Path) -> AbstractContextManager[Any]:
    parquet: AbstractContextManager[Any] = library("pyarrow.parquet", "engines").ParquetFile(path)
    return parquet


def _count_piece(piece: _Piece, part: _Part) -> None:
    encoding = part.protocol.encoding
    columns = ["key", "y"] if encoding.kind == "keyed symbol" else ["y"]
    rows = max(1, BATCH_BYTES // _row_bytes(encoding))
    with _open(piece.path) as parquet:
        for batch in parquet.iter_batches(
            rows, row_groups=piece.groups, columns=columns, use_threads=False
        ):
            part.count(*answers_from_arrow(encoding, batch))


def _count_share(share: tuple[list[Path], int, int], part: _Part) -> None:
    """Count the reports whose reporter falls in one of ``passes`` equal shares."""
    paths, number, passes = share
    encoding = part.protocol.encoding
    found = [rows for path in paths for rows in _rows_of_share(part.protocol, path, number, passes)]
    reporters, keys, ys = (
        None if column[0] is None else np.concatenate(column) for column in zip(*found, strict=True)
    )
    valid = encoding.valid(keys, ys)
    reporters, keys, ys = _select(valid, reporters, keys, ys)
    rows, duplicates, conflicts = admit(reporters, keys, ys)
    part.duplicates += duplicates
    part.conflicts += conflicts
    part.count(*_select(rows, keys, ys))


def _rows_of_share(
    protocol: Protocol, path: Path, number: int, passes: int
) -> Iterator[tuple[Any, Any, Any]]:
    rows = max(1, BATCH_BYTES // _row_bytes(protocol.encoding))
    with _open(path) as parquet:
        for batch in parquet.iter_batches(rows, use_threads=False):
            columns = from_arrow(protocol, batch)
            if passes == 1:
                yield columns
            else:
                here = columns[0][:, 0].astype(np.int64) * passes >> 8 == number
                yield _select(here, *columns)


def _select(rows: Any, *columns: Any) -> Any:
    return tuple(None if column is None else column[rows] for column in columns)


def _row_bytes(encoding: Encoding) -> int:
    """Bytes that a report takes in arrays, its reporter included."""
    keys, ys = encoding.shapes(1)
    width = 1 if encoding.kind in ("bits", "sampled bits") else 8
    return REPORTER_BYTES + 8 * int(np.prod(keys or 0)) + width * int(np.prod(ys))
