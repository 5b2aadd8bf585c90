"""The linear assignment problem: NumPy has no solver, and SciPy is too much for one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from loloha.arrays import Floats, Ints


def assign(cost: Floats) -> Ints:
    """Column of each row, all different, such that the costs add up to the least."""
    m = len(cost)
    # Every row starts at its cheapest column: what is left free costs a path each.
    row_price, column_price = np.min(cost, axis=1), np.zeros(m)
    row_of = np.full(m, -1)
    column_of = np.full(m, -1)
    for row, column in enumerate(np.argmin(cost, axis=1)):
        if row_of[column] < 0:
            row_of[column], column_of[row] = row, column
    for free in np.flatnonzero(column_of < 0):
        distance = cost[free] - row_price[free] - column_price
        before = np.full(m, free)
        open_ = np.ones(m, dtype=bool)
        while True:
            nearest = int(np.argmin(np.where(open_, distance, np.inf)))
            open_[nearest] = False
            if row_of[nearest] < 0:
                break
            row = row_of[nearest]
            through = cost[row] - row_price[row] - column_price + distance[nearest]
            shorter = open_ & (through < distance)
            distance[shorter], before[shorter] = through[shorter], row
        least = distance[nearest]
        done = ~open_
        done[nearest] = False
        column_price[done] += distance[done] - least
        row_price[row_of[done]] += least - distance[done]
        row_price[free] += least
        # Along the path every row takes the column that leads away from it.
        while True:
            row = before[nearest]
            row_of[nearest] = row
            nearest, column_of[row] = column_of[row], nearest
            if row == free:
                break
    return column_of
