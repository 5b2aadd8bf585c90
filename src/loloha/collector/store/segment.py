"""Segments of guards: what commits wrote, read again in bounded pieces, and merged where many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from loloha.collector.replay_guard import ROW_BYTES, Guard, Seen, pack, unpack
from loloha.collector.store import statement

if TYPE_CHECKING:
    import sqlalchemy as sql

LARGEST = ROW_BYTES << 19
"""Bytes that are read, or written by merging, at a time: 12 MB.

Databases refuse values of some hundred MB, and merged segments of 0.2.0 could be that large: these
are read in pieces of this size.
"""
MOST_SEGMENTS = 256
"""A round with more of them is merged when it is read."""


@dataclass
class Opened:
    """The guard of a round in memory, where its next segment goes, how many reports wait.

    It is behind where another collector has written to the campaign since.
    """

    guard: Guard = field(default_factory=Guard)
    segment: int = 0
    waiting: int = 0
    is_behind: bool = False


def load(connection: sql.Connection, campaign_id: int, rounds: list[int]) -> dict[int, Opened]:
    """The guards of some rounds of a campaign, merged where they have many segments."""
    loaded = {round: Opened() for round in rounds}
    here = {"entry": campaign_id, "rounds": rounds, "largest": LARGEST}
    sizes = connection.execute(statement.GUARD_SIZES, here).all()
    numbers = Counter(row.round for row in sizes)
    for row in sizes:
        loaded[row.round].segment = row.segment + 1
        for start in range(0, row.size if row.size > LARGEST else 0, LARGEST):
            piece = {"at": row.round, "segment": row.segment, "start": start + 1, "n": LARGEST}
            rows = connection.execute(statement.GUARD_PIECE, {**here, **piece}).scalar_one()
            loaded[row.round].guard.add(*unpack(rows))
    for ends in _ranges([row for row in sizes if row.size <= LARGEST]):
        guards = connection.execute(statement.GUARDS, {**here, **ends}).all()
        for round, same in groupby(guards, lambda row: int(row.round)):
            segments = {row.segment: row.rows for row in same}
            reporters, digests = unpack(b"".join(segments.values()))
            loaded[round].guard.add(reporters, digests)
            if numbers[round] > MOST_SEGMENTS and len(segments) > 1:
                place = {"campaign_id": campaign_id, "round": round, "segment": max(segments)}
                old = {**here, "at": round, "segments": list(segments)}
                connection.execute(statement.DELETE_SEGMENTS, old)
                merged = {**place, "rows": pack(reporters, digests)}
                connection.execute(statement.INSERT_GUARD, merged)
    return loaded


def catch_up(connection: sql.Connection, campaign_id: int, round: int, opened: Opened) -> None:
    """Add what other collectors have counted in a round since it was read."""
    place = {"entry": campaign_id, "at": round}
    while opened.is_behind:
        place["next"] = opened.segment
        rows = connection.execute(statement.NEW_SEGMENTS, place).all()
        reporters, digests = unpack(b"".join(row.rows for row in rows))
        # A segment that was merged by another holds what is known here, too.
        new = opened.guard.classify(reporters, digests) == Seen.NEW
        opened.guard.add(reporters[new], digests[new])
        opened.segment = max([opened.segment, *(row.segment + 1 for row in rows)])
        opened.is_behind = len(rows) == statement.MOST_NEW_SEGMENTS


def _ranges(sizes: list[Any]) -> Iterator[dict[str, int]]:
    """First and last of consecutive segments that are read together."""
    start, total = 0, 0
    for place, row in enumerate(sizes):
        if place > start and total + row.size > LARGEST:
            yield _ends(sizes[start], sizes[place - 1])
            start, total = place, 0
        total += row.size
    if sizes:
        yield _ends(sizes[start], sizes[-1])


def _ends(first: Any, last: Any) -> dict[str, int]:
    return {
        "first_round": first.round,
        "first_segment": first.segment,
        "last_round": last.round,
        "last_segment": last.segment,
    }
