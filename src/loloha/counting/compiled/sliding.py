"""Sums over windows of residues that lie g apart: the support under least-prime hashing."""

from __future__ import annotations

import numpy as np

from loloha.arrays import Ints
from loloha.counting.compiled.jit import njit


@njit
def prime_support(tables: Ints, support: Ints) -> None:
    """support[r, v] += sum over a of S_a(a v mod P), from N int64[rounds, P - 1, P, g]."""
    modulus = tables.shape[2]
    sums = np.empty(modulus, dtype=np.int64)
    for r in range(tables.shape[0]):
        for a in range(1, modulus):
            _slide(tables[r, a - 1].reshape(-1), modulus, tables.shape[3], sums)
            place = 0
            for v in range(support.shape[1]):
                support[r, v] += sums[place]
                place += a
                if place >= modulus:
                    place -= modulus


@njit
def _slide(cells: Ints, modulus: int, g: int, sums: Ints) -> None:
    """sums[t] = sum over y, and s = y mod g below P, of the cell ((s - t) mod P, y)."""
    # From t to t - g the window of a symbol loses its first residue and gains the one after its
    # last. Where g = P it is one residue wide, and any step will do.
    step = g if g < modulus else 1
    sums[:] = 0
    for y in range(g):
        window, stop = np.int64(0), y
        for s in range(y, modulus, g):
            window += cells[s * g + y]
            stop = s
        stop += step
        stop -= modulus if stop >= modulus else 0
        first, last = y * g + y, stop * g + y
        t = 0
        for _ in range(modulus):
            sums[t] += window
            window += cells[last] - cells[first]
            first += step * g
            first -= len(cells) if first >= len(cells) else 0
            last += step * g
            last -= len(cells) if last >= len(cells) else 0
            t -= step
            t += modulus if t < 0 else 0
