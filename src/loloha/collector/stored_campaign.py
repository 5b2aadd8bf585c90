"""A campaign as the collector knows it, with what is derived from it once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from loloha.campaign import Campaign
from loloha.collector.commit_cost import report_work, upload_work
from loloha.collector.label_search import Index
from loloha.collector.terms import Terms
from loloha.wire.batch import Reader

MOST_WORK = 1 << 25
"""Numbers that may be read for one answer, a few hundred MB on the way."""
_MOST_WINDOWED = 1 << 22
"""Numbers that may stay in memory for windows."""
LONGEST_WINDOW = 1000

# Labels that stay in memory: a million of them take 70 MB.
_MOST_LABELS = 1 << 17
_LETTERS_A_NUMBER = 128


class ComputedLabels(Sequence[str]):
    """The labels of a campaign, none of which stays in memory."""

    def __init__(self, campaign: Campaign, bins: int) -> None:
        self._campaign = campaign
        self._bins = range(bins)

    def __len__(self) -> int:
        return len(self._bins)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        bins = self._bins[place]
        if isinstance(bins, range):
            return list(map(self._campaign.bin_label, bins))
        return self._campaign.bin_label(bins)


@dataclass(frozen=True)
class StoredCampaign:
    """A campaign, its terms, and what the store keeps beside them."""

    id: int
    campaign: Campaign
    terms: Terms
    token: bytes | None  # SHA-256 of the submit token, where one is needed.
    secret: bytes  # Keys digests and tickets.
    created: int  # Unix seconds.

    @cached_property
    def reader(self) -> Reader:
        """Reads uploads for it."""
        return Reader(self.campaign)

    @cached_property
    def report_work(self) -> int:
        """Cost of one more report in a round that is committed anyway."""
        return report_work(self.campaign.protocol.encoding)

    @cached_property
    def single_work(self) -> int:
        """What it costs to commit one report beside others of its round, in reports."""
        return upload_work(self.campaign.protocol.encoding, [0])

    @property
    def bins(self) -> int:
        """How many frequencies are estimated."""
        return self.campaign.protocol.bins

    @property
    def work(self) -> int:
        """Numbers that the estimates of one round are made of."""
        return max(self.bins, self.campaign.protocol.encoding.cells)

    @property
    def rounds_at_once(self) -> int:
        """Rounds that one answer may need to read."""
        return max(1, MOST_WORK // self.work)

    def rounds_before(self, every: int) -> int:
        """Rounds that the window of a round needs beside it; 0 if that is too much work."""
        most = min(self.rounds_at_once, _MOST_WINDOWED // self.bins, LONGEST_WINDOW)
        return every - 1 if every <= most else 0

    @cached_property
    def labels(self) -> Sequence[str]:
        """A text for each estimated frequency; very many are made as they are asked for."""
        return (
            self.campaign.bin_labels
            if self.keeps_labels
            else ComputedLabels(self.campaign, self.bins)
        )

    @property
    def keeps_labels(self) -> bool:
        """Whether its labels, and an index of them, stay in memory."""
        return self.bins <= _MOST_LABELS

    @cached_property
    def search_work(self) -> int:
        """Numbers that could be computed in the time in which its labels are searched."""
        if self.keeps_labels:
            return sum(map(len, self.labels)) // _LETTERS_A_NUMBER
        return self.bins

    @cached_property
    def index(self) -> Index:
        """Finds values by their labels."""
        return Index(self.labels)

    def __repr__(self) -> str:
        return f"StoredCampaign({self.campaign.fingerprint!r})"
