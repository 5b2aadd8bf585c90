"""Keeps the view of published estimates as the HTTP interface shows them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from loloha.collector import estimates
from loloha.collector.life import SHOWN
from loloha.collector.store.estimate_rows import EstimateRows

if TYPE_CHECKING:
    from loloha.collector.process import Process
    from loloha.collector.read_cache import ReadCache
    from loloha.collector.store import Store
    from loloha.collector.stored_campaign import StoredCampaign

MOST_VALUES = 1 << 14
"""Values of a campaign that has rows: a round is written in one transaction."""
_SELECTION = estimates.Selection(level=0.95, projected=False, top=None)
_log = logging.getLogger(__name__)


class PublishedRows:
    """The rows of one store; a thread of the leading collector calls `run` periodically."""

    def __init__(self, store: Store, process: Process) -> None:
        self._store = store
        self._rows = EstimateRows(store)
        self._process = process
        self._known: dict[str, StoredCampaign] = {}
        self._closing = False

    def close(self) -> None:
        """Begin nothing more."""
        self._closing = True
        self._process.end()

    def run(self) -> bool:
        """Write newly published rows, and delete those no longer shown."""
        there = self._store.fingerprints(states=SHOWN)
        for fingerprint in self._known.keys() - there:
            del self._known[fingerprint]
        for fingerprint in there:
            stored = self._known.get(fingerprint) or self._store.campaign(fingerprint)
            if stored is not None:
                if fingerprint not in self._known and stored.bins > MOST_VALUES:
                    _log.warning(
                        "campaign %.12s has more than %d values: the view of estimates has none "
                        "of it",
                        fingerprint,
                        MOST_VALUES,
                    )
                self._known[fingerprint] = stored
                self._update(stored)
        return False

    def _update(self, stored: StoredCampaign) -> None:
        if stored.bins > MOST_VALUES:
            return
        rounds = self._store.rounds(stored, first=0)
        shown = {
            row.number: row.published
            for row in rounds
            if estimates.suppressed_because(stored, row) is None
        }
        before = self._rows.rounds(stored.id)
        for round, n in shown.items():
            if self._closing:
                return
            if before.get(round) != n:
                rows = self._process.call(of_rows, stored.campaign.fingerprint, round, n)
                if rows:
                    self._rows.put(stored.id, rows)
        if gone := before.keys() - shown.keys():
            self._rows.drop(stored.id, gone)


def of_rows(cache: ReadCache, fingerprint: str, round: int, n: int) -> list[dict[str, Any]]:
    """The table of a round that has published ``n`` reports or more, as the CSV has it, by rows."""
    stored = cache.known(fingerprint)
    estimate = cache.estimates.of(stored, round, n)
    if estimate is None:
        # Deleted in the meantime.
        return []
    table = estimates.table(stored, round, estimate, _SELECTION)
    return [row for piece in table.pieces() for row in piece.to_pylist()]
