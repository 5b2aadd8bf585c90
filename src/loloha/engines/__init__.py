"""Engines: from report logs to tallies, on whatever already runs where the logs lie.

All give exactly the same tallies, however a log is cut into files and in whatever order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from loloha import checks
from loloha.engines.base import Engine, RoundTally
from loloha.reportlog import ReportLog

REGISTRY = {"duckdb": "DuckDB", "local": "Local", "spark": "Spark"}
"""Name of the engine, which is its module's too -> class."""

__all__ = ["REGISTRY", "Engine", "RoundTally", "make_engine", "tally"]


def make_engine(name: str, **options: Any) -> Engine:
    """The engine called ``name``.

    Parameters
    ----------
    name : {"duckdb", "local", "spark"}
    **options
        What the class takes, such as ``threads``.

    Raises
    ------
    ParameterError
        If there is no such engine.
    """
    checks.choice("engine", name, REGISTRY)
    made: Engine = getattr(import_module(f"loloha.engines.{name}"), REGISTRY[name])(**options)
    return made


def tally(
    log: ReportLog,
    *,
    engine: str | Engine = "duckdb",
    rounds: Iterable[int] | None = None,
    guard: bool = True,
    skip: bool = False,
) -> Iterator[RoundTally]:
    """Tally every round of a report log.

    Parameters
    ----------
    log : ReportLog
    engine : str or Engine
        A name in the registry, or an engine with options of its own.
    rounds : iterable of int, optional
        Only these.
    guard : bool
        Check the files' digests, and count one report of each reporter in each round. Without it
        the log is trusted: faster, for logs that nobody else can write to.
    skip : bool
        Go on without files that are damaged, foreign or mixed; else they are an error.

    Yields
    ------
    RoundTally
        In ascending order of rounds.

    Raises
    ------
    WireError
        If the log holds nothing of the campaign, or a file is refused; before anything is counted.
    """
    contents = log.scan(rounds=rounds, verify=guard)
    if not skip:
        contents.must_be_clean()
    chosen = make_engine(engine) if isinstance(engine, str) else engine
    yield from chosen.tally(log, contents, guard=guard)
