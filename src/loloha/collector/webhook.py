"""Events sent to an address of the operator's: signed, and again until they arrive."""

from __future__ import annotations

import hashlib
import hmac
import urllib.error
import urllib.request
from typing import Any

PATIENCE = 10.0
MOST_TRIES = 24
FIRST_PAUSE, LONGEST_PAUSE = 30, 6 * 3600


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows no other address than the one that was set."""

    def redirect_request(self, *_: Any) -> None:
        return None


def signature(secret: str, moment: int, body: str) -> str:
    """What a receiver computes too: HMAC-SHA256 of the moment, a full stop and the body."""
    digest = hmac.new(secret.encode(), f"{moment}.{body}".encode(), hashlib.sha256)
    return f"t={moment},v1={digest.hexdigest()}"


def send(url: str, secret: str | None, event: str, body: str, now: float) -> str | None:
    """Send an event once; why it did not arrive, None if it did (any status from 200 to 299)."""
    headers = {"Content-Type": "application/json", "Loloha-Event": event}
    if secret is not None:
        headers["Loloha-Signature"] = signature(secret, int(now), body)
    request = urllib.request.Request(url, body.encode(), headers)
    try:
        opener = urllib.request.build_opener(_Straight)
        with opener.open(request, timeout=PATIENCE) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        return f"it answered {error.code}"
    except (OSError, ValueError) as error:
        # The address may hold a password: only the kind of failure is told.
        return type(getattr(error, "reason", error)).__name__
    return None


def next_try(now: float, tries: int) -> int | None:
    """When to send an event again that was sent so often, None if not: after twice the pause."""
    if tries >= MOST_TRIES:
        return None
    return int(now) + min(LONGEST_PAUSE, FIRST_PAUSE << min(tries - 1, 20))
