"""From the table N[seed, symbol] of a linear hash family to the support of every value at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.arrays import Floats, Ints
from loloha.hashing import LinearHash

# Transforms run as a few matrix products; a factor of this size keeps a matrix in cache.
LARGEST_FACTOR = 64


def linear_support(counts: Ints, family: LinearHash) -> Ints:
    """C(v) = sum_s N[s, <s, v>] for v in 0..k-1, by one transform over Z_g^m (MATH section 4.1).

    Parameters
    ----------
    counts : int64[g^m * g]
        N, row by row.
    family : LinearHash

    Returns
    -------
    int64[k]
        Exact: the rounding error of the transform is far below one half.
    """
    table = counts.reshape(family.size, family.g)
    if family.g == 2:
        difference = walsh_hadamard((table[:, 0] - table[:, 1]).astype(np.float64), family.m)
        doubled = difference[: family.k] + table.sum()
        return _exact(doubled / 2)
    return _prime_support(table, family)


def walsh_hadamard(values: Floats, m: int) -> Floats:
    """sum_s values[s] (-1)^(<s, v>) for all v; float64[2^m]."""
    step = LARGEST_FACTOR.bit_length() - 1
    done = 0
    while done < m:
        bits = min(step, m - done)
        matrix = np.ones((1, 1))
        for _ in range(bits):
            matrix = np.kron(matrix, np.array([[1.0, 1.0], [1.0, -1.0]]))
        # Digits are transformed low to high; each product rotates them to the other end.
        values = (matrix @ values.reshape(-1, 1 << bits).T).reshape(-1)
        done += bits
    return values


def _prime_support(table: Ints, family: LinearHash) -> Ints:
    """One complex transform serves all characters.

    A report (s, x) supports exactly the values that (j s, j x) does, j = 1..g-1. So with
    A[s] = sum_j Nhat_j[s / j], C(v) = (n + sum_s A[s] w^(-<s, v>)) / g.
    """
    g, m = family.g, family.m
    characters: Any = np.exp(2j * np.pi * np.outer(np.arange(g), np.arange(g)) / g)
    transformed = table @ characters
    spectrum = np.zeros((g,) * m, dtype=np.complex128)
    digits = np.arange(g)
    for j in range(1, g):
        inverse = pow(j, -1, g)
        index = np.ix_(*[digits * inverse % g] * m)
        spectrum += transformed[:, j].reshape((g,) * m)[index]
    # Axes of the array are digits, highest first, for the seeds as for the values.
    support = (np.fft.fftn(spectrum).real.reshape(-1)[: family.k] + table.sum()) / g
    return _exact(support)


def _exact(support: Floats) -> Ints:
    """Counts, of which only the rounding error of the transform was fractional."""
    exact: Ints = np.rint(support).astype(np.int64)
    return exact
