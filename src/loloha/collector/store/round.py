"""What happened in one round."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Round:
    """What happened in one round.

    Attributes
    ----------
    number : int
        -1 for what arrived before the first round.
    n : int
        Reports counted.
    duplicates : int
        Reports that were sent again, and not counted again.
    refused : dict of str to int
        By reason. Conflicts belong to the round of the report, others to the round in which they
        arrived.
    waiting : int
        Reports counted that are not published yet.
    opt_outs : int
        How often an application said in this round that its user wants no part; anybody can.
    """

    number: int
    n: int = 0
    duplicates: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    waiting: int = 0
    opt_outs: int = 0

    @property
    def published(self) -> int:
        """Reports that its estimates are made of."""
        return self.n - self.waiting

    @property
    def conflicts(self) -> int:
        """Reports that differ from the one that their reporter had sent before."""
        return self.refused.get("conflict", 0)
