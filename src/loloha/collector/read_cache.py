"""A cache of campaigns read from the store, and of computed estimates."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from loloha.collector.estimates import EstimateCache
from loloha.collector.problem import Problem
from loloha.collector.smoothed_cache import SmoothedCache

if TYPE_CHECKING:
    from loloha.collector.store import Store
    from loloha.collector.stored_campaign import StoredCampaign

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


class ReadCache:
    """Reads of one store, remembered."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self.campaigns: dict[str, StoredCampaign] = {}
        self.estimates = EstimateCache(store)
        self.smoothed = SmoothedCache()

    def known(self, fingerprint: str) -> StoredCampaign:
        """The campaign of a fingerprint."""
        stored = self.campaigns.get(fingerprint)
        if stored is None:
            if _FINGERPRINT.fullmatch(fingerprint):
                stored = self._store().campaign(fingerprint)
            if stored is None:
                raise unknown_campaign()
            stored = self.campaigns.setdefault(fingerprint, stored)
        return stored


def unknown_campaign() -> Problem:
    """The answer to who asks for a campaign that is not there."""
    return Problem(
        404, "campaign must be one of this collector's; see /v1/campaigns", kind="campaign"
    )
