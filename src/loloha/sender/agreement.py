"""The agreement of one user, as a sender keeps it, and what outlives it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from loloha.campaign import Campaign
from loloha.campaign.schedule import to_text
from loloha.client import Client
from loloha.client.answered import Rounds
from loloha.client.file import DAMAGED
from loloha.client.limit import ANEW, agreed, cost_of_reset, covers, may_reset, total
from loloha.client.seal import UNREADABLE, amount, must_be_whole, sealed, unseal
from loloha.client.state import implied
from loloha.errors import BudgetError, CampaignError, ParameterError, StateError
from loloha.protocols import Protocol
from loloha.report import Key, Report
from loloha.sender.connection import is_token
from loloha.sender.ledger import Ledger, rounds_of_plain, rounds_to_plain
from loloha.sender.url import fingerprint_of
from loloha.wire.message import decode, encode, is_ticket

STATE_TYPE, STATE_VERSION = "loloha-sender", 2
MOST_QUEUED = 1_000
"""Reports of one campaign that wait to be sent; beyond it the oldest is dropped."""
BEYOND_REPAIR = f"{DAMAGED}; delete it (AgreementFile.erase), and agree again only if the user does"


HALTED = None, "paused", "ended"
STATES = {
    "open": None, "paused": "paused",
    "closed": "ended", "archived": "ended", "deleting": "ended", "deleted": "ended",
}  # fmt: skip
"""What the state of a campaign at its collector means to a device."""


def state_in(summary: Any) -> str | None:
    """The state in what a collector says of a campaign; None where it is none of `STATES`."""
    state = summary.get("state") if isinstance(summary, dict) else None
    return state if isinstance(state, str) and state in STATES else None


@dataclass(frozen=True, repr=False)
class Enrolment:
    """One user in one campaign."""

    url: str
    token: str | None
    ticket: str | None
    campaign: Campaign
    client: Client
    queue: Mapping[int, str] = field(default_factory=dict)
    halted: str | None = None
    """"paused" or "ended" by the collector's answer: nothing is drawn, stored or sent."""

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
            **({"halted": self.halted} if self.halted else {}),
        }

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        """What `to_plain` wrote."""
        campaign = Campaign.from_dict(plain["campaign"])
        client = Client.from_dict(plain["client"], protocol=campaign.protocol)
        if client.every != campaign.schedule.every:
            raise StateError(f"state must hold a client of its campaign; {BEYOND_REPAIR}")
        url, token, ticket = (plain[name] for name in ("url", "token", "ticket"))
        if fingerprint_of(url) != campaign.fingerprint or url.endswith("/"):
            raise StateError(f"state must hold the campaign that was agreed to; {BEYOND_REPAIR}")
        if token is not None and not is_token(token):
            raise StateError(f"state must hold a token as headers carry it; {BEYOND_REPAIR}")
        if ticket is not None and not is_ticket(ticket):
            raise StateError(f"state must hold a ticket as collectors write it; {BEYOND_REPAIR}")
        queue = dict(plain["queue"])
        halted = plain.get("halted")
        if halted not in HALTED:
            raise StateError(f"state must hold a campaign that is {HALTED}; {BEYOND_REPAIR}")
        enrolment = cls(url, token, ticket, campaign, client, queue, halted)
        key, sent = client._state.before.key, dict(client._state.record.sent)
        if not all(enrolment._has_made(sent, key, round, text) for round, text in queue.items()):
            raise StateError(f"state must hold a queue of its own reports; {BEYOND_REPAIR}")
        return enrolment

    def message(self, report: Report, round: int) -> str:
        """One of this client's reports, as it is sent."""
        reporter = self.client.reporter(round)
        made = encode(self.campaign, report, round=round, reporter=reporter, ticket=self.ticket)
        return made.decode()

    def _has_made(self, sent: Mapping[int, Report], key: Key, round: Any, message: Any) -> bool:
        """Whether a message is what this client made for a round: nothing else is sent."""
        if type(round) is not int or not self.client.has_answered(round):
            return False
        report = sent.get(round)
        if report is None:
            # A client keeps fewer reports than may wait.
            report = decode(self.campaign, message)
            if self.campaign.protocol.longitudinal and report.key != key:
                return False
        made = self.message(report, round)
        return message == made or _members(message) == _members(made)


def refuse_ended(
    campaigns: Sequence[Campaign], summaries: Sequence[Any], now: Callable[[], float]
) -> None:
    """Nobody agrees to what is over, by its end date or by the state at its collector."""
    for campaign, summary in zip(campaigns, summaries, strict=True):
        expires = campaign.schedule.expires
        has_expired = expires is not None and campaign.schedule.has_ended(now())
        if has_expired or STATES[state := state_in(summary) or "open"] == "ended":
            how = f"did at {to_text(expires)}" if has_expired and expires else f"is {state}"
            name = campaign.name
            raise CampaignError(
                f"campaign must not have ended, {name!r} {how}; ask for the address of another"
            )


def agreeable(campaigns: Sequence[Campaign], limit: float | None, ledger: Ledger) -> float | None:
    """The limit of a new agreement; refuses what cannot be agreed to before anything is drawn."""
    if len({campaign.name for campaign in campaigns}) < len(campaigns):
        raise CampaignError(
            "campaigns must have different names under one agreement, got one name twice; "
            "use a state file for each"
        )
    return agreed(limit, ledger.committed, [campaign.protocol for campaign in campaigns])


@dataclass(frozen=True, repr=False)
class Agreement:
    """One consent: to one campaign, or to several under one limit."""

    enrolments: tuple[Enrolment, ...]
    limit: float | None
    spent_before: float = 0.0
    committed_before: float | None = 0.0
    answered_before: Mapping[str, Rounds] = field(default_factory=dict)

    def again(self, wanted: list[str], limit: float | None) -> Agreement:
        """The same, to campaigns given by their fingerprints, perhaps with another limit."""
        known = [enrolment.campaign.fingerprint for enrolment in self.enrolments]
        if set(known) != set(wanted):
            raise CampaignError(
                f"campaigns must be {known}, which the user agreed to, got {wanted}; "
                "withdraw and ask again, or use another state file"
            )
        if limit is None:
            return self
        states = [enrolment.client._state for enrolment in self.enrolments]
        before = total((state.before.committed for state in states), self._before)
        claims = [enrolment.client._claim(enrolment.client._state) for enrolment in self.enrolments]
        limit = agreed(limit, before, self.protocols, claims)
        # With this consent, the amount spent replaces an unknown commitment.
        return replace(self, limit=limit, committed_before=self._before)

    def named(self, names: Iterable[str]) -> list[Enrolment]:
        """The enrolments of campaigns by their names, in this order."""
        by_name = {enrolment.campaign.name: enrolment for enrolment in self.enrolments}
        wanted = list(names)
        if not by_name.keys() >= set(wanted):
            raise ParameterError(
                f"values must be for campaigns among {sorted(by_name)}, got another; check names"
            )
        return [by_name[name] for name in wanted]

    @property
    def loss(self) -> float:
        """Everything spent so far: the losses of all campaigns add up."""
        return total((enrolment.client.loss for enrolment in self.enrolments), self.spent_before)

    @property
    def protocols(self) -> list[Protocol]:
        """One of each enrolment."""
        return [enrolment.campaign.protocol for enrolment in self.enrolments]

    @property
    def committed(self) -> float:
        """What the limit has to cover so far, whatever the values were."""
        known = self.committed_before
        before = self._before if known is None else known
        return total((enrolment.client.committed for enrolment in self.enrolments), before)

    @property
    def _before(self) -> float:
        """What was committed before; where nothing is known of it, what was spent."""
        return self.committed_before or self.spent_before

    @property
    def _implied(self) -> float | None:
        """What was committed before, where a state does not say it."""
        if self.limit is None or not any(
            enrolment.client._state.before.spent_before for enrolment in self.enrolments
        ):
            return implied(self.spent_before, self.limit is not None)
        return None

    def entered(self, ledger: Ledger) -> Ledger:
        """A ledger with what this agreement spent, committed and answered."""
        accounts = {
            enrolment.campaign.fingerprint: enrolment.client.account
            for enrolment in self.enrolments
        }
        answered = {name: account.answered for name, account in accounts.items()}
        # A client that never reported revealed nothing, and its key is deleted.
        clients = [enrolment.client for enrolment in self.enrolments]
        committed = total(
            (
                client.committed if client.sent_rounds else client._state.before.committed
                for client in clients
            ),
            self._before,
        )
        known = ledger.including(0.0, 0.0, self.answered_before)
        return known.including(self.loss, committed, answered)

    def changed(self, before: Enrolment, after: Enrolment) -> Agreement:
        """The same, with one enrolment in place of another."""
        enrolments = tuple(
            after if enrolment is before else enrolment for enrolment in self.enrolments
        )
        return replace(self, enrolments=enrolments)

    def answering(self, enrolment: Enrolment, index: int, round: int) -> Enrolment:
        """An enrolment after one more report; BudgetError where the limit leaves none."""
        # Who reports must not depend on it.
        if why := self.uncovered(enrolment.campaign):
            raise BudgetError(why)
        client = enrolment.client._copy()
        report = client.report(index, round=round)
        message = replace(enrolment, client=client).message(report, round)
        # Of many that wait the oldest ones are late first. What they spent stays spent.
        newest = sorted(enrolment.queue)[max(0, len(enrolment.queue) + 1 - MOST_QUEUED) :]
        queue = {round: enrolment.queue[round] for round in newest} | {round: message}
        return replace(enrolment, client=client, queue=queue)

    def uncovered(self, campaign: Campaign) -> str:
        """Why the limit leaves no report, for what is known before the value; empty if it does."""
        if self.limit is None:
            return ""
        if self.committed_before is None or not covers(self.limit, self.committed):
            return ANEW
        protocol = campaign.protocol
        if protocol.longitudinal or covers(self.limit, self.committed + protocol.asked_memo):
            return ""
        return (
            f"loss must stay within limit = {self.limit!r}, one more report to {campaign.name!r} "
            "would exceed it; report no more to it, or ask the user to accept a higher limit"
        )

    def reset(self, ledger: Ledger, *, wait: bool) -> tuple[Agreement, str]:
        """The same for a new user, who goes on from what was spent; and its cost, in a sentence."""
        if self.limit is not None:
            may_reset(self.limit, self.committed, self.protocols, self.committed_before)
        # A later start with ``wait`` needs what is forgotten here.
        after = replace(self, answered_before=ledger.answered)
        for enrolment in self.enrolments:
            rounds = ledger.account(enrolment.campaign, wait=wait).answered
            account = enrolment.client.account._replace(answered=rounds)
            client = Client(
                enrolment.campaign.protocol, account=account, every=enrolment.client.every
            )
            after = after.changed(enrolment, replace(enrolment, client=client, queue={}))
        wait = wait or all(enrolment.client.every > 1 for enrolment in self.enrolments)
        return after, cost_of_reset(self.loss, self.protocols, wait=wait)

    def to_bytes(self) -> bytes:
        """As JSON, secrets included."""
        return sealed(self._to_plain())

    def _to_plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "type": STATE_TYPE,
            "version": STATE_VERSION,
            "limit": self.limit,
            "spent_before": self.spent_before,
            "enrolments": [enrolment.to_plain() for enrolment in self.enrolments],
        }
        if self.committed_before != self._implied:
            plain["committed_before"] = self.committed_before
        if self.answered_before:
            plain["answered_before"] = rounds_to_plain(self.answered_before)
        return plain

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        """What `to_bytes` wrote."""
        try:
            agreement = cls._read({**plain})
            must_be_whole(plain, agreement._to_plain())
            return agreement
        except StateError:
            raise
        except UNREADABLE:
            # The cause could quote the state, so it is dropped.
            raise StateError(f"state must be what a sender wrote; {BEYOND_REPAIR}") from None

    @classmethod
    def _read(cls, rest: dict[str, Any]) -> Self:
        version = rest.get("version")
        if rest.get("type") != STATE_TYPE or type(version) is not int or version != STATE_VERSION:
            raise StateError(
                f"state must be of type {STATE_TYPE!r}, version {STATE_VERSION}; use the release "
                "of loloha that wrote it"
            )
        # Release 0.2.0 wrote no checksum.
        unseal(rest)
        enrolments = tuple(Enrolment.from_plain(each) for each in rest["enrolments"])
        limit = rest["limit"]
        if limit is not None and not (limit := amount(limit)):
            raise ValueError("a limit must be above 0")
        spent = amount(rest["spent_before"])
        names = {enrolment.campaign.name for enrolment in enrolments}
        if not enrolments or len(names) < len(enrolments):
            raise StateError(f"state must hold campaigns of different names; {BEYOND_REPAIR}")
        answered = rounds_of_plain(rest.get("answered_before", {}))
        agreement = cls(enrolments, limit, spent, answered_before=answered)
        has_committed = "committed_before" in rest
        committed = amount(rest["committed_before"]) if has_committed else agreement._implied
        return replace(agreement, committed_before=committed)


def _members(message: str) -> str:
    """The members of a message in one order, each as often as it is there."""
    return json.dumps(sorted(json.loads(message, object_pairs_hook=list)))
