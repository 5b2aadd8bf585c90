"""Users of a report log over several rounds, joined by their keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.encodings import Hashed
from loloha.engines.base import typed
from loloha.engines.local import Local, batches_of, pieces_of
from loloha.engines.replay import admit
from loloha.engines.window import Window, decodable, decode
from loloha.errors import ParameterError
from loloha.protocols import Protocol
from loloha.reportlog import LogFile, ReportLog
from loloha.server.mean import mean

if TYPE_CHECKING:
    from loloha.arrays import Bools, Ints

__all__ = ["join", "window"]


def window(log: ReportLog, *, rounds: Iterable[int] | None = None, guard: bool = True) -> Window:
    """Frequencies over some rounds of a report log, its users joined by their keys.

    Parameters
    ----------
    log : ReportLog
    rounds : iterable of int, optional
        Only these; else all.
    guard : bool
        As of `loloha.engines.tally`.

    Returns
    -------
    Window
        By `decode` where keys tell users apart, else the plain `mean` of the rounds.

    Raises
    ------
    WireError
        If the log holds nothing of the campaign, or a file is refused.
    """
    contents = log.scan(rounds=rounds, verify=guard)
    contents.must_be_clean()
    if not _tells_apart(log.protocol, contents.largest_round):
        tallies = Local().tally(log, contents, guard=guard)
        counted = {tally.round: tally.tally for tally in tallies}
        average = mean(counted, every=log.every)
        reason = "several users share a key, or none is sent: rounds cannot be joined"
        return Window(
            log.protocol, "mean", reason, average.n, len(counted), average.frequencies,
            average.standard_errors, inversion=average.inversion,
        )  # fmt: skip
    return decode(log.protocol, *_joined(log.protocol, contents.rounds.values(), guard))


def join(
    log: ReportLog, *, rounds: Iterable[int] | None = None, guard: bool = True
) -> tuple[Ints, Ints]:
    """The reports of each user over some rounds of a log, joined by key.

    Parameters
    ----------
    log, rounds, guard
        As for `window`.

    Returns
    -------
    keys : int64[n]
    ys : int64[n, rounds]
        -1 where a user sent nothing. A key that comes twice in a round is left out.

    Raises
    ------
    ParameterError
        If keys do not tell that many users apart: that two share one is likelier than not.
    WireError
        As for `window`.
    """
    contents = log.scan(rounds=rounds, verify=guard)
    contents.must_be_clean()
    largest = contents.largest_round
    if not _tells_apart(log.protocol, largest):
        raise ParameterError(
            f"keys must distinguish {largest} users, those of {log.protocol!r} do not; take the "
            "mean of the rounds"
        )
    return _joined(log.protocol, contents.rounds.values(), guard)


def _tells_apart(protocol: Protocol, users: int) -> bool:
    """Whether fewer than one key is expected to be shared by chance."""
    encoding: Any = protocol.encoding
    keyed = type(encoding) is Hashed and decodable(protocol)
    return keyed and users**2 < 2 * int(encoding.family.members)


def _joined(
    protocol: Protocol, rounds: Iterable[Sequence[LogFile]], guard: bool
) -> tuple[Ints, Ints]:
    parts = [_read(protocol, files, guard) for files in rounds]
    keys, whose = np.unique(np.concatenate([keys for keys, _ in parts]), return_inverse=True)
    ys = np.full((len(keys), len(parts)), -1, dtype=np.int64)
    twice: Bools = np.zeros(len(keys), dtype=bool)
    start = 0
    for t, (_, answers) in enumerate(parts):
        users = whose[start : start + len(answers)]
        start += len(answers)
        ys[users, t] = answers
        twice |= np.bincount(users, minlength=len(keys)) > 1
    return keys[~twice], ys[~twice]


def _read(protocol: Protocol, files: Sequence[LogFile], guard: bool) -> tuple[Ints, Ints]:
    """Keys and symbols of the reports of a round that count."""
    advice = "check its digests (guard=True), the memory and the disk"
    with typed("log must be readable", advice, place=files[0].path if files else None):
        pieces = (piece for file in files for piece in pieces_of(file))
        read = [batch for piece in pieces for batch in batches_of(protocol, piece)]
    if not read:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    reporters, keys, ys = (np.concatenate(column) for column in zip(*read, strict=True))
    if guard:
        rows = admit(reporters, keys, ys).rows
        keys, ys = keys[rows], ys[rows]
    return keys, ys
