"""The numbers of a round, or of several together: reports, duplicates, refusals, opt-outs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

ACCEPTED, DUPLICATES, WAITING, OPT_OUTS = "accepted", "duplicate", "waiting", "opt_out"
LOGGED = "logged"
"""Of the accepted reports, those that the tally of a report log counted."""
NO_ROUND = -1


@dataclass(frozen=True)
class Round:
    """What happened in one round."""

    number: int  # `NO_ROUND` for what arrived before the first one.
    n: int = 0  # Reports counted.
    duplicates: int = 0  # Reports that were sent again, and not counted again.
    # By reason; except for conflicts, in the round of arrival.
    refused: dict[str, int] = field(default_factory=dict)
    waiting: int = 0  # Reports counted that are not published yet.
    opt_outs: int = 0  # Opt-outs as sent by applications; anybody can send them.

    @classmethod
    def of(cls, number: int, counts: Mapping[str, int]) -> Self:
        """By how often each kind of outcome occurred."""
        refused = dict(counts)
        refused.pop(LOGGED, None)
        return cls(
            number,
            refused.pop(ACCEPTED, 0),
            refused.pop(DUPLICATES, 0),
            waiting=refused.pop(WAITING, 0),
            opt_outs=refused.pop(OPT_OUTS, 0),
            refused=refused,
        )

    @property
    def published(self) -> int:
        """Reports that its estimates are made of."""
        return self.n - self.waiting

    @property
    def conflicts(self) -> int:
        """Reports that differ from the one that their reporter had sent before."""
        return self.refused.get("conflict", 0)
