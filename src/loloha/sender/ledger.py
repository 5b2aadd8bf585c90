"""The ledger that outlives an agreement of one user. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from loloha.campaign import Campaign
from loloha.client.answered import Rounds, are_rounds, including
from loloha.client.file import DAMAGED
from loloha.client.seal import amount, must_be_whole, sealed, unseal
from loloha.client.state import Account
from loloha.errors import StateError
from loloha.report import LARGEST_ROUND

LEDGER_TYPE, LEDGER_VERSION = "loloha-spent", 1


@dataclass(frozen=True)
class Ledger:
    """What outlives a withdrawal, in a file of its own: no key, no memo, no report."""

    spent: float = 0.0
    committed: float = 0.0
    answered: Mapping[str, Rounds] = field(default_factory=dict)

    def account(self, campaign: Campaign, *, wait: bool) -> Account:
        """The rounds of one campaign, if they are left out; what was spent is the agreement's."""
        every, answered = campaign.schedule.every, self.answered.get(campaign.fingerprint, ())
        # The last round was answered itself: it is no gap that was closed.
        residue = answered[-1][1] % every if answered else None
        # A window of a panel holds one report, whoever asks for another.
        return Account(0.0, answered if wait or every > 1 else (), residue=residue)

    def including(self, spent: float, committed: float, answered: Mapping[str, Rounds]) -> Ledger:
        """With an agreement that goes on from here; including it twice changes nothing."""
        rounds = dict(self.answered)
        for name, more in answered.items():
            if more:
                rounds[name] = including(rounds.get(name, ()), more)
        return Ledger(max(self.spent, spent), max(self.committed, committed), rounds)

    def to_bytes(self) -> bytes:
        """As JSON."""
        return sealed(self._to_plain())

    def _to_plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "type": LEDGER_TYPE,
            "version": LEDGER_VERSION,
            "spent": self.spent,
            "answered": rounds_to_plain(self.answered),
        }
        if self.committed != self.spent:
            plain["committed"] = self.committed
        return plain

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        """What `to_bytes` wrote."""
        try:
            if (plain["type"], plain["version"]) != (LEDGER_TYPE, LEDGER_VERSION):
                raise StateError(
                    f"ledger must be of type {LEDGER_TYPE!r}, version {LEDGER_VERSION}; use the "
                    "release of loloha that wrote it"
                )
            # Releases up to 0.2.1 wrote no checksum.
            unseal(rest := {**plain})
            spent = amount(rest["spent"])
            # Release 0.2.0 kept what was spent alone.
            committed = amount(rest.get("committed", spent))
            ledger = cls(spent, committed, rounds_of_plain(rest["answered"]))
            must_be_whole(plain, ledger._to_plain())
            return ledger
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise StateError(
                f"ledger must be what a sender wrote, {DAMAGED}; delete it only if the user "
                "accepts that what was spent before is not counted"
            ) from None


def rounds_to_plain(answered: Mapping[str, Rounds]) -> dict[str, Any]:
    """The rounds of campaigns, by fingerprint, as JSON data."""
    return {name: list(map(list, rounds)) for name, rounds in answered.items()}


def rounds_of_plain(plain: Any) -> dict[str, Rounds]:
    """What `rounds_to_plain` wrote; ValueError if it cannot be."""
    answered = {
        name: tuple((first, last) for first, last in rounds) for name, rounds in plain.items()
    }
    if not all(are_rounds(rounds, LARGEST_ROUND) for rounds in answered.values()):
        raise ValueError("rounds must be ascending intervals")
    return answered
