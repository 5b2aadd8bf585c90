"""What all rounds say of each, and of a change between two (maths, section 19)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loloha.arrays import Floats
from loloha.server.statespace import Observed, Parameters, Posterior, forward, predict


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
    gains: list[Floats]
    covariances: Floats
    loads: Floats
    rest: Floats
    persistence: Floats
    observed: Observed
    parameters: Parameters

    def change(self, s: int, t: int) -> Posterior:
        """How much the truth grew from row s to row t, given all rounds: float64[k] each."""
        mean, variance = self.smoothed
        first, last = sorted((s, t))
        joint = variance[s] + variance[t] - 2 * self.covariance(first, last)
        seen, fitted, rows = self.observed, self.parameters, [s, t]
        elapsed = seen.elapsed[first + 1 : last + 1].sum()
        # Where memo noise is most of the noise, estimates hardly tell whether the level moved or
        # users left their memos. What is taken for moves may be such noise, which both rounds have.
        memo, fresh = seen.memo[rows].sum(axis=0), seen.fresh[rows].sum(axis=0)
        share = memo / np.maximum(memo + fresh, np.finfo(float).tiny)
        added = share * np.minimum(fitted.drift(seen.frequency) * elapsed, memo)
        # Where fresh noise is, they hardly tell how often users change their values, which moves
        # the truth: it is taken for as often as is likely, of a value that is a standard error more
        # frequent.
        f = np.clip((mean[rows] + np.sqrt(variance[rows])).mean(axis=0), 0, 0.5)
        most = (1 - fitted.least_rho**elapsed) * f * (1 - f) / seen.users
        counted = (1 - fitted.rho**elapsed) * seen.turnover
        added += 2 * (1 - fitted.revisiting) * np.maximum(most - counted, 0)
        return Posterior(mean[t] - mean[s], np.maximum(joint, 0) + added)

    def covariance(self, s: int, t: int) -> Floats:
        """Of the truths of rows s <= t given all rounds, float64[k]."""
        row = self.loads[s]
        for gain in self.gains[s:t]:
            row = np.einsum("ik,ijk->jk", row, gain)
        shared: Floats = np.einsum("ik,ik->k", row, self.covariances[t])
        shared += self.persistence[s + 1 : t + 1].prod() * self.rest[s] * self.rest[t]
        return shared


def smooth(observed: Observed, parameters: Parameters) -> States:
    """Filter forwards, then Rauch, Tung and Striebel backwards."""
    steps = list(forward(observed, parameters))
    drift, rho = parameters.drift(observed.frequency), parameters.rho
    tau, size = len(steps), len(observed.frequency)
    rounds = [observed.loads(t, parameters.revisiting) for t in range(tau)]
    loads = np.stack([[np.ones(size), np.zeros(size), of_round.truth] for of_round in rounds])
    rest = np.stack([of_round.rest for of_round in rounds])
    means, variances = np.empty((2, tau, size))
    for t, (step, load) in enumerate(zip(steps, loads, strict=True)):
        means[t] = (load * step.state).sum(axis=0)
        variances[t] = np.einsum("ik,ijk,jk->k", load, step.covariance, load)
    # Where hardly any noise is, rounding leaves variances a little below 0.
    filtered = Posterior(means, np.maximum(variances, 0) + rest**2)
    # At the pace of all values: a burst must not hide in a pace that it has raised itself.
    common = forward(observed, parameters._replace(pace=1.0))
    innovations = np.array([step.innovation / np.sqrt(step.scale) for step in common])
    # A row's gain replaces the filter's state after it, the largest array in memory.
    gains: list[Floats] = []
    covariances, means = np.empty((tau, 3, size)), np.empty((tau, size))
    state, covariance = steps[-1].state, steps[-1].covariance
    for t in reversed(range(tau)):
        past = steps.pop()
        if t < tau - 1:
            elapsed = observed.elapsed[t + 1]
            predicted, spread = predict(past.state, past.covariance, drift, rho, elapsed)
            gain = _gain(past.covariance, spread, rho**elapsed)
            gains.append(gain)
            state = past.state + np.einsum("ijk,jk->ik", gain, state - predicted)
            covariance = past.covariance + np.einsum(
                "ijk,jlk,mlk->imk", gain, covariance - spread, gain, optimize=True
            )
        means[t] = (loads[t] * state).sum(axis=0)
        covariances[t] = np.einsum("ijk,jk->ik", covariance, loads[t])
    smoothed = Posterior(means, np.maximum((loads * covariances).sum(axis=1), 0) + rest**2)
    persistence = rho ** np.asarray(observed.elapsed, dtype=np.float64)
    return States(
        filtered, smoothed, innovations, gains[::-1], covariances, loads, rest, persistence,
        observed, parameters,
    )  # fmt: skip


def _gain(covariance: Floats, predicted: Floats, persistence: Any) -> Floats:
    """Covariance of a row's states with the next row's, over that of these: float64[3, 3, k]."""
    across = covariance * np.array([1.0, 1.0, persistence])[None, :, None]
    solved = np.linalg.solve(predicted.transpose(2, 0, 1), across.transpose(2, 1, 0))
    gain: Floats = solved.transpose(2, 1, 0)
    return gain
