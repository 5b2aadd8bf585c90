"""Reads reports from JSON and NDJSON, fast where all are well-formed."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from loloha.errors import WireError
from loloha.rules.report import LARGEST_ROUND
from loloha.wire.message import MESSAGE_VERSION
from loloha.wire.refusal import Refusal

_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


class Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of one report, before anything but their types is checked."""

    version: int
    campaign: str
    round: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_ROUND)]
    reporter: str
    y: str
    key: str = ""
    ticket: str = ""


_one = msgspec.json.Decoder(Message)
_many = msgspec.json.Decoder(list[Message])
_parts = msgspec.json.Decoder(list[msgspec.Raw])
_anything = msgspec.json.Decoder(Any)


def messages(body: bytes) -> tuple[list[Message], bytearray]:
    """The messages of an object or array, and a code for each element: 0 or why it is none.

    Raises
    ------
    WireError
        If ``body`` is neither.
    """
    if body.lstrip()[:1] != b"[":
        return _single(body)
    try:
        found = _many.decode(body)
        return found, bytearray(len(found))
    except _UNREADABLE:
        pass
    try:
        parts = _parts.decode(body)
    except _UNREADABLE:
        raise WireError("body must be a JSON object or array of reports; send valid JSON") from None
    return _each(parts)


def lines(body: bytes) -> tuple[list[Message], bytearray]:
    """The messages of NDJSON, and a code for each line that is not blank."""
    try:
        found = _one.decode_lines(body)
        return found, bytearray(len(found))
    except _UNREADABLE:
        return _each([line for line in body.split(b"\n") if line.strip()])


def _single(body: bytes) -> tuple[list[Message], bytearray]:
    try:
        return [_one.decode(body)], bytearray(1)
    except _UNREADABLE:
        pass
    try:
        element = _anything.decode(body)
    except _UNREADABLE:
        element = None
    if not isinstance(element, dict):
        raise WireError("body must be a JSON object or array of reports; send valid JSON")
    return _each([body])


def _each(parts: list[Any]) -> tuple[list[Message], bytearray]:
    found, codes = [], bytearray(len(parts))
    for position, part in enumerate(parts):
        try:
            found.append(_one.decode(part))
        except _UNREADABLE:
            codes[position] = _why(part).code
    return found, codes


def _why(part: Any) -> Refusal:
    """A message of another version may well have other fields: say so, if it is one."""
    try:
        element = _anything.decode(part)
    except _UNREADABLE:
        return Refusal.MALFORMED
    version = element.get("version") if isinstance(element, dict) else None
    other = isinstance(version, int) and not isinstance(version, bool)
    return Refusal.VERSION if other and version != MESSAGE_VERSION else Refusal.MALFORMED
