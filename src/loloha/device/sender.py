"""One user's device on the network: consent, enrolment, a queue that survives anything.

Standard library only. Nothing is sanitised, kept or sent before the user agrees.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from threading import Lock, get_ident
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from loloha.device.agreement import Agreement, Enrolment, Ledger, fingerprint_of
from loloha.device.client import Account, Client
from loloha.device.collector import Collector
from loloha.device.connection import Answer, Connection, Patience, Unreachable, path_of
from loloha.device.consent import explain_all
from loloha.device.file import StateFile, read_json, read_private, write_private
from loloha.device.receipt import Fate, answers_of, fate
from loloha.errors import BudgetError, CampaignError, ParameterError, StateError
from loloha.rules import checks
from loloha.rules.campaign import Campaign
from loloha.rules.report import LARGEST_ROUND
from loloha.wire.message import encode

__all__ = [
    "Collector",
    "Connection",
    "Delivery",
    "Patience",
    "Sender",
    "Unreachable",
    "explain_all",
]

_TOGETHER = 100
"""Reports in one upload of several campaigns; the rest goes the next time."""
_FRUITLESS = 3
"""So many answers in a row that settle nothing: what answers is no collector that works."""


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
    """

    sent: tuple[int, ...] = ()
    refused: Mapping[int, str] = field(default_factory=dict)
    waiting: tuple[int, ...] = ()
    reason: str = ""


P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class _Fates:
    """What became of the reports of one campaign so far."""

    sent: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    reason: str = ""

    def delivery(self, waiting: tuple[int, ...]) -> Delivery:
        return Delivery(tuple(self.sent), self.refused, waiting, self.reason if waiting else "")


def _alone(
    method: Callable[Concatenate[Sender, P], R],
) -> Callable[Concatenate[Sender, P], R]:
    """One thread at a time; a signal handler of that thread is told to come later."""

    @wraps(method)
    def alone(self: Sender, /, *args: P.args, **kwargs: P.kwargs) -> R:
        # Before the lock, which a fork may have inherited from another thread.
        self._file.must_be_ours()
        if self._owner == get_ident() and self._lock.locked():
            raise StateError("sender must have ended one call before the next; call later")
        with self._lock:
            self._owner = get_ident()
            try:
                return method(self, *args, **kwargs)
            finally:
                self._owner = 0

    return alone


class _Unread:
    """In place of an agreement: what the file holds is not known."""


_UNREAD: Final = _Unread()


class Sender:
    """The reports of one user, kept in one file that only its owner can read.

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
        self._timeout = timeout
        self._patience = patience
        self._lock = Lock()
        self._owner = 0
        self._agreement: Agreement | _Unread | None = _UNREAD
        self._file = StateFile(path)
        try:
            self._now()
        except BaseException:
            self._file.close()
            raise

    @property
    def path(self) -> Path:
        """The state file."""
        return Path(self._file.path)

    # -- consent

    @property
    @_alone
    def consent(self) -> bool:
        """Whether the user has agreed; off until then."""
        return self._now() is not None

    @property
    @_alone
    def campaigns(self) -> dict[str, Campaign]:
        """What the user agreed to, by name; empty without consent."""
        agreement = self._now()
        if agreement is None:
            return {}
        return {one.campaign.name: one.campaign for one in agreement.enrolments}

    @property
    @_alone
    def campaign(self) -> Campaign:
        """The one campaign that the user agreed to.

        Raises
        ------
        StateError
            Without consent, or with several.
        """
        return self._only().campaign

    @property
    @_alone
    def loss(self) -> float:
        """Everything that was ever spent with this state file, by all its campaigns together.

        It goes on through `reset`, and through `withdraw` and `agree`.
        """
        agreement = self._now()
        return self._ledger().spent if agreement is None else agreement.loss

    @property
    @_alone
    def limit(self) -> float | None:
        """Hard limit on `loss`, None without."""
        agreement = self._now()
        return None if agreement is None else agreement.limit

    def agree(
        self,
        *urls: str,
        token: str | Mapping[str, str] | None = None,
        limit: float | None = None,
        wait: bool = False,
    ) -> Campaign:
        """Record the user's consent to one campaign, or to several at once, and enrol.

        Parameters
        ----------
        urls : str
            ``https://HOST/v1/campaigns/FINGERPRINT``: the fingerprint pins the campaign.
        token : str or dict, optional
            The submit token, where the campaigns have one, or one for each address.
        limit : float, optional
            Hard limit on `loss`: what this user spends on all these campaigns together, and has
            spent with this state file before. Agreeing again with one replaces it.
        wait : bool
            After a withdrawal, whether to wait for rounds that were not answered yet. If not, a
            round that was counted and is answered again counts this user twice.

        Returns
        -------
        Campaign
            The first one.

        Raises
        ------
        CampaignError
            If a document is not the one of its fingerprint, or the user has agreed to others.
        Unreachable
            If a collector does not answer.
        """
        return self._agree(urls, token, limit, wait)

    @_alone
    def _agree(
        self,
        urls: tuple[str, ...],
        token: str | Mapping[str, str] | None,
        limit: float | None,
        wait: bool,
    ) -> Campaign:
        wanted = [fingerprint_of(url) for url in urls]
        if not wanted or len(set(wanted)) < len(wanted):
            raise ParameterError("urls must be different campaigns, at least one; name each once")
        before = self._now()
        if before is not None:
            return self._agree_again(before, wanted, limit)
        ledger = self._ledger()
        enrolments = tuple(self._enrol(url, _token(token, url), ledger, wait) for url in urls)
        names = {one.campaign.name for one in enrolments}
        if len(names) < len(enrolments):
            raise CampaignError(
                "campaigns must have different names under one agreement, got one name twice; "
                "use a state file for each"
            )
        after = Agreement(enrolments, _limit(limit, enrolments), ledger.spent)
        self._adopt(after)
        return enrolments[0].campaign

    def _agree_again(self, before: Agreement, wanted: list[str], limit: float | None) -> Campaign:
        known = [one.campaign.fingerprint for one in before.enrolments]
        if set(known) != set(wanted):
            raise CampaignError(
                f"campaigns must be {known}, which the user agreed to, got {wanted}; "
                "withdraw and ask anew, or use another state file"
            )
        if limit is not None and limit != before.limit:
            self._adopt(replace(before, limit=_limit(limit, before.enrolments)))
        return before.enrolments[0].campaign

    def _enrol(self, url: str, token: str | None, ledger: Ledger, wait: bool) -> Enrolment:
        key, ticket = None, None
        with Collector(
            url, token=token, timeout=self._timeout, patience=self._patience
        ) as collector:
            campaign = collector.document()
            if campaign.keys == "assigned":
                key, ticket = collector.assign_key(campaign)
        account = ledger.account(campaign) if wait else None
        client = Client(campaign.protocol, key=key, account=account)
        return Enrolment(url, token, ticket, campaign, client)

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
        agreement, ledger = self._now(), self._ledger()
        if agreement is not None:
            ledger = ledger.including(agreement)
            if ledger != Ledger():
                write_private(self._ledger_path, ledger.to_bytes())
        self._agreement = _UNREAD
        self._file.delete()
        self._agreement = None
        return (
            "Key, memo and unsent reports are deleted; nothing more is reported. "
            f"What was sent stays counted and the {ledger.spent:g} spent so far stays spent: if "
            "you agree again, new answers are drawn and spend on top of it, and a round that is "
            "answered again counts you twice, unless you wait for the next one."
        )

    # -- reporting

    def report(self, value: Any, *, round: int | None = None) -> int | None:
        """Sanitise the user's value for a round and queue the report; nothing is sent yet.

        Parameters
        ----------
        value
            A label of the campaign, or a number of its range.
        round : int, optional
            By default the one that the clock says. A round is answered once: asking again changes
            nothing.

        Returns
        -------
        int or None
            The round; None if the limit is reached: nothing is reported for this value.

        Raises
        ------
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
            For each campaign, by name, the user's value. What is left of the limit goes to the
            first ones first.
        round : int, optional
            As for `report`; of all of them.

        Returns
        -------
        dict
            For each campaign the round, or None where the limit is reached.
        """
        return dict(zip(values, self._report(values, None, round), strict=True))

    @_alone
    def _report(
        self, values: Mapping[str, Any] | None, value: Any, round: int | None
    ) -> list[int | None]:
        before = self._agreed()
        if values is None:
            values = {self._only().campaign.name: value}
        by_name = {one.campaign.name: one for one in before.enrolments}
        if not values.keys() <= by_name.keys():
            raise ParameterError(
                f"values must be for campaigns among {sorted(by_name)}, got another; check names"
            )
        # All are checked before any is answered.
        asked = [
            (by_name[name], by_name[name].campaign.index(value), self._round(by_name[name], round))
            for name, value in values.items()
        ]
        after, rounds = before, list[int | None]()
        for enrolment, index, number in asked:
            answered = enrolment.client.has_answered(number)
            next_one = enrolment if answered else _answering(after, enrolment, index, number)
            rounds.append(None if next_one is None else number)
            after = after.changed(enrolment, next_one or enrolment)
        if after != before:
            # Memo and messages reach the disk together, before anything is sent.
            self._adopt(after)
        return rounds

    def _round(self, enrolment: Enrolment, round: int | None) -> int:
        if round is not None:
            return checks.integer("round", round, 0, LARGEST_ROUND, "count rounds from 0")
        now = enrolment.campaign.schedule.round_at(self._clock())
        if now < 0:
            raise StateError("campaign must have begun, it has not; report later")
        return now

    @property
    @_alone
    def answered(self) -> frozenset[int]:
        """The newest rounds that were answered, sent or not."""
        agreement = self._now()
        return frozenset() if agreement is None else frozenset(self._only().client.sent_rounds)

    def deliver(self) -> Delivery:
        """Send the queue, oldest first; what cannot be sent now stays.

        A report that was sent without our learning of it is sent again, byte for byte: the
        collector counts it once. It leaves the queue on the collector's own receipt or refusal of
        this report, on nothing else.

        Raises
        ------
        StateError
            Without consent, or with several campaigns.
        """
        return self._deliver(self._queued(several=False)[0])

    def deliver_all(self) -> dict[str, Delivery]:
        """As `deliver`, for each campaign of the agreement, by name.

        Campaigns of one collector that share a token, or have none, are sent in one upload, which
        shows that their reports are one device's.
        """
        found: dict[str, Delivery] = {}
        together: dict[tuple[str, str | None], list[Enrolment]] = {}
        for one in self._queued(several=True):
            base = one.url[: one.url.index("/v1/campaigns/")]
            together.setdefault((base, one.token), []).append(one)
        for (base, _), several in together.items():
            one_upload = self._deliver_together(base, several) if len(several) > 1 else None
            for one in several:
                found[one.campaign.name] = (
                    self._deliver(one) if one_upload is None else one_upload[one.campaign.name]
                )
        return found

    def _deliver_together(self, base: str, several: list[Enrolment]) -> dict[str, Delivery] | None:
        """Send some queues in one upload; None if the collector takes none, as of release 0.1.0."""
        queued = [
            (one, round, message)
            for one in several
            for round, message in sorted(one.queue.items())
            if self._still(one, round, message)
        ][:_TOGETHER]
        if len({one.url for one, _, _ in queued}) < 2:
            return None
        body = f"[{','.join(message for _, _, message in queued)}]".encode()
        with self._connection(several[0]) as connection:
            try:
                answer = connection.post(f"{path_of(base)}/v1/reports", body, "application/json")
            except Unreachable as error:
                return {
                    one.campaign.name: Delivery(waiting=self._waiting(one), reason=str(error))
                    for one in several
                }
        answers = answers_of(answer, len(queued))
        if answers is None:
            return None
        fates = {one.campaign.name: _Fates() for one in several}
        for (one, round, message), each in zip(queued, answers, strict=True):
            self._take(one, round, message, each, fates[one.campaign.name])
        return {
            one.campaign.name: fates[one.campaign.name].delivery(self._waiting(one))
            for one in several
        }

    @_alone
    def _queued(self, *, several: bool) -> tuple[Enrolment, ...]:
        return self._agreed().enrolments if several else (self._only(),)

    def _deliver(self, enrolment: Enrolment) -> Delivery:
        """Send one queue; the sender is free for others while a request is on its way."""
        fates, fruitless = _Fates(), 0
        path = f"{path_of(enrolment.url)}/reports"
        with self._connection(enrolment) as connection:
            for round, message in sorted(enrolment.queue.items()):
                if not self._still(enrolment, round, message):
                    continue
                try:
                    answer = connection.post(path, message.encode(), "application/json")
                except Unreachable as error:
                    fates.reason = str(error)
                    break
                settled = self._take(enrolment, round, message, answer, fates)
                fruitless = 0 if settled else fruitless + 1
                if fruitless == _FRUITLESS:
                    break
        return fates.delivery(self._waiting(enrolment))

    def _take(
        self, enrolment: Enrolment, round: int, message: str, answer: Answer, fates: _Fates
    ) -> bool:
        """Do what an answer says of a report; whether it settles it."""
        found, why = fate(answer, json.loads(message)["reporter"])
        if found is Fate.WAITING:
            fates.reason = why
            return False
        self._settle(enrolment, round, message)
        if found is Fate.COUNTED:
            fates.sent.append(round)
        else:
            fates.refused[round] = why
        return True

    def _connection(self, enrolment: Enrolment) -> Connection:
        return Connection(
            enrolment.url, token=enrolment.token, timeout=self._timeout, patience=self._patience
        )

    def reset(self, *, wait: bool = False) -> str:
        """Forget keys, memos and queues, and start as a new user; see `Client.reset`.

        Parameters
        ----------
        wait : bool
            Whether to wait for rounds that were not answered yet, so that no round counts this
            user twice.

        Returns
        -------
        str
            The cost, in a sentence to show.

        Raises
        ------
        StateError
            Without consent, or where a collector assigns keys: withdraw and agree again there.
        """
        return self._reset(wait)

    @_alone
    def _reset(self, wait: bool) -> str:
        before = self._agreed()
        if any(one.campaign.keys == "assigned" for one in before.enrolments):
            raise StateError("key must be assigned anew; withdraw, and agree again")
        # What is forgotten here, a later start that waits has to know.
        ledger = self._ledger().including(before)
        write_private(self._ledger_path, ledger.to_bytes())
        after, said = before, ""
        for one in before.enrolments:
            said = one.client._twin().reset(wait=wait)
            rounds = ledger.account(one.campaign).answered if wait else ()
            client = Client(one.campaign.protocol, account=Account(one.client.loss, rounds))
            after = after.changed(one, replace(one, client=client, queue={}))
        self._adopt(after)
        if len(before.enrolments) == 1:
            return said
        return (
            f"Keys, memos and sent reports of {len(before.enrolments)} campaigns are forgotten. "
            f"The {before.loss:g} spent so far stays spent. {said.rpartition('. ')[2]}"
        )

    # -- state

    def close(self) -> None:
        """Let others use the file; this sender is of no use afterwards."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sender({str(self.path)!r}, state hidden)"

    def _now(self) -> Agreement | None:
        """What the file holds."""
        if not isinstance(self._agreement, _Unread):
            self._file.check()
            return self._agreement
        content = self._file.read()
        if content is None:
            self._agreement = None
        else:
            self._agreement = Agreement.from_plain(read_json(self._file.path, content))
        return self._agreement

    def _adopt(self, after: Agreement) -> None:
        """Write the next state, then make it the present one."""
        content = after.to_bytes()
        self._agreement = _UNREAD
        self._file.write(content)
        self._agreement = after

    def _agreed(self) -> Agreement:
        agreement = self._now()
        if agreement is None:
            raise StateError("consent must be given before anything is reported; ask the user")
        return agreement

    def _only(self) -> Enrolment:
        enrolments = self._agreed().enrolments
        if len(enrolments) > 1:
            raise StateError(
                f"campaign must be the only one, the user agreed to {len(enrolments)}; use "
                "campaigns, report_all and deliver_all"
            )
        return enrolments[0]

    def _same(self, enrolment: Enrolment, round: int, message: str) -> Enrolment | None:
        """The enrolment as it is now, if it still has this message in its queue."""
        agreement = self._now()
        for one in agreement.enrolments if agreement else ():
            if one.url == enrolment.url and one.queue.get(round) == message:
                return one
        return None

    @_alone
    def _still(self, enrolment: Enrolment, round: int, message: str) -> bool:
        return self._same(enrolment, round, message) is not None

    @_alone
    def _settle(self, enrolment: Enrolment, round: int, message: str) -> None:
        now = self._same(enrolment, round, message)
        if now is not None:
            self._adopt(self._agreed().changed(now, now.without(round)))

    @_alone
    def _waiting(self, enrolment: Enrolment) -> tuple[int, ...]:
        agreement = self._now()
        found = agreement.enrolments if agreement else ()
        return tuple(sorted(r for one in found if one.url == enrolment.url for r in one.queue))

    @property
    def _ledger_path(self) -> str:
        return self._file.path + ".spent"

    def _ledger(self) -> Ledger:
        path = self._ledger_path
        if not os.path.lexists(path):
            return Ledger()
        return Ledger.from_plain(read_json(path, read_private(path)))


def _answering(
    agreement: Agreement, enrolment: Enrolment, index: int, round: int
) -> Enrolment | None:
    """The enrolment after one more report, None if the limit is reached."""
    client = agreement.twin(enrolment)
    try:
        report = client.report(index, round=round)
    except BudgetError:
        return None
    client.limit = None
    message = encode(
        enrolment.campaign,
        report,
        round=round,
        reporter=client.reporter(round),
        ticket=enrolment.ticket,
    )
    return replace(enrolment, client=client, queue={**enrolment.queue, round: message.decode()})


def _limit(limit: float | None, enrolments: tuple[Enrolment, ...]) -> float | None:
    """A limit that lets at least one report of each campaign pass, were nothing spent."""
    if limit is None:
        return None
    least = sum(one.campaign.protocol.asked_memo for one in enrolments)
    advice = "the first reports already spend the lower bound"
    checked = checks.real("limit", limit, least, math.inf, advice)
    return None if checked == math.inf else checked


def _token(token: str | Mapping[str, str] | None, url: str) -> str | None:
    return token if token is None or isinstance(token, str) else token.get(url)
