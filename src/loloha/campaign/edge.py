"""Texts for the edges of equal parts: exact, and all different."""

from __future__ import annotations

import math
from fractions import Fraction

MORE_DIGITS = 6
"""Decimals beyond those that make the edges differ; an edge with more is cut off there."""
SMALLEST_PLAIN = -6
"""Powers of ten below it are written as 1e-7."""


class Edges:
    """The edges low + i (high - low) / bins for i = 0..bins, as texts.

    An edge is written in full where that takes at most `MORE_DIGITS` decimals beyond the first that
    is smaller than a part; else it is cut off there, which "…" says: 0.333333… is an edge
    that begins so. Cut off and not rounded, the text is true, and no two edges share one.
    """

    def __init__(self, low: Fraction, high: Fraction, bins: int) -> None:
        width = (high - low) / bins
        self.denominator = math.lcm(low.denominator, width.denominator)
        self.first = int(low * self.denominator)
        self.step = int(width * self.denominator)
        self.decimals = _decimals(self.denominator, width)
        self.scale = 10**self.decimals

    def text(self, i: int) -> str:
        """The text of edge i."""
        number = self.first + i * self.step
        if self.denominator == 1:
            return str(number)
        digits, rest = divmod(abs(number) * self.scale, self.denominator)
        return ("-" if number < 0 else "") + _decimal(digits, self.decimals, "…" if rest else "")


def _decimals(denominator: int, width: Fraction) -> int:
    """How many decimals the edges are written with."""
    apart = 0
    while width * 10**apart < 1:
        apart += 1
    twos, fives, rest = 0, 0, denominator
    while rest % 2 == 0:
        twos, rest = twos + 1, rest // 2
    while rest % 5 == 0:
        fives, rest = fives + 1, rest // 5
    most = apart + MORE_DIGITS
    return max(twos, fives) if rest == 1 and max(twos, fives) <= most else most - 1


def _decimal(digits: int, decimals: int, more: str) -> str:
    """``digits`` / 10^decimals; ``more`` marks cut-off digits."""
    text = str(digits)
    power = len(text) - 1 - decimals
    if digits and power < SMALLEST_PLAIN:
        head = text[0] + ("." + text[1:] if len(text) > 1 else "")
        return (head if more else _bare(head)) + more + f"e{power}"
    text = text.rjust(decimals + 1, "0")
    whole, part = text[: len(text) - decimals], text[len(text) - decimals :]
    written = f"{whole}.{part}" if part else whole
    return written + more if more else _bare(written)


def _bare(text: str) -> str:
    """Without zeros at the end of the decimals."""
    return text.rstrip("0").rstrip(".") if "." in text else text
