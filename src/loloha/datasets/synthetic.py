"""Made-up populations: the paper's Syn, and a labelled stand-in for the ACS person weights."""

from __future__ import annotations

import math

import numpy as np

from loloha.checks import integer, real
from loloha.datasets.dataset import Dataset, generator, narrowest

LARGEST = 10**9


def syn(
    n: int = 10_000,
    k: int = 360,
    tau: int = 120,
    change: float = 0.25,
    rng: int | np.random.SeedSequence | np.random.Generator = 0,
) -> Dataset:
    """Users who start at a uniform value and sometimes jump to another uniform one.

    Parameters
    ----------
    n : int
        Users, n >= 1.
    k : int
        Values, k >= 2; the labels are 0..k-1.
    tau : int
        Rounds, tau >= 1.
    change : float
        Probability in [0, 1] that a user draws a uniform value anew in a round after the first; it
        is the old one again with probability 1/k.
    rng : int, SeedSequence or Generator
        Equal seeds give equal data.

    Returns
    -------
    Dataset
        ``source="synthetic"``.

    Raises
    ------
    ParameterError
        If an argument is outside its range.

    Notes
    -----
    Source: MATH section 10; the defaults are the paper's.
    """
    n = integer("n", n, 1, LARGEST, "give the number of users")
    k = integer("k", k, 2, LARGEST, "give the number of values")
    tau = integer("tau", tau, 1, LARGEST, "give the number of rounds")
    change = real("change", change, 0.0, 1.0, "give a probability")
    random = generator(rng)
    values = np.empty((n, tau), dtype=narrowest(k))
    current = random.integers(k, size=n, dtype=np.int64)
    values[:, 0] = current
    for t in range(1, tau):
        moves = random.random(n) < change
        current[moves] = random.integers(k, size=np.count_nonzero(moves))
        values[:, t] = current
    provenance = (
        f"Synthetic: uniform start over {k} values, each round a user redraws with probability "
        f"{change:g} (n = {n}, tau = {tau})."
    )
    return Dataset(values, tuple(range(k)), "Syn", "synthetic", provenance)


def acs_standin(
    n: int = 10_336, tau: int = 80, rng: int | np.random.SeedSequence | np.random.Generator = 0
) -> Dataset:
    """Integers that look like the ACS person weights, for use where those cannot be had.

    Parameters
    ----------
    n : int
        Users, n >= 2.
    tau : int
        Rounds, tau >= 1.
    rng : int, SeedSequence or Generator
        Equal seeds give equal data.

    Returns
    -------
    Dataset
        ``source="stand-in"``; the labels are the sorted distinct integers that were drawn, some
        1 400 of them at the default size.

    Raises
    ------
    ParameterError
        If an argument is outside its range.

    Notes
    -----
    Person u has the base weight B_u, log-normal with median 75 and sigma 0.75 (heavy-tailed). In
    round t it reads max(1, round(B_u F E)): F is 1 - s, 1 or 1 + s with probability 1/4, 1/2, 1/4
    and s = 1/sqrt(2), the factors of successive difference replication by which the Census Bureau
    makes its 80 replicate weights, and E is log-normal with median 1 and sigma 0.15 for its later
    adjustments. Only the shape is that of the real weights: no figure of a publication can be
    reproduced from it.
    """
    n = integer("n", n, 2, LARGEST, "give the number of users")
    tau = integer("tau", tau, 1, LARGEST, "give the number of rounds")
    random = generator(rng)
    step = math.sqrt(0.5)
    base = 75.0 * np.exp(0.75 * random.standard_normal(n))
    weights = np.empty((n, tau), dtype=np.int64)
    for t in range(tau):
        factor = 1.0 + step * (random.binomial(2, 0.5, size=n) - 1)
        weights[:, t] = np.rint(base * factor * np.exp(0.15 * random.standard_normal(n)))
    np.maximum(weights, 1, out=weights)
    labels = np.unique(weights)
    values = np.searchsorted(labels, weights).astype(narrowest(labels.size))
    provenance = (
        "Stand-in, not real data: integers drawn from a documented heavy-tailed "
        "distribution in the shape of ACS person weights "
        f"(n = {n}, k = {labels.size}, tau = {tau})."
    )
    return Dataset(values, tuple(labels.tolist()), "ACS stand-in", "stand-in", provenance)
