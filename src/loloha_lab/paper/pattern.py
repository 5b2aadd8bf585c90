"""Losses of patterns of change, exactly, and the best test of *when* a value changes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from loloha import checks
from loloha.arrays import Floats
from loloha.errors import ParameterError
from loloha.privacy.change import change_auc
from loloha.protocols import Protocol

SURE = 0.9999
REPORTS = (1, 10)
"""Of a stretch before the moment, and of one after it: the columns of the tables."""
# 2^t sequences of t reports, in pairs: seconds beyond this.
WORST_REPORTS = 7


def pattern_losses(protocol: Protocol, most: int) -> Floats:
    """Exact loss between a user who stays in one of two hash cells and one who alternates."""
    _check(protocol)
    losses = []
    for reports in range(1, most + 1):
        even, odd = (reports + 1) // 2, reports // 2
        ratios = [
            math.log(_likelihood(protocol, constant, i + j, reports))
            - math.log(_likelihood(protocol, 0, i, even) * _likelihood(protocol, 1, j, odd))
            for constant in (0, 1)
            for i, j in itertools.product(range(even + 1), range(odd + 1))
        ]
        losses.append(max(map(abs, ratios)))
    return np.array(losses)


def worst_losses(protocol: Protocol, most: int) -> Floats:
    """Exact loss between the two sequences of hash cells that differ most."""
    _check(protocol)
    checks.integer("most", most, 1, WORST_REPORTS, "more would take long")
    losses = []
    for reports in range(1, most + 1):
        everything = list(itertools.product((0, 1), repeat=reports))
        pmfs = np.log(
            [[_sequence(protocol, cells, ys) for ys in everything] for cells in everything]
        )
        losses.append(float(np.max(pmfs[:, None, :] - pmfs[None, :, :])))
    return np.array(losses)


def _check(protocol: Protocol) -> None:
    if protocol.g != 2 or protocol.second is None:
        raise ParameterError(f"protocol must be BiLOLOHA, got {protocol.name!r}; use g = 2")


def _sequence(protocol: Protocol, cells: tuple[int, ...], ys: tuple[int, ...]) -> float:
    """Chance of the reports ``ys`` of a user whose values lie in ``cells``, round by round."""
    chance = 1.0
    for cell in (0, 1):
        own = [y for own_cell, y in zip(cells, ys, strict=True) if own_cell == cell]
        chance *= _likelihood(protocol, cell, own.count(0), len(own))
    return chance


def _likelihood(protocol: Protocol, cell: int, zeros: int, reports: int) -> float:
    """Chance of given reports of one memoised cell, ``zeros`` of which are 0."""
    p2, q2 = protocol.second or (1.0, 0.0)
    stayed = p2**zeros * q2 ** (reports - zeros)
    flipped = q2**zeros * p2 ** (reports - zeros)
    truth, lie = (stayed, flipped) if cell == 0 else (flipped, stayed)
    return protocol.p1 * truth + protocol.q1 * lie


def change_aucs(protocol: Protocol, reports: Sequence[int] = REPORTS) -> list[float]:
    """Area under the ROC curve of the best test of a change (MATH section 12).

    0.5 sees nothing, 1 is certainty. As `loloha.privacy.change_auc`, exact or an upper bound;
    but more ``reports``, which rise, never show less: what is certain after some is not drawn again
    for more.
    """
    aucs: list[float] = []
    least = 0.5
    for number in reports:
        if least <= SURE:
            auc = change_auc(protocol, number)
            least = math.nan if auc is None else max(least, auc.auc)
        aucs.append(least)
    return aucs
