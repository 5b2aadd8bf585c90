"""Errors of the estimates of a run against the truth, and the losses of its users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha import checks
from loloha.arrays import Floats, Ints
from loloha.errors import ParameterError
from loloha.postprocess import clip_and_renormalise
from loloha.protocols import Protocol
from loloha.server.variance import harmonic_eligible, variance


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Error of one run, round by round, beside what theory expects of it.

    A round without a single report has nan in every error.

    Attributes
    ----------
    n : int64[tau]
        Reports of each round.
    mse : float64[tau]
        Mean squared error of the unbiased estimate over the bins, in squared frequency.
    mse_clipped : float64[tau]
        The same after clipping at 0 and renormalising.
    mse_uniform : float64[tau]
        The same of always answering "uniform".
    v_star : float64[tau]
        Approximate variance V*.
    expected_mse : float64[tau]
        Exact variance, averaged over the bins: what `mse` is expected to be. A bucket that no user
        of the round samples has no estimate, and is in neither.
    eps_avg, eps_max : float
        Budget spent by a user, mean and largest over the users.
    """

    n: Ints
    mse: Floats
    mse_clipped: Floats
    mse_uniform: Floats
    v_star: Floats
    expected_mse: Floats
    eps_avg: float
    eps_max: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data: means over the rounds with reports, and each round; nan is None."""
        names = ("mse", "mse_clipped", "mse_uniform", "v_star", "expected_mse")
        errors = {name: getattr(self, name) for name in names}
        means = {
            name: None if np.isnan(series).all() else float(np.nanmean(series))
            for name, series in errors.items()
        }
        rounds = [
            {"n": int(n)}
            | {name: checks.finite(float(series[t])) for name, series in errors.items()}
            for t, n in enumerate(self.n)
        ]
        return means | {"eps_avg": self.eps_avg, "eps_max": self.eps_max, "rounds": rounds}


def evaluate(
    protocol: Protocol, estimates: Floats, truth: Floats, n: Ints, loss: Floats, every: int = 1
) -> Evaluation:
    """Compare the estimates of a run, float64[tau, bins], with the truth of the same rounds."""
    # NaN where nobody's report could support the bin, which is then left out. The truth is that of
    # the same reports, or of all of ``every`` panels; n are the reports of each round, ``loss`` the
    # budget that each user spent. Source: MATH section 10.
    shape = (len(n), protocol.bins)
    if np.shape(estimates) != shape or np.shape(truth) != shape:
        raise ParameterError(
            f"estimates and truth must be of shape {shape}, got {np.shape(estimates)} and "
            f"{np.shape(truth)}; give one row per round"
        )
    errors = np.full((5, len(n)), math.nan)
    for t in np.flatnonzero(n):
        errors[:, t] = _round(protocol, estimates[t], truth[t], int(n[t]), every)
    measured: list[Any] = [*errors, float(np.mean(loss)), float(np.max(loss))]
    return Evaluation(np.asarray(n), *measured)


def binned(protocol: Protocol, frequencies: Floats) -> Floats:
    """Of float64[tau, k] frequencies those that the protocol estimates, float64[tau, bins]."""
    return np.asarray(protocol.encoding.frequencies(frequencies), dtype=np.float64)


def bin_labels(protocol: Protocol, labels: Sequence[Any]) -> list[Any]:
    """Labels of the bins: those of the k values, or "first … last" of those that a bin counts."""
    if protocol.bins == len(labels):
        return list(labels)
    encoding = protocol.encoding
    return [encoding.bin_label(bin, lambda v: str(labels[v])) for bin in range(protocol.bins)]


def _round(
    protocol: Protocol, estimate: Floats, truth: Floats, n: int, every: int
) -> tuple[float, ...]:
    known = ~np.isnan(estimate)
    if not known.any():
        return (math.nan,) * 5
    eligible = harmonic_eligible(protocol, n)
    clipped, uniform = _plain_answers(protocol, np.where(known, estimate, 0.0))
    squares = [float(np.nanmean((answer - truth) ** 2)) for answer in (estimate, clipped, uniform)]
    expected = variance(protocol, n * every, np.clip(truth, 0.0, 1.0), eligible=eligible)
    return (*squares, variance(protocol, n), float(np.mean(expected)))


def _plain_answers(protocol: Protocol, estimate: Floats) -> tuple[Floats, Any]:
    """The estimate clipped, and the answer "uniform": shares above thresholds do not sum to 1."""
    if protocol.histogram:
        return clip_and_renormalise(estimate), 1 / protocol.bins
    even = np.full(protocol.k, 1 / protocol.k)
    return np.clip(estimate, 0, 1), protocol.encoding.frequencies(even)
