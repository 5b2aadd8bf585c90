"""One user's device on the network: consent, enrolment, a queue that survives anything.

Standard library only. Nothing is sanitised, stored or sent before the user agrees.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from loloha import checks
from loloha.campaign import Campaign
from loloha.client import Client
from loloha.errors import ParameterError, StateError
from loloha.sender.agreement import (
    Agreement,
    Enrolment,
    agreeable,
    fingerprint_of,
    refuse_ended,
)
from loloha.sender.agreement_file import AgreementFile
from loloha.sender.collector import Collector
from loloha.sender.connection import Connection, Patience
from loloha.sender.delivery import Courier, Delivery
from loloha.sender.ledger import Ledger
from loloha.sender.opt_out import OPTED_OUT, is_opted_out
from loloha.sender.preview import Preview, example, of_enrolment, unagreed

_HALTED = {"paused": "is paused", "ended": "has ended"}
_AGES = 1e15
"""Seconds beyond any clock."""

P = ParamSpec("P")
R = TypeVar("R")


def _alone(
    method: Callable[Concatenate[Sender, P], R],
) -> Callable[Concatenate[Sender, P], R]:
    """As one step of the agreement's file."""

    @wraps(method)
    def alone(self: Sender, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._state.alone(partial(method, self, *args, **kwargs))

    return alone


class Sender:
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
        self._clock = clock
        self._line: dict[str, Any] = {"timeout": timeout, "patience": patience}
        self._state = AgreementFile(path)
        self._courier = Courier(self._state, self._connect, self._now)

    @property
    def path(self) -> Path:
        """The state file."""
        return Path(self._state.file.path)

    # -- consent

    @property
    def opted_out(self) -> bool:
        """Whether ``DO_NOT_TRACK`` is set: ask for no consent then; nothing is drawn or sent."""
        return is_opted_out()

    @property
    @_alone
    def consent(self) -> bool:
        """Whether the user has agreed; off until then."""
        return self._state.now() is not None

    @property
    @_alone
    def campaigns(self) -> dict[str, Campaign]:
        """What the user agreed to, by name; empty without consent."""
        agreement = self._state.now()
        if agreement is None:
            return {}
        return {enrolment.campaign.name: enrolment.campaign for enrolment in agreement.enrolments}

    @property
    @_alone
    def campaign(self) -> Campaign:
        """The one campaign that the user agreed to.

        Raises
        ------
        StateError
            Without consent, or with several.
        """
        return self._state.only().campaign

    @property
    @_alone
    def loss(self) -> float:
        """Everything that was ever spent with this state file, by all its campaigns together.

        It goes on through `reset`, and through `withdraw` and `agree`.
        """
        agreement = self._state.now()
        return self._state.ledger().spent if agreement is None else agreement.loss

    @property
    @_alone
    def committed(self) -> float:
        """What a limit has to cover so far, whatever the values were; see `Client.committed`.

        The caps of all clients that this state file ever had; of one-round ones what they spent.
        """
        agreement = self._state.now()
        return self._state.ledger().committed if agreement is None else agreement.committed

    @property
    @_alone
    def limit(self) -> float | None:
        """Hard limit on `loss`, None without."""
        agreement = self._state.now()
        return None if agreement is None else agreement.limit

    @_alone
    def agree(
        self,
        *urls: str,
        token: str | Mapping[str, str] | None = None,
        limit: float | None = None,
        wait: bool = True,
    ) -> Campaign | None:
        """Record the user's consent to one campaign, or to several at once, and enrol.

        Parameters
        ----------
        urls : str
            ``https://HOST/v1/campaigns/FINGERPRINT``: the fingerprint pins the campaign.
        token : str or dict, optional
            The submit token, where the campaigns have one, or one for each address.
        limit : float, optional
            Hard limit on `loss`: what this user spends on all these campaigns together, and has
            spent with this state file before. It is checked now and never again, since a device
            that fell silent later would show when its user moved: it has to cover the caps of
            all campaigns, of one-round ones a report, and what was `committed` before. Agreeing
            again with one replaces it, with ``math.inf`` removes it.
        wait : bool
            After a withdrawal, whether to wait for rounds that were not answered yet. If not, a
            round that was counted and is answered again counts this user twice. Panels always wait.

        Returns
        -------
        Campaign or None
            The first one; None, with nothing stored or sent, where the user has `opted_out`.

        Raises
        ------
        CampaignError
            If a document is not the one of its fingerprint, or the user has agreed to others, or
            a campaign has ended, by its end date or at its collector.
        ParameterError
            If the limit covers too little; says what would fit. Nothing was drawn or stored.
        Unreachable
            If a collector does not answer.
        """
        wanted = [fingerprint_of(url) for url in urls]
        if not wanted or len(set(wanted)) < len(wanted):
            raise ParameterError("urls must be different campaigns, at least one; name each once")
        if self.opted_out:
            return None
        before = self._state.now()
        if before is None:
            after = self._enrol({url: _token(token, url) for url in urls}, limit, wait)
        else:
            after = before.again(wanted, limit)
        if after != before:
            self._state.adopt(after)
        return after.enrolments[0].campaign

    def _enrol(
        self, tokens: Mapping[str, str | None], limit: float | None, wait: bool
    ) -> Agreement:
        """A new agreement: nothing is drawn before all campaigns are there and the limit fits."""
        ledger, enrolments = self._state.ledger(), []
        with ExitStack() as lines:
            collectors = [
                lines.enter_context(Collector(url, token=token, **self._line))
                for url, token in tokens.items()
            ]
            campaigns = [collector.document() for collector in collectors]
            refuse_ended(campaigns, [each.summary() for each in collectors], self._now)
            limit = agreeable(campaigns, limit, ledger)
            for (url, token), collector, campaign in zip(
                tokens.items(), collectors, campaigns, strict=True
            ):
                key, ticket = None, None
                if campaign.keys == "assigned":
                    key, ticket = collector.assign_key(campaign)
                account = ledger.account(campaign, wait=wait)
                every = campaign.schedule.every
                client = Client(campaign.protocol, key=key, account=account, every=every)
                enrolments.append(Enrolment(url, token, ticket, campaign, client))
        known = ledger.spent, ledger.committed, ledger.answered
        return Agreement(tuple(enrolments), limit, *known)

    @_alone
    def withdraw(self) -> str:
        """End the consent: delete the queue and the whole state, and what a killed write left.

        What stays, in a file beside the state, is how much was spent and which rounds were
        answered. Safe to repeat; after an error nothing or everything is deleted, so repeat it.

        Returns
        -------
        str
            What that means, to show to the user.
        """
        agreement, ledger = self._state.now(), self._state.ledger()
        if agreement is not None:
            ledger = agreement.entered(ledger)
            if ledger != Ledger():
                self._state.write_ledger(ledger)
        self._state.delete()
        return (
            "Key, memo and unsent reports are deleted; nothing more is reported. "
            f"What was sent stays counted and the {ledger.spent:g} spent so far stays spent: if "
            "you agree again, new answers are drawn and spend on top of it. A round that is "
            "answered again counts you twice, so rounds that were answered are left out "
            "unless you ask for them."
        )

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

    @_alone
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

    def _now(self) -> float:
        return checks.real("clock", self._clock(), -_AGES, _AGES, "give Unix seconds")

    @property
    @_alone
    def answered(self) -> frozenset[int]:
        """The newest rounds that were answered, sent or not."""
        agreed = self._state.now() is not None
        return frozenset(self._state.only().client.sent_rounds if agreed else ())

    @_alone
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

    @_alone
    def reset(self, *, wait: bool = True) -> str:
        """Forget keys, memos and queues, and start as a new user; see `Client.reset`.

        Parameters
        ----------
        wait : bool
            Whether to wait for rounds that were not answered yet. If not, a round that was counted
            and is answered again counts this user twice. Panels always wait.

        Returns
        -------
        str
            The cost, in a sentence to show.

        Raises
        ------
        BudgetError
            If the limit does not cover what was `committed` and the caps of the new user.
        StateError
            Without consent, or where a collector assigns keys: withdraw and agree again there.
        """
        before = self._state.agreed()
        if any(enrolment.campaign.keys == "assigned" for enrolment in before.enrolments):
            raise StateError("key must be assigned anew; withdraw, and agree again")
        ledger = before.entered(self._state.ledger())
        after, meaning = before.reset(ledger, wait=wait)
        self._state.write_ledger(ledger)
        self._state.adopt(after)
        return meaning

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


def _token(token: str | Mapping[str, str] | None, url: str) -> str | None:
    return token if token is None or isinstance(token, str) else token.get(url)
