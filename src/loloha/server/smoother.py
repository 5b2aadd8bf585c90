"""What all rounds say of each, and of a change between two (maths, section 19)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha.arrays import Floats
from loloha.server import statespace
from loloha.server.statespace import Observed, Parameters, Plausible, Posterior, forward, predict


@dataclass(frozen=True, eq=False)
class States:
    """What all rounds say of each.

    Attributes
    ----------
    filtered, smoothed : Posterior
        Given the rounds up to each, and given all; over all parameters that are plausible.
    innovations : float64[tau, k]
        Standardised errors of one-step predictions, at the pace of all values; NaN where nothing
        was seen.
    means : float64[tau, k]
        Smoothed at the fitted parameters, as is what follows.
    gains : list of float64[3, 3, k], one for each row but the last
        Of the Rauch-Tung-Striebel pass.
    covariances : float64[tau, 3, k]
        Smoothed, of x, a and b with the truth.
    loads : float64[tau, 3, k]
        Of the truth on x, a and b.
    rest : float64[tau, k]
        Standard deviation of what these do not say of it.
    persistence : float64[tau]
        Correlation of that, and of b, with the row before.
    observed : Observed
    parameters : Parameters
    """

    filtered: Posterior
    smoothed: Posterior
    innovations: Floats
    means: Floats
    gains: list[Floats]
    covariances: Floats
    loads: Floats
    rest: Floats
    persistence: Floats
    observed: Observed
    parameters: Parameters

    def change(self, s: int, t: int) -> Posterior:
        """How much the truth grew from row s to row t, given all rounds: float64[k] each."""
        seen, fitted, rows = self.observed, self.parameters, [s, t]
        first, last = sorted(rows)
        mean = self.means[rows]
        variance = np.array([np.maximum(self.covariance(row, row), 0) for row in rows])
        joint = variance.sum(axis=0) - 2 * self.covariance(first, last)
        elapsed = seen.elapsed[first + 1 : last + 1].sum()
        # Where memo noise is most of the noise, estimates hardly tell whether the level moved or
        # users left their memos. What is taken for moves may be such noise, which both rounds have.
        memo, fresh = seen.memo[rows].sum(axis=0), seen.fresh[rows].sum(axis=0)
        share = memo / np.maximum(memo + fresh, np.finfo(float).tiny)
        added = share * np.minimum(fitted.drift(seen.frequency) * elapsed, memo)
        # Where fresh noise is, they hardly tell how often users change their values, which moves
        # the truth: it is taken for as often as is likely, of a value that is a standard error more
        # frequent.
        f = np.clip((mean + np.sqrt(variance)).mean(axis=0), 0, 0.5)
        most = (1 - fitted.least_rho**elapsed) * f * (1 - f) / seen.users
        counted = (1 - fitted.rho**elapsed) * seen.turnover
        added += 2 * (1 - fitted.revisiting) * np.maximum(most - counted, 0)
        # And the mean over what is plausible may lie apart from that of the fitted parameters.
        grown = self.smoothed.mean[t] - self.smoothed.mean[s]
        added += (grown - mean[1] + mean[0]) ** 2
        return Posterior(grown, np.maximum(joint, 0) + added)

    def covariance(self, s: int, t: int) -> Floats:
        """Of the truths of rows s <= t given all rounds, float64[k]."""
        row = self.loads[s]
        for gain in self.gains[s:t]:
            row = np.einsum("ik,ijk->jk", row, gain)
        shared: Floats = np.einsum("ik,ik->k", row, self.covariances[t])
        shared += self.persistence[s + 1 : t + 1].prod() * self.rest[s] * self.rest[t]
        return shared


def averaged(observed: Observed) -> States:
    """Fitted, and then smoothed over all parameters that are plausible."""
    fitted = statespace.fit(observed)
    return smooth(observed, fitted, statespace.plausible(observed, fitted))


def smooth(
    observed: Observed, parameters: Parameters, plausible: Plausible | None = None
) -> States:
    """Filter forwards, then Rauch, Tung and Striebel backwards; over all that is plausible."""
    chances, each = plausible or Plausible.of(parameters)
    steps = list(forward(observed, each))
    drift, rho = each.drift(observed.frequency), each.rho
    tau, size = len(steps), len(observed.frequency)
    shape = tau, len(chances), size
    loads, rest = np.zeros((tau, 3, *shape[1:])), np.empty(shape)
    loads[:, 0] = 1
    for t in range(tau):
        *_, loads[t, 2], rest[t] = observed.loads(t, each.revisiting)
    means, variances = np.empty((2, *shape))
    for t, (step, load) in enumerate(zip(steps, loads, strict=True)):
        means[t] = (load * step.state).sum(axis=0)
        variances[t] = np.einsum("i...,ij...,j...->...", load, step.covariance, load)
    filtered = _mixed(chances, means, variances + rest**2)
    # At the pace of all values: a burst must not hide in a pace that it has raised itself.
    common = forward(observed, parameters._replace(pace=1.0))
    innovations = np.array([step.innovation / np.sqrt(step.scale) for step in common])
    # A row's gain replaces the filter's state after it, the largest array in memory.
    gains: list[Floats] = []
    covariances = np.empty_like(loads)
    state, covariance = steps[-1].state, steps[-1].covariance
    for t in reversed(range(tau)):
        past, load = steps.pop(), loads[t]
        if t < tau - 1:
            elapsed = observed.elapsed[t + 1]
            predicted, spread = predict(past.state, past.covariance, drift, rho, elapsed)
            gain = _gain(past.covariance, spread, rho**elapsed)
            gains.append(gain[:, :, 0].copy())
            state = past.state + np.einsum("ij...,j...->i...", gain, state - predicted)
            covariance = past.covariance + np.einsum(
                "ij...,jl...,ml...->im...", gain, covariance - spread, gain, optimize=True
            )
        means[t] = (load * state).sum(axis=0)
        covariances[t] = np.einsum("ij...,j...->i...", covariance, load)
        variances[t] = (load * covariances[t]).sum(axis=0)
    smoothed = _mixed(chances, means, variances + rest**2)
    persistence = parameters.rho ** np.asarray(observed.elapsed, dtype=np.float64)
    # The fitted parameters come first.
    of_fitted = (covariances[:, :, 0].copy(), loads[:, :, 0].copy(), rest[:, 0].copy())
    return States(
        filtered, smoothed, innovations, means[:, 0].copy(), gains[::-1], *of_fitted, persistence,
        observed, parameters,
    )  # fmt: skip


def _mixed(chances: Floats, means: Floats, variances: Floats) -> Posterior:
    """Mean and variance over the parameters: means and variances given each, [tau, m, k]."""
    mean = chances @ means
    # Where hardly any noise is, rounding leaves variances a little below 0.
    within = chances @ np.maximum(variances, 0)
    return Posterior(mean, within + chances @ (means - mean[:, None]) ** 2)


def _gain(covariance: Floats, predicted: Floats, persistence: Any) -> Floats:
    """Covariance of a row's states with the next row's, over that of these: [3, 3, m, k]."""
    across: Any = covariance.copy()
    across[:, 2] *= persistence
    solved = np.linalg.solve(
        np.moveaxis(predicted, (0, 1), (-2, -1)), np.moveaxis(across, (1, 0), (-2, -1))
    )
    gain: Floats = np.moveaxis(solved, (-1, -2), (0, 1))
    return gain
