"""One user's device on the network: consent, enrolment, a queue that survives anything.

Standard library only. Nothing is sanitised, kept or sent before the user agrees.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from loloha.device.client import KEPT_ROUNDS, Client
from loloha.device.connection import Answer, Connection, Patience, Unreachable, path_of
from loloha.device.file import FileLock, write_private
from loloha.errors import CampaignError, LolohaError, ParameterError, StateError
from loloha.rules import checks
from loloha.rules.campaign import Campaign
from loloha.rules.report import LARGEST_ROUND, Key
from loloha.wire.message import encode, key_from_text

STATE_TYPE, STATE_VERSION = "loloha-sender", 1
_FINGERPRINT = re.compile(r"/v1/campaigns/([0-9a-f]{64})$")
_TOO_EARLY = 425
_NOT_ALLOWED = (401, 403)


@dataclass(frozen=True)
class Delivery:
    """What became of the queue.

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

    sent: tuple[int, ...]
    refused: Mapping[int, str]
    waiting: tuple[int, ...]
    reason: str = ""


class Sender:
    """The reports of one user for one campaign, kept in one file that only its owner can read.

    Use as a context manager: the file is locked meanwhile, so that two processes cannot answer one
    round twice.

    Parameters
    ----------
    path : path
        The state file; it need not exist.
    clock : callable
        Unix seconds: tells the round.
    timeout : float
        Seconds for each step of a request.
    patience : Patience, optional
        How often to try.

    Raises
    ------
    StateError
        If the file is in use, damaged, or of another version.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        timeout: float = 10.0,
        patience: Patience | None = None,
    ) -> None:
        self.path = Path(path)
        self._clock = clock
        self._timeout = timeout
        self._patience = patience
        self._lock = FileLock(self.path)
        self._url: str | None = None
        self._ticket: str | None = None
        self._token: str | None = None
        self._campaign: Campaign | None = None
        self._client: Client | None = None
        self._answered: list[int] = []
        self._queue: dict[int, str] = {}
        self._lock.acquire()
        try:
            self._load()
        except BaseException:
            self._lock.release()
            raise

    # -- consent

    @property
    def consent(self) -> bool:
        """Whether the user has agreed; off until then."""
        return self._client is not None

    @property
    def campaign(self) -> Campaign:
        """What the user agreed to.

        Raises
        ------
        StateError
            Without consent.
        """
        return self._agreed()[0]

    @property
    def loss(self) -> float:
        """Budget spent so far; see `Client.loss`."""
        return 0.0 if self._client is None else self._client.loss

    @property
    def answered(self) -> frozenset[int]:
        """The newest rounds that were answered, sent or not."""
        return frozenset(self._answered)

    def agree(self, url: str, *, token: str | None = None, limit: float | None = None) -> Campaign:
        """Record the user's consent to one campaign, and enrol.

        Parameters
        ----------
        url : str
            ``https://HOST/v1/campaigns/FINGERPRINT``: the fingerprint pins the campaign.
        token : str, optional
            The campaign's submit token, where it has one.
        limit : float, optional
            Hard limit on the loss; see `Client`. Agreeing again with one replaces it.

        Returns
        -------
        Campaign

        Raises
        ------
        CampaignError
            If the document is not the one of that fingerprint, or the user has agreed to another
            campaign.
        Unreachable
            If the collector does not answer.
        """
        fingerprint = _fingerprint(url)
        if self._campaign is not None and self._client is not None:
            if self._campaign.fingerprint == fingerprint:
                if limit is not None and limit != self._client.limit:
                    self._client.set_limit(limit)
                    self._save()
                return self._campaign
            raise CampaignError(
                f"campaign must be {self._campaign.fingerprint!r}, which the user agreed to, got "
                f"{fingerprint!r}; withdraw and ask anew, or use another state file"
            )
        path = path_of(url)
        key, ticket = None, None
        with self._connection(url, token) as connection:
            document = _expect(connection.get(f"{path}/document"))
            campaign = Campaign.from_json(document.body, fingerprint=fingerprint)
            if campaign.keys == "assigned":
                assigned = _expect(connection.post(f"{path}/keys", b"", "application/json"))
                key, ticket = _assigned(campaign, assigned)
        client = campaign.protocol.client(key=key, limit=limit)
        self._url, self._token, self._ticket = url, token, ticket
        self._campaign, self._client = campaign, client
        self._save()
        return campaign

    def withdraw(self) -> str:
        """End the consent: delete the queue and the whole state.

        Returns
        -------
        str
            What that means, to show to the user.
        """
        spent = self.loss
        self._campaign = self._client = self._url = self._token = self._ticket = None
        self._answered, self._queue = [], {}
        self.path.unlink(missing_ok=True)
        return (
            "Key, memo and unsent reports are deleted; nothing more is reported. "
            f"What was sent stays counted and the {spent:g} spent so far stays spent: if you "
            "agree again, new answers are drawn and spend on top of it."
        )

    # -- reporting

    def report(self, value: Any, *, round: int | None = None) -> int:
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
        int
            The round.

        Raises
        ------
        StateError
            Without consent, or before the campaign begins.
        DomainError, BudgetError
            As `Client.report`.
        """
        campaign, client = self._agreed()
        if round is None:
            round = campaign.schedule.round_at(self._clock())
            if round < 0:
                raise StateError("campaign must have begun, it has not; report later")
        round = checks.integer("round", round, 0, LARGEST_ROUND, "count rounds from 0")
        if round in self._answered:
            return round
        report = client.report(campaign.index(value), round=round)
        reporter = client.reporter(round)
        message = encode(campaign, report, round=round, reporter=reporter, ticket=self._ticket)
        self._answered = [*self._answered, round][-KEPT_ROUNDS:]
        self._queue[round] = message.decode()
        # Memo and message reach the disk together, before anything is sent.
        try:
            self._save()
        except StateError:
            # What was drawn was shown to nobody: go back to what the disk knows.
            self._load()
            raise
        return round

    def deliver(self) -> Delivery:
        """Send the queue, oldest first; what cannot be sent now stays.

        A report that was sent without our learning of it is sent again, byte for byte: the
        collector counts it once.
        """
        self._agreed()
        url = self._url or ""
        sent, refused, reason = [], {}, ""
        with self._connection(url, self._token) as connection:
            for round, message in sorted(self._queue.items()):
                try:
                    answer = connection.post(
                        f"{path_of(url)}/reports", message.encode(), "application/json"
                    )
                except Unreachable as error:
                    reason = str(error)
                    break
                if answer.status == _TOO_EARLY or answer.status in _NOT_ALLOWED:
                    reason = answer.detail
                    continue
                if answer.status == 200:
                    sent.append(round)
                else:
                    refused[round] = answer.detail
                del self._queue[round]
                self._save()
        return Delivery(tuple(sent), refused, tuple(sorted(self._queue)), reason)

    def reset(self) -> str:
        """Forget key, memo and queue, and start as a new user; see `Client.reset`.

        Returns
        -------
        str
            The cost, in a sentence to show.

        Raises
        ------
        StateError
            Without consent, or where the collector assigns keys: withdraw and agree again there.
        """
        campaign, client = self._agreed()
        if campaign.keys == "assigned":
            raise StateError("key must be assigned anew; withdraw, and agree again")
        said = client.reset()
        self._answered, self._queue = [], {}
        self._save()
        return said

    # -- state

    def close(self) -> None:
        """Let others use the file."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sender({str(self.path)!r}, state hidden)"

    def _agreed(self) -> tuple[Campaign, Client]:
        if self._campaign is None or self._client is None:
            raise StateError("consent must be given before anything is reported; ask the user")
        return self._campaign, self._client

    def _connection(self, url: str, token: str | None) -> Connection:
        return Connection(url, token=token, timeout=self._timeout, patience=self._patience)

    def _save(self) -> None:
        campaign, client = self._agreed()
        state = {
            "type": STATE_TYPE,
            "version": STATE_VERSION,
            "url": self._url,
            "token": self._token,
            "ticket": self._ticket,
            "campaign": campaign.to_dict(),
            "client": client.to_dict(),
            "answered": self._answered,
            "queue": [[round, message] for round, message in sorted(self._queue.items())],
        }
        write_private(self.path, json.dumps(state).encode())

    def _load(self) -> None:
        try:
            plain = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValueError):
            raise StateError(
                f"state must be readable JSON at {str(self.path)!r}; restore a backup"
            ) from None
        try:
            self._restore(plain)
        except StateError:
            raise
        except (LolohaError, KeyError, TypeError, ValueError, AttributeError):
            # The cause could quote the state, so it is cut off.
            raise StateError("state must be what a sender wrote; restore a backup") from None

    def _restore(self, plain: Any) -> None:
        if plain.get("type") != STATE_TYPE or plain.get("version") != STATE_VERSION:
            raise StateError(
                f"state must be of type {STATE_TYPE!r}, version {STATE_VERSION}; use the release "
                "of loloha that wrote it"
            )
        campaign = Campaign.from_dict(plain["campaign"])
        client = Client.from_dict(plain["client"], protocol=campaign.protocol)
        if _fingerprint(plain["url"]) != campaign.fingerprint:
            raise StateError("state must hold the campaign that was agreed to; restore a backup")
        self._queue = {int(round): str(message) for round, message in plain["queue"]}
        self._answered = [int(round) for round in plain["answered"]]
        self._url, self._token, self._ticket = plain["url"], plain["token"], plain["ticket"]
        self._campaign, self._client = campaign, client


def _fingerprint(url: str) -> str:
    found = _FINGERPRINT.search(path_of(url))
    if found is None:
        raise ParameterError(
            "url must end with /v1/campaigns/FINGERPRINT, got another; copy the campaign's address"
        )
    return found[1]


def _assigned(campaign: Campaign, answer: Answer) -> tuple[Key, str]:
    """Key and ticket of an answer."""
    said = answer.json()
    try:
        return key_from_text(campaign, said["key"]), str(said["ticket"])
    except (TypeError, KeyError, ValueError):
        raise CampaignError(
            "collector must assign a key and a ticket, got neither; check the address"
        ) from None


def _expect(answer: Answer) -> Answer:
    """The answer, if it is a good one."""
    if answer.status != 200:
        raise CampaignError(f"collector must know the campaign: {answer.detail}")
    return answer
