"""One upload on its way to the store, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.collector.commit_cost import cut, upload_work
from loloha.collector.replay_guard import digest_rows
from loloha.collector.secret import check_tickets
from loloha.collector.stored_campaign import StoredCampaign
from loloha.wire import Refusal
from loloha.wire.batch import Batch
from loloha.wire.refusal import REASONS

if TYPE_CHECKING:
    from loloha.arrays import Ints

DUPLICATE = -1
"""In an array of codes: the report was counted before. 0 is accepted, above are refusals."""

MOST_LISTED = 1_000
"""Refused reports that a receipt lists by their position; the others are only counted."""


@dataclass(frozen=True, eq=False)
class Submission:
    """The readable reports of one or several uploads, with the digests that the guard keeps.

    Attributes
    ----------
    stored : StoredCampaign
    batch : Batch
    digests : uint64[n]
    """

    stored: StoredCampaign
    batch: Batch
    digests: Any

    @classmethod
    def of(cls, stored: StoredCampaign, batch: Batch) -> Submission:
        """Check tickets and digest reports: microseconds per report, so not on the event loop."""
        batch = check_tickets(stored, batch)
        return cls(stored, batch, digest_rows(stored.secret, batch.keys, batch.ys))

    @classmethod
    def joined(cls, several: Sequence[Submission]) -> Submission:
        """Those of one campaign as one, their reports in that order."""
        if len(several) == 1:
            return several[0]
        batch = Batch.joined([each.batch for each in several])
        return cls(several[0].stored, batch, np.concatenate([each.digests for each in several]))

    def take(self, rows: Ints) -> Submission:
        """Some of the readable reports, by their places in ascending order."""
        if len(rows) == len(self.digests):
            return self
        return Submission(self.stored, self.batch.take(rows), self.digests[rows])

    def fates(self, first: int, last: int) -> Any:
        """For each readable report 0 where its round is open, else the code of its refusal."""
        rounds = self.batch.rounds
        fates = np.where(rounds > last, Refusal.EARLY.code, 0).astype(np.int8)
        # Closed rounds never open again, even if the clock goes back.
        fates[rounds < first] = Refusal.LATE.code
        return fates

    def codes(self, fates: Any) -> Any:
        """What became of each report, int8[size], by the fates of those that could be read."""
        codes = self.batch.codes.copy()
        codes[self.batch.index] = fates
        return codes

    @property
    def size(self) -> int:
        """Reports sent."""
        return self.batch.size

    @cached_property
    def rounds(self) -> list[int]:
        """The rounds that it touches."""
        rounds: list[int] = np.unique(self.batch.rounds).tolist()
        return rounds

    @cached_property
    def work(self) -> int:
        """What it costs to commit, in reports."""
        encoding = self.stored.campaign.protocol.encoding
        return max(self.size, upload_work(encoding, self.batch.rounds))

    def pieces(self, most: int) -> Iterator[tuple[Any, Submission, Any]]:
        """Parts that are committed one by one: name as by `cut`, and places in the upload."""
        # The first holds what could not be read, too.
        batch = self.batch
        if self.work <= most or not batch.rounds.size:
            yield None, self, slice(None)
            return
        others = np.flatnonzero(batch.codes)
        for name, rows in cut(self.stored.campaign.protocol.encoding, batch.rounds, most):
            places = np.concatenate([batch.index[rows], others])
            few = replace(batch.take(rows), codes=batch.codes[places], index=np.arange(len(rows)))
            yield (self.stored.id, name), Submission(self.stored, few, self.digests[rows]), places
            others = others[:0]


@dataclass(eq=False, slots=True)
class SmallUpload:
    """A small upload, decoded and not yet checked: many of them are made one submission.

    Attributes
    ----------
    stored : StoredCampaign
    rows : list of Message
    codes : bytearray
        As `Reader.collect` takes them.
    """

    stored: StoredCampaign
    rows: list[Any]
    codes: bytearray

    @property
    def size(self) -> int:
        """Reports sent."""
        return len(self.codes)

    @property
    def work(self) -> int:
        """What it costs to commit, in reports."""
        if len(self.rows) <= 1:
            return max(self.size, self.stored.single_work)
        encoding = self.stored.campaign.protocol.encoding
        return max(self.size, upload_work(encoding, [row.round for row in self.rows]))

    @property
    def rounds(self) -> set[int]:
        """The rounds that it touches."""
        return {row.round for row in self.rows}


@dataclass(frozen=True)
class UploadOutcome:
    """What became of the reports of an upload; of one size at most, however many were refused.

    Attributes
    ----------
    size : int
        Reports sent.
    accepted : int
        Reports counted now.
    duplicates : int
        Reports that had been counted before.
    refused : list of (int, Refusal)
        Position in the upload and reason of the first ones, `MOST_LISTED` at most.
    reasons : dict of Refusal to int
        How many were refused for which reason.
    """

    size: int
    accepted: int
    duplicates: int
    refused: list[tuple[int, Refusal]]
    reasons: dict[Refusal, int]

    @classmethod
    def of(cls, codes: list[int]) -> UploadOutcome:
        """From 0 for each accepted report, `DUPLICATE`, or a `Refusal.code`."""
        if codes == [0]:
            return _ONE_ACCEPTED
        size, accepted, duplicates = len(codes), codes.count(0), codes.count(DUPLICATE)
        if accepted + duplicates == size:
            return cls(size, accepted, duplicates, [], {})
        refused = ((i, REASONS[code - 1]) for i, code in enumerate(codes) if code > 0)
        counts = Counter(code for code in codes if code > 0)
        reasons = {REASONS[code - 1]: count for code, count in sorted(counts.items())}
        return cls(size, accepted, duplicates, list(islice(refused, MOST_LISTED)), reasons)


# Of nearly every request.
_ONE_ACCEPTED = UploadOutcome(1, 1, 0, [], {})


def gather(uploads: Sequence[Submission | SmallUpload]) -> tuple[list[Submission], list[Any]]:
    """One submission a campaign; of each upload, which of them it is in, and where."""
    submissions: list[Submission] = []
    places: list[Any] = [None] * len(uploads)
    by_campaign: dict[int, list[int]] = {}
    for place, upload in enumerate(uploads):
        by_campaign.setdefault(upload.stored.id, []).append(place)
    for members in by_campaign.values():
        # Small ones come first, and are checked together.
        members.sort(key=lambda place: isinstance(uploads[place], Submission))
        stored, start = uploads[members[0]].stored, 0
        rows: list[Any] = []
        codes = bytearray()
        parts: list[Submission] = []
        for place in members:
            upload = uploads[place]
            end = start + upload.size
            places[place] = len(submissions), slice(start, end)
            start = end
            if isinstance(upload, Submission):
                parts.append(upload)
            else:
                rows += upload.rows
                codes += upload.codes
        if codes or not parts:
            parts.insert(0, Submission.of(stored, stored.reader.collect(rows, codes)))
        submissions.append(Submission.joined(parts))
    return submissions, places


def count_codes(codes: Any) -> dict[int, int]:
    """How often each code occurs."""
    numbers, counts = np.unique(codes, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))
