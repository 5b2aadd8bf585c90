"""Campaigns for their admins: state, newest report, and reports by outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlalchemy as sql

from loloha.collector.life import GONE, State
from loloha.collector.store import schema
from loloha.collector.store.record import ACCEPTED, DUPLICATES, LOGGED, OPT_OUTS, WAITING
from loloha.collector.store.store import Store


@dataclass
class Standing:
    """One campaign; counts are of all stored rounds."""

    state: State  # As ordered: an end date may have passed since.
    newest_report: int  # In whole minutes of Unix time, 0 before the first.
    reports: int = 0
    duplicates: int = 0
    opt_outs: int = 0
    refused: dict[str, int] = field(default_factory=dict)  # By the reason of their refusal.


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
        stand = {row[0]: Standing(*row[1:]) for row in connection.execute(heads.where(some))}
        for fingerprint, kind, count in connection.execute(counts):
            standing = stand[fingerprint]
            if kind == ACCEPTED:
                standing.reports = int(count)
            elif kind == DUPLICATES:
                standing.duplicates = int(count)
            elif kind == OPT_OUTS:
                standing.opt_outs = int(count)
            elif kind not in (LOGGED, WAITING):
                standing.refused[kind] = int(count)
    return stand
