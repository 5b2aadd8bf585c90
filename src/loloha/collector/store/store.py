"""The store as the service sees it: campaigns, commits, and what was counted."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sql

from loloha.collector.store import schema
from loloha.collector.store.cell import whole
from loloha.collector.store.database import Database
from loloha.collector.store.record import ACCEPTED, DUPLICATES, NO_ROUND, Record
from loloha.collector.store.statement import EPOCH, insert
from loloha.collector.store.upgrade import upgrade
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import Submission
from loloha.collector.terms import Terms
from loloha.errors import StoreError
from loloha.rules.campaign import Campaign
from loloha.server.tally import Tally


@dataclass(frozen=True)
class Round:
    """What happened in one round.

    Attributes
    ----------
    number : int
        -1 for what arrived before the first round.
    n : int
        Reports counted.
    duplicates : int
        Reports that were sent again, and not counted again.
    refused : dict of str to int
        By reason. Conflicts belong to the round of the report, others to the round in which they
        arrived.
    """

    number: int
    n: int = 0
    duplicates: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    @property
    def conflicts(self) -> int:
        """Reports that differ from the one that their reporter had sent before."""
        return self.refused.get("conflict", 0)

    @property
    def version(self) -> int:
        """Grows with everything that happens in the round."""
        return self.n + self.duplicates + sum(self.refused.values())


class Store:
    """Campaigns and counts in one database. One process writes at a time, the newest.

    Parameters
    ----------
    url : str
        ``sqlite:///PATH`` or ``postgresql://USER@HOST/DATABASE``.
    keeps : callable, optional
        Packs reports for the log of reports, where one is kept.

    Raises
    ------
    ParameterError
        If the URL names neither.
    StoreError
        If the database cannot be opened.
    """

    def __init__(self, url: str, *, keeps: Callable[..., bytes] | None = None) -> None:
        self.database = Database(url)
        self._record = Record(self.database.dialect, keeps=keeps)
        try:
            upgrade(self.database)
            self._epoch = self._take_over()
        except BaseException:
            self.database.close()
            raise

    def _take_over(self) -> int:
        """Become the one that writes: the newest epoch."""
        epoch = schema.writer.c.epoch
        with self.database.write() as connection:
            connection.execute(sql.update(schema.writer).values(epoch=epoch + 1))
            taken: int = connection.execute(sql.select(epoch)).scalar_one()
        return taken

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    # -- writing

    def record(self, submissions: Sequence[Submission], now: float) -> list[Any]:
        """Count the submissions, in one transaction; it has committed when this returns.

        Returns
        -------
        list of int8[size]
            For each submission what became of its reports: 0 is accepted, `DUPLICATE`, or a
            `Refusal.code`.

        Raises
        ------
        StoreError
            If the database fails. Nothing was half-applied: sending the same again is safe.
        """
        try:
            with self.database.write() as connection:
                self._must_be_newest(connection)
                codes = self._record.write(connection, submissions, now)
        except BaseException:
            # The commit may have taken place or not: only the database knows.
            self._record.forget()
            raise
        self._record.remember()
        return codes

    def create(
        self, campaign: Campaign, terms: Terms, *, token: bytes | None, now: float
    ) -> tuple[StoredCampaign, bool]:
        """Add a campaign; the stored, and whether it is new.

        A campaign that is there already is left as it is.
        """
        with self.database.write() as connection:
            self._must_be_newest(connection)
            found = self._campaigns(connection, campaign.fingerprint)
            if not found:
                row = {
                    "fingerprint": campaign.fingerprint,
                    "document": campaign.to_json().decode(),
                    "terms": terms.to_json(),
                    "token": token,
                    "secret": secrets.token_bytes(32),
                    "created": int(now),
                    "first_open": 0,
                }
                connection.execute(sql.insert(schema.campaign), row)
            return self._campaigns(connection, campaign.fingerprint)[0], not found

    def add_admin_key(self, sha256: bytes) -> None:
        """Accept one more admin key, given by its hash."""
        with self.database.write() as connection:
            statement = insert(self.database.dialect, schema.admin_key)
            connection.execute(statement.on_conflict_do_nothing(), {"sha256": sha256})

    def take_kept(
        self, deliver: Callable[[StoredCampaign, int, list[bytes]], None], *, least: int = 1
    ) -> None:
        """Hand over the reports that wait for the log, round by round, then forget them.

        Parameters
        ----------
        deliver : callable
            Gets stored, round and packed reports; must make them durable, and be idempotent.
        least : int
            Rounds with fewer segments than that wait on.
        """
        table = schema.kept
        waiting = sql.select(table.c.campaign_id, table.c.round, sql.func.max(table.c.segment))
        places = waiting.group_by(table.c.campaign_id, table.c.round)
        with self.database.read() as connection:
            entries = {stored.id: stored for stored in self._campaigns(connection)}
            due = connection.execute(places.having(sql.func.count() >= least)).all()
        for campaign_id, round, last in due:
            mine = (table.c.campaign_id == campaign_id) & (table.c.round == round)
            mine = mine & (table.c.segment <= last)
            with self.database.read() as connection:
                select = sql.select(table.c.reports).where(mine).order_by(table.c.segment)
                reports = list(connection.execute(select).scalars())
            deliver(entries[campaign_id], round, reports)
            with self.database.write() as connection:
                self._must_be_newest(connection)
                connection.execute(sql.delete(table).where(mine))

    def _must_be_newest(self, connection: sql.Connection, epoch: Any = EPOCH) -> None:
        if connection.execute(epoch).scalar_one() != self._epoch:
            raise StoreError(
                "store must be written by one collector, another has taken it over since; "
                "stop this one"
            )

    # -- reading

    def admin_keys(self) -> list[bytes]:
        """Hashes of the admin keys."""
        with self.database.read() as connection:
            return list(connection.execute(sql.select(schema.admin_key.c.sha256)).scalars())

    def campaign(self, fingerprint: str) -> StoredCampaign | None:
        """The campaign of a fingerprint, None if there is none."""
        with self.database.read() as connection:
            found = self._campaigns(connection, fingerprint)
        return found[0] if found else None

    def fingerprints(self) -> list[str]:
        """Of all campaigns, the oldest first."""
        select = sql.select(schema.campaign.c.fingerprint).order_by(schema.campaign.c.id)
        with self.database.read() as connection:
            return list(connection.execute(select).scalars())

    def rounds(
        self, stored: StoredCampaign, *, first: int = NO_ROUND, last: int | None = None
    ) -> list[Round]:
        """What happened in each round in which anything did, in ascending order."""
        table = schema.outcome
        wanted = (table.c.campaign_id == stored.id) & (table.c.round >= first)
        if last is not None:
            wanted = wanted & (table.c.round <= last)
        select = sql.select(table.c.round, table.c.kind, table.c.count).where(wanted)
        with self.database.read() as connection:
            found = connection.execute(select.order_by(table.c.round, table.c.kind)).all()
        by_round: dict[int, dict[str, int]] = {}
        for number, kind, count in found:
            by_round.setdefault(number, {})[kind] = count
        return [
            Round(number, kinds.pop(ACCEPTED, 0), kinds.pop(DUPLICATES, 0), kinds)
            for number, kinds in by_round.items()
        ]

    def tally(self, stored: StoredCampaign, round: int) -> Tally:
        """The counts of one round; empty if nothing was counted."""
        cell, outcome = schema.cell, schema.outcome
        parts = sql.select(cell.c.part, cell.c.counts).where(
            (cell.c.campaign_id == stored.id) & (cell.c.round == round)
        )
        accepted = sql.select(outcome.c.count).where(
            (outcome.c.campaign_id == stored.id)
            & (outcome.c.round == round)
            & (outcome.c.kind == ACCEPTED)
        )
        tally = Tally(stored.campaign.protocol)
        with self.database.read() as connection:
            tally.n = connection.execute(accepted).scalar_one_or_none() or 0
            found = [(part, counts) for part, counts in connection.execute(parts)]
        tally.counts = whole(found, len(tally.counts))
        return tally

    def ping(self) -> None:
        """Raise `StoreError` unless the database answers, and is ours to write."""
        with self.database.read() as connection:
            self._must_be_newest(connection, sql.select(schema.writer.c.epoch))

    @staticmethod
    def _campaigns(
        connection: sql.Connection, fingerprint: str | None = None
    ) -> list[StoredCampaign]:
        table = schema.campaign
        select = sql.select(table).order_by(table.c.id)
        if fingerprint is not None:
            select = select.where(table.c.fingerprint == fingerprint)
        return [
            StoredCampaign(
                row.id,
                Campaign.from_json(row.document, fingerprint=row.fingerprint),
                Terms.from_dict(json.loads(row.terms)),
                row.token,
                row.secret,
                row.created,
            )
            for row in connection.execute(select)
        ]
