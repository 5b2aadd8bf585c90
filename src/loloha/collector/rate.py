"""Rate limits of each address: requests, and the work that they cost."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from time import monotonic
from typing import TYPE_CHECKING

from loloha.collector.problem import Problem

if TYPE_CHECKING:
    from starlette.types import Scope

_RATE = re.compile(r"([1-9][0-9]*) *(?:/|per) *([1-9][0-9]*)? *(second|minute|hour|day)s?", re.I)
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


def parsed(rate: str) -> tuple[int, int]:
    """Number and seconds of a rate; ValueError if it is malformed."""
    parts = _RATE.fullmatch(rate.strip())
    if parts is None:
        raise ValueError("rate must be a number and a time")
    amount, times, unit = parts.groups()
    return int(amount), int(times or 1) * _SECONDS[unit.lower()]


class RateLimit:
    """Rate limits by address, in memory only: addresses are never stored.

    A window begins with the first request of an address, and is forgotten once it is over.
    """

    def __init__(self, rate: str) -> None:
        self._amount, self._seconds = parsed(rate) if rate else (0, 0)
        # By kind and address: the end of the period, and the amount used.
        self._windows: dict[tuple[str, str], tuple[float, int]] = {}
        self._tidied = monotonic()

    def allows(self, scope: Scope, *, kind: str = "", cost: int = 1) -> bool:
        """Count a request, or one that costs as much as several; each kind has its own limit."""
        if not self._amount:
            return True
        place, now = (kind, group_of(scope)), monotonic()
        end, count = self._windows.get(place, (now, 0))
        if end <= now:
            self._tidy(now)
            end, count = now + self._seconds, 0
        self._windows[place] = end, count + cost
        return count + cost <= self._amount

    def _tidy(self, now: float) -> None:
        if now - self._tidied >= self._seconds:
            self._tidied = now
            self._windows = {
                place: window for place, window in self._windows.items() if window[0] > now
            }

    def charge(self, scope: Scope, cost: float) -> None:
        """Count work beyond that of one request, half of what is allowed at most."""
        if self._amount and cost >= 1:
            most = max(1, self._amount // 2)
            if not self.allows(scope, cost=min(int(cost), most)):
                raise too_fast()


def too_fast() -> Problem:
    """The answer to requests beyond the limit."""
    return Problem(
        429,
        "requests must keep within the rate limit; send batches, ask for less, or wait",
        kind="rate-limit",
        headers={"Retry-After": "1"},
    )


def group_of(scope: Scope) -> str:
    """The address of a request; of IPv6 the /64, any address of which one user can take."""
    return _group((scope.get("client") or ("unknown", 0))[0])


# In memory only, and bounded by the number of connections.
@lru_cache(10_000)
def _group(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return str(host)
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped) if mapped else f"{int(address) >> 64:x}::/64"
    return str(address)
