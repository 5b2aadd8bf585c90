"""Spark: the tally as one SQL statement over data frames, where a cluster holds the logs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from loloha.engines import sql
from loloha.engines.base import Engine, RoundCounts, library, typed
from loloha.engines.result import by_round
from loloha.protocols import Protocol
from loloha.reportlog import LogFile, schema
from loloha.reportlog.folder import rows_of

# A session started here is not reachable from outside this machine.
LOCAL = {
    "spark.master": "local[*]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Read before the JVM starts.
    "spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile="
    + Path(__file__).with_name("log4j2.properties").as_uri(),
}
ROWS_A_TASK = 1 << 20
"""Reports that one task of the replay guard holds: some 64 MB."""
SHUFFLE, UNSET = "spark.sql.shuffle.partitions", "200"


class Spark(Engine):
    """On a Spark cluster, or in this machine's Java.

    Only data frames and SQL are used, so a session of Spark Connect serves as well.

    Parameters
    ----------
    session : SparkSession, optional
        One that is there, with its cluster and its configuration.
    master : str, optional
        Where to start one: ``spark://HOST:PORT``, ``yarn``, ``k8s://...``, ``local[N]``, or
        ``sc://HOST:PORT`` for Spark Connect. By default that of `spark-submit`, else this machine.
    conf : mapping of str to str, optional
        Further settings of Spark; they are not shown.
    """

    name: ClassVar[str] = "spark"
    summary: ClassVar[str] = "SQL on a Spark cluster, or locally in Java"
    advice: ClassVar[str] = (
        "see that all workers reach the log at its address, have Hadoop's client for it, may read, "
        "and have memory and disk enough; engine 'local' tells whether the log is in order"
    )

    def __init__(
        self,
        *,
        session: Any = None,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
    ) -> None:
        self.session = session
        self.master = master
        self.conf = dict(conf or {})

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        java = library("py4j.protocol", "spark").Py4JError
        return library("pyspark.errors", "spark").PySparkException, java

    def count(
        self, protocol: Protocol, rounds: Mapping[int, Sequence[LogFile]], *, guard: bool
    ) -> Iterator[RoundCounts]:
        if not rounds:
            return
        rows = sum(map(rows_of, rounds.values()))
        tasks = 1 + rows // ROWS_A_TASK
        query = sql.statement(
            protocol, "spark", "{log}", guard=guard, tasks=tasks if guard else None
        )
        session = self.session or started(self.master, self.conf)
        with _tasks(session, tasks):
            frame = session.sql(query, log=_frame(session, protocol, rounds))
            counted = frame.toArrow()
        yield from by_round(protocol, counted)


@contextmanager
def _tasks(session: Any, tasks: int) -> Iterator[None]:
    """Set the number of shuffle tasks by the log, unless it was set."""
    if session.conf.get(SHUFFLE) != UNSET:
        yield
        return
    session.conf.set(SHUFFLE, str(tasks))
    try:
        yield
    finally:
        session.conf.unset(SHUFFLE)


def started(master: str | None = None, conf: Mapping[str, str] | None = None) -> Any:
    """A session on a cluster; without one the active session, else one on this machine alone."""
    pyspark = library("pyspark.sql", "spark")
    active = pyspark.SparkSession.getActiveSession()
    if active is not None and master is None:
        return active
    builder = pyspark.SparkSession.builder.appName("loloha")
    settings = dict(QUIET)
    if master is not None and master.startswith("sc://"):
        builder, settings = builder.remote(master), {}
    elif master is not None:
        settings["spark.master"] = master
    elif "PYSPARK_GATEWAY_PORT" not in os.environ:
        # Not under spark-submit, which sets its master.
        settings |= LOCAL | _memory()
    for name, setting in {**settings, **(conf or {})}.items():
        builder = builder.config(name, setting)
    with typed(
        "Spark must start",
        "check the master, that it is reached from here, and the settings",
        (library("pyspark.errors", "spark").PySparkException, RuntimeError, ValueError),
    ):
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
    # An explicit schema: no job to read footers, no inference from folder names.
    reader = session.read.schema(", ".join([*columns, "round bigint"]))
    return reader.option("basePath", root).parquet(*map(sql.for_spark, files))


def _ddl(kind: Any) -> str:
    types = library("pyarrow", "spark").types
    if types.is_fixed_size_list(kind):
        return "array<int>"
    if types.is_fixed_size_binary(kind):
        return "binary"
    return "bigint" if types.is_int64(kind) else "int"
