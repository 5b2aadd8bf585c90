"""Decoding of reports from JSON and NDJSON, fast where all are well-formed.

What an upload takes in memory is bounded before any of it is decoded, whatever it holds.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from loloha.errors import WireError
from loloha.report import LARGEST_ROUND, REPORTER_BYTES
from loloha.wire.message import LARGEST_UPLOAD, MESSAGE_VERSION, TICKET_BYTES
from loloha.wire.refusal import Refusal

Body = bytes | bytearray
UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What decoders raise."""


def _form(pattern: str) -> Meta:
    """The form of a text, for the schema alone: `Reader` refuses another with its own reason."""
    return Meta(extra_json_schema={"pattern": f"^{pattern}$"})


class Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One report; a field with a default may be left out."""

    version: Annotated[int, Meta(extra_json_schema={"const": MESSAGE_VERSION})]
    campaign: Annotated[str, _form("[0-9a-fA-F]{64}")]
    round: Annotated[int, Meta(ge=0, le=LARGEST_ROUND)]
    reporter: Annotated[str, _form(f"[0-9a-fA-F]{{{2 * REPORTER_BYTES}}}")]
    y: Annotated[str, _form("([0-9a-fA-F]{2})+")]
    key: Annotated[str, _form("([0-9a-fA-F]{2})*")] = ""
    ticket: Annotated[str, _form(f"([0-9a-fA-F]{{{2 * TICKET_BYTES}}})?")] = ""


class _Object(msgspec.Struct):
    """Any object."""


class _Versioned(msgspec.Struct):
    """An object that names its version."""

    version: int


_one = msgspec.json.Decoder(Message)
_many = msgspec.json.Decoder(list[Message])
_parts = msgspec.json.Decoder(list[msgspec.Raw])
# What else they hold is skipped, not built.
_object = msgspec.json.Decoder(_Object)
_versioned = msgspec.json.Decoder(_Versioned)
COMMAS = len(Message.__struct_fields__)
"""The commas that end a field of a report, or the report: a report has no others."""


# Bytes in which an object or array must begin.
_START = 1 << 16


class UploadTooLarge(WireError):
    """An upload of more reports than one may hold."""


def messages(body: Body, most: int = LARGEST_UPLOAD) -> tuple[list[Message], bytearray]:
    """The messages of an object or array, and a code for each element: 0 or why it is none."""
    several = body[:_START].lstrip()[:1] == b"["
    if several and body.count(b",") > COMMAS * most:
        raise too_large(most)
    try:
        decoded = _many.decode(body) if several else [_one.decode(body)]
        codes = bytearray(len(decoded))
    except UNREADABLE:
        decoded, codes = _each(_elements(body, several))
    if len(codes) > most:
        raise too_large(most)
    return decoded, codes


def _elements(body: Body, several: bool) -> list[Any]:
    """What stands in a body that is JSON, whether it is reports or not."""
    try:
        if several:
            return _parts.decode(body)
        _object.decode(body)
    except UNREADABLE:
        raise WireError("body must be a JSON object or array of reports; send valid JSON") from None
    return [body]


def lines(body: Body, most: int = LARGEST_UPLOAD) -> tuple[list[Message], bytearray]:
    """The messages of NDJSON, and a code for each line that is not blank."""
    if body.count(b"\n") > most - (not body.endswith(b"\n")):
        raise too_large(most)
    try:
        decoded = _one.decode_lines(body)
        return decoded, bytearray(len(decoded))
    except UNREADABLE:
        return _each([line for line in body.split(b"\n") if line.strip()])


def _each(parts: list[Any]) -> tuple[list[Message], bytearray]:
    decoded, codes = [], bytearray(len(parts))
    for position, part in enumerate(parts):
        try:
            decoded.append(_one.decode(part))
        except UNREADABLE:
            codes[position] = _why(part).code
    return decoded, codes


def _why(part: Any) -> Refusal:
    """A message of another version may well have other fields: say so, if it is one."""
    try:
        version = _versioned.decode(part).version
    except UNREADABLE:
        return Refusal.MALFORMED
    return Refusal.MALFORMED if version == MESSAGE_VERSION else Refusal.VERSION


def too_large(most: int) -> UploadTooLarge:
    """What an upload with more reports is refused with."""
    return UploadTooLarge(f"upload must hold at most {most} reports; send smaller batches")
