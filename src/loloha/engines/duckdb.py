"""DuckDB: the tally as one SQL statement over Parquet files, on all cores of this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from loloha.address import Address, Location, at
from loloha.engines import sql
from loloha.engines.base import Engine, RoundCounts, library
from loloha.engines.result import by_round
from loloha.protocols import Protocol
from loloha.reportlog import LogFile
from loloha.reportlog.folder import rows_of

ROWS_A_QUERY = 1 << 20
# Each is a SELECT of its own: with more, planning them takes longer than counting.
ROUNDS_A_QUERY = 256
TABLE_BITS = 22
"""Up to 2^22 seeds and symbols are counted in an array: 2 to 4 times the speed of hashing them."""


class DuckDB(Engine):
    """In this process, on all cores; what does not fit in memory goes to a temporary folder."""

    name: ClassVar[str] = "duckdb"
    summary: ClassVar[str] = "SQL in this process; the default"

    def __init__(self, *, threads: int | None = None, memory: str | None = None) -> None:
        self.threads = threads
        self.memory = memory

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        return (library("duckdb", "engines").Error,)

    def count(
        self, protocol: Protocol, rounds: Mapping[int, Sequence[LogFile]], *, guard: bool
    ) -> Iterator[RoundCounts]:
        arrow = library("pyarrow", "engines")
        with self._connected() as connection:
            for part in _parts(rounds):
                sources = {
                    round: [_source(connection, round, [file.path for file in files])]
                    for round, files in part.items()
                }
                # A round alone needs no column of rounds, and is grouped faster.
                alone = next(iter(part)) if len(part) == 1 else None
                source = sql.union(protocol, sources) if alone is None else sources[alone][0]
                query = sql.statement(protocol, "duckdb", source, guard=guard, one_round=alone)
                yield from by_round(protocol, arrow.table(connection.sql(query)))

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """A database in memory, with a folder of its own for what does not fit."""
        with tempfile.TemporaryDirectory(prefix="loloha-") as spill:
            config = {
                "temp_directory": spill,
                "perfect_ht_threshold": TABLE_BITS,
                "threads": self.threads,
                "memory_limit": self.memory,
            }
            given = {name: one for name, one in config.items() if one is not None}
            with library("duckdb", "engines").connect(config=given) as connection:
                yield connection


def _source(connection: Any, round: int, files: Sequence[Location]) -> str:
    """What stands after FROM for the files of a round; those of an address come by pyarrow."""
    if not isinstance(files[0], Address):
        return sql.parquet(files)
    dataset = library("pyarrow.dataset", "engines")
    paths, filesystems = zip(*map(at, files), strict=True)
    found = dataset.dataset(list(paths), filesystem=filesystems[0], format="parquet")
    connection.register(f"reports_{round}", found)
    return f"reports_{round}"


def _parts(rounds: Mapping[int, Sequence[LogFile]]) -> Iterator[dict[int, Sequence[LogFile]]]:
    """Rounds that are worth a query of their own, and small ones together.

    A group for each round and symbol takes twice the time of one for each symbol, and the guard
    holds every pseudonym that a query looks at.
    """
    part: dict[int, Sequence[LogFile]] = {}
    rows = 0
    for round, files in rounds.items():
        size = rows_of(files)
        if part and (rows + size > ROWS_A_QUERY or len(part) == ROUNDS_A_QUERY):
            yield part
            part, rows = {}, 0
        part[round] = files
        rows += size
    if part:
        yield part
