"""From the table N[seed, symbol] of a linear hash family to the support of every value at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.rules.counting.arrays import Floats, Ints
from loloha.rules.counting.compiled import compiled
from loloha.rules.hashing import LinearHash

# Factor of a transform as a matrix product: small enough to stay in cache.
LARGEST_FACTOR = 64
# Beyond it a table of products is wasteful, and few lines are left to add up.
LARGEST_COMPILED_G = 64


def linear_support(counts: Ints, family: LinearHash) -> Ints:
    """C(v) = sum_s N[s, <s, v>] for v in 0..k-1, by one transform over Z_g^m (MATH section 4.1).

    Parameters
    ----------
    counts : int64[..., g^m * g]
        N, row by row; one table, or one for each round.
    family : LinearHash

    Returns
    -------
    int64[..., k]
        Exact. For g = 2 because the arithmetic is one of integers; for g > 2 because the rounding
        error of the transform, about 1e-15 n, is far below the one half that would matter.
    """
    tables = counts.reshape(-1, family.size, family.g)
    support = np.empty((len(tables), family.k), dtype=np.int64)
    loops = compiled("transform", tables.size) if family.g <= LARGEST_COMPILED_G else None
    if loops and family.g == 2:
        loops.binary_support(tables, support)
    elif loops:
        loops.odd_support(tables, family.m, support)
    else:
        for table, found in zip(tables, support, strict=True):
            found[:] = (_binary if family.g == 2 else _odd)(table, family)
    return support.reshape(*counts.shape[:-1], family.k)


def walsh_hadamard(values: Ints) -> Ints:
    """sum_s values[s] (-1)^(<s, v>) for all v; int64[2^m]."""
    step = LARGEST_FACTOR.bit_length() - 1
    m, done = len(values).bit_length() - 1, 0
    # Integers below 2^53 are exact in floating point, which has the fast matrix product.
    transformed: Floats = values.astype(np.float64)
    while done < m:
        bits = min(step, m - done)
        matrix = np.ones((1, 1))
        for _ in range(bits):
            matrix = np.kron(matrix, np.array([[1.0, 1.0], [1.0, -1.0]]))
        # Digits are transformed low to high; each product rotates them to the other end.
        transformed = (matrix @ transformed.reshape(-1, 1 << bits).T).reshape(-1)
        done += bits
    return transformed.astype(np.int64)


def _binary(table: Ints, family: LinearHash) -> Ints:
    """C = (n + the transform of N[s, 0] - N[s, 1]) / 2."""
    transformed = walsh_hadamard(table[:, 0] - table[:, 1])
    support: Ints = (transformed[: family.k] + int(table.sum())) >> 1
    return support


def _odd(table: Ints, family: LinearHash) -> Ints:
    """C = (n + the transform of A) / g.

    With A[s] = sum_j sum_x N[s / j, x] w^(jx), j = 1..g-1: one transform serves all characters.
    """
    g, m = family.g, family.m
    re = np.fft.fftn(_spectrum(table, g, m).reshape((g,) * m)).real.reshape(-1)
    support: Ints = np.rint((re[: family.k] + int(table.sum())) / g).astype(np.int64)
    return support


def _spectrum(table: Ints, g: int, m: int) -> Any:
    """A of `_odd`, complex128[g^m].

    All multiples of a seed tell the same: report (s, x) supports the values that (l s, l x) does.
    So they are added up first, and one short transform serves the whole line.
    """
    values = np.empty(len(table), dtype=np.complex128)
    values[0] = g * int(table[0, 0]) - int(table[0].sum())
    digits = np.arange(g)
    # times[l - 1][r] is l r, digit by digit, for the digits below the highest.
    times = [np.zeros(1, dtype=np.int64)] * (g - 1)
    for top in range(m):
        size = g**top
        # Of each line the seed whose highest digit is 1.
        folded = np.zeros((size, g), dtype=np.int64)
        for factor in range(1, g):
            rows = table[factor * size : (factor + 1) * size][times[factor - 1]]
            folded += rows[:, factor * digits % g]
        # numpy's sign of the exponent is the opposite one; the input is real.
        characters = np.fft.rfft(folded, axis=1).conj()
        for factor in range(1, g):
            line = values[factor * size : (factor + 1) * size]
            mirrored = min(factor, g - factor)
            column = characters[:, mirrored]
            line[times[factor - 1]] = column if factor == mirrored else column.conj()
        if top + 1 < m:
            times = [
                ((factor * digits % g)[:, None] * size + times[factor - 1]).reshape(-1)
                for factor in range(1, g)
            ]
    return values
