"""Quotas: a bound on what all requests hold together, and on the share of one address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from loloha.collector.problem import unavailable

_PARTS = 4
"""Largest share of one address."""


class Quota:
    """Counts bytes, or places, that are taken."""

    def __init__(self, most: int, advice: str) -> None:
        self.most = most
        self.taken = 0
        self.advice = advice
        self._by_address: Counter[str] = Counter()

    @contextmanager
    def reserve(self, address: str | None) -> Iterator[Reservation]:
        """A reservation, released at the end; without an address only the total is bounded."""
        reservation = Reservation(self, address)
        try:
            yield reservation
        finally:
            reservation.release()

    def take(self, address: str | None, n: int) -> int:
        """Count n more; how much the address holds now."""
        self.taken += n
        if address is None:
            return 0
        self._by_address[address] += n
        mine = self._by_address[address]
        if not mine:
            # Forget addresses that hold nothing.
            del self._by_address[address]
        return mine

    def fit(self, address: str | None, n: int) -> bool:
        """Whether n more fit the total and the address's share; a hold on its own always fits."""
        mine = 0 if address is None else self._by_address[address] + n
        alone = not self.taken
        return alone or (self.taken + n <= self.most and mine <= max(n, self.most // _PARTS))


class Reservation:
    """What one request holds.

    Attributes
    ----------
    size : int
    """

    def __init__(self, quota: Quota, address: str | None) -> None:
        self._quota = quota
        self._address = address
        self.size = 0

    def grow(self, n: int) -> None:
        """Hold n more."""
        self.size += n
        quota = self._quota
        mine = quota.take(self._address, n)
        # One reservation may be large; several of an address keep to its share.
        if quota.taken > quota.most or mine > max(self.size, quota.most // _PARTS):
            raise unavailable(quota.advice)

    def release(self) -> None:
        """Hold nothing any more."""
        self._quota.take(self._address, -self.size)
        self.size = 0
