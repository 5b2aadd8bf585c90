"""A growing round: only new files are read, with one guard for all.

Each row's pseudonym is remembered by its first eight bytes and its file. A pseudonym that comes
again takes what its earlier rows counted out of the sums, and all its rows, read again from their
files, are judged together: so the sums are those of a tally of all files, whatever came when.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from loloha.engines.base import RoundCounts, RoundTally
from loloha.engines.local import (
    PartialCounts,
    RowGroups,
    ValidReports,
    batches_of,
    count_suspects,
    pieces_of,
    row_bytes,
)
from loloha.engines.replay import among, repeated, starts_of
from loloha.reportlog import LogFile
from loloha.reportlog.folder import readers

if TYPE_CHECKING:
    from loloha.address import Location
    from loloha.arrays import Array
    from loloha.protocols import Protocol

CHUNK_BYTES = 1 << 28
"""Reports that are in memory at once."""
LARGEST_RUN = 1 << 24
"""Rows of a run; longer ones are not merged, so that none takes much memory."""
STARTS, FILES = np.dtype("<u8"), np.dtype("<u4")


class _Run(NamedTuple):
    """Rows of some files, by their pseudonyms' starts: 12 bytes a row, named by digest."""

    path: Path

    @property
    def rows(self) -> int:
        return self.path.stat().st_size // (STARTS.itemsize + FILES.itemsize)

    @property
    def is_whole(self) -> bool:
        """Whether it is as it was written."""
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest() == self.path.name
        return False

    @property
    def starts(self) -> Any:
        """In ascending order, uint64[rows]."""
        return np.memmap(self.path, STARTS, "r", shape=self.rows)

    @property
    def files(self) -> Any:
        """Number of the file that each is in, uint32[rows]."""
        rows = self.rows
        return np.memmap(self.path, FILES, "r", offset=rows * STARTS.itemsize, shape=rows)


class GrowingRound:
    """Counts of the files so far; the guard's data are in ``folder``, 12 bytes per report."""

    def __init__(self, protocol: Protocol, *, guard: bool, folder: Path) -> None:
        self.files: list[Location] = []
        self._total = PartialCounts(protocol)
        self._rows = 0
        self._guard = guard
        self._folder = folder
        self._runs: list[_Run] = []
        self._superseded: list[_Run] = []

    @classmethod
    def resumed(
        cls,
        earlier: RoundTally,
        files: Sequence[Location],
        runs: Iterable[str],
        *,
        guard: bool,
        folder: Path,
    ) -> GrowingRound | None:
        """The round with these files, resumed; None if the guard's data are damaged."""
        round = cls(earlier.tally.protocol, guard=guard, folder=folder)
        round.files = list(files)
        total = round._total
        total.counts, total.n = earlier.tally.counts, earlier.tally.n
        total.duplicates, total.conflicts = earlier.duplicates, earlier.conflicts
        round._rows = total.n + total.duplicates + total.conflicts + earlier.invalid
        round._runs = [_Run(folder / name) for name in runs]
        valid = round._rows - earlier.invalid
        if guard and not all(run.is_whole for run in round._runs):
            return None
        return round if not guard or sum(run.rows for run in round._runs) == valid else None

    @property
    def runs(self) -> list[str]:
        """Names of the guard's files in the folder."""
        return [run.path.name for run in self._runs]

    def tallied(self, round: int) -> RoundTally:
        """The tally of all files so far."""
        total = self._total
        now = RoundCounts(round, total.counts.copy(), total.n, total.duplicates, total.conflicts)
        return now.tallied(total.protocol, self._rows)

    def add(self, files: Sequence[LogFile]) -> None:
        """Count files more."""
        most = CHUNK_BYTES // row_bytes(self._total.protocol.encoding)
        chunk: list[tuple[int, RowGroups]] = []
        rows = 0
        for file in files:
            number = len(self.files)
            self.files.append(file.path)
            self._rows += file.rows
            for piece in pieces_of(file) if file.rows else ():
                if chunk and rows + piece.rows > most:
                    self._add(chunk)
                    chunk, rows = [], 0
                chunk.append((number, piece))
                rows += piece.rows
        if chunk:
            self._add(chunk)

    def forget(self) -> None:
        """Delete merged files, from which nothing resumes."""
        # One that has the rows of another has its name too.
        for path in {run.path for run in self._superseded} - {run.path for run in self._runs}:
            path.unlink(missing_ok=True)
        self._superseded.clear()

    def _add(self, chunk: list[tuple[int, RowGroups]]) -> None:
        protocol = self._total.protocol

        def read(numbered: tuple[int, RowGroups]) -> list[tuple[int, ValidReports]]:
            return [(numbered[0], batch) for batch in batches_of(protocol, numbered[1])]

        with ThreadPoolExecutor(readers(self.files[0])) as pool:
            batches = [batch for some in pool.map(read, chunk) for batch in some]
        if not self._guard:
            for _, batch in batches:
                self._total.count(batch.keys, batch.ys)
            return
        starts = [starts_of(batch.reporters) for _, batch in batches]
        numbers = [np.full(len(s), n, FILES) for s, (n, _) in zip(starts, batches, strict=True)]
        whole, places = np.concatenate(starts), np.concatenate(numbers)
        order = np.argsort(whole)
        whole, places = whole[order], places[order]
        earlier, files = self._earlier(whole)
        few = np.union1d(repeated(whole), earlier)
        suspects = []
        for mine, (_, batch) in zip(starts, batches, strict=True):
            here = among(mine, few) if len(few) else np.zeros(len(mine), bool)
            if here.any():
                suspects.append(batch.select(here))
                batch = batch.select(~here)
            self._total.count(batch.keys, batch.ys)
        if len(earlier):
            before = self._rows_of(earlier, files)
            counted = PartialCounts(protocol)
            count_suspects(before, counted)
            self._total.add(counted, -1)
            suspects += before
        if suspects:
            count_suspects(suspects, self._total)
        self._remember(whole, places)

    def _earlier(self, starts: Array) -> tuple[Any, set[int]]:
        """Those of the starts, in ascending order, that came before, and in which files."""
        seen: list[Any] = [np.empty(0, STARTS)]
        files: set[int] = set()
        wanted = np.unique(starts)
        for run in self._runs:
            known = run.starts
            first = np.searchsorted(known, wanted)
            there = known[np.minimum(first, len(known) - 1)] == wanted
            if there.any():
                last = np.searchsorted(known, wanted[there], "right")
                numbers = run.files
                for start, end in zip(first[there].tolist(), last.tolist(), strict=True):
                    files.update(numbers[start:end].tolist())
                seen.append(wanted[there])
        return np.unique(np.concatenate(seen)), files

    def _rows_of(self, starts: Array, files: set[int]) -> list[ValidReports]:
        """All earlier rows with these starts."""
        protocol = self._total.protocol

        def read(number: int) -> list[ValidReports]:
            rows = []
            for piece in pieces_of(LogFile(self.files[number], 0, 0)):
                for batch in batches_of(protocol, piece):
                    here = among(starts_of(batch.reporters), starts)
                    if here.any():
                        rows.append(batch.select(here))
            return rows

        with ThreadPoolExecutor(readers(self.files[0])) as pool:
            return [batch for some in pool.map(read, sorted(files)) for batch in some]

    def _remember(self, starts: Array, files: Array) -> None:
        """Store rows in ascending order, merging runs of about their size: few in all."""
        while self._runs and len(starts) >= self._runs[-1].rows // 2:
            last = self._runs[-1]
            if last.rows + len(starts) > LARGEST_RUN:
                break
            starts = np.concatenate([last.starts, starts])
            files = np.concatenate([last.files, files])
            # Of two ascending parts, this merges them.
            order = np.argsort(starts, kind="stable")
            starts, files = starts[order], files[order]
            self._superseded.append(self._runs.pop())
        if len(starts):
            self._folder.mkdir(parents=True, exist_ok=True)
            content = starts.astype(STARTS).tobytes() + files.astype(FILES).tobytes()
            path = self._folder / sha256(content).hexdigest()
            path.write_bytes(content)
            self._runs.append(_Run(path))


def tidy(folder: Path, known: set[str]) -> None:
    """Delete leftovers of a killed process: unknown runs."""
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            if path.name not in known:
                path.unlink(missing_ok=True)
