"""States as canonical JSON with a checksum. Standard library only."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from loloha.errors import LolohaError, StateError

UNREADABLE = (
    LolohaError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""Exceptions from reading invalid states."""


def amount(plain: Any) -> float:
    """A loss as a file holds it; ValueError if it is none."""
    # It is written with a point, however round it is.
    if type(plain) is not float or not 0 <= plain < math.inf:
        raise ValueError("an amount must be a number >= 0")
    return plain


def must_be_whole(plain: Mapping[str, Any], again: Mapping[str, Any]) -> None:
    """Refuse what would be written otherwise than it was read, but for its checksum."""
    # A member that was not read, or a row that another replaced: it would be lost.
    if canonical({**plain, "checksum": None}) != canonical({**again, "checksum": None}):
        raise StateError(
            "state must have the members of its version and no others, each as this release "
            "writes it; use the release of loloha that wrote it, the state is untouched"
        )


def canonical(plain: Mapping[str, Any]) -> bytes:
    """Canonical JSON: sorted names, no spaces, UTF-8."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def checksum(plain: Mapping[str, Any]) -> str:
    """SHA-256 of a state without its checksum: detects damage, not forgery."""
    return hashlib.sha256(canonical(plain)).hexdigest()


def unseal(plain: dict[str, Any]) -> None:
    """Remove and verify the checksum, if there is one; ValueError if it does not match."""
    stated = plain.pop("checksum", None)
    if stated is not None and stated != checksum(plain):
        raise ValueError("a state must match its checksum")


def sealed(plain: Mapping[str, Any]) -> bytes:
    """A state as JSON, with its checksum."""
    text = canonical(plain)
    return b'%b,"checksum":"%b"}' % (text[:-1], hashlib.sha256(text).hexdigest().encode())
