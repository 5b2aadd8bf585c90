"""One user's consent: what was agreed to, what it has spent, and its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from loloha import checks
from loloha.campaign import Campaign
from loloha.client import Client
from loloha.errors import ParameterError, StateError
from loloha.sender.agreement import Agreement, Enrolment, agreeable, refuse_ended
from loloha.sender.agreement_file import AgreementFile
from loloha.sender.collector import Collector
from loloha.sender.connection import Patience
from loloha.sender.do_not_track import is_opted_out
from loloha.sender.ledger import Ledger
from loloha.sender.url import address_of, fingerprint_of

_AGES = 1e15
"""Seconds beyond any clock."""

P = ParamSpec("P")
S = TypeVar("S", bound="Participant")
R = TypeVar("R")


def alone(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """As one step of the agreement's file."""

    @wraps(method)
    def step(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._state.alone(partial(method, self, *args, **kwargs))

    return step


class Participant:
    """What one user agreed to, kept in one file: all of `loloha.sender.Sender` but its reports."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        clock: Callable[[], float],
        *,
        timeout: float,
        patience: Patience | None,
    ) -> None:
        self._clock = clock
        self._line: dict[str, Any] = {"timeout": timeout, "patience": patience}
        self._state = AgreementFile(path)

    @property
    def path(self) -> Path:
        """The state file."""
        return Path(self._state.file.path)

    @property
    def opted_out(self) -> bool:
        """Whether ``DO_NOT_TRACK`` is set: ask for no consent then; nothing is drawn or sent."""
        return is_opted_out()

    @property
    @alone
    def consent(self) -> bool:
        """Whether the user has agreed; off until then."""
        return self._state.now() is not None

    @property
    @alone
    def campaigns(self) -> dict[str, Campaign]:
        """What the user agreed to, by name; empty without consent."""
        agreement = self._state.now()
        if agreement is None:
            return {}
        return {enrolment.campaign.name: enrolment.campaign for enrolment in agreement.enrolments}

    @property
    @alone
    def campaign(self) -> Campaign:
        """The one campaign that the user agreed to.

        Raises
        ------
        StateError
            Without consent, or with several.
        """
        return self._state.only().campaign

    @property
    @alone
    def loss(self) -> float:
        """Everything that was ever spent with this state file, by all its campaigns together.

        It goes on through `reset`, and through `withdraw` and `agree`.
        """
        agreement = self._state.now()
        return self._state.ledger().spent if agreement is None else agreement.loss

    @property
    @alone
    def committed(self) -> float:
        """What a limit has to cover so far, whatever the values were; see `Client.committed`.

        The caps of all clients that this state file ever had; of one-round ones what they spent.
        """
        agreement = self._state.now()
        return self._state.ledger().committed if agreement is None else agreement.committed

    @property
    @alone
    def limit(self) -> float | None:
        """Hard limit on `loss`, None without."""
        agreement = self._state.now()
        return None if agreement is None else agreement.limit

    @alone
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
            tokens = {address_of(url): _token(token, url) for url in urls}
            after = self._enrol(tokens, limit, wait)
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

    @alone
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

    @alone
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

    def _now(self) -> float:
        return checks.real("clock", self._clock(), -_AGES, _AGES, "give Unix seconds")


def _token(token: str | Mapping[str, str] | None, url: str) -> str | None:
    return token if token is None or isinstance(token, str) else token.get(url)
