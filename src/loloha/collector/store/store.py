"""The store as the service sees it: campaigns, commits, and what was counted."""

from __future__ import annotations

import json
import math
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import sqlalchemy as sql

from loloha.campaign import Campaign
from loloha.collector.life import ENDED, NEW, STATES, Life, State, Wanted, require_next
from loloha.collector.store import schema, statement
from loloha.collector.store.counts import whole
from loloha.collector.store.database import Database
from loloha.collector.store.deletion import Deletion
from loloha.collector.store.record import Recorder
from loloha.collector.store.round import ACCEPTED, NO_ROUND, OPT_OUTS, WAITING, Round
from loloha.collector.store.statement import ALL_PARTS, OUTCOMES, by_first, insert
from loloha.collector.store.tenure import Tenure
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import Submission
from loloha.collector.terms import Terms
from loloha.errors import CampaignError, StoreError
from loloha.server.tally import Tally

SECONDS_TO_DELETE = 5.0
"""Seconds that a request to delete a campaign waits."""


class Store(Tenure):
    """Campaigns and counts in one database.

    On SQLite one process writes at a time, the newest. On PostgreSQL any number do: each commit
    locks its campaigns, and first reads what others have counted in them since.
    """

    def __init__(
        self,
        url: str,
        *,
        keeps: Callable[..., bytes] | None = None,
        take_over: bool = True,
        is_ready: bool = False,
        accept_losses: bool = False,
    ) -> None:
        database = Database(url, is_ready=is_ready)
        self._record = Recorder(database.dialect, keeps)
        super().__init__(database, self._record.read_lives)
        # Guards the recorder's memory, used by uploads and by closing rounds.
        self._recording = threading.Lock()
        # When the first guarded round of a campaign closes.
        self._closes: dict[tuple[int, int], float] = {}
        try:
            if not is_ready:
                # Processes of a collector open it as it is, and start sooner without alembic.
                from loloha.collector.store.upgrade import upgrade

                self.database.must_suit(accept_losses=accept_losses)
                upgrade(self.database)
                with self.database.read() as connection:
                    epoch = connection.execute(sql.select(schema.writer.c.epoch)).scalar_one()
                if epoch < 0:
                    raise StoreError(
                        "store must be whole, a copy into it was not finished; run `loloha store "
                        "copy` again to finish it"
                    )
            if take_over:
                self.take_over()
        except BaseException:
            self.database.close()
            raise

    # -- writing

    def record(self, submissions: Sequence[Submission], now: float) -> list[Any]:
        """Count the submissions, in one transaction; it has committed when this returns."""
        # What became of the reports of each: 0 is accepted, `DUPLICATE`, or a `Refusal.code`. Where
        # the database fails nothing was half-applied: sending the same again is safe.
        with self._remembered() as connection:
            return self._record.write(connection, submissions, now)

    def create(
        self, campaign: Campaign, terms: Terms, *, token: bytes | None, now: float
    ) -> tuple[StoredCampaign, bool]:
        """Add a campaign; the stored one, and whether it is new. What is there stays as it is."""
        with self.writing() as connection:
            mine = schema.campaign.c.fingerprint == campaign.fingerprint
            is_new = not self._campaigns(connection, mine)
            if is_new:
                row = {
                    "fingerprint": campaign.fingerprint,
                    "document": campaign.to_json().decode(),
                    "terms": terms.to_json(),
                    "token": token,
                    "secret": secrets.token_bytes(32),
                    "created": int(now),
                    "first_open": 0,
                }
                # Another collector may create it at the same time.
                adding = insert(self.database.dialect, schema.campaign).on_conflict_do_nothing()
                added = connection.execute(adding.returning(schema.campaign.c.id), row)
                is_new = added.first() is not None
            return self._campaigns(connection, mine)[0], is_new

    def set_state(self, stored: StoredCampaign, wanted: Wanted, now: float) -> None:
        """Let a campaign be paused, go on, or end; refused where that state cannot follow."""
        # It is ``deleting`` first, where it is to be deleted: what is not gone after some seconds
        # goes later, in `Deletion.finish` or by the same call again, which end as ``deleted``.
        mine = schema.campaign.c.id == stored.id
        with self.locked(stored) as connection:
            before = self._record.life(stored).at(stored.campaign.schedule, now).state
            require_next(before, wanted)
            state: State = "deleting" if wanted == "deleted" != before else wanted
            values: dict[str, Any] = {"state": state}
            if wanted in ENDED:
                self._record.close_before(connection, stored, stored.campaign.schedule.last + 1)
            if state == "deleting":
                values |= {"secret": secrets.token_bytes(32), "newest_report": 0}
            connection.execute(sql.update(schema.campaign).where(mine).values(values))
            self._record.change(stored, self._record.life(stored)._replace(state=state))
        if state == "deleting":
            Deletion(self).of_campaign(stored, monotonic() + SECONDS_TO_DELETE)

    def note_whole_deletion(self, stored: StoredCampaign) -> bool:
        """Note that a campaign is deleted, where it has no rows any more; whether it is."""
        with self.locked(stored) as connection:
            life = self._record.life(stored)
            if connection.execute(statement.SET_DELETED, {"entry": stored.id}).rowcount:
                self._record.change(stored, life := life._replace(state="deleted"))
        return life.state == "deleted"

    def count_opt_out(self, stored: StoredCampaign, now: float) -> None:
        """Add one to the users who want no part, in the round of ``now``."""
        round = max(NO_ROUND, stored.campaign.schedule.round_at(now))
        row = {"campaign_id": stored.id, "round": round, "kind": OPT_OUTS, "count": 1}
        with self.writing() as connection:
            connection.execute(statement.add_outcomes(self.database.dialect), row)

    def life(self, stored: StoredCampaign) -> Life:
        """The state of a campaign, from memory."""
        return self._record.lives.get(stored.id, NEW)

    def read_lives(self) -> None:
        """Read the states of campaigns, which another collector may change."""
        with self.database.read() as connection:
            self._record.read_lives(connection)

    def close_rounds(self, now: float, *, most: int = 25) -> bool:
        """Close what has ended by ``now``: pseudonyms go on time, also where nobody reports."""
        # What was deleted leaves the files as well: SQLite overwrites it and empties its log,
        # PostgreSQL frees it for reuse. Campaigns of which nothing is due cost nothing.
        with self.database.read() as connection:
            rows = connection.execute(statement.ALL_FIRST_GUARDED).all()
        first = [(each, round) for each, round in rows if round is not None]
        self._closes = {place: self._closes.get(place, -math.inf) for place in first}
        due = [each for (each, _), moment in self._closes.items() if moment <= now]
        if due:
            with self._remembered() as connection:
                self._record.lock(connection, due[:most])
                for stored in self._campaigns(connection, schema.campaign.c.id.in_(due[:most])):
                    self._record.close_rounds(connection, stored, now)
                    round = connection.scalar(statement.FIRST_GUARDED, {"entry": stored.id})
                    if round is not None:
                        closes = stored.terms.closes(stored.campaign.schedule, round)
                        self._closes[stored.id, round] = closes
        more = len(due) > most
        if not more and not self.is_shared:
            self.erase()
        return more

    def erase(self) -> None:
        """Let what was deleted leave the files; SQLite does so once nobody reads it any more."""
        # On PostgreSQL it takes as long as it takes, beside commits.
        if self._record.has_deleted:
            self._record.has_deleted, has_left = False, False
            try:
                has_left = self.database.erase(statement.OF_CAMPAIGN)
            finally:
                self._record.has_deleted |= not has_left

    def note_deleted(self) -> None:
        """Rows were deleted: erase them from the files when rounds are closed next."""
        self._record.has_deleted = True

    @contextmanager
    def locked(self, stored: StoredCampaign) -> Iterator[sql.Connection]:
        """A transaction that no other of this campaign runs beside."""
        with self._remembered() as connection:
            self._record.lock(connection, [stored.id])
            yield connection

    @contextmanager
    def _remembered(self) -> Iterator[sql.Connection]:
        """A transaction that changes what the recorder remembers, once it has committed."""
        with self._recording:
            try:
                with self.writing() as connection:
                    if self._record.is_unsure:
                        self._record.read_lives(connection)
                    yield connection
            except CampaignError:
                # Refused before anything was written.
                raise
            except BaseException:
                # Whether the commit took place, only the database knows.
                self._record.forget()
                with suppress(StoreError):
                    self.read_lives()
                raise
            self._record.remember()

    # -- reading

    def campaign(self, fingerprint: str) -> StoredCampaign | None:
        """The campaign of a fingerprint, None if there is none."""
        campaigns = self.campaigns(schema.campaign.c.fingerprint == fingerprint)
        return campaigns[0] if campaigns else None

    def by_id(self, ids: Iterable[int]) -> dict[int, StoredCampaign]:
        """The campaigns of these numbers."""
        return {stored.id: stored for stored in self.campaigns(schema.campaign.c.id.in_(set(ids)))}

    def campaigns(self, which: Any) -> list[StoredCampaign]:
        """The campaigns of which a condition is true, the oldest first."""
        with self.database.read() as connection:
            return self._campaigns(connection, which)

    def fingerprints(
        self,
        *,
        before: str | None = None,
        newest: int = 1 << 30,
        states: Sequence[State] = STATES,
    ) -> list[str]:
        """Of the newest campaigns, or of those before one of them, the oldest first."""
        table = schema.campaign
        select = sql.select(table.c.fingerprint).order_by(table.c.id.desc()).limit(newest)
        if before is not None:
            other = sql.select(table.c.id).where(table.c.fingerprint == before).scalar_subquery()
            select = select.where(table.c.id < other)
        select = select.where(table.c.state.in_(states))
        with self.database.read() as connection:
            return list(connection.execute(select).scalars())[::-1]

    def rounds(
        self,
        stored: StoredCampaign,
        *,
        first: int = NO_ROUND,
        last: int | None = None,
        newest: int | None = None,
    ) -> list[Round]:
        """What happened in each round in which anything did, the newest ones in ascending order."""
        table = schema.outcome
        wanted = (table.c.campaign_id == stored.id) & (table.c.round >= first)
        if last is not None:
            wanted = wanted & (table.c.round <= last)
        select = sql.select(table.c.round, table.c.kind, table.c.count).where(wanted)
        numbers = sql.select(table.c.round).where(wanted).distinct()
        with self.database.read() as connection:
            if connection.scalar(statement.IS_SHOWN, {"entry": stored.id}) is None:
                return []
            if newest is not None:
                few = numbers.order_by(table.c.round.desc()).limit(newest)
                oldest = connection.scalar(sql.select(sql.func.min(few.subquery().c.round)))
                if oldest is None:
                    return []
                select = select.where(table.c.round >= oldest)
            rows = connection.execute(select.order_by(table.c.round, table.c.kind)).all()
        by_round: dict[int, dict[str, int]] = {}
        for number, kind, count in rows:
            by_round.setdefault(number, {})[kind] = count
        return [Round.of(number, kinds) for number, kinds in by_round.items()]

    def tally(self, stored: StoredCampaign, round: int) -> Tally:
        """The published counts of one round; empty if there are none."""
        tally, place = Tally(stored.campaign.protocol), {"entry": stored.id, "at": round}
        with self.database.read() as connection:
            if connection.scalar(statement.IS_SHOWN, place) is None:
                return tally
            happened = by_first(connection.execute(OUTCOMES, place))
            tally.n = happened.get(ACCEPTED, 0) - happened.get(WAITING, 0)
            tally.counts = whole(connection.execute(ALL_PARTS, place), len(tally.counts))
        return tally

    @staticmethod
    def _campaigns(connection: sql.Connection, which: Any = None) -> list[StoredCampaign]:
        select = sql.select(schema.campaign).order_by(schema.campaign.c.id)
        if which is not None:
            select = select.where(which)
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
