"""DuckDB: the tally as one SQL statement over Parquet files, on all cores of this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from loloha.address import Address, Location, at
from loloha.engines import sql
from loloha.engines.base import Engine, RoundCounts, library
from loloha.engines.result import by_round
from loloha.errors import ParameterError
from loloha.protocols import Protocol
from loloha.reportlog import LogFile
from loloha.reportlog.folder import rows_of

ROWS_A_QUERY = 1 << 20
# Each is a SELECT of its own: with more, planning them takes longer than counting.
ROUNDS_A_QUERY = 256
SHARE_ROWS = 1 << 24
"""Pseudonyms that the guard holds at once, some 64 bytes each; more are read several times."""
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
                if alone is None:
                    query = sql.statement(
                        protocol, "duckdb", sql.union(protocol, sources), guard=guard
                    )
                    yield from by_round(protocol, arrow.table(connection.sql(query)))
                    continue
                # Files of a network are not read again: DuckDB goes to disk instead.
                remote = isinstance(part[alone][0].path, Address)
                rows = 0 if remote else rows_of(part[alone])
                (source,) = sources[alone]
                pieces = _apart(connection, source, rows) if guard else [(source, False)]
                counted: list[RoundCounts] = []
                for piece, guarded in pieces:
                    query = sql.statement(protocol, "duckdb", piece, guard=guarded, one_round=alone)
                    counted += by_round(protocol, arrow.table(connection.sql(query)))
                for more in counted[1:]:
                    counted[0].add(more)
                yield from counted[:1]

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
            given = {name: value for name, value in config.items() if value is not None}
            with library("duckdb", "engines").connect(config=given) as connection:
                yield connection


def _apart(connection: Any, source: str, rows: int) -> Iterator[tuple[str, bool]]:
    """Parts of a round, no reporter in two of them, and whether each needs the guard."""
    # Pseudonyms that come once need none, and in an honest log that is all of them: so the memory
    # is that of one share of the pseudonyms' hashes, however many they are. Equal hashes of
    # different pseudonyms only mean a closer look.
    shares = 1 + rows // SHARE_ROWS
    connection.execute("CREATE OR REPLACE TEMP TABLE repeated (hash UBIGINT)")
    hashed = f"SELECT hash(reporter) AS hash FROM {source}"
    for share in range(shares):
        connection.execute(
            f"INSERT INTO repeated SELECT hash FROM ({hashed}) WHERE hash % {shares} = {share} "
            "GROUP BY hash HAVING count(*) > 1"
        )
    few = "(SELECT hash FROM repeated)"
    if not connection.sql("SELECT 1 FROM repeated LIMIT 1").fetchall():
        yield source, False
        return
    yield f"(SELECT * FROM {source} WHERE hash(reporter) NOT IN {few})", False
    for share in range(shares):
        here = f"hash(reporter) IN {few} AND hash(reporter) % {shares} = {share}"
        yield f"(SELECT * FROM {source} WHERE {here})", True


def _source(connection: Any, round: int, files: Sequence[Location]) -> str:
    """The FROM clause for the files of a round; by pyarrow where DuckDB has no words for them."""
    if not isinstance(files[0], Address):
        with suppress(ParameterError):
            return sql.parquet(files)
    dataset = library("pyarrow.dataset", "engines")
    paths, filesystems = zip(*map(at, files), strict=True)
    files = dataset.dataset(list(paths), filesystem=filesystems[0], format="parquet")
    connection.register(f"reports_{round}", files)
    return f"reports_{round}"


def _parts(rounds: Mapping[int, Sequence[LogFile]]) -> Iterator[dict[int, Sequence[LogFile]]]:
    """Groups of rounds: large ones alone, small ones together."""
    # Grouping by round and symbol takes twice the time of grouping by symbol, and the guard holds
    # all pseudonyms of a query.
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
