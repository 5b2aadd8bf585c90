"""How much one address may ask for in a time: requests, and the work that they make."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from loloha.collector.problem import Problem

if TYPE_CHECKING:
    from starlette.types import Scope


class RateLimit:
    """Counts what each address asks for, in memory only: addresses are never written anywhere."""

    def __init__(self, rate: str) -> None:
        self._limit: RateLimitItem | None = parse(rate) if rate else None
        self._counts = FixedWindowRateLimiter(MemoryStorage())

    def allows(self, scope: Scope, *, kind: str = "", cost: int = 1) -> bool:
        """Count a request, or what costs as much as several; another kind is counted apart."""
        limit = self._limit
        return limit is None or self._counts.hit(limit, kind, group_of(scope), cost=cost)

    def charge(self, scope: Scope, cost: float) -> None:
        """Count work beyond that of one request, half of what is allowed at most."""
        if self._limit is not None and cost >= 1:
            most = max(1, self._limit.amount // 2)
            if not self.allows(scope, cost=min(int(cost), most)):
                raise too_fast()


def too_fast() -> Problem:
    """The answer to who asks for too much."""
    return Problem(
        429,
        "requests must keep within the rate limit; send batches, ask for less, or wait",
        kind="rate-limit",
        headers={"Retry-After": "1"},
    )


def group_of(scope: Scope) -> str:
    """The address of a request; of IPv6 the /64, any address of which one user can take."""
    return _group((scope.get("client") or ("unknown", 0))[0])


# In memory only, and no more of them than connections that there may be.
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
