"""Campaigns for their admins: state, newest report, and reports by outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sql

from loloha.collector.life import GONE, State
from loloha.collector.store import schema
from loloha.collector.store.round import NO_ROUND, Round
from loloha.collector.store.store import Store


class Standing(NamedTuple):
    """One campaign, and the sums of all its stored rounds."""

    state: State  # As ordered: an end date may have passed since.
    newest_report: int  # In whole minutes of Unix time, 0 before the first.
    sums: Round  # As if all of them were one.


def standings(store: Store, fingerprints: Sequence[str]) -> dict[str, Standing]:
    """How each of these campaigns stands, by what the store has now."""
    campaign, outcome = schema.campaign, schema.outcome
    some = campaign.c.fingerprint.in_(fingerprints)
    heads = sql.select(campaign.c.fingerprint, campaign.c.state, campaign.c.newest_report)
    counts = (
        sql.select(campaign.c.fingerprint, outcome.c.kind, sql.func.sum(outcome.c.count))
        .join(campaign, campaign.c.id == outcome.c.campaign_id)
        .where(some, campaign.c.state.not_in(GONE))
        .group_by(campaign.c.fingerprint, outcome.c.kind)
        .order_by(outcome.c.kind)
    )
    with store.database.read() as connection:
        rows = connection.execute(heads.where(some)).all()
        by_campaign: dict[str, dict[str, int]] = {row.fingerprint: {} for row in rows}
        for fingerprint, kind, count in connection.execute(counts):
            by_campaign[fingerprint][kind] = int(count)
    return {
        row.fingerprint: Standing(
            row.state, row.newest_report, Round.of(NO_ROUND, by_campaign[row.fingerprint])
        )
        for row in rows
    }
