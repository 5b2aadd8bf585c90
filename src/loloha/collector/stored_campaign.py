"""A campaign as the collector knows it, with what is derived from it once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from loloha.collector.terms import Terms
from loloha.rules.campaign import Campaign
from loloha.wire.batch import Reader

MOST_WORK = 1 << 25
"""Numbers that may be read for one answer, a few hundred MB on the way."""


@dataclass(frozen=True)
class StoredCampaign:
    """A campaign, its terms, and what the store keeps beside them.

    Attributes
    ----------
    id : int
        In the store.
    campaign : Campaign
    terms : Terms
    token : bytes or None
        SHA-256 of the submit token, where one is needed.
    secret : bytes
        Keys digests and tickets.
    created : int
        Unix seconds.
    """

    id: int
    campaign: Campaign
    terms: Terms
    token: bytes | None
    secret: bytes
    created: int

    @cached_property
    def reader(self) -> Reader:
        """Reads uploads for it."""
        return Reader(self.campaign)

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

    @cached_property
    def labels(self) -> list[str]:
        """A text for each estimated frequency."""
        return self.campaign.bin_labels

    def __repr__(self) -> str:
        return f"StoredCampaign({self.campaign.fingerprint!r})"
