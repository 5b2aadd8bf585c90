"""A report: what a device sends to the server in one round."""

from __future__ import annotations

from dataclasses import dataclass

Key = int | tuple[int, ...] | None
Answer = int | bytes

LARGEST_ROUND = (1 << 53) - 1
"""Rounds are numbers that every language keeps exactly."""
MOST_REPORTS = 1 << 53
"""Counts of reports are, too."""
REPORTER_BYTES = 16
"""Of the pseudonym of one user in one round."""


@dataclass(frozen=True, slots=True)
class Report:
    """One sanitised answer of one user in one round.

    Attributes
    ----------
    key : int, tuple of int or None
        What the user drew once: the hash seed, the sampled buckets in ascending order, or nothing.
    y : int or bytes
        The symbol in 0..g-1, or the bits, eight to a byte, first bit lowest, padded with zeros.
    """

    key: Key
    y: Answer

    def __init__(self, key: Key, y: Answer) -> None:
        # Once for each report: what a frozen dataclass writes itself takes half as long again.
        _set_key(self, key)
        _set_y(self, y)

    def __repr__(self) -> str:
        return "Report(key and y hidden)"


_set_key, _set_y = Report.__dict__["key"].__set__, Report.__dict__["y"].__set__
