"""Sessions of the admin page: a signed cookie, which ends with the admin key that it came from.

Nothing is kept of them: every collector of a store can check one, before and after a restart.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from loloha.collector.store.admin_key import AdminKey

IDLE_SECONDS = 1_800
LONGEST_SECONDS = 28_800
AHEAD_SECONDS = 60
"""The clocks of two collectors may differ by so much."""
_VALUE = re.compile(r"([0-9a-f]{32})\.([0-9]{1,12})\.([0-9]{1,12})\.([0-9a-f]{64})")


@dataclass(frozen=True)
class Session:
    """Who is logged in by which key, since when, and when a page was asked for last."""

    key: AdminKey
    name: str
    began: int
    seen: int

    @classmethod
    def begin(cls, key: AdminKey, now: float) -> Self:
        """A new one."""
        return cls(key, secrets.token_hex(16), int(now), int(now))

    @classmethod
    def read(cls, value: str, keys: Iterable[AdminKey], now: float) -> Self | None:
        """The one that a cookie holds, None unless one of the valid keys signed it, and lately."""
        parts = _VALUE.fullmatch(value)
        if parts is None:
            return None
        name, began, seen, _ = parts.groups()
        some = [cls(key, name, int(began), int(seen)) for key in keys]
        signed = [session for session in some if hmac.compare_digest(session.cookie, value)]
        return signed[0] if signed and signed[0]._is_young(now) else None

    def at(self, now: float) -> Self:
        """The same, used at a moment."""
        return replace(self, seen=int(now))

    @property
    def cookie(self) -> str:
        """What the browser keeps."""
        body = f"{self.name}.{self.began}.{self.seen}"
        return f"{body}.{self._sign('session', body)}"

    @property
    def form_token(self) -> str:
        """What each form of its pages holds: no other page knows it."""
        return self._sign("form", self.name)

    def _sign(self, what: str, text: str) -> str:
        # By what the store keeps of the key: who revokes the key, ends its sessions everywhere.
        message = f"loloha admin {what} {text}".encode()
        return hmac.digest(self.key.sha256, message, "sha256").hex()

    def _is_young(self, now: float) -> bool:
        return (
            -AHEAD_SECONDS <= now - self.seen < IDLE_SECONDS
            and -AHEAD_SECONDS <= now - self.began < LONGEST_SECONDS
        )
