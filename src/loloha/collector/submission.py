"""One upload on its way to the store, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha.collector.guard import digest_rows
from loloha.collector.terms import Entry
from loloha.wire import Refusal
from loloha.wire.batch import Batch
from loloha.wire.refusal import REASONS

DUPLICATE = -1
"""In an array of codes: the report was counted before. 0 is accepted, above are refusals."""


@dataclass(frozen=True, eq=False)
class Submission:
    """The readable reports of one upload, with the digests that the guard keeps.

    Attributes
    ----------
    entry : Entry
    batch : Batch
    digests : uint64[n]
    """

    entry: Entry
    batch: Batch
    digests: Any

    @classmethod
    def of(cls, entry: Entry, batch: Batch) -> Submission:
        """Digest a batch; costs about a microsecond a report, so not on the event loop."""
        return cls(entry, batch, digest_rows(entry.secret, batch.keys, batch.ys))


@dataclass(frozen=True, eq=False)
class Receipt:
    """What became of each report of an upload.

    Attributes
    ----------
    codes : int8[size]
        0 accepted, `DUPLICATE`, or a `Refusal.code`.
    """

    codes: Any

    @property
    def accepted(self) -> int:
        """Reports counted now."""
        return int(np.count_nonzero(self.codes == 0))

    @property
    def duplicates(self) -> int:
        """Reports that had been counted before."""
        return int(np.count_nonzero(self.codes == DUPLICATE))

    @property
    def refused(self) -> list[tuple[int, Refusal]]:
        """Position in the upload and reason."""
        return [(int(i), REASONS[self.codes[i] - 1]) for i in np.flatnonzero(self.codes > 0)]
