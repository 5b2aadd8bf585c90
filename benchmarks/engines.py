"""Engines: making a report log, checking it, and tallying it with each engine."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

import loloha
from benchmarks.measure import Row, once, seconds
from loloha.engines import make_engine
from loloha.reportlog import ReportLog, generate

REPORTS = 10**7
TARGETS = {"duckdb": 5e7, "local": 1e8}


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="loloha-") as folder:
        log = ReportLog(Path(folder), loloha.BiLOLOHA(k=1000, eps_inf=2.0, eps_1=1.0))
        values = np.random.default_rng(4).zipf(1.3, size=(10_000, 1)) % 1000
        took = once(lambda: generate(log, values, users=REPORTS, rng=1))
        yield _row("make a log of simulated clients", took)
        yield _row("check its digests", once(log.scan))
        contents = log.scan(verify=False)
        names = ["duckdb", "local"] + (["spark"] if which("java") else [])
        for name in names:
            engine = make_engine(name)
            peer, read = _reading(name, log)
            for guard in (False, True):
                work = f"{name}: tally {'with the replay guard' if guard else 'a trusted log'}"
                took = seconds(lambda e=engine, g=guard: _tally(e, log, contents, g), repeats=3)
                target = None if guard else TARGETS.get(name, REPORTS / read / 3)
                yield _row(work, took, target, peer, REPORTS / read)


def _row(work: str, took: float, target: Any = None, peer: str = "", figure: Any = None) -> Row:
    size = "n = 10^7, k = 1000, g = 2, Parquet"
    return Row("engines", work, size, REPORTS / took, "reports/s", target, peer, figure)


def _tally(engine: Any, log: ReportLog, contents: Any, guard: bool) -> None:
    for _ in engine.tally(log, contents, guard=guard):
        pass


def _reading(name: str, log: ReportLog) -> tuple[str, float]:
    """What the library beneath an engine takes to read key and symbol of every row."""
    files = [str(path.absolute()) for path in log.folder.rglob("*.parquet")]
    if name == "duckdb":
        import duckdb

        relation = f"SELECT sum(key), sum(y) FROM read_parquet({files})"
        return "sums of key and y by the same library", seconds(
            lambda: duckdb.sql(relation).fetchall()
        )
    if name == "local":
        from pyarrow import parquet

        return "reading key and y by pyarrow", seconds(
            lambda: [parquet.read_table(file, columns=["key", "y"]) for file in files]
        )
    from loloha.engines.spark import started

    frame = started().read.parquet(*(f"file://{file}" for file in files))
    # count() alone would read the footers only.
    return "count() of Spark", seconds(lambda: frame.where("key >= 0 AND y >= 0").count(), 3)
