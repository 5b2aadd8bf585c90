"""A collector's client: campaigns, keys, reports and estimates over HTTP. Standard library only."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlencode

from loloha.campaign import Campaign
from loloha.errors import CampaignError, ParameterError
from loloha.report import Key
from loloha.sender.connection import Answer, Connection, Patience, Unreachable
from loloha.sender.do_not_track import is_opted_out
from loloha.sender.url import path_of
from loloha.wire.message import is_ticket, key_from_text

JSON, LINES = "application/json", "application/x-ndjson"
_CAMPAIGN = re.compile(r"^(?P<base>.*)/v1/campaigns/(?P<fingerprint>[0-9a-f]{64})$")
_GOOD, _DONE = (200, 201), 204


@dataclass(frozen=True)
class Receipt:
    """What became of the reports of one upload.

    Attributes
    ----------
    accepted, duplicates : int
    refused : dict of str to int
        By reason.
    """

    accepted: int = 0
    duplicates: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def sent(self) -> int:
        """Reports sent."""
        return self.accepted + self.duplicates + sum(self.refused.values())

    def __add__(self, other: Receipt) -> Receipt:
        refused = Counter(self.refused) + Counter(other.refused)
        return Receipt(
            self.accepted + other.accepted, self.duplicates + other.duplicates, dict(refused)
        )


@dataclass(frozen=True)
class Created:
    """A campaign that a collector has.

    Attributes
    ----------
    url : str
        Of the campaign.
    new : bool
        False if it was there before: it keeps its first terms and token.
    token : str or None
        The submit token of a new campaign, if one was asked for; shown this once.
    terms : dict
        As the collector keeps them.
    """

    url: str
    new: bool
    token: str | None = field(repr=False)
    terms: Mapping[str, int]


class Collector:
    """One collector, or one campaign of it. Use as a context manager, or close it.

    Parameters
    ----------
    url : str
        ``https://HOST``, or ``https://HOST/v1/campaigns/FINGERPRINT``, which the methods about one
        campaign need.
    token : str, optional
        The admin key to create a campaign, the submit token to send reports.
    timeout : float
        Seconds for each step of a request.
    patience : Patience, optional

    Raises
    ------
    ParameterError
        If the URL is not of that form.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        patience: Patience | None = None,
    ) -> None:
        self.url = str(url).rstrip("/")
        self._path = path_of(url)
        match = _CAMPAIGN.match(self._path)
        self._base = match["base"] if match else self._path
        self._fingerprint = match["fingerprint"] if match else None
        self._connection = Connection(url, token=token, timeout=timeout, patience=patience)

    # -- campaigns

    def create(
        self, campaign: Campaign, terms: Mapping[str, int] | None = None, **more: bool
    ) -> Created:
        """Create a campaign, or find it as it was created first.

        Parameters
        ----------
        campaign : Campaign
        terms : dict, optional
            Some of the collector's terms; what is left out has its default.
        **more
            ``token``, ``accept_weak_privacy``: see the route.

        Raises
        ------
        CampaignError
            If the collector refuses it.
        Unreachable
            If the collector does not answer, here and in all methods.
        """
        asked = {"campaign": campaign.to_dict(), "terms": dict(terms or {}), **more}
        path = f"{self._base}/v1/campaigns"
        answer = self._connection.post(path, json.dumps(asked).encode(), JSON)
        created = _expect(answer, "create the campaign")
        base = self.url.removesuffix(self._path) + self._base
        return Created(
            f"{base}/v1/campaigns/{campaign.fingerprint}",
            created["created"],
            created["token"],
            created["campaign"]["terms"],
        )

    def campaigns(self, *, archived: bool = False) -> list[dict[str, Any]]:
        """All campaigns, the oldest first, as the collector sums them up."""
        campaigns: list[dict[str, Any]] = []
        more = True
        while more:
            query = {"archived": "true"} if archived else {}
            if campaigns:
                query["before"] = campaigns[0]["fingerprint"]
            answer = self._connection.get(
                f"{self._base}/v1/campaigns?{urlencode(query)}".rstrip("?")
            )
            page = _expect(answer, "list its campaigns")
            campaigns = page["campaigns"] + campaigns
            more = page["more"]
        return campaigns

    def document(self) -> Campaign:
        """The campaign, checked against the fingerprint of the address.

        Raises
        ------
        CampaignError
            If it is not there, or not the one of that fingerprint.
        """
        answer = self._connection.get(f"{self._campaign_path()}/document")
        _expect(answer, "know the campaign")
        return Campaign.from_json(answer.body, fingerprint=self._fingerprint)

    def summary(self) -> dict[str, Any]:
        """The campaign as the collector sums it up, with its state and its rounds that are open.

        Raises
        ------
        CampaignError
            If the collector does not know it.
        """
        summed: dict[str, Any] = _expect(
            self._connection.get(self._campaign_path()), "know the campaign"
        )
        return summed

    def set_state(self, state: str) -> dict[str, Any]:
        """Pause the campaign, open it again, or end it; its summary.

        One that is deleted may be "deleting" in it, where that takes long: ask again.

        Parameters
        ----------
        state : str
            "open", "paused", "closed", "archived" or "deleted".

        Raises
        ------
        CampaignError
            If the collector refuses it.
        """
        self._campaign_path()
        path = f"campaigns/{self._fingerprint}/state"
        return self.administer("PUT", path, {"state": state}, f"make the campaign {state}")

    def administer(
        self, method: str, path: str, asked: Mapping[str, Any] | None, what: str
    ) -> dict[str, Any]:
        """Ask for something under ``/v1/admin``, with an admin key as the token; its answer.

        Raises
        ------
        CampaignError
            If the collector refuses it; says that it must do ``what``.
        """
        body = None if asked is None else json.dumps(asked).encode()
        media = {} if asked is None else {"Content-Type": JSON}
        answer = self._connection.request(method, f"{self._base}/v1/admin/{path}", body, media)
        return {} if answer.status == _DONE else _expect(answer, what)

    def open_rounds(self) -> range:
        """The rounds that take reports now.

        Raises
        ------
        CampaignError
            If the collector does not know the campaign.
        """
        campaign = self.summary()
        return range(campaign["now"]["first_open"], campaign["now"]["last_open"] + 1)

    # -- devices

    def assign_key(self, campaign: Campaign) -> tuple[Key, str]:
        """A key that the collector draws, and the ticket that proves it.

        A collector that gave each device a key or ticket of its own could join its rounds by it;
        neither can be longer than those of this campaign.

        Raises
        ------
        CampaignError
            If it assigns none.
        """
        answer = self._connection.post(f"{self._campaign_path()}/keys", b"", JSON)
        assigned = _expect(answer, "assign a key")
        try:
            key, ticket = key_from_text(campaign, assigned["key"]), assigned["ticket"]
            known = campaign.protocol.encoding.is_key(key) and is_ticket(ticket)
        except (TypeError, KeyError, ValueError):
            known = None
        if not known:
            raise CampaignError(
                "collector must assign a key and a ticket, got neither; check the address"
            )
        return key, ticket

    def decline(self) -> bool:
        """Have an opt-out counted, of a user who was asked and wants no part; whether it was.

        One request, which names nobody and is never repeated; none where ``DO_NOT_TRACK`` is set.
        """
        if is_opted_out():
            return False
        path = f"{self._campaign_path()}/opt-outs"
        try:
            answer = self._connection.request("POST", path, b"", {"Content-Type": JSON}, once=True)
        except Unreachable:
            return False
        return answer.status == _DONE

    def submit(self, body: bytes, media: str = LINES) -> Receipt:
        """Send reports; sending the same again is safe.

        Parameters
        ----------
        body : bytes
        media : str
            `JSON`, `LINES`, or that of an Arrow stream.

        Raises
        ------
        CampaignError
            If they are refused as a whole.
        """
        answer = self._connection.post(f"{self._campaign_path()}/reports", body, media)
        receipt = _expect(answer, "take the batch")
        # Left out where nothing is refused.
        return Receipt(receipt["accepted"], receipt["duplicates"], receipt.get("reasons", {}))

    # -- results

    def rounds(self, **query: Any) -> list[dict[str, Any]]:
        """What happened in each round; see the route for what can be asked."""
        rounds: list[dict[str, Any]] = self._shown("rounds", query)["rounds"]
        return rounds

    def estimates(self, round: int, **query: Any) -> dict[str, Any]:
        """Estimates of one round."""
        return self._shown(f"rounds/{round}/estimates", query)

    def series(self, **query: Any) -> dict[str, Any]:
        """Estimates over rounds."""
        return self._shown("series", query)

    def smoothed(self, **query: Any) -> dict[str, Any]:
        """Rounds estimated together."""
        return self._shown("smoothed", query)

    def alarms(self) -> dict[str, Any]:
        """The campaign's rules of alarms, and its newest alarms."""
        return self._shown("alarms", {})

    def privacy(self) -> dict[str, Any]:
        """What reports reveal, in plain words."""
        return self._shown("privacy", {})

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Collector({self._connection!r})"

    def _shown(self, part: str, query: Mapping[str, Any]) -> dict[str, Any]:
        asked = urlencode(query, doseq=True)
        path = f"{self._campaign_path()}/{part}" + (f"?{asked}" if asked else "")
        return _expect(self._connection.get(path), f"show {part}")

    def _campaign_path(self) -> str:
        if self._fingerprint is None:
            raise ParameterError(
                "url must end with /v1/campaigns/FINGERPRINT, got another; copy the campaign's "
                "address"
            )
        return self._path


def _expect(answer: Answer, what: str) -> dict[str, Any]:
    """What a good answer says."""
    content = answer.json()
    if answer.status not in _GOOD or not isinstance(content, dict):
        error = CampaignError(f"collector must {what}: {answer.detail}")
        error.status = answer.status
        raise error
    return content
