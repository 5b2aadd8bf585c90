"""The tallies of a growing log, kept up to date: ``loloha tally --follow``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import TYPE_CHECKING, Any, NoReturn

from loloha.address import Location, written
from loloha.checks import counted
from loloha.cli import console, table_file
from loloha.cli.results_folder import unwritable
from loloha.client.file import StateFile
from loloha.errors import LolohaError, StateError, StorageError

if TYPE_CHECKING:
    from loloha.engines import Engine, RoundTally
    from loloha.engines.growing import GrowingRound
    from loloha.reportlog import Contents, ReportLog

COLUMNS = ("round", "n", "duplicates", "conflicts", "invalid")
SEEN = ".seen"
"""Hidden folder of what the guard remembers, by round."""
SAME = ("campaign", "guard", "late_seconds", "skip")
_Times = dict[Location, float | None]
"""Write times of files, as known before they were read."""


def row_of(tally: RoundTally) -> dict[str, int]:
    """What became of the reports of a round."""
    numbers = (tally.round, tally.tally.n, tally.duplicates, tally.conflicts, tally.invalid)
    return dict(zip(COLUMNS, numbers, strict=True))


class Followed:
    """A folder of tallies, and the files of the log that they count.

    Of a round that grew only the new files are read. It is counted anew where its files are others
    than those that were counted, or one that was refused is written again, and by engine spark: so
    any state between is that of a tally of some of the log, and the last one that of all of it.

    Parameters
    ----------
    log, engine, out
        From where, by what, to where.
    summary : dict
        What a tally at once says of itself.
    rounds : list of int, optional
        Only these.
    skip : bool
        Go on without files that are damaged, foreign or mixed.
    last : callable, optional
        The last second at which a file of a round is in time.
    put : callable, optional
        Where the tally of each round that changed goes besides.
    """

    def __init__(
        self,
        log: ReportLog,
        engine: Engine,
        out: Location,
        summary: dict[str, Any],
        rounds: list[int] | None,
        skip: bool,
        last: Callable[[int], float] | None,
        late_seconds: int | None = None,
        put: Callable[[RoundTally], None] | None = None,
    ) -> None:
        self.log, self.engine, self.out = log, engine, out
        self.rounds, self.skip, self.last = rounds, skip, last
        self._about = summary | {"engine": engine.name, "late_seconds": late_seconds, "skip": skip}
        self._rows: dict[int, dict[str, int]] = {}
        self._names: dict[int, frozenset[str]] = {}
        self._digests: dict[int, str] = {}
        self._refused: dict[int, Counter[str]] = {}
        self._outside = Counter[str]()
        """Refused, and of no round's folder."""
        self._again: dict[int, _Times] = {}
        """Refused files, to be looked at once more when they were written since."""
        self._is_noted = True
        self._put = put
        self._unput: dict[int, RoundTally] = {}
        self._growing: dict[int, GrowingRound] = {}
        # The guard of a store's log lives here while it runs.
        self._spool = None if isinstance(out, Path) else TemporaryDirectory(prefix="loloha-")
        self._resume()

    def go_on(self, pause: float) -> NoReturn:
        """Count new files again and again, until interrupted."""
        try:
            self._go_on(pause)
        finally:
            if self._spool is not None:
                self._spool.cleanup()

    def _go_on(self, pause: float) -> NoReturn:
        shown = ""
        while True:
            try:
                for round in self.step():
                    console.say(f"round {round}: {counted(self._rows[round]['n'], 'report')}")
                news = "" if self._names else f"no reports yet in {self.log.folder}"
            except StorageError as error:
                # An unavailable service may come back.
                news = str(error)
            if news and news != shown:
                console.warn(news)
            shown = news
            sleep(pause)

    def step(self) -> list[int]:
        """Count the rounds that changed; which ones."""
        # List names and times first: later files are seen next time.
        names = self.log.names(rounds=self.rounds)
        times = {
            round: {path: _written(path) for path in files} for round, files in self._again.items()
        }
        changed = [
            round
            for round in names
            if names[round] != self._names.get(round) or times.get(round) != self._again.get(round)
        ]
        counted = self._count(changed, names, times) if changed else []
        if not self._is_noted:
            self._note()
        if self._put is not None:
            for round in list(self._unput):
                self._put(self._unput[round])
                del self._unput[round]
        return counted

    def _count(
        self, changed: list[int], names: dict[int, frozenset[str]], times: dict[int, _Times]
    ) -> list[int]:
        """Write the tallies of some rounds; of which there were files."""
        from loloha.engines.saved import message

        guard = self._about["guard"]
        known = {round: self._names[round] for round in changed if self._only_grew(round, names)}
        contents = self.log.scan(rounds=changed, verify=guard, known=known)
        if not self.skip:
            contents.must_be_clean()
        again = {path for paths in contents.refused.values() for path in paths}
        if self.last is not None:
            contents = contents.in_time(self.last)
        refused = {path: reason for reason, paths in contents.refused.items() for path in paths}
        self._is_noted = False
        for tallied, sources in self._tallied(contents, known):
            round = tallied.round
            content = message(
                round,
                tallied.tally,
                campaign=self._about["campaign"],
                sources=sources,
                every=self.log.every,
            )
            self._write(f"round-{round}.tally", content)
            here = [path for path in refused if self.log.round_folder(round) in path.parents]
            earlier_refused = self._refused.get(round, Counter()) if round in known else Counter()
            self._refused[round] = earlier_refused + Counter(refused.pop(path) for path in here)
            earlier = times.get(round, {})
            self._again[round] = {path: earlier.get(path) for path in here if path in again}
            self._rows[round] = row_of(tallied)
            self._digests[round] = sha256(content).hexdigest()
            self._names[round] = names[round]
            self._unput[round] = tallied
        self._outside = Counter(refused.values())
        return sorted(contents.rounds)

    def _only_grew(self, round: int, names: dict[int, frozenset[str]]) -> bool:
        """Whether all counted and late files are still there, and new ones came."""
        from loloha.reportlog.folder import LATE

        settled = not self._again.get(round) and self._refused.get(round, {}).keys() <= {LATE}
        return settled and round in self._growing and names[round] > self._names[round]

    def _tallied(
        self, contents: Contents, known: Collection[int]
    ) -> Iterator[tuple[RoundTally, list[str]]]:
        """The tally of each round, and the digests of its files."""
        if self.engine.name == "spark":
            for tallied in self.engine.tally(self.log, contents, guard=self._about["guard"]):
                yield tallied, contents.digests(tallied.round)
            return
        for round, files in contents.rounds.items():
            growing = self._growing.pop(round) if round in known else self._new(round)
            growing.add([file for file in files if file.rows])
            yield growing.tallied(round), sorted(path.stem for path in growing.files)
            # Only now: a half-added round is counted again.
            self._growing[round] = growing

    def _new(self, round: int) -> GrowingRound:
        from loloha.engines.growing import GrowingRound

        guard = self._about["guard"]
        return GrowingRound(self.log.protocol, guard=guard, folder=self._seen(round))

    def _seen(self, round: int) -> Path:
        """Where the guard of a round is stored."""
        folder = Path(self._spool.name) if self._spool is not None else Path(str(self.out)) / SEEN
        return folder / f"round-{round}"

    def _note(self) -> None:
        """Write the list of counted files last: a kill before it only repeats the counting."""
        from loloha.engines.saved import SUMMARY

        rounds = sorted(self._rows)
        counted = {str(round): sorted(self._names[round]) for round in rounds}
        rows = [self._rows[round] for round in rounds]
        refused = sum(self._refused.values(), self._outside)
        counts = {
            "refused": dict(sorted(refused.items())),
            "refused_in": {
                str(round): dict(reasons) for round, reasons in self._refused.items() if reasons
            },
            "rows": sum(sum(row.values()) - row["round"] for row in rows),
        }
        digests = {str(round): self._digests[round] for round in rounds}
        whole = {**self._about, **counts, "rounds": rows, "counted": counted, "digests": digests}
        if self._spool is None and self._growing:
            # In the order in which the guard knows them.
            whole["guarded"] = {
                str(round): {"files": [path.name for path in tally.files], "runs": tally.runs}
                for round, tally in self._growing.items()
            }
        self._write(SUMMARY, (console.to_json(whole) + "\n").encode())
        for tally in self._growing.values():
            tally.forget()
        self._is_noted = True

    def _write(self, name: str, content: bytes) -> None:
        with table_file.new_file(self.out / name) as draft:
            draft.write_bytes(content)

    def _resume(self) -> None:
        """Go on from what an earlier run left, if it counted as this one does."""
        from loloha.engines.saved import SUMMARY
        from loloha.reportlog.folder import LATE

        # Hidden files are unfinished ones of a killed process.
        if not self.out.exists() or all(file.name.startswith(".") for file in self.out.iterdir()):
            self._note()
            return
        try:
            earlier = json.loads((self.out / SUMMARY).read_bytes())
            rows = {
                row["round"]: {name: row[name] for name in COLUMNS} for row in earlier["rounds"]
            }
            counted = {int(round): frozenset(names) for round, names in earlier["counted"].items()}
            refused = {
                int(round): Counter(reasons) for round, reasons in earlier["refused_in"].items()
            }
            digests = {int(round): digest for round, digest in earlier["digests"].items()}
            stale = [
                round
                for round in rows
                # Incomplete files may be complete by now.
                if refused.get(round, {}).keys() - {LATE}
                or _digest(self.out / f"round-{round}.tally") != digests[round]
            ]
            counted |= dict.fromkeys(stale, frozenset())
            same = all(earlier[name] == self._about[name] for name in SAME)
        except (StorageError, PermissionError):
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            same = False
        if not same:
            raise LolohaError(
                f"--out must be new, or of an earlier --follow of this campaign with the same "
                f"options, got {str(self.out)!r}; name another folder"
            )
        self._rows, self._names, self._refused, self._digests = rows, counted, refused, digests
        self._resume_growing(earlier.get("guarded"), set(rows) - set(stale))

    def _resume_growing(self, guarded: Any, rounds: set[int]) -> None:
        """Go on from what the guard remembered, where it is all there; else count anew."""
        from loloha.engines.base import RoundTally
        from loloha.engines.growing import GrowingRound, tidy
        from loloha.engines.saved import load

        for round in sorted(self._rows):
            try:
                entry = guarded[str(round)]
                files = [self.log.round_folder(round) / name for name in entry["files"]]
                runs = set(entry["runs"])
            except (KeyError, TypeError):
                files, runs = [], set()
            tidy(self._seen(round), runs)
            if round not in rounds or not files:
                continue
            counted = load([self.out / f"round-{round}.tally"], protocol=self.log.protocol)
            row = self._rows[round]
            earlier = RoundTally(
                round, counted, row["duplicates"], row["conflicts"], row["invalid"]
            )
            guard, folder = self._about["guard"], self._seen(round)
            growing = GrowingRound.resumed(
                earlier, files, entry["runs"], guard=guard, folder=folder
            )
            if growing is not None:
                self._growing[round] = growing
            if self._put is not None:
                self._unput[round] = earlier


def alone(out: Location) -> AbstractContextManager[Any]:
    """Keep others from a folder of tallies for as long as this process keeps it up to date."""
    if not isinstance(out, Path):
        # What the guard of each remembers is in a folder of its own.
        return nullcontext()
    try:
        out.mkdir(parents=True, exist_ok=True)
        return closing(StateFile(out / SEEN))
    except OSError as error:
        raise unwritable(out, error) from error
    except StateError as error:
        if isinstance(error.__cause__, OSError):
            raise unwritable(out, error.__cause__) from error
        raise LolohaError(
            "--out must be kept up to date by one --follow at a time, another one does; stop it, "
            "or name another folder"
        ) from None


def _written(path: Location) -> float | None:
    with suppress(FileNotFoundError):
        return written(path)
    return None


def _digest(path: Location) -> str | None:
    with suppress(FileNotFoundError):
        return sha256(path.read_bytes()).hexdigest()
    return None
