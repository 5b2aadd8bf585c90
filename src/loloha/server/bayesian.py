"""The likeliest frequencies of one round: the iterative Bayesian update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Array, Floats
from loloha.counting.decode import Windows, signed_sums
from loloha.encodings import Hashed, OneHot, SampledBuckets, Symbols, for_encoding
from loloha.encodings.part import CELLS
from loloha.errors import ParameterError
from loloha.hashing import HashFamily, LinearHash, PrimeHash
from loloha.protocols import Protocol
from loloha.report import MOST_REPORTS
from loloha.server.projection import finite
from loloha.server.tally import Tally

MOST_ITERATIONS = 1_000_000


def iterative_bayesian_update(
    tally: Tally, *, iterations: int = 1000, tolerance: float = 1e-9, start: Any = None
) -> Floats:
    """Most likely frequencies given the counts, by expectation maximisation (IBU).

    Parameters
    ----------
    tally : Tally
        Counts of one round, n >= 1.
    iterations : int
        Most steps to take, >= 1. Few steps smooth; the likeliest frequencies can need thousands
        where the reports are very noisy.
    tolerance : float
        Stop when a step moves the frequencies by less than this in all (sum of absolute
        differences), >= 0.
    start : float64[k], optional
        Frequencies > 0 to start from, e.g. those of the round before; by default uniform.

    Returns
    -------
    float64[k]
        >= 0, adding up to 1.

    Raises
    ------
    ParameterError
        If nothing was counted, or the counts do not hold what the likelihood needs: only those of
        GRR, L-GRR and hash families with a table do. For all others use `project_simplex`.

    Notes
    -----
    The channel is that of whole reports: Pr[y | v] for symbols, Pr[key, y | v] under a hash. With
    exact expected counts the fixed point is the truth. A step costs about two decodings of a
    round; where that is much, `project_simplex` takes one sort.
    """
    if not isinstance(tally, Tally):
        raise ParameterError(
            f"tally must be a Tally, got {type(tally).__name__}; an Estimate no longer holds what "
            "was counted"
        )
    answers = _answers(tally.protocol)
    n = checks.integer("n", tally.n, 1, MOST_REPORTS, "wait for at least one report of the round")
    iterations = checks.integer("iterations", iterations, 1, MOST_ITERATIONS, "1000 is usual")
    tolerance = checks.real("tolerance", tolerance, 0.0, 2.0, "1e-9 is usual")
    frequencies = _start(start, tally.protocol.k)
    # Of the rounds together, before any hashing, as devices draw.
    rules = tally.protocol
    p, q = rules.chained(rules.first_channel, rules.second_channel)
    q, contrast = float(q), float(p - q)
    shares = answers.arrange(tally.counts) / n
    for _ in range(iterations):
        # A report supports v or not: Pr[it | v] is proportional to q + contrast [it supports v].
        # So its weight is its share over q + contrast * (mass of the values it supports), and
        # v gains q from every report, contrast more from those that support it.
        weights = shares / (q + contrast * answers.masses(frequencies))
        gain = q * weights.sum() + contrast * answers.supporting(weights)
        # The gains of exact arithmetic keep the sum at 1; rounding must not build up.
        updated = frequencies * gain
        updated /= updated.sum()
        moved = np.abs(updated - frequencies).sum()
        frequencies = updated
        if moved < tolerance:
            break
    return frequencies


class _Values:
    """Answers are the values themselves, each supporting one."""

    def arrange(self, counts: Array) -> Any:
        return counts

    def masses(self, frequencies: Floats) -> Any:
        """Mass of the values that each answer supports."""
        return frequencies

    def supporting(self, weights: Array) -> Floats:
        """Sum, for each value, of the weights of the answers that support it."""
        values: Floats = weights
        return values


class _LinearCells:
    """Answers are (seed, symbol) pairs of the linear family; both directions are transforms.

    The cell (s, x) supports the values v with <s, v> = x. Over the characters of Z_g^m both sums
    cost about as much as one decoding, and nothing of size n x k is ever made.
    """

    def __init__(self, family: LinearHash) -> None:
        self._family = family
        self._cube = (family.g,) * family.m

    def arrange(self, counts: Array) -> Any:
        return counts.reshape(self._family.size, self._family.g)

    def masses(self, frequencies: Floats) -> Any:
        """F[s, x] = (1/g) sum_j w^(jx) fhat[j s], fhat the transform of the frequencies."""
        g, size = self._family.g, self._family.size
        padded = np.zeros(size)
        padded[: len(frequencies)] = frequencies
        if g == 2:
            even = signed_sums(padded)
            return np.stack(((1 + even) / 2, (1 - even) / 2), axis=1)
        transformed = np.fft.fftn(padded.reshape(self._cube))
        # The masses are real: half of the characters determine the others.
        spectrum = np.empty((size, g // 2 + 1), dtype=np.complex128)
        for j in range(g // 2 + 1):
            spectrum[:, j] = self._at_multiples(transformed, j)
        # Rounding may leave a mass just below 0.
        return np.maximum(np.fft.irfft(spectrum, n=g, axis=1), 0.0)

    def supporting(self, weights: Array) -> Floats:
        """sum_s W[s, <s, v>], as `decode.linear_support` but of real weights."""
        g, k = self._family.g, self._family.k
        if g == 2:
            difference = signed_sums(weights[:, 0] - weights[:, 1])
            halved: Floats = (weights.sum() + difference[:k]) / 2
            return halved
        characters = np.fft.rfft(weights, axis=1).conj()
        spectrum = np.zeros(self._cube, dtype=np.complex128)
        for j in range(1, g // 2 + 1):
            column = characters[:, j].reshape(self._cube)
            spectrum += self._at_multiples(column, pow(j, -1, g)).reshape(self._cube)
        # The other half of the characters adds the same real part.
        real = np.fft.fftn(spectrum).real.reshape(-1)[:k]
        total: Floats = (weights.sum() + 2 * real) / g
        return total

    def _at_multiples(self, cube: Array, j: int) -> Any:
        """The entry at j s (mod g, digit by digit) for each seed s, as a flat array."""
        digits = np.arange(self._family.g) * j % self._family.g
        return cube[np.ix_(*[digits] * self._family.m)].reshape(-1)


class _PrimeCells(Windows):
    """Answers are (key, symbol) pairs of the prime family; both directions are sliding sums."""

    def arrange(self, counts: Array) -> Any:
        return counts.reshape(self.family.modulus - 1, self.family.modulus, self.family.g)

    def masses(self, weights: Floats) -> Any:
        # Differences of running sums may fall just below 0.
        return np.maximum(super().masses(weights), 0.0)


_CELLS: dict[type[HashFamily], Callable[[Any], _LinearCells | _PrimeCells]] = {
    LinearHash: _LinearCells,
    PrimeHash: _PrimeCells,
}


def _answers(protocol: Protocol) -> _Values | _LinearCells | _PrimeCells:
    """What the counts of the protocol are counts of; refused where a likelihood needs more."""
    # Hash families without a table keep supports only. Bits are answers of k (or d) bits at once,
    # whose likelihood is a function of the joint pattern: the support of each bit does not
    # determine it, and updating each bit on its own would be another estimator, with a wrong
    # channel.
    cells = CELLS.required(protocol.encoding)(protocol.encoding)
    if cells is None:
        raise ParameterError(
            f"tally must count whole answers (symbols, or a hash with a table), got one of "
            f"{protocol.name}, whose counts do not show them; use project_simplex"
        )
    answers: _Values | _LinearCells | _PrimeCells = cells
    return answers


@for_encoding(CELLS.name, Symbols)
def _values(encoding: Symbols) -> _Values:
    return _Values()


@for_encoding(CELLS.name, Hashed)
def _tabled(encoding: Hashed) -> _LinearCells | _PrimeCells | None:
    return _CELLS[type(encoding.family)](encoding.family) if encoding.tabled else None


@for_encoding(CELLS.name, OneHot, SampledBuckets)
def _bits(encoding: object) -> None:
    """Counts of bits are no counts of answers."""


def _start(start: Any, k: int) -> Floats:
    if start is None:
        return np.full(k, 1 / k)
    frequencies = finite(start, name="start")
    if frequencies.shape != (k,) or frequencies.min() <= 0:
        raise ParameterError(
            f"start must be {k} frequencies > 0, got shape {frequencies.shape}, least "
            f"{frequencies.min():g}; what starts at 0 stays there"
        )
    normalised: Floats = frequencies / frequencies.sum()
    return normalised
