"""Golden vectors of messages: what a report is, and why something like one is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from loloha.campaign import Campaign, Labels, Schedule
from loloha.conform import schema
from loloha.protocols import GRR, OLOLOHA, RAPPOR, BiLOLOHA, DBitFlipPM, Protocol
from loloha.report import Report
from loloha.wire import encode
from loloha.wire.batch import Reader
from loloha.wire.refusal import REASONS

VALID = jsonschema_rs.Draft202012Validator(schema("report"))
REPORTER, TICKET = "0123456789abcdef" * 2, "fedcba9876543210" * 2
GONE = object()
"""In place of a field: it is left out."""
FORMS = {
    "version": [0, 2, -1, True, None, "1", [1], GONE],
    "round": [0, (1 << 53) - 1, 1 << 53, 1 << 70, -1, 0.5, True, None, "7", GONE],
    "reporter": [
        REPORTER.upper(), REPORTER[:-1], REPORTER[:-2], REPORTER + "00", REPORTER + "\n", "g" * 32,
        " " + REPORTER[1:], "\u0661" * 32, "", None, 5, GONE,
    ],
    "campaign": ["0" * 64, "A" * 64, "", "x", None, GONE],
    "ticket": [
        TICKET, TICKET.upper(), TICKET[:-2], TICKET + "00", "t", "!" * 32, "g" * 32, "", None, GONE,
    ],
    "more": [0, None],
}  # fmt: skip
"""What each field is tried with; ``key`` and ``y`` are cut, lengthened and written otherwise."""
_TYPES = [None, 5, ["01"], {}, "", "0", "0x", "zz", " 1", "01\n", "\u0660\u0661", GONE]
_TRIED: list[tuple[Protocol, Report, str]] = [
    (GRR(k=300, eps=1.0), Report(None, 258), "drawn"),
    (RAPPOR(k=11, eps_inf=2.0, eps_1=1.0), Report(None, b"\xa5\x06"), "drawn"),
    (BiLOLOHA(k=11, eps_inf=2.0, eps_1=1.0), Report(13, 1), "assigned"),
    (OLOLOHA(k=11, eps_inf=2.0, eps_1=1.0, g=3, hash="affine"), Report(7 << 31, 2), "drawn"),
    (DBitFlipPM(k=11, eps_inf=2.0, b=10, d=3), Report((0, 4, 9), b"\x05"), "drawn"),
]


def _tried(plain: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fields, and what to put there."""
    for field in ("key", "y"):
        text = plain.get(field, "")
        yield from ((field, text + more) for more in ("00", "0"))
        yield from ((field, other) for other in (text.upper(), text[2:], "ff" * (len(text) // 2)))
        yield from ((field, other) for other in _TYPES)
    yield from ((field, other) for field, others in FORMS.items() for other in others)
    yield "campaign", plain["campaign"].upper()
    if "key" in plain:
        yield "key", plain["key"][2:] + plain["key"][:2]


def message_vectors() -> Iterator[dict[str, Any]]:
    """For each campaign a report with its message, and messages with why each is refused."""
    for protocol, report, keys in _TRIED:
        labels = Labels(tuple(f"label {v}" for v in range(protocol.k)))
        campaign = Campaign(
            name=protocol.name,
            protocol=protocol,
            domain=labels,
            schedule=Schedule(0, 60),
            keys=keys,
        )
        ticket = TICKET if keys == "assigned" else None
        message = encode(campaign, report, round=7, reporter=REPORTER, ticket=ticket)
        plain, reader = json.loads(message), Reader(campaign)
        seen: dict[str, dict[str, Any]] = {}
        for field, other in _tried(plain):
            tried = {name: one for name, one in (plain | {field: other}).items() if one is not GONE}
            text = json.dumps(tried)
            (code,) = reader.read_json(text.encode()).codes
            seen[text] = {
                "field": field,
                **({} if other is GONE else {"value": other}),
                "reason": REASONS[code - 1] if code else None,
                "valid": VALID.is_valid(json.loads(text)),
            }
        yield {
            "campaign": campaign.to_dict(),
            "key": list(report.key) if isinstance(report.key, tuple) else report.key,
            "y": report.y.hex() if isinstance(report.y, bytes) else report.y,
            "round": 7,
            "reporter": REPORTER,
            "ticket": ticket,
            "message": message.decode(),
            "tried": list(seen.values()),
        }
