"""The realised numbers of a protocol: what its device does, in exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property

NEAR = 1e-9
"""Relative: what formulas and thresholds may lose of a budget by rounding."""


def as_asked(number: float, asked: float) -> float:
    """What was asked for, where what was computed differs from it by rounding alone."""
    return asked if abs(number - asked) <= NEAR * min(asked, abs(number)) else number


@dataclass(frozen=True)
class Realised:
    """What a device really does: probabilities as exact fractions, losses derived from them.

    Attributes
    ----------
    p1, q1 : Fraction
        First (permanent) round; `p2`, `q2` second (instantaneous) round, None for one-round ones.
    p_star, q_star : Fraction
        Pr[report supports v] if the user holds v, and if the user holds another value.
    eps_first : float
        Loss of the first report.
    eps_memo : float
        Loss of all reports of one value, for ever, where answers are memoised; else of one report.
    """

    p1: Fraction
    q1: Fraction
    p2: Fraction | None
    q2: Fraction | None
    p_star: Fraction
    q_star: Fraction
    eps_first: float
    eps_memo: float

    @cached_property
    def contrast(self) -> Fraction:
        """p_star - q_star."""
        return self.p_star - self.q_star

    def to_dict(self) -> dict[str, float | None]:
        """The same numbers as floats, to be published with every estimate."""
        return {
            field.name: None if (number := getattr(self, field.name)) is None else float(number)
            for field in fields(self)
        }
