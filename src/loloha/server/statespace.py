"""Model and filter of estimates over rounds that share memo noise (maths, section 19)."""

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
# The share of users who return to their values: while the rest is fitted, and then.
USUAL_REVISITING, REVISITING = 0.03, np.logspace(-3, -0.05, 13)
# By how much the logarithm of a likelihood lies below the largest one where it still counts (1.96
# standard deviations of one number), and the 1 - rho that are compared.
NEARLY, GAPS = 1.92, np.logspace(RANGES[2][0], RANGES[2][1], 13)
# How fast single values may move, in units of what is fitted to all of them.
PACES = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
# Over which the smoother averages: decimal exponents of the mean step, in the same units, and of
# 1 - rho; how likely at least, beside the likeliest; and of how many estimates in all.
STEPS, FADINGS = np.linspace(-5, 1, 7), np.linspace(-3, -0.05, 5)
LEAST_CHANCE, AVERAGED_CELLS = 0.01, 1 << 20
# Of the shares of values at each pace: observations that they begin with, and steps to fit them.
PRIOR_COUNT, SHARE_STEPS = 0.5, 100


class Parameters(NamedTuple):
    """How fast the truth moves, and the memo noise with it.

    Attributes
    ----------
    s, s_0 : float
        The level of a value of mean frequency f moves by a normal step of variance
        pace (s f (1 - f) + s_0) from a round to the next.
    rho : float
        Correlation, from a round to the next, of what fades as users change their values.
    revisiting : float
        Share of users whom rounds far apart find at one value, beyond those by chance.
    pace : float64[k]
        Of each value: some are rolled out while most stand still.
    least_rho : float
        The least rho that the estimates do not make unlikely.
    """

    s: Any
    s_0: Any
    rho: Any
    revisiting: Any = USUAL_REVISITING
    pace: Any = 1.0
    least_rho: Any = 0.0

    def drift(self, f: Floats) -> Any:
        """Variance of the level's step, by mean frequency: q."""
        return self.pace * (self.s * f * (1 - f) + self.s_0)


class Plausible(NamedTuple):
    """Parameters that are plausible, [m, 1] each, those fitted first; and their chances, [m]."""

    chances: Floats
    parameters: Parameters

    @classmethod
    def of(cls, parameters: Parameters) -> Plausible:
        """These alone."""
        s, s_0, rho, revisiting = (np.full((1, 1), number) for number in parameters[:4])
        each = parameters._replace(s=s, s_0=s_0, rho=rho, revisiting=revisiting)
        return cls(np.ones(1), each)


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


class _Loads(NamedTuple):
    """How a round depends on the states, beside the level: standard deviations.

    a is what lasts of the memo noise. b is what fades: the rest of it, and how far the truth is
    from its level because users change their values. Of the truth, b is known to bring ``truth``;
    ``rest`` is what the memo noise hides.
    """

    a: Any
    b: Any
    truth: Any
    rest: Any


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
    turnover : float64[k]
        Variance of the truth about its level, of users who all draw their values anew: T.
    lasting : float64[k]
        Share of the memo noise that never leaves, of such users: phi.
    elapsed : int64[tau]
        Rounds since the row before; the first does not count.
    users : float
        Whose values the truth is the mean of.
    """

    estimates: Floats
    memo: Floats
    fresh: Floats
    frequency: Floats
    turnover: Floats
    lasting: Floats
    elapsed: Any
    users: float

    def of(self, values: Any) -> Observed:
        """The same of some values."""
        rows = {name: getattr(self, name)[:, values] for name in ("estimates", "memo", "fresh")}
        columns = {
            name: getattr(self, name)[values] for name in ("frequency", "turnover", "lasting")
        }
        return replace(self, **rows, **columns)

    def loads(self, t: int, revisiting: Any) -> _Loads:
        """Of row t, if so many users return to their values."""
        memo, lasting = self.memo[t], revisiting + (1 - revisiting) * self.lasting
        faded, moved = (1 - lasting) * memo, (1 - revisiting) * self.turnover
        b = np.sqrt(faded + moved)
        some = np.maximum(b, np.finfo(float).tiny)
        return _Loads(np.sqrt(lasting * memo), b, moved / some, np.sqrt(faded * moved) / some)


def forward(observed: Observed, parameters: Parameters) -> Iterator[_Step]:
    """The Kalman filter, round by round; parameters of shape [m, 1] run m filters at once."""
    # The states a and b are standard normals, which the loads of each round scale.
    f, rho, revisiting = observed.frequency, parameters.rho, parameters.revisiting
    drift = parameters.drift(f)
    size = np.broadcast_shapes(np.shape(drift), f.shape, np.shape(rho), np.shape(revisiting))
    state, covariance = np.zeros((3, *size)), np.zeros((3, 3, *size))
    state[0] = 1 / len(f)
    covariance[0, 0], covariance[1, 1], covariance[2, 2] = PRIOR_VARIANCE, 1.0, 1.0
    for t, (y, fresh) in enumerate(zip(observed.estimates, observed.fresh, strict=True)):
        if t:
            state, covariance = predict(state, covariance, drift, rho, observed.elapsed[t])
        a, b, *_ = observed.loads(t, revisiting)
        seen = np.isfinite(y)
        innovation = np.where(seen, y, 0.0) - state[0] - a * state[1] - b * state[2]
        along = covariance[:, 0] + a * covariance[:, 1] + b * covariance[:, 2]
        scale = along[0] + a * along[1] + b * along[2] + fresh
        gain = np.where(seen, along / scale, 0.0)
        state = state + gain * innovation
        covariance = covariance - gain[:, None] * along[None]
        unseen = np.where(seen, 1.0, np.nan)
        yield _Step(state, covariance, innovation * unseen, scale * unseen)


def predict(
    state: Floats, covariance: Floats, drift: Any, rho: Any, elapsed: int
) -> tuple[Floats, Floats]:
    """States and covariance some rounds later."""
    persistence = rho**elapsed
    state, covariance = state.copy(), covariance.copy()
    state[2] *= persistence
    covariance[2] *= persistence
    covariance[:, 2] *= persistence
    covariance[0, 0] += drift * elapsed
    covariance[2, 2] += 1 - persistence**2
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
    # Then the share of users who return to their values, and the pace of each value: their means,
    # given all values, over a prior and over a distribution of paces that all values share.
    # Half the logarithm of the mean step's variance is added: a truth of which little is known
    # would often be fitted as one that never moves, and changes of it as certain (Chung et al.
    # 2013).
    some = observed.of(_representative(observed.frequency))
    unit = _unit(some)

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
    fitted = fitted._replace(revisiting=_revisiting(observed, fitted))
    fitted = fitted._replace(least_rho=_least_rho(some, fitted))
    return fitted._replace(pace=_paces(observed, fitted))


def plausible(observed: Observed, fitted: Parameters) -> Plausible:
    """The fitted parameters, and those around that the estimates do not make unlikely."""
    # A priori the standard deviation of the level's step is uniform, as the fit has it, and 1 - rho
    # in its logarithm. Frequencies add up to one, so that k values tell as much as k - 1.
    ranked = _representative(observed.frequency)
    some, pace = observed.of(ranked), np.broadcast_to(fitted.pace, observed.frequency.shape)
    at_pace = fitted._replace(pace=pace[ranked])
    unit, step = _unit(some), float(at_pace.drift(some.frequency).mean())
    gap = max(1 - fitted.rho, 10.0 ** RANGES[2][0])
    axes = _through(np.log10(step / unit), STEPS), _through(np.log10(gap), FADINGS)
    steps, gaps = 10 ** np.array(list(product(*axes))).T[..., None]
    s, s_0 = (number * steps * unit / step for number in (fitted.s, fitted.s_0))
    rho, returning = 1 - gaps, REVISITING[:, None]
    rows = (s[:, None], s_0[:, None], rho[:, None], returning)
    free = max(len(ranked) - 1, 1) / len(ranked)
    logs = free * log_likelihood(some, Parameters(*rows, at_pace.pace)) + 0.5 * np.log(steps)
    densities = np.exp(logs - logs.max())
    chances = np.maximum(densities.sum(axis=1), np.finfo(float).tiny)
    # Of the share of users who return, the mean given the others.
    revisiting = densities @ returning / chances[:, None]
    revisiting[0] = fitted.revisiting
    most = max(AVERAGED_CELLS // observed.estimates.size, 1)
    likely = 1 + np.argsort(-chances[1:], kind="stable")[: most - 1]
    likely = np.r_[0, likely[chances[likely] >= LEAST_CHANCE * chances.max()]]
    s, s_0, rho, revisiting = (row[likely] for row in (s, s_0, rho, revisiting))
    each = fitted._replace(s=s, s_0=s_0, rho=rho, revisiting=revisiting)
    return Plausible(chances[likely] / chances[likely].sum(), each)


def _through(point: Any, axis: Floats) -> list[float]:
    """A point, then those of an axis but the nearest to it."""
    return [float(point), *np.delete(axis, np.abs(axis - point).argmin()).tolist()]


def _unit(observed: Observed) -> float:
    """Mean variance of a round."""
    variance = observed.memo + observed.fresh
    return float(np.nanmean(np.where(np.isfinite(observed.estimates), variance, np.nan)))


def _revisiting(observed: Observed, parameters: Parameters) -> float:
    """The posterior mean of the share of users who return, of a prior uniform in its logarithm."""
    # Not the likeliest: where rounds hardly tell it, noise that might last counts as such.
    logs = log_likelihood(observed, parameters._replace(revisiting=REVISITING[:, None]))
    chances = np.exp(logs - logs.max())
    return float(chances @ REVISITING / chances.sum())


def _least_rho(observed: Observed, parameters: Parameters) -> float:
    """The least rho of those that are nearly as likely as the likeliest."""
    logs = log_likelihood(observed, parameters._replace(rho=1 - GAPS[:, None]))
    return float(min(parameters.rho, 1 - GAPS[logs >= logs.max() - NEARLY].max()))


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
