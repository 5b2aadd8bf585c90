"""Transforms over Z_g^m: of one round's table at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.arrays import Floats, Ints
from loloha.counting.compiled.jit import njit

_BLOCK = 1 << 12
# Numbers that are worked on side by side: a literal, so that loops become vector code.
_LANES = 32


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
def odd_support(cells: Ints, is_folded: bool, m: int, support: Ints) -> None:
    """support[t] = (n + the transform of A) / g, A as in `_spectrum`."""
    # ``cells`` is N int64[rounds, g^m, g], or its lines int64[rounds, 1 + (g^m - 1) / (g - 1), g].
    # A of -s is the conjugate of A of s: seeds whose highest digit is at most (g - 1) / 2 say all,
    # and the transform over that digit, the last, is real.
    g = cells.shape[2]
    half, rest = (g + 1) // 2, g ** (m - 1)
    cos, sin = _roots(half, g)
    low = g ** (m // 2)
    times = _multiples(max(low, g**m // low), g)
    re, im = np.empty(half * rest), np.empty(half * rest)
    for t in range(cells.shape[0]):
        _spectrum(cells[t], is_folded, m, low, times, cos, sin, re, im)
        stride = 1
        while stride < rest:
            fourier_digit(re, im, stride, cos, sin)
            stride *= g
        _last_digit(re, im, rest, cells[t].sum(), cos, sin, support[t])


@njit
def _spectrum(
    cells: Ints,
    is_folded: bool,
    m: int,
    low: int,
    times: Ints,
    cos: Floats,
    sin: Floats,
    re: Floats,
    im: Floats,
) -> None:
    """A[s] = sum_j sum_x N[s / j, x] w^(jx), w = e^(2 pi i / g), of some lines side by side."""
    # All multiples of a seed tell the same: report (s, x) supports the values that (l s, l x) does.
    # So they are added up first, and one short transform serves the whole line.
    g, half = cos.shape[1], len(cos)
    symbols, even, odd = np.zeros((g, _LANES)), np.zeros((half, _LANES)), np.zeros((half, _LANES))
    c, d = np.empty(_LANES), np.empty(_LANES)
    folded = np.empty(g, dtype=np.int64)
    high_of, low_of = np.empty(_LANES, dtype=np.int64), np.empty(_LANES, dtype=np.int64)
    re[0], im[0] = g * cells[0, 0] - cells[0].sum(), 0.0
    for top in range(m):
        # Of each line the seed whose highest digit is 1.
        size = g**top
        line = 1 + (size - 1) // (g - 1)
        for start in range(0, size, _LANES):
            count = min(_LANES, size - start)
            for lane in range(count):
                s = size + start + lane
                high_of[lane], low_of[lane] = s // low, s % low
                if is_folded:
                    folded[:] = cells[line + start + lane]
                else:
                    _fold(cells, high_of[lane], low_of[lane], low, times, folded)
                for x in range(g):
                    symbols[x, lane] = folded[x]
            _plus_minus(symbols, even, odd)
            for j in range(1, half):
                _sums(symbols, even, odd, cos[j], sin[j], c, d)
                for lane in range(count):
                    high, last = high_of[lane], low_of[lane]
                    multiple = times[j, high] * low + times[j, last]
                    re[multiple], im[multiple] = c[lane], d[lane]
                    if top < m - 1:
                        multiple = times[g - j, high] * low + times[g - j, last]
                        re[multiple], im[multiple] = c[lane], -d[lane]


@njit
def _fold(table: Ints, high: int, last: int, low: int, times: Ints, folded: Ints) -> None:
    """folded[x] = sum over l of N[l s, l x], where s = high * low + last."""
    g = len(folded)
    folded[:] = 0
    for factor in range(1, g):
        counts = table[times[factor, high] * low + times[factor, last]]
        place = 0
        for x in range(g):
            folded[x] += counts[place]
            place += factor
            if place >= g:
                place -= g


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
    """times[l, s] = l times s, digit by digit in base g; the size is a power of g."""
    times = np.zeros((g, size), dtype=np.int64)
    for factor in range(1, g):
        row = times[factor]
        done = 1
        while done < size:
            for digit in range(1, g):
                first = digit * factor % g * done
                for s in range(done):
                    row[digit * done + s] = first + row[s]
            done *= g
    return times


@njit
def fourier_digit(re: Floats, im: Floats, stride: int, cos: Floats, sin: Floats) -> None:
    """Replace a[.., s, ..] by sum_s a[.., s, ..] w^(-sv), for the digit s of weight ``stride``."""
    # Some transforms side by side fill the vector registers; a_j and a_(g-j) share their products.
    g, half = cos.shape[1], len(cos)
    at = np.empty(_LANES, dtype=np.int64)
    # Real parts, then imaginary ones.
    digits = np.zeros((g, 2 * _LANES))
    even, odd = np.zeros((half, 2 * _LANES)), np.zeros((half, 2 * _LANES))
    c, d = np.empty(2 * _LANES), np.empty(2 * _LANES)
    lines = len(re) // g
    place = offset = 0
    for start in range(0, lines, _LANES):
        count = min(_LANES, lines - start)
        for lane in range(count):
            at[lane] = place
            place += 1
            offset += 1
            if offset == stride:
                place += (g - 1) * stride
                offset = 0
        for j in range(g):
            for lane in range(count):
                digits[j, lane] = re[at[lane] + j * stride]
                digits[j, _LANES + lane] = im[at[lane] + j * stride]
        _plus_minus(digits, even, odd)
        for v in range(half):
            _sums(digits, even, odd, cos[v], sin[v], c, d)
            for lane in range(count):
                a, i = at[lane] + v * stride, _LANES + lane
                re[a], im[a] = c[lane] + d[i], c[i] - d[lane]
                if v:
                    a = at[lane] + (g - v) * stride
                    re[a], im[a] = c[lane] - d[i], c[i] + d[lane]


@njit
def _plus_minus(digits: Floats, even: Floats, odd: Floats) -> None:
    """Sum and difference of the numbers at j and at g - j, lane by lane."""
    for j in range(1, len(even)):
        for i in range(digits.shape[1]):
            a, b = digits[j, i], digits[len(digits) - j, i]
            even[j, i], odd[j, i] = a + b, a - b


@njit
def _sums(
    digits: Floats, even: Floats, odd: Floats, cos: Floats, sin: Floats, c: Floats, d: Floats
) -> None:
    """Cosine and sine sums over the digits, lane by lane."""
    for i in range(len(c)):
        c[i], d[i] = digits[0, i], 0.0
    for j in range(1, len(even)):
        for i in range(len(c)):
            c[i] += even[j, i] * cos[j]
        for i in range(len(c)):
            d[i] += odd[j, i] * sin[j]


@njit
def _last_digit(
    re: Floats, im: Floats, rest: int, n: int, cos: Floats, sin: Floats, support: Ints
) -> None:
    """The sum over the highest digit, for the values that there are: real, of half the digits."""
    g, half = cos.shape[1], len(cos)
    c, d = np.empty(_LANES), np.empty(_LANES)
    for start in range(0, rest, _LANES):
        count = min(_LANES, rest - start)
        for v in range(half):
            if v * rest + start >= len(support):
                break
            for lane in range(count):
                c[lane], d[lane] = re[start + lane], 0.0
            for j in range(1, half):
                w, z = 2 * cos[v, j], 2 * sin[v, j]
                reals, others = re[j * rest + start :], im[j * rest + start :]
                for lane in range(count):
                    c[lane] += reals[lane] * w
                for lane in range(count):
                    d[lane] += others[lane] * z
            first = v * rest + start
            for lane in range(min(count, len(support) - first)):
                support[first + lane] = np.int64(np.rint((c[lane] + d[lane] + n) / g))
            if v:
                first = (g - v) * rest + start
                for lane in range(min(count, len(support) - first)):
                    support[first + lane] = np.int64(np.rint((c[lane] - d[lane] + n) / g))
