"""Spark: the tally as one SQL statement over data frames, where a cluster holds the logs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from loloha.engines import sql
from loloha.engines.base import Engine, RoundCounts, library
from loloha.engines.result import by_round
from loloha.protocols import Protocol
from loloha.reportlog import LogFile, schema

# Nothing of a session that we start ourselves can be reached from outside this machine.
LOCAL = {
    "spark.master": "local[*]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A shuffle into 200 tasks, the default, is for clusters.
    "spark.sql.shuffle.partitions": "32",
}


class Spark(Engine):
    """On a Spark cluster, or in this machine's Java.

    Only data frames and SQL are used, so a session of Spark Connect serves as well.
    """

    name: ClassVar[str] = "spark"
    summary: ClassVar[str] = "SQL on a Spark cluster, or locally in Java"

    def __init__(self, *, session: Any = None) -> None:
        self.session = session

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        return (library("pyspark.errors", "spark").PySparkException,)

    def count(
        self, protocol: Protocol, rounds: Mapping[int, Sequence[LogFile]], *, guard: bool
    ) -> Iterator[RoundCounts]:
        if not rounds:
            return
        query = sql.statement(protocol, "spark", "{log}", guard=guard)
        session = self.session or local_session()
        frame = session.sql(query, log=_frame(session, protocol, rounds))
        yield from by_round(protocol, frame.toArrow())


def local_session() -> Any:
    """The active session, else one on this machine alone."""
    pyspark = library("pyspark.sql", "spark")
    active = pyspark.SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = pyspark.SparkSession.builder.appName("loloha")
    for name, setting in {**LOCAL, **_memory()}.items():
        builder = builder.config(name, setting)
    return builder.getOrCreate()


def _memory() -> dict[str, str]:
    """Half of the machine's memory: with Java's default of 1 GiB the replay guard goes to disk."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return {}
    return {"spark.driver.memory": f"{max(1024, total >> 21)}m"}


def _frame(session: Any, protocol: Protocol, rounds: Mapping[int, Sequence[LogFile]]) -> Any:
    """The log's files as a data frame, with the round from their folder's name."""
    files = [file.path for listed in rounds.values() for file in listed]
    root = sql.for_spark(files[0].parent.parent)
    columns = [f"{field.name} {_ddl(field.type)}" for field in schema(protocol, round=0)]
    # A stated schema: no job to read footers, and no guess what a folder's name means.
    reader = session.read.schema(", ".join([*columns, "round bigint"]))
    return reader.option("basePath", root).parquet(*map(sql.for_spark, files))


def _ddl(kind: Any) -> str:
    types = library("pyarrow", "spark").types
    if types.is_fixed_size_list(kind):
        return "array<int>"
    if types.is_fixed_size_binary(kind):
        return "binary"
    return "bigint" if types.is_int64(kind) else "int"
