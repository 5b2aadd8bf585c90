"""States as canonical JSON with a checksum. Standard library only."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from loloha.errors import LolohaError, StateError

K = TypeVar("K")
V = TypeVar("V")

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
    # Integers above 2^53 are invalid: other languages cannot read them.
    whole = type(plain) is int and abs(plain) <= 1 << 53
    number = float(plain) if whole or type(plain) is float else math.nan
    if not 0 <= number < math.inf:
        raise ValueError("an amount must be a number >= 0")
    return number


def once(rows: Iterable[tuple[K, V]]) -> dict[K, V]:
    """Rows by their first item; ValueError for duplicates."""
    fields = {}
    for name, row in rows:
        if name in fields:
            raise ValueError("rows must differ in what they begin with")
        fields[name] = row
    return fields


def nothing_else(rest: Mapping[str, Any]) -> None:
    """Refuse unknown members: rewriting the state would lose them."""
    if rest:
        raise StateError(
            "state must have no members but those of its version; use the release of loloha that "
            "wrote it, the state is untouched"
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
