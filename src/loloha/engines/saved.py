"""Tallies in a folder, one file a round: what a tally of a log leaves, and an estimate reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from loloha.errors import WireError
from loloha.rules.protocols import Protocol
from loloha.rules.report import LARGEST_ROUND
from loloha.server.tally import Tally

SUMMARY = "summary.json"
"""Says beside the tallies of which campaign they are, and what was not counted."""
_NAME = re.compile(r"round-(0|[1-9][0-9]*)\.tally")


def save(folder: Path, round: int, tally: Tally) -> Path:
    """Write the tally of one round to ``folder/round-N.tally``."""
    path = folder / f"round-{round}.tally"
    path.write_bytes(tally.to_bytes())
    return path


def find(paths: Iterable[Path]) -> Mapping[int, Sequence[Path]]:
    """The files of each round, in ascending order of rounds.

    Parameters
    ----------
    paths : iterable of Path
        Files that `save` wrote, or folders of them; several of one round add up.

    Raises
    ------
    WireError
        If there is no such file, a file has another name, or comes twice: as itself, by a link, or
        as a copy.
    """
    found: dict[int, list[Path]] = {}
    seen: dict[object, Path] = {}
    for path in paths:
        if not path.exists():
            raise WireError(
                f"tally must be a file or folder that exists, got {str(path)!r}; check the path"
            )
        files = sorted(path.glob("round-*.tally")) if path.is_dir() else [path]
        if not files:
            raise WireError(
                f"tally must be a file or a folder of files round-N.tally, got {str(path)!r} "
                "without any; write them by `loloha tally`"
            )
        for file in files:
            round = round_of(file)
            _refuse_repeat(file, round, seen)
            found.setdefault(round, []).append(file)
    return {round: found[round] for round in sorted(found)}


def _refuse_repeat(file: Path, round: int, seen: dict[object, Path]) -> None:
    """Refuse what would count reports twice: tallies of other reports are other files, and differ.

    Two tallies can be equal by chance, where they hold next to nothing.
    """
    try:
        about, content = file.stat(), file.read_bytes()
    except OSError as error:
        raise _unreadable(file, error) from error
    for sign in ((about.st_dev, about.st_ino), (round, hashlib.sha256(content).digest())):
        if sign in seen:
            raise WireError(
                f"tallies must be of different reports, got equal ones in {str(seen[sign])!r} and "
                f"{str(file)!r}; give each once (two that are equal by chance: add up in Python)"
            )
    seen[about.st_dev, about.st_ino] = seen[round, hashlib.sha256(content).digest()] = file


def _unreadable(path: Path, error: OSError) -> WireError:
    return WireError(f"tally must be readable, got {str(path)!r}: {error.strerror}; check the path")


def campaign_of(folder: Path) -> str | None:
    """The fingerprint of the campaign of the tallies in a folder, None if nothing says it."""
    try:
        plain = json.loads((folder / SUMMARY).read_bytes())
    except (OSError, ValueError):
        return None
    found = plain.get("campaign") if isinstance(plain, dict) else None
    return found if isinstance(found, str) else None


def round_of(path: Path) -> int:
    """The round that a file's name says.

    Raises
    ------
    WireError
        If it says none.
    """
    name = _NAME.fullmatch(path.name)
    if name is None or int(name[1]) > LARGEST_ROUND:
        raise WireError(
            f"tally must be a file round-N.tally, got {path.name!r}; give it its round's name"
        )
    return int(name[1])


def load(paths: Sequence[Path], *, protocol: Protocol | None = None) -> Tally:
    """The tally of one round, added up where there are several.

    Parameters
    ----------
    paths : sequence of Path
        At least one.
    protocol : Protocol, optional
        The rules that all must follow.

    Raises
    ------
    WireError
        If a file cannot be read, is damaged, or is of another protocol.
    MergeError
        If they follow different protocols.
    """
    tally = _load(paths[0], protocol)
    for path in paths[1:]:
        tally = tally + _load(path, protocol)
    return tally


def _load(path: Path, protocol: Protocol | None) -> Tally:
    try:
        message = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        return Tally.from_bytes(message, protocol=protocol)
    except WireError as error:
        raise WireError(f"{path}: {error}") from None
