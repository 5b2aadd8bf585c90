"""``loloha tally``: from a report log to one tally a round, by the engine of choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from loloha import checks
from loloha.address import Location, at
from loloha.cli import campaign_file, console
from loloha.cli.followed import COLUMNS, Followed, alone, row_of
from loloha.cli.results_folder import new_folder
from loloha.errors import ParameterError

if TYPE_CHECKING:
    from loloha.engines import RoundTally
    from loloha.reportlog import Contents, ReportLog

_MOST_ROUNDS = 1 << 20
_LONGEST_PAUSE = 86_400.0


def tally(
    log: Location | None = None,
    *,
    campaign: str,
    engine: str = "duckdb",
    master: str | None = None,
    conf: list[str] | None = None,
    only_rounds: str | None = None,
    out: Location | None = None,
    force: bool = False,
    trust_log: bool = False,
    skip_bad: bool = False,
    late_seconds: int | None = None,
    follow: bool = False,
    pause: float = 30.0,
    store: str | None = None,
    sql: str | None = None,
    source: str = "reports",
    result: Path | None = None,
    as_json: bool = False,
) -> None:
    """Count the reports of a log, each reporter once per round; all engines give equal tallies.

    With --late-seconds, files that were written later than that after the end of their round are
    left out, and counted as late. With --follow and --store, the counts also go to the store of a
    collector that shows them.
    """
    from loloha.engines import make_engine
    from loloha.protocols import Protocol
    from loloha.reportlog import ReportLog

    if follow and (log is None or sql is not None or as_json or force):
        raise ParameterError("--follow must be given with LOG, without --sql, --json and --force")
    if store is not None and not follow:
        raise ParameterError("--store must be given with --follow, which keeps it up to date")
    if late_seconds is not None and log is None:
        raise ParameterError("--late-seconds must be given with LOG: its files have times")
    checks.real("pause", pause, 0, _LONGEST_PAUSE, "give seconds")
    agreed = campaign_file.load(campaign)
    chosen = None if only_rounds is None else parse_rounds(only_rounds)
    last = _last(agreed, late_seconds)
    if sql is not None:
        if log is not None:
            opened = ReportLog(log, agreed)
            contents = _scanned(opened, chosen, trust_log, skip_bad, last)
            source = _files(opened, sql, contents)
        from loloha.engines.sql import statement
        from loloha.reportlog import rules

        guard = not trust_log
        console.show(statement(rules(agreed), sql, source, guard=guard, total=True) + ";")
        return
    if (log is None) == (result is None):
        raise ParameterError("LOG or --result must be given, got none or both; give one of them")
    summary: dict[str, Any] = {
        "campaign": agreed.fingerprint, "guard": not trust_log, "refused": {},
    }  # fmt: skip
    if log is None:
        read = Path(str(result))
        counted, sources = _from_result(agreed, read, chosen), _sources_of_result(read)
    else:
        runs_on = make_engine(engine, **_cluster(engine, master, conf))
        opened = ReportLog(log, agreed)
        if follow:
            if out is None:
                raise ParameterError("--out must be given with --follow: it holds what was counted")
            options = (chosen, skip_bad, last, late_seconds)
            with _shown_in(store, agreed) as put, alone(out):
                Followed(opened, runs_on, out, summary, *options, put=put).go_on(pause)
        contents = _scanned(opened, chosen, trust_log, skip_bad, last)
        summary |= {
            "engine": engine,
            "rows": contents.rows,
            "refused": {reason: len(files) for reason, files in contents.refused.items()},
        }
        counted, sources = runs_on.tally(opened, contents, guard=not trust_log), contents.digests
    every = 1 if isinstance(agreed, Protocol) else agreed.schedule.every
    listed = _rows(counted) if out is None else _keep(counted, sources, out, summary, force, every)
    summary["rounds"] = listed
    if as_json:
        console.show_json(summary)
        return
    console.show_table(COLUMNS, [[row[name] for name in COLUMNS] for row in listed])
    if lacking := sorted({*(chosen or ())} - {row["round"] for row in listed}):
        console.warn(f"{len(lacking)} of the rounds asked for have no reports: {lacking[:8]}")
    for reason, files in summary["refused"].items():
        console.warn(f"skipped: {checks.counted(files, f'{reason} file')}")
    if out is not None:
        console.show(
            f"Tallies: {out}/ ({checks.counted(len(listed), 'file')}); "
            f"`loloha estimate {out}` goes on"
        )


@contextmanager
def _shown_in(store: str | None, agreed: Any) -> Iterator[Callable[[RoundTally], None] | None]:
    """The writer of tallies to a dashboard's store, if one is named."""
    if store is None:
        yield None
        return
    checks.library("loloha.collector.settings", "tally --store", "collector")
    from loloha.collector.store import Store
    from loloha.collector.store.log_counts import put

    with closing(Store(store, take_over=False)) as opened:
        stored = opened.campaign(agreed.fingerprint)
        if stored is None:
            raise ParameterError(
                "--store must hold the campaign; create it with the collector that shows it"
            )
        entry = stored
        yield lambda tallied: put(opened, entry, tallied, time())


def _last(agreed: Any, late_seconds: int | None) -> Callable[[int], float] | None:
    """The last second at which a file of a round is in time."""
    if late_seconds is None:
        return None
    schedule = getattr(agreed, "schedule", None)
    if schedule is None:
        raise ParameterError("--late-seconds must be left out for a bare protocol: it has no dates")
    return lambda round: float(schedule.ends(round) + late_seconds)


def _cluster(engine: str, master: str | None, conf: list[str] | None) -> dict[str, Any]:
    """Options for Spark: --conf can hold secrets and is not shown."""
    if engine != "spark":
        if master is not None or conf:
            raise ParameterError(f"--master and --conf must be left out for engine {engine!r}")
        return {}
    pairs = [setting.partition("=") for setting in conf or ()]
    if any(not name or not mark for name, mark, _ in pairs):
        raise ParameterError("--conf must be given as NAME=VALUE; correct it")
    return {"master": master, "conf": {name: value for name, _, value in pairs}}


def _scanned(
    log: ReportLog,
    rounds: list[int] | None,
    trust_log: bool,
    skip_bad: bool,
    last: Callable[[int], float] | None,
) -> Contents:
    with console.working("checking the files"):
        contents = log.scan(rounds=rounds, verify=not trust_log)
    if not skip_bad:
        contents.must_be_clean()
    return contents if last is None else contents.in_time(last)


def _from_result(agreed: Any, path: Path, rounds: list[int] | None) -> Iterator[RoundTally]:
    from loloha.engines.result import by_round
    from loloha.reportlog import rules

    protocol, table = rules(agreed), _read(path)
    for counts in by_round(protocol, table, total=True):
        if rounds is None or counts.round in rounds:
            # The statement omits reports out of range.
            yield counts.tallied(protocol)


def _read(path: Path) -> Any:
    from pyarrow import csv, parquet

    from loloha.engines.base import typed

    with typed(f"--result {str(path)!r} must be Parquet or CSV", "export the result once more"):
        if path.suffix == ".csv":
            return csv.read_csv(at(path)[0])
        # Only the file's own columns: folder names are not parsed.
        return parquet.read_table(at(path)[0], partitioning=None)


def _sources_of_result(path: Path) -> Callable[[int], list[str]]:
    """A digest of the warehouse's rows, as the source of every round."""
    import hashlib

    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return lambda round: [f"result {digest}"]


def _keep(
    counted: Iterable[RoundTally],
    sources: Callable[[int], list[str]],
    out: Location,
    summary: dict[str, Any],
    force: bool,
    every: int,
) -> list[dict[str, int]]:
    """Write each tally as it is made: one round is in memory at a time."""
    from loloha.engines.saved import SUMMARY, save

    def write(tally: RoundTally) -> None:
        campaign = summary["campaign"]
        whence = sources(tally.round)
        save(draft, tally.round, tally.tally, campaign=campaign, sources=whence, every=every)

    earlier = {path.name for path in out.glob("round-*.tally")} if out.is_dir() else set()
    with new_folder(out, earlier | {SUMMARY}, force=force, last=SUMMARY) as draft:
        listed = _rows(counted, write)
        text = console.to_json({**summary, "rounds": listed})
        (draft / SUMMARY).write_text(text + "\n", encoding="utf-8")
    return listed


def _rows(
    counted: Iterable[RoundTally], write: Callable[[RoundTally], None] | None = None
) -> list[dict[str, int]]:
    listed = []
    with console.working("counting"):
        for counts in counted:
            if write is not None:
                write(counts)
            listed.append(row_of(counts))
    return listed


def _files(log: ReportLog, dialect: str, contents: Contents) -> str:
    """The files that a statement names: those that the engines would read."""
    from loloha.engines import sql

    files = {round: [entry.path for entry in entries] for round, entries in contents.rounds.items()}
    return sql.files_of(log.protocol, dialect, files)


def parse_rounds(text: str) -> list[int]:
    """The rounds that "0,3,7-9" lists."""
    rounds: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            rounds += range(int(first), int(last if dash else first) + 1)[: _MOST_ROUNDS + 1]
            if len(rounds) > _MOST_ROUNDS:
                raise ValueError
    except ValueError:
        rounds = []
    if not rounds:
        raise ParameterError(f"--only-rounds must be a list like 0,3,7-9, got {text!r}; correct it")
    return rounds
