"""The base class of engines: from the files of a report log to one tally a round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from loloha import checks
from loloha.address import Address, Location
from loloha.errors import ParameterError, WireError
from loloha.protocols import Protocol
from loloha.reportlog import Contents, LogFile, ReportLog
from loloha.reportlog.folder import rows_of
from loloha.server.tally import Tally

if TYPE_CHECKING:
    from loloha.arrays import Ints

# Rows of results that an engine is asked for at once: some 1 GiB.
MOST_PLACES = 1 << 24


@dataclass
class RoundCounts:
    """The counts of one round, or of some of its reports."""

    round: int
    counts: Ints
    n: int = 0
    duplicates: int = 0
    conflicts: int = 0

    def add(self, other: RoundCounts, times: int = 1) -> None:
        """Add the counts of other reports, or with -1 subtract them."""
        self.counts += times * other.counts
        self.n += times * other.n
        self.duplicates += times * other.duplicates
        self.conflicts += times * other.conflicts

    def tallied(self, protocol: Protocol, rows: int | None = None) -> RoundTally:
        """The tally of a round of so many rows: those that are not counted are invalid."""
        tally = Tally(protocol)
        tally.counts, tally.n = self.counts, self.n
        invalid = 0 if rows is None else rows - self.n - self.duplicates - self.conflicts
        return RoundTally(self.round, tally, self.duplicates, self.conflicts, invalid)


@dataclass(frozen=True)
class RoundTally:
    """The tally of one round, and what was not counted.

    Attributes
    ----------
    round : int
    tally : Tally
    duplicates : int
        Further rows of reporters whose rows all agree.
    conflicts : int
        Further rows of reporters whose rows contradict each other.
    invalid : int
        Rows whose key or y is not one of the protocol's. All four add up to the rows of the log.
    """

    round: int
    tally: Tally
    duplicates: int
    conflicts: int
    invalid: int


class Engine(ABC):
    """An engine that counts the reports in Parquet files.

    A subclass says how to count; it is one file, and one line of the registry.
    """

    name: ClassVar[str]
    """Name in the registry."""
    summary: ClassVar[str]
    """One line for tables."""

    advice: ClassVar[str] = (
        "check its digests (guard=True), the memory and the disk; if all are in order, its "
        "Parquet encoding is none that this engine reads: use another engine, or write the "
        "file anew by pyarrow's defaults"
    )
    """Advice for unreadable logs."""

    @abstractmethod
    def count(
        self, protocol: Protocol, rounds: Mapping[int, Sequence[LogFile]], *, guard: bool
    ) -> Iterator[RoundCounts]:
        """Count the valid reports of each round.

        Parameters
        ----------
        protocol : Protocol
        rounds : mapping of int to files
            Files whose metadata have been checked; rounds without any may be left out.
        guard : bool
            Whether one report of each reporter counts, chosen as `loloha.engines.sql.statement`
            says; else every row counts.
        """

    @property
    @abstractmethod
    def failures(self) -> tuple[type[Exception], ...]:
        """Exceptions of the engine's library."""

    def tally(
        self, log: ReportLog, contents: Contents, *, guard: bool = True
    ) -> Iterator[RoundTally]:
        """Tally every round of a log.

        Parameters
        ----------
        log : ReportLog
        contents : Contents
            The result of `ReportLog.scan`; only these files are read.
        guard : bool
            The replay guard: one report of each reporter in each round. Without it the log is
            trusted to hold no report twice.

        Yields
        ------
        RoundTally
            In ascending order of rounds.

        Raises
        ------
        WireError
            If a file cannot be read, as one damaged in a log that is trusted.
        """
        protocol = log.protocol
        for part in _parts(contents.rounds, protocol.encoding.cells):
            filled = {round: files for round, files in part.items() if rows_of(files)}
            counted = self._counted(protocol, filled, guard, log.root)
            for round, files in part.items():
                counts = counted.get(round) or RoundCounts(round, Tally(protocol).counts)
                yield counts.tallied(protocol, rows_of(files))

    def _counted(
        self,
        protocol: Protocol,
        rounds: Mapping[int, Sequence[LogFile]],
        guard: bool,
        root: Location,
    ) -> dict[int, RoundCounts]:
        requirement = f"log must be readable by engine {self.name}"
        with typed(requirement, self.advice, self.failures, root):
            return {counts.round: counts for counts in self.count(protocol, rounds, guard=guard)}


def _parts(
    rounds: Mapping[int, Sequence[LogFile]], cells: int
) -> Iterator[dict[int, Sequence[LogFile]]]:
    """Rounds in groups whose results fit in memory together."""
    size = max(1, MOST_PLACES // cells)
    ordered = sorted(rounds)
    for start in range(0, len(ordered), size):
        yield {round: rounds[round] for round in ordered[start : start + size]}


@contextmanager
def typed(
    requirement: str,
    advice: str,
    failures: tuple[type[Exception], ...] = (),
    place: Location | None = None,
) -> Iterator[None]:
    """Turn libraries' errors about a file into `WireError`: their text could quote keys."""
    arrow = library("pyarrow", "engines")
    try:
        yield
    except (OSError, arrow.ArrowException, *failures) as error:
        if isinstance(place, Address) and place.mount.is_failing(error):
            raise place.mount.failure(error, str(place)) from None
        # Failures while streaming another library's result can be OSError, too.
        raise WireError(f"{requirement}, got {type(error).__name__}; {advice}") from None


def library(module: str, extra: str) -> Any:
    """Import an engine's library; `ExtraError` names the extra that brings it."""
    return checks.library(module, "run this engine", extra)


def plain_path(path: Location) -> str:
    """An absolute path or address without characters that some engines treat as a pattern."""
    text = str(path if isinstance(path, Address) else path.absolute())
    if set(text) & set("*?[]{}\\"):
        raise ParameterError(
            f"path must be without any of * ? [ ] {{ }} \\, got {text!r}; "
            "rename the folder, or use engine 'local'"
        )
    return text
