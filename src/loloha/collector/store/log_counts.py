"""The counts of a report log in the store of a dashboard: a round is replaced as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sql

from loloha.collector.commit_cost import CELLS
from loloha.collector.store import schema
from loloha.collector.store.counts import pack_part
from loloha.collector.store.round import ACCEPTED, DUPLICATES, LOGGED, WAITING
from loloha.collector.store.statement import IS_SHOWN, OUTCOMES, by_first
from loloha.errors import StoreError
from loloha.wire import Refusal

if TYPE_CHECKING:
    from loloha.collector.store import Store
    from loloha.collector.stored_campaign import StoredCampaign
    from loloha.engines import RoundTally


def put(store: Store, stored: StoredCampaign, tallied: RoundTally, now: float) -> None:
    """Replace the counts of a round by its tally, and publish them by the terms."""
    if tallied.round < stored.terms.first_stored(stored.campaign.schedule, now):
        # Its sums were deleted: a log that is kept for longer must not bring them back.
        return
    # Reports below the batch of publication are stored, and shown with later ones.
    place = {"entry": stored.id, "at": tallied.round}
    with store.database.write() as connection:
        if connection.scalar(IS_SHOWN.with_for_update(key_share=True), place) is None:
            raise StoreError(
                f"store must keep what it counts of {stored.campaign.fingerprint}, the campaign is "
                "deleted there; create another one"
            )
        before = by_first(connection.execute(OUTCOMES, place))
        if before.get(ACCEPTED, 0) > before.get(LOGGED, 0):
            raise StoreError(
                f"store must have counted no reports of round {tallied.round} itself, it has: "
                "devices reach a collector that counts; point them to collectors that only append"
            )
        published = before.get(ACCEPTED, 0) - before.get(WAITING, 0)
        n = tallied.tally.n
        if _shows(stored, tallied, published, now):
            counts = tallied.tally.counts
            parts = [
                {"part": start // CELLS, "counts": pack_part(counts[start : start + CELLS])}
                for start in range(0, len(counts), CELLS)
                if counts[start : start + CELLS].any()
            ]
            _replace(connection, schema.cell, stored, tallied.round, sql.true(), parts)
            published = n
        # Fewer than before, if files were removed: published counts stay.
        n = max(n, published)
        events = {
            ACCEPTED: n,
            LOGGED: n,
            WAITING: n - published,
            DUPLICATES: tallied.duplicates,
            str(Refusal.CONFLICT): tallied.conflicts,
        }
        rows = [{"kind": kind, "count": count} for kind, count in events.items() if count]
        which = schema.outcome.c.kind.in_(events)
        _replace(connection, schema.outcome, stored, tallied.round, which, rows)


def _shows(stored: StoredCampaign, tallied: RoundTally, published: int, now: float) -> bool:
    """Whether so many reports more are shown: estimates never differ by fewer."""
    terms, n = stored.terms, tallied.tally.n
    if terms.publish_every == 0:
        is_over = terms.closes(stored.campaign.schedule, tallied.round) <= now
        return is_over and n > published and n >= terms.minimum_cohort
    return terms.publishes(n, n - published)


def _replace(
    connection: sql.Connection,
    table: sql.Table,
    stored: StoredCampaign,
    round: int,
    which: Any,
    rows: list[dict[str, Any]],
) -> None:
    """Replace the rows of a round."""
    mine = (table.c.campaign_id == stored.id) & (table.c.round == round)
    connection.execute(sql.delete(table).where(mine, which))
    if rows:
        whole = [{"campaign_id": stored.id, "round": round, **row} for row in rows]
        connection.execute(sql.insert(table), whole)
