"""What an answer says about a report: only its own receipt, or its own refusal, settles it."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

from loloha.device.connection import Answer
from loloha.wire.refusal import Refusal

_FINAL = frozenset(Refusal) - {Refusal.EARLY, Refusal.MALFORMED, Refusal.VERSION}
"""Nothing will change these. What cannot be read may have been mangled on the way, or be for
another release of the collector, and early reports only have to wait."""


class Fate(Enum):
    """What becomes of a report in the queue."""

    COUNTED = "counted"
    REFUSED = "refused"
    WAITING = "waiting"


def fate(answer: Answer, reporter: str) -> tuple[Fate, str]:
    """What an answer means for one report, and why.

    Parameters
    ----------
    answer : Answer
        To an upload of this report alone.
    reporter : str
        Its pseudonym, which no other report has: an answer that names another is an old one, out of
        somebody's cache. Collectors of release 0.1.0 name none.
    """
    media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    said = answer.json()
    if isinstance(said, dict) and said.get("reporter", reporter) == reporter:
        if answer.status == 200 and media == "application/json" and _is_receipt(said):
            return Fate.COUNTED, ""
        if media == "application/problem+json" and _is_final(said, answer.status):
            return Fate.REFUSED, answer.detail
    return Fate.WAITING, answer.detail


def answers_of(answer: Answer, size: int) -> list[Answer] | None:
    """The answer to each of several reports, None if it is not the collector's to all of them."""
    said = answer.json()
    found = said.get("answers") if isinstance(said, dict) and answer.status == 200 else None
    if not isinstance(found, list) or len(found) != size:
        return None
    return [_one_of(one) for one in found]


def _one_of(plain: Any) -> Answer:
    """As if a report had been answered alone; a status of 0 settles nothing."""
    plain = plain if isinstance(plain, dict) else {}
    status = plain["status"] if type(plain.get("status")) is int else 0
    media = "application/json" if status == 200 else "application/problem+json"
    return Answer(status, {"content-type": media}, json.dumps(plain.get("body")).encode())


def _is_receipt(said: dict[str, Any]) -> bool:
    """Whether one report was counted, now or before, and none was refused."""
    counts = [said.get("accepted"), said.get("duplicates")]
    whole = all(type(n) is int for n in counts)
    return whole and counts in ([1, 0], [0, 1]) and not said.get("refused", True)


def _is_final(said: dict[str, Any], status: int) -> bool:
    """Whether it is this service's own word that the report will never be counted."""
    reason = said.get("reason")
    return (
        isinstance(reason, str)
        and reason in _FINAL
        and said.get("type") == f"urn:loloha:problem:{reason}"
        and 400 <= status < 500
        and said.get("status") == status
    )
