"""Folders of Parquet files that say what they belong to, and are checked before they are read."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from loloha import checks
from loloha.address import Address, Location, at, located, snapshot, written
from loloha.campaign import Campaign
from loloha.errors import ParameterError, WireError
from loloha.protocols import Protocol
from loloha.report import LARGEST_ROUND
from loloha.reportlog.arrow import DIGEST_DIGITS, METADATA, origin, rules, schema
from loloha.reportlog.writer import Writer

_NAME = re.compile(f"[0-9a-f]{{{DIGEST_DIGITS}}}")
LATE = "late"
"""Why a whole file is refused, see `Contents.in_time`."""
READERS = 16
"""Files of an address that are looked at together."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file whose every statement about itself is true."""

    path: Location
    round: int
    rows: int


def rows_of(files: Iterable[LogFile]) -> int:
    """Rows of some files."""
    return sum(file.rows for file in files)


@dataclass(frozen=True)
class Contents:
    """Contents of a log.

    Attributes
    ----------
    rounds : dict of int to tuple of LogFile
        The files of each round, in ascending order; a round can be without reports.
    refused : dict of str to tuple of path or address
        Files that are not read, by reason: "damaged" (unreadable, or changed since written),
        "foreign" (not of this campaign, or no report log of this version), "mixed" (columns or
        round differ from what its place says), "late" (see `in_time`).
    """

    rounds: Mapping[int, tuple[LogFile, ...]]
    refused: Mapping[str, tuple[Location, ...]]

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(map(rows_of, self.rounds.values()))

    @property
    def largest_round(self) -> int:
        """Rows of the round that has most."""
        return max(map(rows_of, self.rounds.values()), default=0)

    def digests(self, round: int) -> list[str]:
        """The names of a round's files that hold reports: equal ones hold the same reports."""
        return [file.path.stem for file in self.rounds.get(round, ()) if file.rows]

    def in_time(self, last: Callable[[int], float]) -> Contents:
        """Without files that were written after the last second of their round, which are late."""
        files = [(round, file.path) for round, of in self.rounds.items() for file in of]
        if not files:
            return self
        with ThreadPoolExecutor(readers(files[0][1])) as pool:
            times = list(pool.map(lambda file: written(file[1]), files))
        # In the order of the files.
        late = {
            path: None
            for (round, path), when in zip(files, times, strict=True)
            if when > last(round)
        }
        if not late:
            return self
        punctual = {
            round: tuple(file for file in of if file.path not in late)
            for round, of in self.rounds.items()
        }
        return Contents(punctual, {**self.refused, LATE: tuple(late)})

    def must_be_clean(self) -> None:
        """Refuse the log if any file was refused.

        Raises
        ------
        WireError
            With the count of each reason and the first such file.
        """
        if self.refused:
            counts = ", ".join(f"{len(paths)} {why}" for why, paths in self.refused.items())
            first = min(str(path) for paths in self.refused.values() for path in paths)
            raise WireError(
                f"every file must be of this campaign and undamaged, got {counts}, the first is "
                f"{first!r}; remove them, or skip them knowingly (skip=True; they are counted)"
            )


@dataclass(frozen=True)
class ReportLog:
    """A folder of reports of one campaign (others may lie beside them).

    Parameters
    ----------
    root : path or address
        The folder that holds ``campaign=...``, by its path or as ``s3://bucket/LOG`` (or gs, abfs,
        hdfs); what it and those above it are called says nothing.
    campaign : Campaign or Protocol
        What the reports must belong to.

    Raises
    ------
    ParameterError
        If the folder's path is not UTF-8, which Parquet libraries cannot open.
    """

    root: Location
    campaign: Campaign | Protocol

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", readable(located(self.root)))

    @property
    def protocol(self) -> Protocol:
        """The rules that the reports follow."""
        return rules(self.campaign)

    @property
    def every(self) -> int:
        """In how many rounds a user reports once."""
        return 1 if isinstance(self.campaign, Protocol) else self.campaign.schedule.every

    @property
    def folder(self) -> Location:
        """Where the reports of this campaign lie."""
        return self.root / f"campaign={self.campaign.fingerprint}"

    def round_folder(self, round: int) -> Location:
        """Where the reports of one round lie."""
        return self.folder / f"round={checks.round_number(round)}"

    def writer(self) -> Writer:
        """A `Writer` that adds files to this log."""
        return Writer(self.campaign, self.round_folder)

    def scan(
        self,
        *,
        rounds: Iterable[int] | None = None,
        verify: bool = True,
        known: Mapping[int, Collection[str]] | None = None,
    ) -> Contents:
        """Look at every file of the campaign before any report is read.

        Parameters
        ----------
        rounds : iterable of int, optional
            Only these.
        verify : bool
            Compare each file's content with the digest in its name: reads everything once, some
            10^8 reports/s. Without it only the metadata are read.
        known : mapping of int to collection of str, optional
            Names of each round that are not looked at again.

        Raises
        ------
        WireError
            If the log has no folder of this campaign.
        """
        folder = snapshot(self.folder)
        if not folder.is_dir():
            if not self.root.is_dir():
                raise WireError(
                    f"log must be an existing folder, got {str(self.root)!r}; check the path"
                )
            others = sum(1 for _ in self.root.glob("campaign=*"))
            raise WireError(
                f"log must hold reports of campaign {self.campaign.fingerprint}, "
                f"{str(self.root)!r} has {others} of others; "
                "give the campaign or protocol that the log was written for"
            )
        files: dict[int, list[LogFile]] = {}
        refused: dict[str, list[Location]] = {}
        places = [
            (path, round)
            for path, round in _places(folder, rounds, files)
            if round is None or path.name not in (known or {}).get(round, ())
        ]
        with ThreadPoolExecutor(readers(self.root)) as pool:
            looked = pool.map(lambda place: self._look(place[0], place[1], verify), places)
            for (path, _), result in zip(places, looked, strict=True):
                if isinstance(result, LogFile):
                    files[result.round].append(result)
                else:
                    refused.setdefault(result, []).append(path)
        return Contents(
            {round: tuple(files[round]) for round in sorted(files)},
            {reason: tuple(refused[reason]) for reason in sorted(refused)},
        )

    def names(self, *, rounds: Iterable[int] | None = None) -> dict[int, frozenset[str]]:
        """What lies in each round, by a listing alone: nothing while there is no log."""
        folder = snapshot(self.folder)
        if not folder.is_dir():
            return {}
        names: dict[int, set[str]] = {}
        for path, round in _places(folder, rounds, {}):
            if round is not None:
                names.setdefault(round, set()).add(path.name)
        return {round: frozenset(names[round]) for round in sorted(names)}

    def _look(self, path: Location, round: int | None, verify: bool) -> LogFile | str:
        """The file, or why it is refused."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if round is None or path.suffix != ".parquet" or path.parent != self.round_folder(round):
            return "foreign"
        if path.exists() and not path.is_file():
            # Who opens a named pipe waits for ever.
            return "foreign"
        try:
            # Without its digest for a name a file may be a copy of another one, also where nobody
            # compares the content.
            if not _NAME.fullmatch(path.stem) or (verify and _digest(path) != path.stem):
                return "damaged"
            where, filesystem = at(path)
            footer = pq.read_metadata(where, filesystem=filesystem)
            columns = footer.schema.to_arrow_schema()
        except (OSError, pa.ArrowException) as error:
            # A service that fails says nothing of its files.
            if isinstance(path, Address) and path.mount.is_failing(error):
                raise path.mount.failure(error, str(path)) from None
            return "damaged"
        expected = schema(self.campaign, round=round)
        metadata = (columns.metadata or {}).get(METADATA)
        if metadata != expected.metadata[METADATA]:
            return "mixed" if self._is_ours(metadata) else "foreign"
        if not columns.equals(expected):
            return "mixed"
        return LogFile(path, round, footer.num_rows)

    def _is_ours(self, metadata: bytes | None) -> bool:
        """Whether a file of another round, or of several, says that it is of this campaign."""
        try:
            return metadata == origin(self.campaign, json.loads(metadata or b"{}").get("round"))
        except (ValueError, AttributeError):
            return False


def _places(
    folder: Location, rounds: Iterable[int] | None, files: dict[int, list[LogFile]]
) -> Iterator[tuple[Location, int | None]]:
    """Every file with the round that its folder says; notes the rounds in ``files``."""
    wanted = None if rounds is None else {checks.round_number(round) for round in rounds}
    for entry in visible(folder):
        round = round_of(entry)
        if round is None:
            yield from ((path, None) for path in _files_below(entry))
        elif wanted is None or round in wanted:
            files.setdefault(round, [])
            for path in visible(entry):
                yield from ((below, round) for below in _files_below(path))


def _digest(path: Location) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGEST_DIGITS]


def readers(root: Location) -> int | None:
    """How many files to read at a time: those of a store are waited for."""
    return READERS if isinstance(root, Address) else os.cpu_count()


def readable(root: Location) -> Location:
    """The path of a log, if it is UTF-8: Parquet libraries open no other."""
    if isinstance(root, Address):
        return root
    text = str(root.absolute())
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParameterError(
            f"path of a log must be UTF-8, got {text!a}; rename the folder that is not"
        ) from None
    return root


def round_of(folder: Location) -> int | None:
    """The round that the name of a folder in a campaign's says, None if it is none."""
    name, _, number = folder.name.partition("=")
    # Only the one canonical writing, or a round could have two folders.
    plain = number.isdecimal() and number.isascii() and str(int(number)) == number
    is_round = name == "round" and plain and int(number) <= LARGEST_ROUND
    return int(number) if is_round and folder.is_dir() else None


def visible(folder: Location) -> list[Location]:
    """Entries in order; hidden ones are unfinished files, or notes of other tools."""
    return sorted((path for path in folder.iterdir() if path.name[0] not in "._"), key=str)


def _files_below(path: Location) -> list[Location]:
    # A link to a folder is one entry: it can lead back to where it lies.
    if path.is_dir() and not (isinstance(path, Path) and path.is_symlink()):
        return [below for entry in visible(path) for below in _files_below(entry)]
    return [path]
