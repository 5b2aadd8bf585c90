"""Admin keys, submit tokens and tickets: only hashes are stored, and compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from loloha.collector.stored_campaign import StoredCampaign
from loloha.report import Key
from loloha.wire import Refusal
from loloha.wire.batch import Batch
from loloha.wire.message import TICKET_BYTES

LONGEST_SECRET = 512


def new_secret() -> str:
    """A random key or token, to be shown once."""
    return secrets.token_urlsafe(32)


def hashed(secret: str) -> bytes:
    """The stored hash of a key or token. One of 256 random bits needs no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


def bearer(authorization: str | None) -> str | None:
    """The key or token in an Authorization header, None if there is none."""
    kind, _, secret = (authorization or "").partition(" ")
    secret = secret.strip()
    return secret if kind.lower() == "bearer" and 0 < len(secret) <= LONGEST_SECRET else None


def is_one_of(secret: str | None, hashes: Iterable[bytes]) -> bool:
    """Whether a key or token has one of the hashes, in constant time."""
    digest = hashed(secret or "")
    same = [hmac.compare_digest(digest, known) for known in hashes]
    return secret is not None and any(same)


def ticket(stored: StoredCampaign, key: Key) -> str:
    """Proof that the collector assigned a key; all users of a key share it."""
    numbers = np.atleast_1d(np.array(key, dtype=np.int64))
    return _ticket(stored, numbers.tobytes()).hex()


def check_tickets(stored: StoredCampaign, batch: Batch) -> Batch:
    """Refuse the reports whose key was not assigned here."""
    if batch.tickets is None or not len(batch.index):
        return batch
    rows: Any = np.ascontiguousarray(batch.keys).reshape(len(batch.index), -1)
    unique, group = np.unique(rows, axis=0, return_inverse=True)
    expected = [_ticket(stored, row.tobytes()) for row in unique]
    given = batch.tickets.tobytes()
    good = np.array(
        [
            hmac.compare_digest(expected[which], given[start : start + TICKET_BYTES])
            for which, start in zip(group.ravel(), range(0, len(given), TICKET_BYTES), strict=True)
        ]
    )
    if good.all():
        return batch
    codes = batch.codes.copy()
    codes[batch.index[~good]] = Refusal.TICKET.code
    return replace(batch.take(good), codes=codes)


def _ticket(stored: StoredCampaign, key: bytes) -> bytes:
    return hmac.digest(stored.secret, b"ticket" + key, "sha256")[:TICKET_BYTES]
