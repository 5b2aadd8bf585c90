"""Delivery of queued reports, oldest first, until an answer settles each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from loloha.sender.agreement import STATES, Enrolment, state_in
from loloha.sender.agreement_file import AgreementFile, QueueChanged
from loloha.sender.collector import JSON
from loloha.sender.connection import Answer, Connection, Unreachable
from loloha.sender.do_not_track import OPTED_OUT, is_opted_out
from loloha.sender.receipt import Fate, answers_of, fate, halted
from loloha.sender.url import path_of
from loloha.wire.message import MOST_TOGETHER

_OVER = "campaign has ended by its own end date; the report was dropped"
_FRUITLESS = 3
"""Successive answers that settle nothing before a delivery ends."""


@dataclass(frozen=True)
class Delivery:
    """What became of a queue.

    Attributes
    ----------
    sent : tuple of int
        Rounds whose report the collector has counted, now or before.
    refused : dict of int to str
        Rounds whose report it will never count, and why; they are dropped.
    waiting : tuple of int
        Rounds whose report stays in the queue.
    reason : str
        Why they stay; empty if none does.
    campaign : str
        "open"; "paused" or "ended" by the collector's answer, "ended" also from the end date
        of its document on: nothing is drawn, stored or sent any more, and what waited is dropped.
        While it is paused each delivery asks whether it goes on.
    """

    sent: tuple[int, ...] = ()
    refused: Mapping[int, str] = field(default_factory=dict)
    waiting: tuple[int, ...] = ()
    reason: str = ""
    campaign: str = "open"


@dataclass
class _Fates:
    """What became of the reports of one campaign so far."""

    sent: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    reason: str = ""
    has_ended: bool = False

    def delivery(self, now: Enrolment | None) -> Delivery:
        """The outcome with the stored state of the campaign, which others may have updated."""
        waiting = tuple(sorted(now.queue)) if now else ()
        campaign = "ended" if self.has_ended else (now and now.halted) or "open"
        return Delivery(
            tuple(self.sent), self.refused, waiting, self.reason if waiting else "", campaign
        )


@dataclass(frozen=True)
class Courier:
    """Sends the queues of an agreement; its file is free while a request is on its way."""

    state: AgreementFile
    connect: Callable[[Enrolment], Connection]
    now: Callable[[], float]

    def deliver(self, enrolment: Enrolment) -> Delivery:
        """Send one queue."""
        fates = _Fates()
        if is_opted_out():
            fates.reason = OPTED_OUT
        else:
            self._look(enrolment, fates)
            self._deliver_alone(enrolment, fates)
        return fates.delivery(self.state.same(enrolment))

    def _look(self, enrolment: Enrolment, fates: _Fates) -> None:
        """Drop what waits for a campaign whose end date has passed; ask about a paused one."""
        # The end is not noted: a clock that was ahead may be set right.
        schedule = enrolment.campaign.schedule
        if schedule.expires is not None and schedule.has_ended(self.now()):
            fates.has_ended = True
            fates.refused |= dict.fromkeys(self.state.drop(enrolment), _OVER)
        else:
            self._ask(enrolment)

    def _ask(self, enrolment: Enrolment) -> None:
        """Whether a campaign that was paused goes on, or has ended meanwhile."""
        if enrolment.halted != "paused":
            return
        with self.connect(enrolment) as connection, suppress(Unreachable):
            answer = connection.get(path_of(enrolment.url))
            state = state_in(answer.json() if answer.status == 200 else None)
            if state is not None:
                self.state.halt(enrolment, STATES[state])

    def _deliver_alone(self, enrolment: Enrolment, fates: _Fates) -> None:
        fruitless = 0
        path = f"{path_of(enrolment.url)}/reports"
        with self.connect(enrolment) as connection:
            for round, message in sorted(enrolment.queue.items()):
                begin = partial(self.state.begin, [(enrolment, round, message)])
                try:
                    answer = connection.post(path, message.encode(), JSON, begin)
                except QueueChanged:
                    continue
                except Unreachable as error:
                    fates.reason = str(error)
                    break
                settled = self._take(enrolment, round, message, answer, fates)
                fruitless = 0 if settled else fruitless + 1
                if fruitless == _FRUITLESS:
                    break

    def deliver_all(self, enrolments: Sequence[Enrolment]) -> dict[str, Delivery]:
        """Send all queues, those of one collector and token in one upload; by campaign's name."""
        if is_opted_out():
            return {enrolment.campaign.name: self.deliver(enrolment) for enrolment in enrolments}
        fates = {enrolment.url: _Fates() for enrolment in enrolments}
        for enrolment in enrolments:
            self._look(enrolment, fates[enrolment.url])
        together: dict[tuple[str, str | None], list[Enrolment]] = {}
        for enrolment in enrolments:
            base = enrolment.url[: enrolment.url.index("/v1/campaigns/")]
            together.setdefault((base, enrolment.token), []).append(enrolment)
        for (base, _), several in together.items():
            self._deliver_together(base, several, fates)
            for each in several:
                # Queues that were alone in their upload, or may only be sent alone.
                now = self.state.same(each)
                if not fates[each.url].reason and now and now.queue:
                    self._deliver_alone(each, fates[each.url])
        return {
            enrolment.campaign.name: fates[enrolment.url].delivery(self.state.same(enrolment))
            for enrolment in enrolments
        }

    def _deliver_together(
        self, base: str, several: Sequence[Enrolment], fates: Mapping[str, _Fates]
    ) -> None:
        """Send queues in uploads of several campaigns, while there are such and they are taken."""
        queued = [
            (enrolment, round, message)
            for enrolment in several
            for round, message in sorted(enrolment.queue.items())
        ]
        while True:
            waiting = self.state.waiting(queued)
            some, queued = waiting[:MOST_TOGETHER], waiting[MOST_TOGETHER:]
            if len({enrolment.url for enrolment, _, _ in some}) < 2:
                return
            body = f"[{','.join(message for _, _, message in some)}]".encode()
            try:
                with self.connect(several[0]) as connection:
                    begin = partial(self.state.begin, some)
                    answer = connection.post(f"{path_of(base)}/v1/reports", body, JSON, begin)
            except QueueChanged:
                queued = waiting
                continue
            except Unreachable as error:
                for enrolment in several:
                    fates[enrolment.url].reason = str(error)
                return
            answers = answers_of(answer, len(some))
            if answers is None:
                return
            settled = [
                self._take(*entry, each, fates[entry[0].url])
                for entry, each in zip(some, answers, strict=True)
            ]
            if not any(settled):
                return

    def _take(
        self, enrolment: Enrolment, round: int, message: str, answer: Answer, fates: _Fates
    ) -> bool:
        """Act on an answer to a report; whether it settles the report."""
        outcome, why = fate(answer, json.loads(message)["reporter"])
        if outcome is Fate.WAITING:
            fates.reason = why
            return False
        is_newest = self.state.settle(enrolment, round, message)
        if outcome is Fate.COUNTED:
            fates.sent.append(round)
        else:
            fates.refused[round] = why
            # A late answer to a deleted report is older than all that waits now.
            if is_newest and (state := halted(answer)) is not None:
                dropped = self.state.halt(enrolment, state)
                fates.refused |= dict.fromkeys(dropped, why)
        return True
