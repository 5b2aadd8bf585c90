"""The guarantee and the cost of a budget for changes, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from loloha_lab.dyadic.protocol import DyadicLH


@dataclass(frozen=True)
class DyadicExplanation:
    """The guarantee of one series under a budget for changes.

    Attributes
    ----------
    protocol : DyadicLH
    eps : float
        Loss of all reports of all rounds, asked for.
    loss : float
        The same as devices realise it, at most ``eps``; attained.
    gaps : tuple of float
        Pr[an answer with news is true] - Pr[it is a lie], of each level.
    protected, leaks : tuple of str
        One statement each.
    """

    protocol: DyadicLH
    eps: float
    loss: float
    gaps: tuple[float, ...]
    protected: tuple[str, ...]
    leaks: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it in plain words, one statement a line."""
        gaps = ", ".join(f"{gap:.4g}" for gap in self.gaps)
        numbers = (
            f"eps = {self.eps:.4g}: loss of all reports of all {self.protocol.rounds} rounds.",
            f"loss = {self.loss:.6g}: the same as devices draw, never above eps; attained.",
            f"gap = {gaps} at levels 0, 1, ...: how much oftener an answer is true than a lie.",
        )
        sections = (
            (f"Privacy of {self.protocol!r}", numbers),
            ("What is protected", self.protected),
            ("What leaks, and what it costs", self.leaks),
        )
        return "\n\n".join(
            "\n".join((title, *(f"- {line}" for line in lines))) for title, lines in sections
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "protocol": {
                "type": self.protocol.name,
                "k": self.protocol.k,
                "eps": self.protocol.eps,
                "rounds": self.protocol.rounds,
                "changes": self.protocol.changes,
            },
            "eps": self.eps,
            "loss": self.loss,
            "gaps": list(self.gaps),
            "protected": list(self.protected),
            "leaks": list(self.leaks),
            "text": self.text,
        }

    def __str__(self) -> str:
        return self.text


def explain_budget(protocol: DyadicLH) -> DyadicExplanation:
    """What a budget for changes guarantees and what it does not, in plain words."""
    eps, rounds = protocol.eps, protocol.rounds
    together = (
        f"All reports of all {rounds} rounds, key included: whatever is sent, it shifts the odds "
        f"between any two histories by a factor of at most e^{eps:.4g} = {math.exp(eps):.4g}, "
        "however often the value changes, and whether it changes at all."
    )
    after = (
        f"After {rounds} rounds the budget is used up: another series of the same user adds "
        f"{eps:.4g}."
    )
    presence = (
        "That a user takes part, and from which address. When a report is due depends on the level "
        "and the round alone."
    )
    accuracy = (
        f"Accuracy: {protocol.changes} changes of the user's bit count; after them it counts as "
        "unchanged. Estimates are biased towards older rounds where users change more often (about "
        "every second change of the value is one of the bit)."
    )
    return DyadicExplanation(
        protocol=protocol,
        eps=eps,
        loss=protocol.loss,
        gaps=tuple(float(lies.gap) for lies in protocol.lies),
        protected=(together,),
        leaks=(
            after,
            "Links between rounds: the key and the level go with each report, and never change.",
            presence,
            accuracy,
            "It is for studies and comparisons: no campaign, engine or collector knows it.",
        ),
    )
