"""One report byte for byte, and what it says, before it leaves. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loloha.campaign import Campaign
from loloha.campaign.schedule import to_text
from loloha.client import Client
from loloha.encodings import (
    Hashed,
    HiddenThreshold,
    OneHot,
    SampledBuckets,
    Symbols,
    Threshold,
    for_encoding,
)
from loloha.encodings.part import ANSWER_WORDS
from loloha.report import Key
from loloha.rng import SecureRng
from loloha.sender.agreement import Enrolment
from loloha.sender.consent_text import factor
from loloha.sender.do_not_track import OPTED_OUT, is_opted_out
from loloha.wire.message import TICKET_BYTES, decode, encode

MOST_LISTED = 10
"""Values that are named."""
MOST_HASHED = 1 << 16
"""Values that are hashed to name those of one cell."""
QUEUED, ANSWERED, EXAMPLE = "queued", "answered", "example"
_KINDS = {
    QUEUED: "this report waits; the next delivery sends these bytes.",
    ANSWERED: "this round was answered, and its report has left the queue. These were its bytes.",
    EXAMPLE: "an example. Nothing was drawn, stored or sent for this user.",
}

_PSEUDONYM = (
    "reporter: a pseudonym for this round alone: a report that arrives twice counts once, and "
    "rounds cannot be joined by it."
)


@dataclass(frozen=True, repr=False)
class Preview:
    """One report as it leaves, or an example of one.

    Attributes
    ----------
    campaign : Campaign
    round : int
    kind : {"queued", "answered", "example"}
        "queued": the report that waits, exactly as the next delivery sends it. "answered": that of
        a round that was answered; it has left the queue, because it was counted, refused or
        dropped. "example": of a client that was made for this and thrown away, for a value taken
        from the domain at random; it says nothing of the user.
    message : bytes
        The report, as the body of a request holds it.
    url : str
        The campaign's address, where the user has agreed; else empty.
    reason : str
        Why nothing is drawn for this round as things are; empty otherwise.
    """

    campaign: Campaign
    round: int
    kind: str
    message: bytes
    url: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        """The bytes, and in plain words what each member of them says."""
        title = f"{self.campaign.name}, round {self.round}: {_KINDS[self.kind]}"
        lines = [self.reason] if self.reason else []
        lines += _words(self)
        return "\n".join([title, self.message.decode(), *(f"- {line}" for line in lines)])

    def to_dict(self) -> dict[str, Any]:
        """As JSON data, the report included."""
        return {
            "campaign": self.campaign.name,
            "fingerprint": self.campaign.fingerprint,
            "round": self.round,
            "kind": self.kind,
            "message": self.message.decode(),
            "url": self.url,
            "reason": self.reason,
            "text": self.text,
        }

    def __repr__(self) -> str:
        return f"Preview(kind={self.kind!r}, round={self.round}, report hidden)"


def of_enrolment(enrolment: Enrolment, round: int, reason: str) -> Preview:
    """The report of a round, as far as there is one; this client draws nothing."""
    campaign, client, queued = enrolment.campaign, enrolment.client, enrolment.queue.get(round)
    if queued is not None:
        return Preview(campaign, round, QUEUED, queued.encode(), enrolment.url)
    if round in client.sent_rounds:
        # The report of a round that was answered, whatever the value.
        message = enrolment.message(client.report(0, round=round), round)
        return Preview(campaign, round, ANSWERED, message.encode(), enrolment.url)
    if client.has_answered(round):
        reason = "Nothing goes for this round: it was answered, and its report is not remembered."
    return replace(example(campaign, round, reason), url=enrolment.url)


def unagreed() -> str:
    """Why nothing goes to a campaign that the user has not agreed to."""
    return OPTED_OUT if is_opted_out() else "The user has not agreed to this campaign."


def example(campaign: Campaign, round: int, reason: str = "") -> Preview:
    """A report of a client that is thrown away, of a value that is nobody's."""
    protocol = campaign.protocol
    client = Client(protocol)
    report = client.report(SecureRng().below(protocol.k), round=round)
    ticket = "0" * (2 * TICKET_BYTES) if campaign.keys == "assigned" else None
    reporter = client.reporter(round)
    message = encode(campaign, report, round=round, reporter=reporter, ticket=ticket)
    return Preview(campaign, round, EXAMPLE, message, reason=reason)


def _words(preview: Preview) -> list[str]:
    """What each member of a message says, a sentence each."""
    campaign, message, is_example = preview.campaign, preview.message, preview.kind == EXAMPLE
    protocol, plain, report = (
        campaign.protocol,
        json.loads(message),
        decode(campaign, message.decode()),
    )
    words: Callable[[Campaign, Key, Any], tuple[str, str]] | None = ANSWER_WORDS.of(
        protocol.encoding
    )
    key, answer = words(campaign, report.key, report.y) if words else ("a key", "the answer")
    lines = [
        f"{len(message)} bytes, as in every report of this campaign and round, whatever its value."
        + (f" They go to {preview.url}/reports." if preview.url else ""),
        "campaign: the SHA-256 of the campaign's document.",
        f"round: {_begin(campaign, preview.round)}.",
        _PSEUDONYM,
    ]
    if "key" in plain:
        lasting = (
            "the same in every report of a user: who receives the reports can join them by it"
            if protocol.longitudinal
            else "drawn anew for each report"
        )
        lines.append(f"key: {key}, {lasting}.")
    if "ticket" in plain:
        zeros = "; zeros stand for it here" if is_example else ""
        lines.append(f"ticket: the collector's, with the key that it assigned; as lasting{zeros}.")
    lines.append(f"y: {answer}.")
    lines.append(
        "Seen alone, the report shifts the odds between any two values by a factor of at most "
        f"{factor(protocol.asked_first)}."
    )
    if is_example:
        own = "reporter, key and answer" if "key" in plain else "reporter and answer"
        lines.append(
            f"It is of a value taken from the {protocol.k} at random, and of a client that was "
            f"thrown away: a report of this user has its own {own}."
        )
    return lines


def _begin(campaign: Campaign, round: int) -> str:
    """A round, and when it begins if a calendar has that day."""
    schedule = campaign.schedule
    if round > replace(schedule, expires=None).last:
        return str(round)
    return f"{round}, which begins at {to_text(schedule.begins(round))}"


# -- what keys and answers say


@for_encoding(ANSWER_WORDS.name, Symbols)
def _value(campaign: Campaign, key: None, y: int) -> tuple[str, str]:
    own = _quoted(campaign.domain.text(y))
    return "", f"the value {own}, which is this user's own or, at random, another"


@for_encoding(ANSWER_WORDS.name, Hashed)
def _cell(campaign: Campaign, key: int, y: int) -> tuple[str, str]:
    protocol = campaign.protocol
    k, hashed = protocol.k, protocol.memo_index
    inside = ""
    if k <= MOST_HASHED:
        values = [v for v in range(k) if hashed(key, v) == y]
        inside = f", which holds {len(values)} of {k} values{_listed(campaign.domain.text, values)}"
    return (
        "the seed of the user's hash",
        f"cell {y} of {protocol.g}{inside}; it is that of this user's value or, at random, another",
    )


@for_encoding(ANSWER_WORDS.name, OneHot)
def _bits(campaign: Campaign, key: None, y: bytes) -> tuple[str, str]:
    k = campaign.protocol.k
    values = [v for v in range(k) if y[v >> 3] >> (v & 7) & 1]
    return "", (
        f"a bit for each of {k} values, {len(values)} of them set"
        f"{_listed(campaign.domain.text, values)}; any of them may be flipped"
    )


@for_encoding(ANSWER_WORDS.name, SampledBuckets)
def _buckets(campaign: Campaign, key: tuple[int, ...], y: bytes) -> tuple[str, str]:
    buckets = [bucket for i, bucket in enumerate(key) if y[i >> 3] >> (i & 7) & 1]
    return f"the user's {len(key)} buckets of {campaign.protocol.bins}", (
        f"a bit for each of these buckets, {len(buckets)} of them set"
        f"{_listed(campaign.bin_label, buckets)}; any of them may be flipped"
    )


@for_encoding(ANSWER_WORDS.name, Threshold)
def _side(campaign: Campaign, key: int, y: int) -> tuple[str, str]:
    threshold = _quoted(campaign.domain.text(key))
    side = f"{'at least' if y else 'below'} {threshold}"
    return "the user's threshold", f"{side}, the user's side of it or, at random, the other"


@for_encoding(ANSWER_WORDS.name, HiddenThreshold)
def _hidden_side(campaign: Campaign, key: None, y: int) -> tuple[str, str]:
    side = f"{'at least' if y else 'below'} a threshold that stays on the device"
    return "", f"{side}, the user's side of it or, at random, the other"


def _quoted(label: str) -> str:
    return json.dumps(label, ensure_ascii=False)


def _listed(text: Callable[[int], str], places: Sequence[int]) -> str:
    """A few labels in brackets, nothing for none."""
    some = [_quoted(text(place)) for place in places[:MOST_LISTED]]
    if len(places) > MOST_LISTED:
        some.append("...")
    return f" ({', '.join(some)})" if some else ""
