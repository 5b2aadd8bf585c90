"""One report as JSON: within a campaign and a round, every message has the same length."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from loloha.campaign import Campaign
from loloha.encodings import Encoding
from loloha.report import Report

if TYPE_CHECKING:
    from loloha.report import Answer, Key

MESSAGE_VERSION = 1
TICKET_BYTES = 16
_TICKET = re.compile(f"[0-9a-f]{{{2 * TICKET_BYTES}}}")
LARGEST_UPLOAD = 100_000
"""Reports in one upload."""
MOST_TOGETHER = 100
"""Reports in one upload for several campaigns."""


class Widths(NamedTuple):
    """How many bytes key and answer take; each is written as hexadecimal digits.

    Attributes
    ----------
    groups : int
        Numbers in the key: 0 without key, 1 for a seed, d for sampled buckets.
    group_bytes : int
        Bytes of each, most significant first.
    answer_bytes : int
        Bytes of the answer.
    packed : bool
        The answer is bits, eight to a byte, first bit lowest; else a number, most significant byte
        first.
    """

    groups: int
    group_bytes: int
    answer_bytes: int
    packed: bool

    @property
    def key_bytes(self) -> int:
        """Bytes of the whole key."""
        return self.groups * self.group_bytes

    @classmethod
    def of(cls, encoding: Encoding) -> Widths:
        """The form of an encoding's reports."""
        keys, _ = encoding.shapes(1)
        groups = 0 if keys is None else math.prod(keys)
        group_bits = encoding.key_bits // max(1, groups)
        answer_bits = encoding.report_bits - encoding.key_bits
        return cls(groups, _bytes(group_bits), _bytes(answer_bits), encoding.packed)


def is_ticket(ticket: Any) -> bool:
    """Whether a device may send it: a ticket must not become a place for what a server likes."""
    return isinstance(ticket, str) and _TICKET.fullmatch(ticket) is not None


def encode(
    campaign: Campaign, report: Report, *, round: int, reporter: str, ticket: str | None = None
) -> bytes:
    """The JSON message of one report.

    Parameters
    ----------
    campaign : Campaign
        Its fingerprint travels with the report.
    report : Report
    round : int
    reporter : str
        `Client.reporter` of the same round.
    ticket : str, optional
        What the collector gave with the key, where it assigns keys.

    Returns
    -------
    bytes
        UTF-8; the length depends on campaign and round only.
    """
    widths = Widths.of(campaign.protocol.encoding)
    message: dict[str, int | str] = {
        "version": MESSAGE_VERSION,
        "campaign": campaign.fingerprint,
        "round": round,
        "reporter": reporter,
        "y": _answer_text(report.y, widths),
    }
    if widths.groups:
        message["key"] = _key_text(report.key, widths)
    if ticket is not None:
        message["ticket"] = ticket
    return json.dumps(message, separators=(",", ":")).encode()


def decode(campaign: Campaign, message: str) -> Report:
    """The report of a message that `encode` wrote; ValueError if it holds none."""
    plain, encoding = json.loads(message), campaign.protocol.encoding
    widths = Widths.of(encoding)
    key = key_from_text(campaign, plain["key"]) if widths.groups else None
    raw = bytes.fromhex(plain["y"])
    y = raw if widths.packed else int.from_bytes(raw)
    if not (encoding.is_sent(key) and encoding.is_answer(y)):
        raise ValueError("message must hold a key and an answer of the campaign")
    return Report(key, y)


def key_text(campaign: Campaign, key: Key) -> str:
    """A key as it stands in messages."""
    return _key_text(key, Widths.of(campaign.protocol.encoding))


def key_from_text(campaign: Campaign, text: str) -> Key:
    """The key that `key_text` wrote; ValueError if it is of another length."""
    widths = Widths.of(campaign.protocol.encoding)
    raw = bytes.fromhex(text)
    if len(raw) != widths.key_bytes:
        raise ValueError("key must have the length of the campaign's keys")
    numbers = tuple(
        int.from_bytes(raw[start : start + widths.group_bytes])
        for start in range(0, len(raw), widths.group_bytes)
    )
    return campaign.protocol.encoding.key_of(numbers)


def _key_text(key: Key, widths: Widths) -> str:
    numbers = key if isinstance(key, tuple) else (cast("int", key),)
    return b"".join(number.to_bytes(widths.group_bytes) for number in numbers).hex()


def _answer_text(y: Answer, widths: Widths) -> str:
    return y.hex() if isinstance(y, bytes) else y.to_bytes(widths.answer_bytes).hex()


def _bytes(bits: int) -> int:
    return (bits + 7) // 8
