"""Frequencies of ordered values, with as much of their noise taken out as the data allow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loloha.arrays import Array, Floats
from loloha.errors import ParameterError
from loloha.server.projection import finite

# Of the first block, and how much longer the next one is. Blocks of fewer than three coefficients
# cannot be shrunk without loss.
SHORTEST, GROWTH = 3, 1.5


def smooth_ordered(frequencies: Array, variances: Array) -> Floats:
    """Frequencies of *ordered* values, shrunk towards those that change little between neighbours.

    Parameters
    ----------
    frequencies : float64[..., bins]
        Unbiased estimates in the order of the values, the last axis being smoothed.
    variances : float64[..., bins] or float
        Of the estimates, ``estimate.standard_errors ** 2``; only their mean over the bins counts.

    Returns
    -------
    float64[..., bins]
        With the sum of ``frequencies``, possibly negative: `project_simplex` makes shares of it.

    Raises
    ------
    ParameterError
        If there is no bin, a number is not finite, a variance is negative, or the shapes differ.

    Notes
    -----
    Each block of cosine frequencies (3, 4, 6, 10, ... of them, from slow to fast) is scaled by
    max(0, 1 - c v / S), with S the sum of squares of its m coefficients, v the variance of one, and
    c the lesser of 2 (m - 2) and m + 2 sqrt(m), which is about as far as noise alone goes. What the
    data show clearly stays: nothing is to be chosen. By Stein's theorem the expected squared error
    of a block is no larger than if it were left alone, at every truth, where its errors are normal
    and c v is at most 2 (tr S - 2 l), S their covariance and l its largest eigenvalue. Where they
    are independent and of one variance that is 2 (m - 2) v. It is not so where one value
    holds nearly all users and its own noise is far larger than that of the others (L-GRR, OLOLOHA,
    L-OSUE at large eps): l is then nearly tr S, and the error was up to a third larger in what was
    tried (few users, all at one value). Single values that stand out are spread over all
    coefficients, so little is gained there in any case: use `project_simplex` alone.
    """
    noisy = finite(frequencies)
    v = _mean(variances, noisy.shape)
    k = noisy.shape[-1]
    # The values and their mirror image are one period: its waves are the cosines of the values.
    waves = np.fft.rfft(np.concatenate([noisy, noisy[..., ::-1]], axis=-1), axis=-1)
    for block in _blocks(k):
        size = block.stop - block.start
        # An orthonormal coefficient squared is |wave|^2 / 2k.
        squares = (np.abs(waves[..., block]) ** 2).sum(axis=-1, keepdims=True) / (2 * k)
        taken = v * min(2 * (size - 2), size + 2 * np.sqrt(size))
        with np.errstate(divide="ignore", invalid="ignore"):
            waves[..., block] *= np.where(squares > taken, 1 - taken / squares, 0.0)
    smoothed: Floats = np.fft.irfft(waves, n=2 * k, axis=-1)[..., :k]
    return smoothed


def _mean(variances: Array, shape: tuple[int, ...]) -> Floats:
    """The mean variance of the bins, float64[..., 1]."""
    given = finite(np.atleast_1d(variances), name="variances")
    if np.ndim(variances) and given.shape != shape:
        raise ParameterError(
            f"variances must have the shape of the frequencies, {shape}, got {given.shape}; "
            "pass estimate.standard_errors ** 2"
        )
    if (given < 0).any():
        raise ParameterError(
            "variances must be >= 0, got some below; pass estimate.standard_errors ** 2"
        )
    mean: Floats = given.mean(axis=-1, keepdims=True)
    return mean


def _blocks(k: int) -> Iterator[slice]:
    """The cosine frequencies 1..k-1 in blocks; fewer than three of them stay as they are."""
    start, size = 1, float(SHORTEST)
    while k - start >= SHORTEST:
        stop = start + int(size)
        if k - stop < SHORTEST:
            stop = k
        yield slice(start, stop)
        start, size = stop, size * GROWTH
