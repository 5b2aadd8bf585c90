"""Filter and smoother of estimates over rounds that share memo noise (maths, section 19)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from loloha.arrays import Floats

PRIOR_VARIANCE = 1.0
"""Of the level before anything is seen: far wider than [0, 1]."""
# Likelihood is read on this many values: half of them the most frequent, half spread over the rest.
FITTED_VALUES = 64
# Decimal exponents of s and s_0, in units of the mean variance of a round, and of 1 - rho.
RANGES = ((-6.0, 2.0), (-7.0, 1.0), (-4.0, 0.0))
COARSE, FINEST = 6, 0.2
# How fast single values may move, in units of what is fitted to all of them.
PACES = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
# Of the shares of values at each pace: observations that they begin with, and steps to fit them.
PRIOR_COUNT, SHARE_STEPS = 0.5, 100


class Parameters(NamedTuple):
    """How fast the truth moves, and the memo noise with it.

    Attributes
    ----------
    s, s_0 : float
        The truth of a value of mean frequency f moves by a normal step of variance
        pace (s f (1 - f) + s_0) from a round to the next.
    rho : float
        Correlation, from a round to the next, of the memo noise that can leave.
    pace : float64[k]
        Of each value: some are rolled out while most stand still.
    """

    s: Any
    s_0: Any
    rho: Any
    pace: Any = 1.0

    def drift(self, f: Floats) -> Any:
        """Variance of the truth's step, by mean frequency: q."""
        return self.pace * (self.s * f * (1 - f) + self.s_0)


class Posterior(NamedTuple):
    """Mean and variance of the truth of each round and value, float64[tau, k] each."""

    mean: Floats
    variance: Floats


class _Step(NamedTuple):
    """The filter after a round: states x, a, b, their covariance; innovation and its variance."""

    state: Floats
    covariance: Floats
    innovation: Floats
    scale: Floats


@dataclass(frozen=True, eq=False)
class Observed:
    """What the filter takes: estimates of rounds, and how their variance splits.

    Attributes
    ----------
    estimates : float64[tau, k]
        Unbiased; NaN where nothing was seen.
    memo, fresh : float64[tau, k]
        Variance that rounds share through the memo (C), and that they do not (V - C).
    frequency : float64[k]
        Mean frequency of each value.
    lasting : float64[k]
        Share of the memo noise that never leaves: phi.
    elapsed : int64[tau]
        Rounds since the row before; the first does not count.
    """

    estimates: Floats
    memo: Floats
    fresh: Floats
    frequency: Floats
    lasting: Floats
    elapsed: Any

    def of(self, values: Any) -> Observed:
        """The same of some values."""
        rows = {name: getattr(self, name)[:, values] for name in ("estimates", "memo", "fresh")}
        columns = {name: getattr(self, name)[values] for name in ("frequency", "lasting")}
        return replace(self, **rows, **columns)


def forward(observed: Observed, parameters: Parameters) -> Iterator[_Step]:
    """The Kalman filter, round by round; parameters of shape [m, 1] run m filters at once."""
    # The states a and b are in units of the standard deviation of the memo noise of their round.
    f, lasting, rho = observed.frequency, observed.lasting, parameters.rho
    drift = parameters.drift(f)
    size = np.broadcast_shapes(np.shape(drift), f.shape, np.shape(rho))
    state, covariance = np.zeros((3, *size)), np.zeros((3, 3, *size))
    state[0] = 1 / len(f)
    covariance[0, 0], covariance[1, 1], covariance[2, 2] = PRIOR_VARIANCE, lasting, 1 - lasting
    loads = np.sqrt(observed.memo)
    for t, (y, load, fresh) in enumerate(
        zip(observed.estimates, loads, observed.fresh, strict=True)
    ):
        if t:
            state, covariance = _predict(
                state, covariance, drift, rho, lasting, observed.elapsed[t]
            )
        seen = np.isfinite(y)
        innovation = np.where(seen, y, 0.0) - state[0] - load * (state[1] + state[2])
        along = covariance[:, 0] + load * (covariance[:, 1] + covariance[:, 2])
        scale = along[0] + load * (along[1] + along[2]) + fresh
        gain = np.where(seen, along / scale, 0.0)
        state = state + gain * innovation
        covariance = covariance - gain[:, None] * along[None]
        unseen = np.where(seen, 1.0, np.nan)
        yield _Step(state, covariance, innovation * unseen, scale * unseen)


def _predict(
    state: Floats, covariance: Floats, drift: Any, rho: Any, lasting: Floats, elapsed: int
) -> tuple[Floats, Floats]:
    """States and covariance some rounds later."""
    kept = rho**elapsed
    state, covariance = state.copy(), covariance.copy()
    state[2] *= kept
    covariance[2] *= kept
    covariance[:, 2] *= kept
    covariance[0, 0] += drift * elapsed
    covariance[2, 2] += (1 - lasting) * (1 - kept**2)
    return state, covariance


def log_likelihood(observed: Observed, parameters: Parameters) -> Any:
    """Logarithm of the density of all estimates seen, by their one-step predictions."""
    return _log_densities(observed, parameters).sum(axis=-1)


def _log_densities(observed: Observed, parameters: Parameters) -> Any:
    """The same of each value, float64[..., k]."""
    total: Any = 0.0
    for step in forward(observed, parameters):
        terms = np.log(2 * np.pi * step.scale) + step.innovation**2 / step.scale
        total = total - 0.5 * np.nan_to_num(terms)
    return total


def fit(observed: Observed) -> Parameters:
    """The parameters of largest likelihood: a coarse grid, then steps to the best neighbour."""
    # Then the pace of each value, its mean over a distribution of paces that all values share.
    # Half the logarithm of the mean step's variance is added: a truth of which little is known
    # would often be fitted as one that never moves, and changes of it as certain (Chung et al.
    # 2013).
    some = observed.of(_representative(observed.frequency))
    unit = float(np.nanmean(np.where(np.isfinite(some.estimates), some.memo + some.fresh, np.nan)))

    def best(points: list[tuple[float, ...]]) -> tuple[float, ...]:
        s, s_0, gap = 10 ** np.array(points).T[..., None]
        parameters = Parameters(s * unit, s_0 * unit, 1 - gap)
        steps = parameters.drift(some.frequency).mean(axis=-1)
        return points[int(np.argmax(log_likelihood(some, parameters) + 0.5 * np.log(steps)))]

    at = best(list(product(*(np.linspace(*ends, COARSE).tolist() for ends in RANGES))))
    step = 1.0
    while step >= FINEST:
        around = [
            [min(max(x + move * step, low), high) for move in (0, -1, 1)]
            for x, (low, high) in zip(at, RANGES, strict=True)
        ]
        # The point itself comes first, so that it is left for a better one alone.
        here, at = at, best(list(product(*around)))
        if at == here:
            step /= 2
    s, s_0, gap = (10.0**x for x in at)
    fitted = Parameters(s * unit, s_0 * unit, 1 - gap)
    return fitted._replace(pace=_paces(observed, fitted))


def _paces(observed: Observed, parameters: Parameters) -> Floats:
    """The posterior mean pace of each value, float64[k]; shares of paces by empirical Bayes."""
    paces = np.array(PACES)[:, None]
    logs = _log_densities(observed, parameters._replace(pace=paces))
    likelihood = np.exp(logs - logs.max(axis=0))
    shares = np.full_like(paces, 1 / len(paces))
    for _ in range(SHARE_STEPS):
        chances = shares * likelihood
        chances /= chances.sum(axis=0)
        shares = chances.sum(axis=1, keepdims=True) + PRIOR_COUNT
        shares /= shares.sum()
    mean: Floats = (chances * paces).sum(axis=0)
    return mean


def _representative(frequency: Floats) -> Any:
    """Indices of the values that the fit reads."""
    ranked = np.argsort(-frequency, kind="stable")
    if len(ranked) <= FITTED_VALUES:
        return ranked
    half = FITTED_VALUES // 2
    return np.r_[ranked[:half], ranked[np.linspace(half, len(ranked) - 1, half).astype(int)]]


@dataclass(frozen=True, eq=False)
class States:
    """What all rounds say of each.

    Attributes
    ----------
    filtered, smoothed : Posterior
        Given the rounds up to each, and given all.
    innovations : float64[tau, k]
        Standardised errors of one-step predictions, at the pace of all values; NaN where nothing
        was seen.
    gains : list of float64[3, 3, k], one for each row but the last
        Of the Rauch-Tung-Striebel pass.
    covariances : float64[tau, 3, k]
        Smoothed, of x with x, a and b.
    """

    filtered: Posterior
    smoothed: Posterior
    innovations: Floats
    gains: list[Floats]
    covariances: Floats

    def covariance(self, s: int, t: int) -> Floats:
        """Of the truths of rows s <= t given all rounds, float64[k]."""
        row = np.zeros((3, self.covariances.shape[-1]))
        row[0] = 1.0
        for gain in self.gains[s:t]:
            row = np.einsum("ik,ijk->jk", row, gain)
        shared: Floats = np.einsum("ik,ik->k", row, self.covariances[t])
        return shared


def smooth(observed: Observed, parameters: Parameters) -> States:
    """Filter forwards, then Rauch, Tung and Striebel backwards."""
    steps = list(forward(observed, parameters))
    drift = parameters.drift(observed.frequency)
    tau, size = len(steps), len(observed.frequency)
    filtered = Posterior(
        np.array([step.state[0] for step in steps]),
        np.array([step.covariance[0, 0] for step in steps]),
    )
    # At the pace of all values: a burst must not hide in a pace that it has raised itself.
    common = forward(observed, parameters._replace(pace=1.0))
    innovations = np.array([step.innovation / np.sqrt(step.scale) for step in common])
    # A row's gain takes the place of what the filter knew after it, which is the most that is held.
    gains: list[Floats] = []
    covariances, means = np.empty((tau, 3, size)), np.empty((tau, size))
    state, covariance = steps[-1].state, steps[-1].covariance
    for t in reversed(range(tau)):
        past = steps.pop()
        if t < tau - 1:
            elapsed = observed.elapsed[t + 1]
            predicted, spread = _predict(
                past.state, past.covariance, drift, parameters.rho, observed.lasting, elapsed
            )
            gain = _gain(past.covariance, spread, parameters.rho**elapsed)
            gains.append(gain)
            state = past.state + np.einsum("ijk,jk->ik", gain, state - predicted)
            covariance = past.covariance + np.einsum(
                "ijk,jlk,mlk->imk", gain, covariance - spread, gain, optimize=True
            )
        means[t], covariances[t] = state[0], covariance[0]
    return States(
        filtered, Posterior(means, covariances[:, 0]), innovations, gains[::-1], covariances
    )


def _gain(covariance: Floats, predicted: Floats, kept: Any) -> Floats:
    """Covariance of a row's states with the next row's, over that of these: float64[3, 3, k]."""
    across = covariance * np.array([1.0, 1.0, kept])[None, :, None]
    solved = np.linalg.solve(predicted.transpose(2, 0, 1), across.transpose(2, 1, 0))
    gain: Floats = solved.transpose(2, 1, 0)
    return gain
