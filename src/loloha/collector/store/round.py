"""The numbers of one round: reports, duplicates, conflicts, refusals, opt-outs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Round:
    """What happened in one round."""

    number: int  # -1 for what arrived before the first round.
    n: int = 0  # Reports counted.
    duplicates: int = 0  # Reports that were sent again, and not counted again.
    # By reason; except for conflicts, in the round of arrival.
    refused: dict[str, int] = field(default_factory=dict)
    waiting: int = 0  # Reports counted that are not published yet.
    opt_outs: int = 0  # Opt-outs as sent by applications; anybody can send them.

    @property
    def published(self) -> int:
        """Reports that its estimates are made of."""
        return self.n - self.waiting

    @property
    def conflicts(self) -> int:
        """Reports that differ from the one that their reporter had sent before."""
        return self.refused.get("conflict", 0)
