"""How surely the best test sees that a value changed, under growing numbers of reports."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loloha.design.change import change_area
from loloha.rules.protocols import Protocol

SURE = 0.9999
REPORTS = (1, 10)
"""Of a stretch before the moment, and of one after it: the columns of the tables."""


def change_areas(protocol: Protocol, reports: Sequence[int] = REPORTS) -> list[float]:
    """Area under the ROC curve of the best test of a change (MATH section 12).

    Parameters
    ----------
    protocol : Protocol
    reports : sequence of int
        In each of the two stretches, rising.

    Returns
    -------
    list of float
        0.5 sees nothing, 1 is certainty. As `loloha.privacy.change_area`, some of whose numbers are
        drawn; but the best test is never worse than guessing, and more reports never show less:
        what is certain after some reports is not drawn again for more.
    """
    found: list[float] = []
    least = 0.5
    for number in reports:
        if least <= SURE:
            area = change_area(protocol, number)
            least = math.nan if area is None else max(least, area.auc)
        found.append(least)
    return found
