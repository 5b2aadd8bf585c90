"""Uploads that wait for a commit: each address has its turn, and large ones are cut in pieces."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from loloha.collector.commit_cost import round_work
from loloha.collector.quota import Quota
from loloha.collector.submission import SmallUpload, Submission, gather

Upload = Submission | SmallUpload
FEW_REPORTS = 1_000
"""Work, in reports, of a small upload."""
LARGEST_PIECE = 5_000
"""Work of a piece of a large one."""


class Job:
    """An upload on its way: committed at once, or, where that would take long, piece by piece.

    Attributes
    ----------
    is_small : bool
        It is committed as it is, gathered with others.
    waits : bool
        Whether something of it is in the line.
    line : Line
        The one it was put in.
    pieces : dict
        Those of a large one that wait, by name.
    """

    __slots__ = (
        "address", "codes", "future", "is_small", "line", "loop", "pieces", "size", "upload",
        "waits",
    )  # fmt: skip

    line: Line

    def __init__(self, upload: Upload, future: Any, loop: Any, address: str | None = None) -> None:
        self.upload = upload
        self.future = future
        self.loop = loop
        self.address = address
        self.size = max(1, upload.size)
        self.is_small = upload.work <= FEW_REPORTS
        self.waits = True
        self.codes: Any = None
        self.pieces: dict[Any, tuple[Upload, Any]] = {}

    def cut(self) -> None:
        """Make the pieces of a large one, unless that is done."""
        if self.codes is not None:
            return
        self.codes = np.zeros(self.upload.size, dtype=np.int8)
        whole = gather([self.upload])[0][0]
        for name, piece, places in whole.pieces(LARGEST_PIECE):
            self.pieces[name] = piece, places


class UploadSlice(NamedTuple):
    """The part of an upload in one commit, and the places of its reports."""

    job: Job
    upload: Upload
    places: Any


class Taken:
    """The contents of one commit, of bounded work; the first part always fits."""

    def __init__(self, capacity: int) -> None:
        self.slices: list[UploadSlice] = []
        self.capacity = capacity
        self._rounds: set[tuple[int, int]] = set()

    def put(self, job: Job, upload: Upload, places: Any) -> bool:
        """Take one more, where it fits; whether it does."""
        stored, size = upload.stored, upload.size
        rounds = [
            place for round in upload.rounds if (place := (stored.id, round)) not in self._rounds
        ]
        work = size * stored.report_work
        if rounds:
            work += len(rounds) * int(round_work(stored.campaign.protocol.encoding, size))
        if self.slices and work > self.capacity:
            return False
        self.capacity -= work
        self._rounds.update(rounds)
        self.slices.append(UploadSlice(job, upload, places))
        return True


class Line:
    """A fair queue of uploads by address: addresses take turns.

    An upload leaves the line with its last piece.
    """

    def __init__(self, largest: int) -> None:
        self._by_address: OrderedDict[str | None, deque[Job]] = OrderedDict()
        self.reports = Quota(largest, "")

    def __bool__(self) -> bool:
        return bool(self._by_address)

    def __iter__(self) -> Iterator[Job]:
        return chain.from_iterable(self._by_address.values())

    def append(self, job: Job) -> None:
        """At the end of those of its address."""
        jobs = self._by_address.get(job.address)
        if jobs is None:
            jobs = self._by_address[job.address] = deque()
        jobs.append(job)
        job.line = self
        self.reports.take(job.address, job.size)

    def first(self) -> Job | None:
        """The first of the address whose turn it is."""
        for jobs in self._by_address.values():
            return jobs[0]
        return None

    def pass_turn(self, job: Job) -> None:
        """Move the address to the end of the queue, or drop it if done."""
        if job.address in self._by_address:
            self._by_address.move_to_end(job.address)

    def remove(self, job: Job) -> None:
        """Nothing is left of it."""
        job.waits = False
        jobs = self._by_address[job.address]
        jobs.remove(job)
        if not jobs:
            del self._by_address[job.address]
