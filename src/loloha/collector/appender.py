"""A collector without sums: each commit is segments of a report log, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from loloha.address import Location
from loloha.collector.kept_reports import KeptReports
from loloha.collector.life import Life
from loloha.collector.store.record import UploadColumns, by_campaign, fates_by_time, note_fates
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import Submission
from loloha.collector.upkeep import cause_of
from loloha.collector.work import by_round
from loloha.errors import StoreError

WRITERS = 8
"""Segments of one commit, each of another round or campaign, that are written at a time."""


class Appender:
    """Writes submissions to a log, in place of a store; the tally of the log guards it.

    It knows nothing of other writers, nor of what it wrote before: a report that is sent again is
    accepted again, and counts once.
    """

    def __init__(self, folder: Location, life: Callable[[StoredCampaign], Life]) -> None:
        self._life = life
        self._log = KeptReports(folder, setting="append_only", shared=True)
        self._pool = ThreadPoolExecutor(WRITERS, "appender")

    def prepare(self) -> None:
        """See that the log can be written."""
        self._log.prepare()

    def probe(self) -> None:
        """The same, while it is in use."""
        try:
            self._log.probe()
        except OSError as error:
            raise _refused(error) from None

    def record(self, submissions: Sequence[Submission], now: float) -> list[Any]:
        """Append the reports of open rounds, a segment a round; as `Store.record`.

        Each segment appears whole or not at all, and all are durable when this returns. Where it
        fails some may be there: sending the same again is safe.
        """
        codes = [submission.batch.codes.copy() for submission in submissions]
        segments = []
        for mine, here in by_campaign(submissions, codes):
            stored = mine[0].stored
            rounds, fates = fates_by_time(mine, *self._life(stored).open_rounds(stored, now))
            columns = UploadColumns.of(mine)
            for round, rows in by_round(rounds, np.flatnonzero(fates == 0)):
                few = columns.take(rows)
                segments.append((stored.campaign, round, few.reporters, few.keys, few.ys))
            note_fates(mine, here, fates)
        try:
            list(self._pool.map(lambda segment: self._log.append(*segment), segments))
        except OSError as error:
            raise _refused(error) from None
        return codes


def _refused(error: OSError) -> StoreError:
    """Whoever sends reports reads it: the address stays out."""
    return StoreError(f"log of reports must take segments, it does not: {cause_of(error)}")
