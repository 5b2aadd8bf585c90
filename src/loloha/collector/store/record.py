"""One commit: each report is checked against the replay guard, new ones are added to counts."""

from __future__ import annotations

import secrets
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loloha.collector.commit_cost import by_round
from loloha.collector.life import NEW, Life
from loloha.collector.replay_guard import Seen, pack
from loloha.collector.store import statement
from loloha.collector.store.counts import Counts
from loloha.collector.store.round import ACCEPTED, DUPLICATES, NO_ROUND, WAITING
from loloha.collector.store.schema import cell, waiting_cell
from loloha.collector.store.segment import Opened, catch_up, load
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import DUPLICATE, Submission, count_codes
from loloha.report import LARGEST_ROUND
from loloha.wire import Refusal
from loloha.wire.refusal import REASONS

if TYPE_CHECKING:
    import sqlalchemy as sql

# The code of a report, by what the guard knows of it.
_FATES = np.zeros(len(Seen), dtype=np.int8)
_FATES[Seen.SAME], _FATES[Seen.DIFFERENT] = DUPLICATE, Refusal.CONFLICT.code


@dataclass
class _Fresh:
    """The new reports of one round, and whether they are shown at once."""

    round: int
    opened: Opened
    sent: Submission
    shown: bool


class Recorder:
    """Writes submissions into an open transaction; its memory changes only after the commit."""

    most_rows = 1 << 25
    """Rows of guards that stay in memory."""

    def __init__(self, dialect: str, keeps: Any = None) -> None:
        self.keeps = keeps
        self._guards: OrderedDict[tuple[int, int], Opened] = OrderedDict()
        self._fresh: list[_Fresh] = []
        # By campaign, as committed; None if only the database knows. Then the pending changes.
        self.lives: dict[int, Life] = {}
        self._changed: dict[int, Life] = {}
        self.is_unsure = True
        self.has_deleted = False
        self._is_shared = dialect == "postgresql"
        self._number = secrets.randbits(63)
        # By campaign, the minute of its newest report: few commits write it.
        self._newest: dict[int, int] = {}
        self._counts = Counts(dialect)
        self._add_outcomes = statement.add_outcomes(dialect)

    def forget(self) -> None:
        """Drop everything in memory: after a failure only the database knows what is counted."""
        self._guards.clear()
        self._fresh.clear()
        self._changed.clear()
        self.is_unsure = True
        self._newest.clear()

    def remember(self) -> None:
        """The transaction has committed."""
        for piece in self._fresh:
            new, opened = piece.sent, piece.opened
            opened.guard.add(new.batch.reporters, new.digests)
            opened.segment += 1
            opened.waiting = 0 if piece.shown else opened.waiting + len(new.digests)
        self._fresh.clear()
        self.lives |= self._changed
        self._changed.clear()
        rows = sum(guard.guard.capacity for guard in self._guards.values())
        while rows > self.most_rows and len(self._guards) > 1:
            _, dropped = self._guards.popitem(last=False)
            rows -= dropped.guard.capacity

    def read_lives(self, connection: sql.Connection) -> None:
        """Read the states of campaigns."""
        rows = connection.execute(statement.LIVES)
        self.lives = {id: Life(state, first_open) for id, state, first_open in rows}
        self.is_unsure = False

    def life(self, stored: StoredCampaign) -> Life:
        """The state of a campaign after the pending commit."""
        return self._changed.get(stored.id) or self.lives.get(stored.id, NEW)

    def write(
        self, connection: sql.Connection, submissions: Sequence[Submission], now: float
    ) -> list[Any]:
        """Write one submission a campaign; codes of the reports of each, valid once committed."""
        entries = {submission.stored.id for submission in submissions}
        if len(entries) < len(submissions):
            # What one of them adds the guard would not see in the next.
            raise ValueError("submissions must be of a campaign each, got two of one; join them")
        self.lock(connection, entries)
        return [self._write_entry(connection, submission, now) for submission in submissions]

    def _write_entry(self, connection: sql.Connection, submission: Submission, now: float) -> Any:
        stored = submission.stored
        first, last = self.close_rounds(connection, stored, now)
        fates = submission.fates(first, last)
        events = self._write_rounds(connection, submission, fates)
        codes = submission.codes(fates)
        if first > LARGEST_ROUND:
            # Deleted campaigns get no counts; campaigns in other ended states neither.
            return codes
        arrived = max(NO_ROUND, stored.campaign.schedule.round_at(now))
        for code, count in count_codes(codes).items():
            if code > 0 and code != Refusal.CONFLICT.code:
                events[arrived, REASONS[code - 1]] += count
        self._count(connection, stored, events)
        minute = int(now) // 60 * 60
        if self._newest.get(stored.id, 0) < minute and any(
            kind == ACCEPTED and count for (_, kind), count in events.items()
        ):
            connection.execute(statement.SET_NEWEST, {"entry": stored.id, "minute": minute})
            self._newest[stored.id] = minute
        return codes

    def lock(self, connection: sql.Connection, entries: Iterable[int]) -> None:
        """Lock campaigns until the transaction ends, and read other collectors' changes."""
        # Before any other access to them. SQLite has no other collectors.
        if not self._is_shared:
            return
        rows = connection.execute(statement.LOCK, {"entries": sorted(entries)}).all()
        # What is read outside of the transaction meanwhile may be older.
        self._changed = {row.id: Life(row.state, row.first_open) for row in rows}
        others = {row.id: row.first_open for row in rows if row.last_writer != self._number}
        if not others:
            return
        for (entry, round), opened in list(self._guards.items()):
            if entry in others:
                opened.is_behind = True
                if round < others[entry]:
                    del self._guards[entry, round]
        here = {"entries": list(others), "number": self._number}
        connection.execute(statement.SET_LAST_WRITER, here)

    def close_rounds(
        self, connection: sql.Connection, stored: StoredCampaign, now: float
    ) -> tuple[int, int]:
        """First and last open round; closed rounds stay closed, and their guards are deleted."""
        # Of a campaign that this transaction has locked.
        life = self.life(stored)
        first, last = life.open_rounds(stored, now)
        if life.first_open < first:
            self.close_before(connection, stored, first)
        # If no round takes reports, none is open and none will be.
        is_open = life.at(stored.campaign.schedule, now).state == "open"
        return (first if is_open else LARGEST_ROUND + 1), last

    def change(self, stored: StoredCampaign, life: Life) -> None:
        """Set the state of a campaign, pending the commit."""
        self._changed[stored.id] = life

    def close_before(self, connection: sql.Connection, stored: StoredCampaign, first: int) -> None:
        """Close all rounds before one, publish waiting counts if allowed, and delete guards."""
        closing = {"entry": stored.id, "first": first}
        connection.execute(statement.SET_FIRST_OPEN, closing)
        self.change(stored, self.life(stored)._replace(first_open=first))
        if stored.terms.publish_every == 0:
            for round in connection.execute(statement.WAITING_ROUNDS, closing).scalars().all():
                self._publish_closed(connection, stored, round)
        # All that is left goes in batches of its own: see `deletion`.
        self.has_deleted |= connection.execute(statement.DELETE_CLOSED, closing).rowcount > 0
        for at in [at for at in self._guards if at[0] == stored.id]:
            if at[1] < first:
                del self._guards[at]

    def _publish_closed(
        self, connection: sql.Connection, stored: StoredCampaign, round: int
    ) -> None:
        """Show a round that has ended, all at once, if it is large enough."""
        place = {"entry": stored.id, "at": round}
        outcomes = statement.by_first(connection.execute(statement.OUTCOMES, place))
        if outcomes[ACCEPTED] >= stored.terms.minimum_cohort:
            self._counts.publish(connection, stored, round)
            events = Counter({(round, WAITING): -outcomes[WAITING]})
            self._count(connection, stored, events)

    def _write_rounds(
        self, connection: sql.Connection, submission: Submission, fates: Any
    ) -> Counter[tuple[int, str]]:
        """Count the new reports of open rounds, all by the same few statements; what happened."""
        # Sets the fate of each report.
        stored, events = submission.stored, Counter[tuple[int, str]]()
        places = by_round(submission.batch.rounds, np.flatnonzero(fates == 0))
        guards = self._opened(connection, stored, [round for round, _ in places])
        fresh: list[_Fresh] = []
        for round, rows in places:
            opened, here = guards[round], submission.take(rows)
            seen = opened.guard.classify(here.batch.reporters, here.digests)
            fates[rows] = _FATES[seen]
            new = np.flatnonzero(seen == Seen.NEW)
            events[round, ACCEPTED] += new.size
            events[round, DUPLICATES] += int(np.count_nonzero(seen == Seen.SAME))
            events[round, Refusal.CONFLICT] += int(np.count_nonzero(seen == Seen.DIFFERENT))
            if new.size:
                waiting = opened.waiting + new.size
                shown = stored.terms.publishes(len(opened.guard) + new.size, waiting)
                fresh.append(_Fresh(round, opened, here.take(new), shown))
                events[round, WAITING] += (0 if shown else waiting) - opened.waiting
        if fresh:
            self._insert(connection, stored, fresh)
        return events

    def _insert(
        self, connection: sql.Connection, stored: StoredCampaign, fresh: list[_Fresh]
    ) -> None:
        """Write the new reports of some rounds: guard, log, counts."""
        guards, reports = [], []
        for piece in fresh:
            new, place = piece.sent.batch, {"campaign_id": stored.id, "round": piece.round}
            place["segment"] = piece.opened.segment
            guards.append({**place, "rows": pack(new.reporters, piece.sent.digests)})
            if self.keeps is not None:
                packed = self.keeps(stored.campaign, piece.round, new.reporters, new.keys, new.ys)
                reports.append({**place, "reports": packed})
            if piece.shown and piece.opened.waiting:
                self._counts.publish(connection, stored, piece.round)
        self._fresh += fresh
        connection.execute(statement.INSERT_GUARD, guards)
        if reports:
            connection.execute(statement.INSERT_QUEUED, reports)
        for table, shown in ((cell, True), (waiting_cell, False)):
            some = [(piece.round, piece.sent.batch) for piece in fresh if piece.shown is shown]
            news = [(round, batch.keys, batch.ys) for round, batch in some]
            self._counts.add(connection, stored, table, news)

    def _opened(
        self, connection: sql.Connection, stored: StoredCampaign, rounds: list[int]
    ) -> dict[int, Opened]:
        """The guards of these rounds, with what all collectors have counted; they stay here."""
        guards = {
            at: self._guards[stored.id, at] for at in rounds if (stored.id, at) in self._guards
        }
        stale = [round for round, opened in guards.items() if opened.is_behind]
        for round in stale:
            catch_up(connection, stored.id, round, guards[round])
        missing = [round for round in rounds if round not in guards]
        if missing:
            guards |= load(connection, stored.id, missing)
            stale += missing
        if stale:
            here = {"entry": stored.id, "rounds": stale}
            waiting = statement.by_first(connection.execute(statement.NUMBER_WAITING, here))
            for round in stale:
                guards[round].waiting = waiting.get(round, 0)
        for round, opened in guards.items():
            self._guards[stored.id, round] = opened
            self._guards.move_to_end((stored.id, round))
        return guards

    def _count(
        self, connection: sql.Connection, stored: StoredCampaign, events: Counter[tuple[int, str]]
    ) -> None:
        rows = [
            {"campaign_id": stored.id, "round": round, "kind": str(kind), "count": count}
            for (round, kind), count in events.items()
            if count
        ]
        if rows:
            connection.execute(self._add_outcomes, rows)
