"""A bound on what all requests hold together, and on the share of one address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from loloha.collector.problem import unavailable

_PARTS = 4
"""Largest share of one address."""


class Shares:
    """Counts bytes, or places, that are taken."""

    def __init__(self, most: int, advice: str) -> None:
        self.most = most
        self.taken = 0
        self.advice = advice
        self._by_address: Counter[str] = Counter()

    @contextmanager
    def hold(self, address: str | None) -> Iterator[Hold]:
        """A growing hold, released at the end; without an address only the total is bounded."""
        hold = Hold(self, address)
        try:
            yield hold
        finally:
            hold.release()

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


class Hold:
    """What one request holds.

    Attributes
    ----------
    size : int
    """

    def __init__(self, shares: Shares, address: str | None) -> None:
        self._shares = shares
        self._address = address
        self.size = 0

    def grow(self, n: int) -> None:
        """Hold n more."""
        self.size += n
        shares = self._shares
        mine = shares.take(self._address, n)
        # One hold may be large; several holds of an address keep to its share.
        if shares.taken > shares.most or mine > max(self.size, shares.most // _PARTS):
            raise unavailable(shares.advice)

    def release(self) -> None:
        """Hold nothing any more."""
        self._shares.take(self._address, -self.size)
        self.size = 0
