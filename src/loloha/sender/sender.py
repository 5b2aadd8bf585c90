"""One user's device on the network: a queue that survives anything.

Standard library only. Nothing is sanitised, stored or sent before the user agrees.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

from loloha import checks
from loloha.campaign import Campaign
from loloha.errors import StateError
from loloha.sender.agreement import Enrolment
from loloha.sender.connection import Connection, Patience
from loloha.sender.delivery import Courier, Delivery
from loloha.sender.do_not_track import OPTED_OUT
from loloha.sender.participant import Participant, alone
from loloha.sender.preview import Preview, example, of_enrolment, unagreed

_HALTED = {"paused": "is paused", "ended": "has ended"}


class Sender(Participant):
    """The reports of one user, stored in one file that only its owner can read.

    Use as a context manager: the file is locked meanwhile, so that two processes cannot answer one
    round twice. Threads may share it: a report waits for no delivery. A fork may not.

    Parameters
    ----------
    path : path
        The state file; it need not exist. ``~`` is expanded, links are followed.
    clock : callable
        Unix seconds: tells the round.
    timeout : float
        Seconds for each step of a request; a whole one takes at most six times as long.
    patience : Patience, optional
        How often to try.

    Raises
    ------
    StateError
        If the file is in use, damaged, or of another version.

    Notes
    -----
    Every step computes the next state, writes it, and only then adopts it; what it wrote is on the
    disk before any report leaves. Whatever fails or interrupts a step, the next one starts from
    what the file holds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        timeout: float = 10.0,
        patience: Patience | None = None,
    ) -> None:
        super().__init__(path, clock, timeout=timeout, patience=patience)
        self._courier = Courier(self._state, self._connect, self._now)

    # -- reporting

    def report(self, value: Any, *, round: int | None = None) -> int | None:
        """Sanitise the user's value for a round and queue the report; nothing is sent yet.

        Where 1000 reports wait already, the one of the oldest round is dropped: it is never sent,
        its loss stays spent, and its round is not answered again.

        Parameters
        ----------
        value
            A label of the campaign, or, where it asks for a range, a number in it.
        round : int, optional
            By default the one that the clock says. A round is answered once: asking again changes
            nothing.

        Returns
        -------
        int or None
            The round. None if nothing is drawn, stored or sent for it: the user is not due in it
            (one round of ``every``), the campaign is paused or has ended, or the user has
            `opted_out`.

        Raises
        ------
        BudgetError
            If the limit leaves no report of a one-round rule; or does not cover the cap, in a state
            of release 0.2.0, which needs consent anew. Never because of the value.
        StateError
            Without consent, with several campaigns, or before the campaign begins.
        DomainError
            As `Client.report`.
        """
        return self._report(None, value, round)[0]

    def report_all(
        self, values: Mapping[str, Any], *, round: int | None = None
    ) -> dict[str, int | None]:
        """As `report`, for several campaigns of one agreement: all are queued, or none is.

        Parameters
        ----------
        values : dict
            For each campaign, by name, the user's value.
        round : int, optional
            As for `report`; of all of them.

        Returns
        -------
        dict
            For each campaign the round, or None as of `report`.

        Raises
        ------
        BudgetError
            As for `report`, if there is one campaign for which the limit leaves none: the message
            names it.
        """
        return dict(zip(values, self._report(values, None, round), strict=True))

    @alone
    def _report(
        self, values: Mapping[str, Any] | None, value: Any, round: int | None
    ) -> list[int | None]:
        before = self._state.agreed()
        if values is None:
            values = {self._state.only().campaign.name: value}
        # All are checked before any is answered.
        asked = [
            (
                enrolment,
                enrolment.campaign.index(values[enrolment.campaign.name]),
                self._round(enrolment, round),
            )
            for enrolment in before.named(values)
        ]
        after = before
        takes = [not self._why_not(enrolment, number) for enrolment, _, number in asked]
        for (enrolment, index, number), due in zip(asked, takes, strict=True):
            if due and not enrolment.client.has_answered(number):
                after = after.changed(enrolment, after.answering(enrolment, index, number))
        if after != before:
            # Memo and messages reach the disk together, before anything is sent.
            self._state.adopt(after)
        return [number if due else None for (_, _, number), due in zip(asked, takes, strict=True)]

    def _why_not(self, enrolment: Enrolment, round: int) -> str:
        """Why this user does not answer a round, empty otherwise; independent of the value."""
        if self.opted_out:
            return OPTED_OUT
        if enrolment.halted:
            return f"The campaign {_HALTED[enrolment.halted]}: nothing is drawn or sent for it."
        schedule = enrolment.campaign.schedule
        if schedule.expires is not None and not schedule.takes(round, self._now()):
            return "The end date of the campaign leaves no report of this round."
        if not enrolment.client.is_due(round):
            return "This user does not report in this round, as each does in one of several only."
        return ""

    def _round(self, enrolment: Enrolment, round: int | None) -> int:
        if round is not None:
            return checks.round_number(round)
        now = enrolment.campaign.schedule.round_at(self._now())
        if now < 0:
            raise StateError("campaign must have begun, it has not; report later")
        return now

    @property
    @alone
    def answered(self) -> frozenset[int]:
        """The newest rounds that were answered, sent or not."""
        agreed = self._state.now() is not None
        return frozenset(self._state.only().client.sent_rounds if agreed else ())

    @alone
    def preview(self, campaign: Campaign | None = None, *, round: int | None = None) -> Preview:
        """The exact bytes of a report and what they say; nothing is drawn, stored, sent or asked.

        Where the round was answered it is that report. Else it is an example: no value is asked
        for, and the state is not touched, so that it may be shown as often as one likes.

        Parameters
        ----------
        campaign : Campaign, optional
            By default the only one that the user agreed to. Needs no consent.
        round : int, optional
            By default the one that the clock says, or the first one.
        """
        agreement = self._state.now()
        if campaign is None:
            campaign = self._state.only().campaign
        if round is None:
            round = max(0, campaign.schedule.round_at(self._now()))
        checks.round_number(round)
        for enrolment in agreement.enrolments if agreement else ():
            if agreement and enrolment.campaign == campaign:
                reason = self._why_not(enrolment, round) or agreement.uncovered(campaign)
                return of_enrolment(enrolment, round, reason)
        return example(campaign, round, unagreed())

    def deliver(self) -> Delivery:
        """Send the queue, oldest first; what cannot be sent now stays.

        A report that was sent without our learning of it is sent again, byte for byte: the
        collector counts it once. It leaves the queue on the collector's own receipt or refusal of
        this report, on nothing else. Where the user has `opted_out` all of it stays.

        Raises
        ------
        StateError
            Without consent, or with several campaigns.
        """
        return self._courier.deliver(self._state.alone(self._state.only))

    def deliver_all(self) -> dict[str, Delivery]:
        """As `deliver`, for each campaign of the agreement, by name.

        Campaigns of one collector that share a token, or have none, are sent in one upload, which
        shows that their reports are one device's.
        """
        enrolments = self._state.alone(self._state.agreed).enrolments
        return self._courier.deliver_all(enrolments)

    def _connect(self, enrolment: Enrolment) -> Connection:
        return Connection(enrolment.url, token=enrolment.token, **self._line)

    # -- state

    def close(self) -> None:
        """Let others use the file; this sender is of no use afterwards."""
        self._state.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sender({str(self.path)!r}, state hidden)"
