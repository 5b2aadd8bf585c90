"""Decoding: from the table N[key, symbol] of a hash family to the support of every value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from loloha.arrays import Array, Floats, Ints
from loloha.counting.compiled import compiled
from loloha.hashing import HashFamily, LinearHash, PrimeHash

# Factor of a transform as a matrix product: small enough to stay in cache.
LARGEST_FACTOR = 64
# Beyond it a table of products is wasteful, and few lines are left to add up.
LARGEST_COMPILED_G = 64
# Elements of the plain code's running sums that are in memory at once: they should stay in cache.
AT_ONCE = 1 << 18


def table_support(counts: Ints, family: HashFamily) -> Ints:
    """Reports that support each value, int64[..., k], of N, row by row: int64[..., rows * g]."""
    return _DECODERS[type(family)](counts, family)


def prime_support(counts: Ints, family: PrimeHash) -> Ints:
    """C(v) = sum over a of S_a(a v mod P), in one pass over N, row by row (MATH section 14)."""
    # S_a(t) = sum over y, and s = y mod g below P, of N[a, (s - t) mod P, y]: for each symbol the
    # sum of a window of residues that lie g apart, and t + g moves the window by one of them.
    modulus, g = family.modulus, family.g
    tables = counts.reshape(-1, modulus - 1, modulus, g)
    support = np.zeros((len(tables), family.k), dtype=np.int64)
    loops = compiled("sliding", tables.size)
    if loops:
        loops.prime_support(tables, support)
    else:
        windows = Windows(family)
        for table, row in zip(tables, support, strict=True):
            row[:] = windows.supporting(table)
    return support.reshape(*counts.shape[:-1], family.k)


class Windows:
    """Sums over the residues that a symbol of the prime family stands for, at all keys at once."""

    def __init__(self, family: PrimeHash) -> None:
        self.family = family
        modulus, g = family.modulus, family.g
        # Residues in the order 0, g, 2g, ...; where g = P every symbol has one residue only.
        self._order = np.arange(modulus) * (g if g < modulus else 1) % modulus
        place = np.argsort(self._order)
        self._first = place[(np.arange(g) - np.arange(modulus)[:, None]) % modulus]
        self._stop = self._first + (modulus - 1 - np.arange(g)) // g + 1

    def supporting(self, table: Array) -> Any:
        """sum over the keys (a, b) of table[a - 1, b, H(v)] for each v; [P - 1, P, g] to [k]."""
        modulus, k = self.family.modulus, self.family.k
        total = np.zeros(k, dtype=table.dtype)
        for factors in self._parts():
            sums = self._each(table[factors - 1]).sum(axis=2)
            places = factors[:, None] * np.arange(k) % modulus
            total += np.take_along_axis(sums, places, axis=1).sum(axis=0)
        return total

    def masses(self, weights: Floats) -> Any:
        """sum of the weights of the v with H(v) = y, for each key and y; [k] to [P - 1, P, g]."""
        modulus, k = self.family.modulus, self.family.k
        masses = np.empty((modulus - 1, modulus, self.family.g))
        for factors in self._parts():
            placed = np.zeros((len(factors), modulus))
            np.put_along_axis(placed, factors[:, None] * np.arange(k) % modulus, weights[None], 1)
            masses[factors - 1] = self._each(placed[:, :, None])
        return masses

    def _parts(self) -> Iterator[Ints]:
        """All a, some at a time."""
        modulus = self.family.modulus
        step = max(1, AT_ONCE // (modulus * self.family.g))
        for start in range(1, modulus, step):
            yield np.arange(start, min(start + step, modulus))

    def _each(self, rows: Array) -> Any:
        """sum over s = y mod g below P of rows[a, (s - t) mod P, y], for each a, t and y."""
        ordered = rows[:, self._order]
        running = np.cumsum(np.concatenate([ordered, ordered], axis=1), axis=1)
        running = np.concatenate([np.zeros_like(running[:, :1]), running], axis=1)
        columns = np.arange(self.family.g) % rows.shape[2]
        return running[:, self._stop, columns] - running[:, self._first, columns]


def linear_support(counts: Ints, family: LinearHash) -> Ints:
    """C(v) = sum_s N[s, <s, v>] for v in 0..k-1, by one transform over Z_g^m (MATH section 4)."""
    # N is int64[..., g^m * g], row by row. Exact: for g = 2 because the arithmetic is one of
    # integers; for g > 2 because the rounding error of the transform, about 1e-15 n, is far below
    # one half.
    support = line_support(counts.reshape(-1, family.size, family.g), family)
    return support.reshape(*counts.shape[:-1], family.k)


def line_support(tables: Ints, family: LinearHash) -> Ints:
    """The same from N[round, line, symbol] of `LinearHash.lines`, or with each seed for a line."""
    # Where g = 2 these are the same.
    support = np.empty((len(tables), family.k), dtype=np.int64)
    loops = compiled("transform", tables.size) if family.g <= LARGEST_COMPILED_G else None
    if loops and family.g == 2:
        loops.binary_support(tables, support)
    elif loops:
        loops.odd_support(tables, tables.shape[1] < family.size, family.m, support)
    else:
        for table, row in zip(tables, support, strict=True):
            row[:] = (_binary if family.g == 2 else _odd)(table, family)
    return support


def walsh_hadamard(values: Ints) -> Ints:
    """sum_s values[s] (-1)^(<s, v>) for all v; int64[2^m]."""
    # Integers below 2^53 are exact in floating point, which has the fast matrix product.
    return signed_sums(values.astype(np.float64)).astype(np.int64)


def signed_sums(values: Floats) -> Floats:
    """The same of real numbers, float64[2^m]."""
    m, step = len(values).bit_length() - 1, LARGEST_FACTOR.bit_length() - 1
    for done in range(0, m, step):
        part = np.arange(1 << min(step, m - done))
        signs = 1.0 - 2.0 * (np.bitwise_count(part[:, None] & part) & 1)
        # Digits are transformed low to high; each product rotates them to the other end.
        values = (signs @ values.reshape(-1, len(part)).T).reshape(-1)
    return values


def _binary(table: Ints, family: LinearHash) -> Ints:
    """C = (n + the transform of N[s, 0] - N[s, 1]) / 2."""
    transformed = walsh_hadamard(table[:, 0] - table[:, 1])
    support: Ints = (transformed[: family.k] + int(table.sum())) >> 1
    return support


def _odd(table: Ints, family: LinearHash) -> Ints:
    """C = (n + the transform of A) / g."""
    # With A[s] = sum_j sum_x N[s / j, x] w^(jx), j = 1..g-1: one transform serves all characters.
    g, m = family.g, family.m
    spectrum = _spectrum(table, family)
    re = np.fft.fftn(spectrum.reshape((g,) * m)).real.reshape(-1)
    support: Ints = np.rint((re[: family.k] + int(table.sum())) / g).astype(np.int64)
    return support


def _spectrum(table: Ints, family: LinearHash) -> Any:
    """A of `_odd`, complex128[g^m], from a row for each seed, or each line."""
    # All multiples of a seed tell the same: report (s, x) supports the values that (l s, l x) does.
    # So they are added up first, and one short transform serves the whole line.
    g, digits = family.g, np.arange(family.g)
    is_folded = len(table) < family.size
    # Seed 0, which is no key, keeps 0.
    values = np.zeros(family.size, dtype=np.complex128)
    # times[l - 1][r] is l r, digit by digit, for the digits below the highest.
    times = [np.zeros(1, dtype=np.int64)] * (g - 1)
    for top in range(family.m):
        size = g**top
        if top:
            times = [
                ((factor * digits % g)[:, None] * (size // g) + times[factor - 1]).reshape(-1)
                for factor in range(1, g)
            ]
        # Of each line the seed whose highest digit is 1.
        if is_folded:
            first = 1 + (size - 1) // (g - 1)
            folded = table[first : first + size]
        else:
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
    return values


_DECODERS: dict[type[HashFamily], Callable[[Ints, Any], Ints]] = {
    LinearHash: linear_support,
    PrimeHash: prime_support,
}
