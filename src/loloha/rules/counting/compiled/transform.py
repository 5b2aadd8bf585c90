"""Transforms over Z_g^m, in place: of one round's table at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.rules.counting.arrays import Floats, Ints
from loloha.rules.counting.compiled.jit import njit

_BLOCK = 1 << 12


@njit
def binary_support(tables: Ints, support: Ints) -> None:
    """support[t] = (n + the transform of N[s, 0] - N[s, 1]) / 2, from N int64[rounds, 2^m, 2]."""
    values = np.empty(tables.shape[1], dtype=np.int64)
    for t in range(tables.shape[0]):
        n = np.int64(0)
        for s in range(tables.shape[1]):
            a, b = tables[t, s, 0], tables[t, s, 1]
            values[s] = a - b
            n += a + b
        walsh_hadamard(values)
        for v in range(support.shape[1]):
            support[t, v] = (values[v] + n) >> 1


@njit
def odd_support(tables: Ints, m: int, support: Ints) -> None:
    """support[t] = (n + the transform of A) / g, A as in `spectrum`; N is int64[rounds, g^m, g]."""
    g = tables.shape[2]
    re, im = np.empty(tables.shape[1]), np.empty(tables.shape[1])
    for t in range(tables.shape[0]):
        spectrum(tables[t], g, m, re, im)
        fourier(re, im, g)
        n = tables[t].sum()
        for v in range(support.shape[1]):
            support[t, v] = np.int64(np.rint((re[v] + n) / g))


@njit
def walsh_hadamard(values: Ints) -> None:
    """Replace values[s] by sum_s values[s] (-1)^(<s, v>); the length is a power of two."""
    size = len(values)
    block = min(size, _BLOCK)
    # All small strides while a block is in the cache, then the few large ones.
    for start in range(0, size, block):
        _butterflies(values[start : start + block], 1)
    _butterflies(values, block)


@njit
def _butterflies(values: Ints, stride: int) -> None:
    while stride < len(values):
        for start in range(0, len(values), 2 * stride):
            lower = values[start : start + stride]
            upper = values[start + stride : start + 2 * stride]
            for i in range(stride):
                a, b = lower[i], upper[i]
                lower[i], upper[i] = a + b, a - b
        stride *= 2


@njit
def spectrum(table: Ints, g: int, m: int, re: Floats, im: Floats) -> None:
    """A[s] = sum_j sum_x N[s / j, x] w^(jx), w = e^(2 pi i / g), from N int64[g^m, g].

    All multiples of a seed tell the same: report (s, x) supports the values that (l s, l x) does.
    So they are added up first, and one short transform serves the whole line.
    """
    cos, sin = _roots((g + 1) // 2, g)
    low = g ** (m // 2)
    times = _multiples(max(low, g**m // low), g)
    line, folded = np.empty(g, dtype=np.int64), np.empty(g, dtype=np.int64)
    re[0], im[0] = g * table[0, 0] - table[0].sum(), 0.0
    for top in range(m):
        # Of each line the seed whose highest digit is 1.
        for s in range(g**top, 2 * g**top):
            folded[:] = 0
            for factor in range(1, g):
                multiple = times[factor, s // low] * low + times[factor, s % low]
                line[factor] = multiple
                told = 0
                for x in range(g):
                    folded[x] += table[multiple, told]
                    told += factor
                    if told >= g:
                        told -= g
            for j in range(1, (g + 1) // 2):
                c = d = 0.0
                for x in range(g):
                    c += folded[x] * cos[j, x]
                    d += folded[x] * sin[j, x]
                re[line[j]] = re[line[g - j]] = c
                im[line[j]], im[line[g - j]] = d, -d


@njit
def _roots(rows: int, g: int) -> tuple[Any, Any]:
    """Real and imaginary part of w^(jx), float64[rows, g] each."""
    cos, sin = np.empty((rows, g)), np.empty((rows, g))
    for j in range(rows):
        for x in range(g):
            angle = 2 * np.pi * (j * x % g) / g
            cos[j, x], sin[j, x] = np.cos(angle), np.sin(angle)
    return cos, sin


@njit
def _multiples(size: int, g: int) -> Any:
    """times[l, s] = l times s, digit by digit in base g."""
    times = np.zeros((g, size), dtype=np.int64)
    for factor in range(1, g):
        for s in range(1, size):
            times[factor, s] = s % g * factor % g + g * times[factor, s // g]
    return times


@njit
def fourier(re: Floats, im: Floats, g: int) -> None:
    """Replace a[s] by sum_s a[s] w^(-<s, v>); g odd, the length a power of g."""
    half = (g + 1) // 2
    cos, sin = _roots(half, g)
    even, odd = np.empty((2, half)), np.empty((2, half))
    stride = 1
    while stride < len(re):
        for start in range(0, len(re), g * stride):
            for first in range(start, start + stride):
                _digit(re, im, first, stride, cos, sin, even, odd)
        stride *= g


@njit
def _digit(
    re: Floats,
    im: Floats,
    first: int,
    stride: int,
    cos: Floats,
    sin: Floats,
    even: Floats,
    odd: Floats,
) -> None:
    """One transform of length g; a_j and a_(g-j) share their products."""
    half = len(cos)
    last = first + (2 * half - 1) * stride
    even[0, 0], even[1, 0] = re[first], im[first]
    for j in range(1, half):
        a, b = first + j * stride, last - j * stride
        even[0, j], odd[0, j] = re[a] + re[b], re[a] - re[b]
        even[1, j], odd[1, j] = im[a] + im[b], im[a] - im[b]
    for v in range(half):
        c, d, e, f = even[0, 0], even[1, 0], 0.0, 0.0
        for j in range(1, half):
            c += even[0, j] * cos[v, j]
            d += even[1, j] * cos[v, j]
            e += odd[0, j] * sin[v, j]
            f += odd[1, j] * sin[v, j]
        a, b = first + v * stride, last - v * stride
        if v:
            re[b], im[b] = c - f, d + e
        re[a], im[a] = c + f, d - e
