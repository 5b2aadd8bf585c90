"""Receipts and refusals: only a report's own one settles it."""

from __future__ import annotations

import json
import math
from enum import Enum
from typing import Any, NoReturn

from loloha.sender.connection import Answer
from loloha.wire.refusal import Refusal

_FINAL = frozenset(Refusal) - {Refusal.EARLY, Refusal.MALFORMED, Refusal.VERSION}
"""Nothing will change these. What cannot be read may have been mangled on the way, or be for
another release of the collector, and early reports only have to wait."""
_LARGEST = 1 << 16
_MOST_BRACKETS = 100
_LONGEST_COUNT = 20


class Fate(Enum):
    """What becomes of a report in the queue."""

    COUNTED = "counted"
    REFUSED = "refused"
    WAITING = "waiting"


def fate(answer: Answer, reporter: str) -> tuple[Fate, str]:
    """What an answer means for one report, and why."""
    media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    plain = _read(answer.body)
    if isinstance(plain, dict) and plain.get("reporter") == reporter:
        if answer.status == 200 and media == "application/json" and _is_receipt(plain):
            return Fate.COUNTED, ""
        if media == "application/problem+json" and _is_final(plain, answer.status):
            return Fate.REFUSED, answer.detail
    return Fate.WAITING, answer.detail


def halted(answer: Answer) -> str | None:
    """Whether a refusal is for the whole campaign, "paused" or "ended"; None if it is not."""
    plain = _read(answer.body)
    state = plain.get("campaign") if isinstance(plain, dict) else None
    return state if state in ("paused", "ended") else None


def _read(body: bytes) -> Any:
    """JSON that every language reads alike, None if it is none."""
    if len(body) > _LARGEST or body.count(b"[") + body.count(b"{") > _MOST_BRACKETS:
        return None
    try:
        # A number of many digits is no count; Python reads no integer of more than some thousand.
        return json.loads(body.decode(), parse_int=_integer, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> float:
    return int(digits) if len(digits) < _LONGEST_COUNT else math.inf


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def answers_of(answer: Answer, size: int) -> list[Answer] | None:
    """The answer to each of several reports, None if it is not the collector's to all of them."""
    plain = answer.json()
    answers = plain.get("answers") if isinstance(plain, dict) and answer.status == 200 else None
    if not isinstance(answers, list) or len(answers) != size:
        return None
    return [_one_of(answer) for answer in answers]


def _one_of(plain: Any) -> Answer:
    """As if a report had been answered alone; a status of 0 settles nothing."""
    plain = plain if isinstance(plain, dict) else {}
    status = plain["status"] if type(plain.get("status")) is int else 0
    media = "application/json" if status == 200 else "application/problem+json"
    return Answer(status, {"content-type": media}, json.dumps(plain.get("body")).encode())


def _is_receipt(plain: dict[str, Any]) -> bool:
    """Whether one report was counted, now or before, and none was refused."""
    counts = [plain.get("accepted"), plain.get("duplicates")]
    whole = all(type(n) is int for n in counts)
    return whole and counts in ([1, 0], [0, 1]) and plain.get("refused") == []


def _is_final(plain: dict[str, Any], status: int) -> bool:
    """Whether this service itself says that the report will never be counted."""
    reason, own = plain.get("reason"), plain.get("status")
    return (
        isinstance(reason, str)
        and reason in _FINAL
        and plain.get("type") == f"urn:loloha:problem:{reason}"
        and 400 <= status < 500
        and type(own) is int
        and own == status
    )
