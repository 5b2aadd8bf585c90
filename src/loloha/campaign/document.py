"""A campaign and its document."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from loloha import checks
from loloha.campaign.domain import Domain, check_text, domain_from_plain
from loloha.campaign.schedule import Schedule
from loloha.errors import CampaignError, DomainError, ParameterError
from loloha.protocols import Protocol, protocol_from_dict
from loloha.protocols.base import speakable

TYPE, VERSION = "loloha-campaign", 1

_LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """A campaign: immutable, and named by the hash of its document.

    Parameters
    ----------
    name : str
        For people, 1..200 characters.
    protocol : Protocol
        Its k is the number of values of the domain.
    domain : Labels or Range
    schedule : Schedule
    keys : {"drawn", "assigned"}
        Whether devices draw their hash seeds or sampled buckets, or ask the collector for them, so
        that an attacker cannot pick the ones that help him.

    Raises
    ------
    CampaignError
        If the parts do not fit together.
    ParameterError
        If the protocol is not one that devices and servers speak.
    """

    name: str
    protocol: Protocol
    domain: Domain
    schedule: Schedule
    keys: str = "drawn"

    def __post_init__(self) -> None:
        check_text("name", self.name, _LONGEST_NAME)
        speakable(self.protocol)
        if self.domain.k != self.protocol.k:
            raise CampaignError(
                f"protocol must have k = {self.domain.k}, the number of labels ('other' counts), "
                f"got {self.protocol.k}; change one of them"
            )
        checks.choice("keys", self.keys, ("assigned", "drawn"))
        keyed = self.protocol.longitudinal and self.protocol.encoding.key_bits > 0
        if self.keys == "assigned" and not keyed:
            raise CampaignError(
                f"keys must be 'drawn' for {self.protocol.name}, got 'assigned'; "
                "only a key that users keep can be assigned"
            )

    def index(self, value: Any) -> int:
        """Index 0..k-1 of a user's value: a label, or a number of the range.

        Raises
        ------
        DomainError
            If it has none, and the campaign has no label for others. The value is never shown.
        """
        index = self.domain.index(value)
        if index is not None:
            return index
        if self.domain.other is not None:
            return self.domain.k - 1
        raise DomainError(
            f"value must be {self.domain.wanted}, got another (not shown: it is private); send "
            "nothing, or create a campaign with a label for others"
        )

    @property
    def labels(self) -> list[str]:
        """A text for each value 0..k-1."""
        return self.domain.texts

    @property
    def bin_labels(self) -> list[str]:
        """A text for each estimated frequency: of the value, or of the bucket's first and last."""
        if self.protocol.bins == self.protocol.k:
            return self.labels
        return [self.bin_label(bin) for bin in range(self.protocol.bins)]

    def bin_label(self, bin: int) -> str:
        """The text of one estimated frequency, without making all of them."""
        return self.protocol.encoding.bin_label(bin, self.domain.text)

    def to_dict(self) -> dict[str, Any]:
        """The document as JSON data."""
        document = {
            "type": TYPE,
            "version": VERSION,
            "name": self.name,
            "protocol": self.protocol.to_dict(),
            "labels": self.domain.to_plain(),
            "round": self.schedule.to_dict(),
            "keys": self.keys,
        }
        return document if self.domain.other is None else {**document, "other": self.domain.other}

    def to_json(self) -> bytes:
        """The canonical document: sorted names, no spaces, UTF-8. Its SHA-256 is `fingerprint`."""
        text = json.dumps(
            self.to_dict(),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
        return text.encode()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical document, 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json()).hexdigest()

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """The campaign that a document describes; ``keys`` and ``other`` may be left out.

        Raises
        ------
        CampaignError
            If something is missing, unknown, out of range or of another version.
        """
        try:
            return cls._read(document)
        except ParameterError as error:
            raise CampaignError(str(error)) from error

    @classmethod
    def _read(cls, document: Any) -> Self:
        required = {"type", "version", "name", "protocol", "labels", "round"}
        if not isinstance(document, Mapping):
            raise CampaignError("campaign must be a JSON object, got another; see Campaign.to_dict")
        version = document.get("version")
        # True == 1, and 1.0 == 1.
        if document.get("type") != TYPE or type(version) is not int or version != VERSION:
            raise CampaignError(
                f"campaign must be of type {TYPE!r}, version {VERSION}, got "
                f"{checks.shown(document.get('type'))}, "
                f"version {checks.shown(version)}; "
                "use a matching release of loloha"
            )
        missing = required - set(document)
        unknown = set(document) - required - {"keys", "other"}
        if missing or unknown:
            raise CampaignError(
                f"campaign must hold {sorted(required)}, may hold 'keys' and 'other', got "
                f"{sorted(map(str, unknown))} besides and lacks {sorted(missing)}; correct it"
            )
        if not isinstance(document["protocol"], Mapping):
            raise CampaignError("protocol must be an object, got another; see Protocol.to_dict")
        return cls(
            name=document["name"],
            protocol=protocol_from_dict(document["protocol"]),
            domain=domain_from_plain(document["labels"], document.get("other")),
            schedule=Schedule.from_dict(document["round"]),
            keys=document.get("keys", "drawn"),
        )

    @classmethod
    def from_json(cls, document: bytes | str, *, fingerprint: str | None = None) -> Self:
        """Read a document, and refuse any other than the pinned one.

        Parameters
        ----------
        document : bytes or str
        fingerprint : str, optional
            What the campaign must hash to.

        Raises
        ------
        CampaignError
            If it is not a campaign, or not the pinned one.
        """
        try:
            plain = json.loads(document)
        except (ValueError, RecursionError):
            raise CampaignError("campaign must be JSON, got other text; export it again") from None
        campaign = cls.from_dict(plain)
        if fingerprint is not None and campaign.fingerprint != fingerprint:
            raise CampaignError(
                f"campaign must have the fingerprint {fingerprint!r} that was agreed on, got "
                f"{campaign.fingerprint!r}; its rules changed, enrol again only if the user agrees"
            )
        return campaign
