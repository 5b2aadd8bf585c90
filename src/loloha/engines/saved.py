"""Tallies in a folder, one file a round: what a tally of a log leaves, and an estimate reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from loloha import checks
from loloha.address import Address, Location, located
from loloha.campaign.schedule import RAREST
from loloha.errors import StorageError, WireError
from loloha.protocols import Protocol
from loloha.report import LARGEST_ROUND
from loloha.server.tally import Tally, opened

SUMMARY = "summary.json"
"""File beside the tallies: their campaign, and what was not counted."""
_NAME = re.compile(r"round-(0|[1-9][0-9]*)\.tally")


class _Origin(NamedTuple):
    """The reports that a saved tally counts, if it says so."""

    campaign: str | None
    round: int | None
    sources: tuple[str, ...]
    n: int
    counts: str
    """Digest of the counts."""


def save(folder: Location, round: int, tally: Tally, **about: Any) -> Location:
    """Write the `message` of one round to ``folder/round-N.tally``."""
    path = folder / f"round-{round}.tally"
    path.write_bytes(message(round, tally, **about))
    return path


def message(
    round: int,
    tally: Tally,
    *,
    campaign: str | None = None,
    sources: Iterable[str] = (),
    every: int = 1,
) -> bytes:
    """A tally with its origin; see `every_of`."""
    origin = {"campaign": campaign, "round": round, "sources": sorted(sources)}
    more = {"every": every} if every > 1 else {}
    return tally.to_bytes(origin=origin | more)


def every_of(path: Location) -> int:
    """``every`` of a saved tally's campaign, if it says so."""
    every = opened(path.read_bytes())[0].get("origin", {}).get("every", 1)
    if type(every) is not int or not 1 <= every <= RAREST:
        raise WireError(
            f"{path}: every must be an integer in 1..{RAREST}, got another; count the log anew by "
            "`loloha tally`"
        )
    return every


def find(
    paths: Iterable[Location], *, campaign: str | None = None
) -> Mapping[int, Sequence[Location]]:
    """The files of each round, in ascending order; all must be of one campaign."""
    by_round: dict[int, list[Location]] = {}
    seen = _Seen(campaign)
    for path in map(located, paths):
        if not path.exists():
            raise WireError(
                f"tally must be a file or folder that exists, got {str(path)!r}; check the path"
            )
        if isinstance(path, Address) and path.is_dir() and not (path / SUMMARY).exists():
            raise WireError(
                f"tallies must be complete, got {str(path)!r} without {SUMMARY}, which is written "
                "last; write them anew by `loloha tally`"
            )
        files: list[Location] = [*path.glob("round-*.tally")] if path.is_dir() else [path]
        if not files:
            raise WireError(
                f"tally must be a file or a folder of files round-N.tally, got {str(path)!r} "
                "without any; write them by `loloha tally`"
            )
        for file in sorted(files, key=str):
            round = round_of(file)
            seen.add(file, round)
            by_round.setdefault(round, []).append(file)
    return {round: by_round[round] for round in sorted(by_round)}


class _Seen:
    """The tallies of one estimate, which must not count the same reports."""

    def __init__(self, wanted: str | None) -> None:
        self._wanted = wanted
        self._files: dict[object, Location] = {}
        self._unnamed: dict[object, tuple[Location, int]] = {}
        self._campaign: tuple[str, Location] | None = None

    def add(self, file: Location, round: int) -> None:
        try:
            message, itself = file.read_bytes(), _itself(file)
        except OSError as error:
            raise _unreadable(file, error) from error
        origin = _origin(file, message)
        if origin.round not in (None, round):
            raise WireError(
                f"{str(file)!r} must be the tally of the round in its name, got that of round "
                f"{origin.round}; remove the copy, or give it its own name again"
            )
        self._check_campaign(file, origin.campaign or _campaign_of(file.parent))
        signs: list[object] = [itself]
        if origin.n:
            # Tallies without reports are equal for any two logs.
            signs += [(round, sign) for sign in (origin.counts, *origin.sources)]
            if origin.round is None:
                self._check_unnamed(file, round, origin)
        for sign in signs:
            if sign in self._files:
                raise _counted_twice(self._files[sign], file)
        self._files.update(dict.fromkeys(signs, file))

    def _check_unnamed(self, file: Location, round: int, origin: _Origin) -> None:
        """Equal tallies without a round must both be in a summary."""
        first = self._unnamed.setdefault(origin.counts, (file, round))
        if first != (file, round) and not all(
            _listed(*place, origin.n) for place in (first, (file, round))
        ):
            raise _counted_twice(first[0], file)

    def _check_campaign(self, file: Location, campaign: str | None) -> None:
        if campaign is None:
            return
        checks.of_campaign(f"tallies in {str(file.parent)!r}", campaign, self._wanted)
        of_first, first = self._campaign or (campaign, file)
        if campaign != of_first:
            raise WireError(
                f"tallies must be of one campaign, {str(first)!r} is of {of_first!r} and "
                f"{str(file)!r} of {campaign!r}; estimate them separately"
            )
        self._campaign = campaign, first


def _itself(file: Location) -> object:
    """A key that is equal for two names of one file."""
    if isinstance(file, Address):
        return file
    about = file.stat()
    return about.st_dev, about.st_ino


def _counted_twice(first: Location, second: Location) -> WireError:
    return WireError(
        f"tallies must be of different reports, {str(first)!r} and {str(second)!r} count the same; "
        "give one of them (two that are equal by chance: add up in Python)"
    )


def _listed(file: Location, round: int, n: int) -> bool:
    """Whether the summary beside a tally knows its round, with so many reports."""
    rows = _summary(file.parent).get("rounds")
    return isinstance(rows, list) and any(
        isinstance(row, dict) and (row.get("round"), row.get("n")) == (round, n) for row in rows
    )


def _origin(path: Location, message: bytes) -> _Origin:
    """A tally's origin; None for those of 0.2.0."""
    try:
        header, body = opened(message)
    except WireError as error:
        raise WireError(f"{path}: {error}") from None
    n, counts = header["n"], hashlib.sha256(body).hexdigest()
    if "origin" not in header:
        return _Origin(None, None, (), n, counts)
    names = ("campaign", "round", "sources")
    campaign, round, sources = (header["origin"].get(name) for name in names)
    listed = isinstance(sources, list) and all(isinstance(source, str) for source in sources)
    if type(round) is not int or not isinstance(campaign, str | None) or not listed:
        raise WireError(
            f"{path}: a saved tally must say its round, its campaign and its sources; count the "
            "log anew by `loloha tally`"
        )
    return _Origin(campaign, round, tuple(sources or ()), n, counts)


def _unreadable(path: Location, error: OSError) -> WireError | StorageError:
    if isinstance(error, StorageError):
        return error
    return WireError(f"tally must be readable, got {str(path)!r}: {error.strerror}; check the path")


def _campaign_of(folder: Location) -> str | None:
    """The origin by the folder's summary, for tallies of 0.2.0."""
    campaign = _summary(folder).get("campaign")
    return campaign if isinstance(campaign, str) else None


def _summary(folder: Location) -> Mapping[str, Any]:
    try:
        plain = json.loads((folder / SUMMARY).read_bytes())
    except (OSError, ValueError):
        return {}
    return plain if isinstance(plain, dict) else {}


def round_of(path: Location) -> int:
    """The round that a file's name says."""
    name = _NAME.fullmatch(path.name)
    if name is None or int(name[1]) > LARGEST_ROUND:
        raise WireError(
            f"tally must be a file round-N.tally, got {path.name!r}; give it its round's name"
        )
    return int(name[1])


def load(paths: Sequence[Location], *, protocol: Protocol | None = None) -> Tally:
    """The tally of one round, added up where there are several."""
    tally = _load(paths[0], protocol)
    for path in paths[1:]:
        tally = tally + _load(path, protocol)
    return tally


def _load(path: Location, protocol: Protocol | None) -> Tally:
    try:
        message = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        return Tally.from_bytes(message, protocol=protocol)
    except WireError as error:
        raise WireError(f"{path}: {error}") from None
