"""Alarms in the store: which rounds were tried, what alarmed, and what is still to be sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sql

from loloha.collector.life import GONE
from loloha.collector.store import schema
from loloha.collector.store.statement import SHOWN, insert
from loloha.collector.store.store import Store

MOST_AT_ONCE = 100


class Event(NamedTuple):
    """The alarms of one round under one rule; the same ones always have the same name."""

    event: str
    campaign_id: int
    round: int
    body: str
    tries: int = 0


class AlarmStore:
    """The tables of alarms, written by the collector that writes the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def marks(self, campaign_id: int) -> dict[str, int]:
        """The newest round that each rule was tried on."""
        table = schema.alarm_mark
        mine = sql.select(table.c.rule, table.c.round).where(table.c.campaign_id == campaign_id)
        with self._store.database.read() as connection:
            return {row.rule: row.round for row in connection.execute(mine)}

    def add(
        self, campaign_id: int, marks: dict[str, int], events: Iterable[Event], due: int | None
    ) -> None:
        """Note the rounds tested by rules, and the alarms, in one transaction."""
        # Not for a deleted campaign.
        mark, alarm, dialect = schema.alarm_mark, schema.alarm, self._store.database.dialect
        places = [
            {"campaign_id": campaign_id, "rule": rule, "round": round}
            for rule, round in marks.items()
        ]
        rows = [{**event._asdict(), "due": due} for event in events]
        upsert = insert(dialect, mark)
        state = sql.select(schema.campaign.c.state).where(schema.campaign.c.id == campaign_id)
        state = state.with_for_update(key_share=True)
        with self._store.writing() as connection:
            if connection.scalar(state) in GONE:
                # While its rounds were tried.
                return
            if rows:
                connection.execute(insert(dialect, alarm).on_conflict_do_nothing(), rows)
            if places:
                connection.execute(
                    upsert.on_conflict_do_update(
                        index_elements=[mark.c.campaign_id, mark.c.rule],
                        set_={"round": upsert.excluded.round},
                    ),
                    places,
                )

    def due(self, now: float) -> list[Event]:
        """Events to be sent by now, the first due first."""
        table = schema.alarm
        select = sql.select(*(table.c[name] for name in Event._fields))
        select = select.where(table.c.due <= now, table.c.campaign_id.in_(SHOWN))
        with self._store.database.read() as connection:
            rows = connection.execute(select.order_by(table.c.due).limit(MOST_AT_ONCE)).all()
        return [Event(*row) for row in rows]

    def tried(self, event: str, tries: int, due: int | None) -> None:
        """Note the attempts of an event, and the time of the next, if any."""
        table = schema.alarm
        with self._store.writing() as connection:
            connection.execute(
                sql.update(table).where(table.c.event == event).values(tries=tries, due=due)
            )

    def waiting(self) -> int:
        """How many events are still to be sent."""
        waits = schema.alarm.c.due.is_not(None), schema.alarm.c.campaign_id.in_(SHOWN)
        select = sql.select(sql.func.count()).where(*waits)
        with self._store.database.read() as connection:
            number: int = connection.execute(select).scalar_one()
        return number

    def newest(self, campaign_id: int, most: int = MOST_AT_ONCE) -> list[str]:
        """Bodies of a campaign's newest events, the oldest first."""
        table = schema.alarm
        select = (
            sql.select(table.c.body)
            .where(table.c.campaign_id == campaign_id, table.c.campaign_id.in_(SHOWN))
            .order_by(table.c.round.desc(), table.c.event)
            .limit(most)
        )
        with self._store.database.read() as connection:
            return list(connection.execute(select).scalars())[::-1]
