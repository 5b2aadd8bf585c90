"""What one user agreed to, as a sender keeps it, and what outlives the agreement."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from loloha.device.client import Account, Client
from loloha.device.connection import path_of
from loloha.device.file import DAMAGED
from loloha.device.rounds import Rounds, are_rounds, including
from loloha.device.state import UNREADABLE
from loloha.errors import BudgetError, CampaignError, ParameterError, StateError
from loloha.rules import checks
from loloha.rules.campaign import Campaign
from loloha.rules.report import LARGEST_ROUND
from loloha.wire.message import encode

STATE_TYPE, STATE_VERSION = "loloha-sender", 2
LEDGER_TYPE, LEDGER_VERSION = "loloha-spent", 1
MOST_QUEUED = 1_000
"""Reports of one campaign that wait to be sent; beyond it the oldest is dropped."""
_FINGERPRINT = re.compile(r"/v1/campaigns/([0-9a-f]{64})$")
BEYOND_REPAIR = (
    f"{DAMAGED}; withdraw, which deletes it (`loloha report --state FILE --withdraw`), and agree "
    "again only if the user does"
)


def fingerprint_of(url: str) -> str:
    """The fingerprint that the address of a campaign ends with.

    Raises
    ------
    ParameterError
        If it ends otherwise.
    """
    found = _FINGERPRINT.search(path_of(url))
    if found is None:
        raise ParameterError(
            "url must end with /v1/campaigns/FINGERPRINT, got another; copy the campaign's address"
        )
    return found[1]


@dataclass(frozen=True, repr=False)
class Enrolment:
    """One user in one campaign.

    Attributes
    ----------
    url : str
    token, ticket : str or None
        The campaign's submit token, and what the collector gave with an assigned key.
    campaign : Campaign
    client : Client
        Never changed: a step is made by a twin of it.
    queue : dict of int to str
        For each round the message that the collector has not settled yet.
    """

    url: str
    token: str | None
    ticket: str | None
    campaign: Campaign
    client: Client
    queue: Mapping[int, str] = field(default_factory=dict)

    def without(self, round: int) -> Enrolment:
        """The same, with one message less in the queue."""
        return replace(self, queue={r: m for r, m in self.queue.items() if r != round})

    def to_plain(self) -> dict[str, Any]:
        """As JSON data, secrets included."""
        return {
            "url": self.url,
            "token": self.token,
            "ticket": self.ticket,
            "campaign": self.campaign.to_dict(),
            "client": self.client.to_dict(),
            "queue": [[round, message] for round, message in sorted(self.queue.items())],
        }

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        """What `to_plain` wrote."""
        campaign = Campaign.from_dict(plain["campaign"])
        client = Client.from_dict(plain["client"], protocol=campaign.protocol)
        if fingerprint_of(plain["url"]) != campaign.fingerprint:
            raise StateError(f"state must hold the campaign that was agreed to; {BEYOND_REPAIR}")
        queue = dict(plain["queue"])
        if not all(
            type(round) is int
            and client.has_answered(round)
            and isinstance(message, str)
            # Only what this client made is sent.
            and json.loads(message)["reporter"] == client.reporter(round)
            for round, message in queue.items()
        ):
            raise StateError(f"state must hold a queue of its own reports; {BEYOND_REPAIR}")
        token, ticket = plain["token"], plain["ticket"]
        if not all(text is None or isinstance(text, str) for text in (token, ticket)):
            raise StateError(f"state must hold its token and ticket as texts; {BEYOND_REPAIR}")
        return cls(plain["url"], token, ticket, campaign, client, queue)


@dataclass(frozen=True, repr=False)
class Agreement:
    """One consent: to one campaign, or to several under one limit.

    Attributes
    ----------
    enrolments : tuple of Enrolment
        Of campaigns with different names.
    limit : float or None
        Hard limit on `loss`.
    spent_before : float
        What the same user spent under agreements before this one.
    """

    enrolments: tuple[Enrolment, ...]
    limit: float | None
    spent_before: float = 0.0

    @classmethod
    def made(cls, enrolments: tuple[Enrolment, ...], limit: float | None, spent: float) -> Self:
        """A new agreement of a user who may have spent something before."""
        names = {one.campaign.name for one in enrolments}
        if len(names) < len(enrolments):
            raise CampaignError(
                "campaigns must have different names under one agreement, got one name twice; "
                "use a state file for each"
            )
        return cls(enrolments, _limit(limit, enrolments, spent), spent)

    def again(self, wanted: list[str], limit: float | None) -> Agreement:
        """The same, to campaigns given by their fingerprints, perhaps with another limit."""
        known = [one.campaign.fingerprint for one in self.enrolments]
        if set(known) != set(wanted):
            raise CampaignError(
                f"campaigns must be {known}, which the user agreed to, got {wanted}; "
                "withdraw and ask anew, or use another state file"
            )
        return self if limit is None else replace(self, limit=_limit(limit, self.enrolments))

    def named(self, names: Iterable[str]) -> list[Enrolment]:
        """The enrolments of campaigns by their names, in this order."""
        by_name = {one.campaign.name: one for one in self.enrolments}
        wanted = list(names)
        if not by_name.keys() >= set(wanted):
            raise ParameterError(
                f"values must be for campaigns among {sorted(by_name)}, got another; check names"
            )
        return [by_name[name] for name in wanted]

    @property
    def loss(self) -> float:
        """Everything spent so far: the losses of all campaigns add up."""
        return self.spent_before + sum(one.client.loss for one in self.enrolments)

    def changed(self, before: Enrolment, after: Enrolment) -> Agreement:
        """The same, with one enrolment in place of another."""
        enrolments = tuple(after if one is before else one for one in self.enrolments)
        return replace(self, enrolments=enrolments)

    def twin(self, enrolment: Enrolment) -> Client:
        """A client that may spend what the others leave of the limit."""
        client = enrolment.client._twin()
        if self.limit is not None:
            client.limit = self.limit - (self.loss - client.loss)
        return client

    def answering(self, enrolment: Enrolment, index: int, round: int) -> Enrolment | None:
        """An enrolment after one more report, None if the limit is reached."""
        client = self.twin(enrolment)
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
        # Of many that wait the oldest ones are late first. What they spent stays spent.
        newest = sorted(enrolment.queue)[max(0, len(enrolment.queue) + 1 - MOST_QUEUED) :]
        queue = {one: enrolment.queue[one] for one in newest} | {round: message.decode()}
        return replace(enrolment, client=client, queue=queue)

    def reset(self, ledger: Ledger, *, wait: bool) -> tuple[Agreement, str]:
        """The same for a new user, who goes on from what was spent; and its cost, in a sentence."""
        after, said = self, ""
        for one in self.enrolments:
            said = one.client._twin().reset(wait=wait)
            rounds = ledger.account(one.campaign).answered if wait else ()
            client = Client(one.campaign.protocol, account=Account(one.client.loss, rounds))
            after = after.changed(one, replace(one, client=client, queue={}))
        if len(self.enrolments) > 1:
            said = (
                f"Keys, memos and sent reports of {len(self.enrolments)} campaigns are forgotten. "
                f"The {self.loss:g} spent so far stays spent. {said.rpartition('. ')[2]}"
            )
        return after, said

    def to_bytes(self) -> bytes:
        """As JSON, secrets included."""
        plain = {
            "type": STATE_TYPE,
            "version": STATE_VERSION,
            "limit": self.limit,
            "spent_before": self.spent_before,
            "enrolments": [one.to_plain() for one in self.enrolments],
        }
        return json.dumps(plain).encode()

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        """What a sender wrote, of this version and the one before.

        Raises
        ------
        StateError
            If it is damaged, foreign, or of another version. Nothing of it is shown.
        """
        try:
            return cls._read(plain)
        except StateError:
            raise
        except UNREADABLE:
            # The cause could quote the state, so it is cut off.
            raise StateError(f"state must be what a sender wrote; {BEYOND_REPAIR}") from None

    @classmethod
    def _read(cls, plain: Any) -> Self:
        version = plain.get("version")
        if plain.get("type") != STATE_TYPE or type(version) is not int or version not in (1, 2):
            raise StateError(
                f"state must be of type {STATE_TYPE!r}, version 1 or {STATE_VERSION}; use the "
                "release of loloha that wrote it"
            )
        if version == 1:
            one = Enrolment.from_plain(plain)
            limit, one.client.limit = one.client.limit, None
            return cls((one,), limit)
        enrolments = tuple(Enrolment.from_plain(each) for each in plain["enrolments"])
        names = {one.campaign.name for one in enrolments}
        if not enrolments or len(names) < len(enrolments):
            raise StateError(f"state must hold campaigns of different names; {BEYOND_REPAIR}")
        limit = plain["limit"]
        return cls(
            enrolments, None if limit is None else _amount(limit), _amount(plain["spent_before"])
        )


@dataclass(frozen=True)
class Ledger:
    """What outlives a withdrawal, in a file of its own: no key, no memo, no report.

    Attributes
    ----------
    spent : float
        Everything that was spent with this state file.
    answered : dict of str to Rounds
        For each campaign, by fingerprint, the rounds that were answered.
    """

    spent: float = 0.0
    answered: Mapping[str, Rounds] = field(default_factory=dict)

    def account(self, campaign: Campaign) -> Account:
        """The rounds of one campaign; what was spent is the agreement's."""
        return Account(0.0, self.answered.get(campaign.fingerprint, ()))

    def including(self, agreement: Agreement) -> Ledger:
        """With what an agreement spent; including it twice changes nothing."""
        answered = dict(self.answered)
        for one in agreement.enrolments:
            name = one.campaign.fingerprint
            rounds = including(answered.get(name, ()), one.client.account.answered)
            if rounds:
                answered[name] = rounds
        # The agreement began with what was spent before.
        return Ledger(max(self.spent, agreement.loss), answered)

    def to_bytes(self) -> bytes:
        """As JSON."""
        plain = {
            "type": LEDGER_TYPE,
            "version": LEDGER_VERSION,
            "spent": self.spent,
            "answered": {name: list(map(list, rounds)) for name, rounds in self.answered.items()},
        }
        return json.dumps(plain).encode()

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        """What `to_bytes` wrote.

        Raises
        ------
        StateError
            If it is damaged, foreign, or of another version.
        """
        try:
            if (plain["type"], plain["version"]) != (LEDGER_TYPE, LEDGER_VERSION):
                raise StateError(
                    f"ledger must be of type {LEDGER_TYPE!r}, version {LEDGER_VERSION}; use the "
                    "release of loloha that wrote it"
                )
            answered = {
                str(name): tuple((first, last) for first, last in rounds)
                for name, rounds in plain["answered"].items()
            }
            if not all(are_rounds(rounds, LARGEST_ROUND) for rounds in answered.values()):
                raise ValueError
            return cls(_amount(plain["spent"]), answered)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise StateError(
                f"ledger must be what a sender wrote, {DAMAGED}; delete it only if the user "
                "accepts that what was spent before is not counted"
            ) from None


def _amount(plain: Any) -> float:
    number = float(plain) if type(plain) in (int, float) else math.nan
    if not 0 <= number < math.inf:
        raise ValueError("an amount must be a number >= 0")
    return number


def _limit(
    limit: float | None, enrolments: tuple[Enrolment, ...], spent: float = 0.0
) -> float | None:
    """A limit that lets at least one report of each campaign pass, after so much was spent."""
    least = spent + sum(one.campaign.protocol.asked_memo for one in enrolments)
    before = f" with the {spent:g} that were spent before" if spent else ""
    return checks.limit(limit, least, f"the first reports already spend the lower bound{before}")
