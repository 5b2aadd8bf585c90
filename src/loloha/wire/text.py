"""Reads reports from JSON and NDJSON, fast where all are well-formed.

What an upload takes in memory is bounded before any of it is decoded, whatever it holds.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from loloha.errors import WireError
from loloha.report import LARGEST_ROUND
from loloha.wire.message import LARGEST_UPLOAD, MESSAGE_VERSION
from loloha.wire.refusal import Refusal

Body = bytes | bytearray
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
    """The messages of an object or array, and a code for each element: 0 or why it is none.

    Raises
    ------
    UploadTooLarge
        If there are more than ``most``.
    WireError
        If ``body`` is neither an object nor an array.
    """
    if body[:_START].lstrip()[:1] != b"[":
        return _single(body)
    if body.count(b",") > COMMAS * most:
        raise too_large(most)
    found, codes = _array(body)
    if len(codes) > most:
        raise too_large(most)
    return found, codes


def _array(body: Body) -> tuple[list[Message], bytearray]:
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


def lines(body: Body, most: int = LARGEST_UPLOAD) -> tuple[list[Message], bytearray]:
    """The messages of NDJSON, and a code for each line that is not blank.

    Raises
    ------
    UploadTooLarge
        If there are more than ``most`` lines, blank ones too.
    """
    if body.count(b"\n") > most - (not body.endswith(b"\n")):
        raise too_large(most)
    try:
        found = _one.decode_lines(body)
        return found, bytearray(len(found))
    except _UNREADABLE:
        return _each([line for line in body.split(b"\n") if line.strip()])


def _single(body: Body) -> tuple[list[Message], bytearray]:
    try:
        return [_one.decode(body)], bytearray(1)
    except _UNREADABLE:
        pass
    try:
        _object.decode(body)
    except _UNREADABLE:
        raise WireError("body must be a JSON object or array of reports; send valid JSON") from None
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
        version = _versioned.decode(part).version
    except _UNREADABLE:
        return Refusal.MALFORMED
    return Refusal.MALFORMED if version == MESSAGE_VERSION else Refusal.VERSION


def too_large(most: int) -> UploadTooLarge:
    """What an upload with more reports is refused with."""
    return UploadTooLarge(f"upload must hold at most {most} reports; send smaller batches")
