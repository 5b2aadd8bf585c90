"""Frequencies >= 0 that add up to 1: the nearest ones, or clipped and scaled."""

from __future__ import annotations

from typing import Any

import numpy as np

from loloha.arrays import Floats
from loloha.errors import ParameterError


def project_simplex(frequencies: Any) -> Floats:
    """The nearest frequencies that are >= 0 and add up to 1 (Norm-Sub).

    Parameters
    ----------
    frequencies : float64[..., bins]
        Unbiased estimates; the last axis is projected.

    Returns
    -------
    float64[..., bins]
        max(f - c, 0), with the c at which it adds up to 1: the exact Euclidean projection.

    Raises
    ------
    ParameterError
        If there is no bin, or a frequency is not finite.
    """
    unbiased = finite(frequencies)
    # The projection ignores a common shift, and what lies 1 below the largest ends at 0 anyway:
    # so numbers of any size are safe to add up.
    with np.errstate(over="ignore"):
        shifted = np.maximum(unbiased - unbiased.max(axis=-1, keepdims=True), -1.0)
    descending = -np.sort(-shifted, axis=-1)
    excess = np.cumsum(descending, axis=-1) - 1
    ranks = np.arange(1, unbiased.shape[-1] + 1)
    kept = np.count_nonzero(descending * ranks > excess, axis=-1, keepdims=True)
    common = np.take_along_axis(excess, kept - 1, axis=-1) / kept
    projected: Floats = np.maximum(shifted - common, 0.0)
    return projected


def decreasing(shares: Any, weights: Any = 1.0) -> Floats:
    """The nearest shares in [0, 1] that never rise along the last axis (isotonic regression).

    Parameters
    ----------
    shares : float64[..., m]
        Unbiased estimates, all finite.
    weights : float64[..., m] or float
        Of their squared distances, > 0.

    Returns
    -------
    float64[..., m]
    """
    unbiased = finite(shares)
    each = np.broadcast_to(weights, unbiased.shape)
    rows = unbiased.reshape(-1, unbiased.shape[-1])
    fitted = [_pooled(*row) for row in zip(rows, each.reshape(rows.shape), strict=True)]
    nearest: Floats = np.clip(np.array(fitted).reshape(unbiased.shape), 0.0, 1.0)
    return nearest


def _pooled(shares: Floats, weights: Floats) -> Floats:
    """One row: neighbours that rise are pooled (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for share, weight in zip(shares.tolist(), weights.tolist(), strict=True):
        count = 1
        while blocks and blocks[-1][0] <= share:
            before, heavy, more = blocks.pop()
            share = (before * heavy + share * weight) / (heavy + weight)
            weight, count = weight + heavy, count + more
        blocks.append((share, weight, count))
    return np.repeat([block[0] for block in blocks], [block[2] for block in blocks])


def clip_and_renormalise(frequencies: Any) -> Floats:
    """Negative frequencies set to 0, the others scaled to add up to 1.

    Biased upwards for rare values; `project_simplex` is usually nearer to the truth.

    Parameters
    ----------
    frequencies : float64[..., bins]
        Unbiased estimates.

    Returns
    -------
    float64[..., bins]
        Where no frequency of a row is positive, which says nothing about any value: 1/bins each.

    Raises
    ------
    ParameterError
        If there is no bin, or a frequency is not finite.
    """
    unbiased = finite(frequencies)
    largest = unbiased.max(axis=-1, keepdims=True)
    empty = largest <= 0
    # In units of the largest, so that their sum neither overflows nor underflows.
    clipped = np.maximum(unbiased, 0.0) / np.where(empty, 1.0, largest)
    clipped = np.where(empty, 1.0, clipped)
    scaled: Floats = clipped / clipped.sum(axis=-1, keepdims=True)
    return scaled


def finite(frequencies: Any, name: str = "frequencies") -> Floats:
    """``frequencies`` as float64[..., bins], a view where they already are."""
    try:
        array = np.asarray(frequencies, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{name} must be an array of numbers, got {type(frequencies).__name__}; "
            "pass estimate.frequencies"
        ) from None
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ParameterError(
            f"{name} must have at least one bin on the last axis, got shape {array.shape}; "
            "pass estimate.frequencies"
        )
    if not np.isfinite(array).all():
        raise ParameterError(
            f"{name} must be finite, got {np.count_nonzero(~np.isfinite(array))} that are not; "
            "leave out rounds without reports and buckets that nobody sampled"
        )
    return array
