"""Filter and smoother against the joint normal distribution that they factorise."""

from typing import Any

import numpy as np
import pytest

from loloha.server.statespace import (
    PACES,
    PRIOR_VARIANCE,
    Observed,
    Parameters,
    fit,
    forward,
    log_likelihood,
    smooth,
)

TAU, K = 5, 3
PARAMETERS = Parameters(2e-3, 1e-3, 0.8)


def drawn(missing: bool = True, seed: int = 0) -> Observed:
    """Rounds of unequal size with gaps; estimates of some are missing."""
    rng = np.random.default_rng(seed)
    estimates = rng.normal(0.3, 0.1, (TAU, K))
    if missing:
        estimates[0, 0] = estimates[2, 1] = np.nan
        estimates[3] = np.nan
    memo, fresh = rng.uniform(1e-3, 4e-3, (2, TAU, 1)) * np.ones(K)
    shares = np.array([0.2, 0.3, 0.5])
    return Observed(estimates, memo, fresh, shares, np.array([0.3, 0.4, 0.5]), [7, 1, 2, 1, 3])


def dense(observed: Observed, v: int) -> tuple[Any, Any]:
    """Covariance of one value's truths, and of its estimates, over all rounds."""
    at = np.cumsum(observed.elapsed) - observed.elapsed[0]
    f, lasting = observed.frequency[v], observed.lasting[v]
    q = PARAMETERS.s * f * (1 - f) + PARAMETERS.s_0
    truth = PRIOR_VARIANCE + q * np.minimum.outer(at, at)
    fading = PARAMETERS.rho ** np.abs(np.subtract.outer(at, at))
    deviations = np.sqrt(observed.memo[:, v])
    memo = np.outer(deviations, deviations) * (lasting + (1 - lasting) * fading)
    return truth, truth + memo + np.diag(observed.fresh[:, v])


@pytest.mark.parametrize("missing", [False, True])
def test_the_smoother_is_the_dense_posterior(missing: bool) -> None:
    observed = drawn(missing)
    states = smooth(observed, PARAMETERS)
    for v in range(K):
        truth, seen = dense(observed, v)
        known = np.isfinite(observed.estimates[:, v])
        weights = np.linalg.solve(seen[np.ix_(known, known)], truth[known]).T
        mean = 1 / K + weights @ (observed.estimates[known, v] - 1 / K)
        covariance = truth - weights @ truth[known]
        assert states.smoothed.mean[:, v] == pytest.approx(mean, abs=1e-9)
        for s in range(TAU):
            assert states.smoothed.variance[s, v] == pytest.approx(covariance[s, s], abs=1e-9)
            for t in range(s, TAU):
                shared = states.covariance(s, t)[v]
                assert shared == pytest.approx(covariance[s, t], abs=1e-9, rel=1e-7)


def test_the_filter_is_the_posterior_of_the_rounds_so_far() -> None:
    observed = drawn()
    states = smooth(observed, PARAMETERS)
    for t in range(TAU):
        for v in range(K):
            truth, seen = dense(observed, v)
            known = np.isfinite(observed.estimates[:, v]) & (np.arange(TAU) <= t)
            weights = np.linalg.solve(seen[np.ix_(known, known)], truth[known, t])
            mean = 1 / K + weights @ (observed.estimates[known, v] - 1 / K)
            variance = truth[t, t] - weights @ truth[known, t]
            assert states.filtered.mean[t, v] == pytest.approx(mean, abs=1e-9)
            assert states.filtered.variance[t, v] == pytest.approx(variance, abs=1e-9)


@pytest.mark.parametrize("missing", [False, True])
def test_the_likelihood_is_the_dense_one(missing: bool) -> None:
    observed = drawn(missing)
    expected = 0.0
    for v in range(K):
        known = np.isfinite(observed.estimates[:, v])
        seen = dense(observed, v)[1][np.ix_(known, known)]
        error = observed.estimates[known, v] - 1 / K
        expected -= error @ np.linalg.solve(seen, error) / 2
        expected -= np.linalg.slogdet(2 * np.pi * seen)[1] / 2
    assert log_likelihood(observed, PARAMETERS) == pytest.approx(expected, rel=1e-9)
    # Of many parameters at once, as the fit asks for it.
    both = Parameters(*(np.array([[0.5 * one], [one]]) for one in PARAMETERS))
    assert log_likelihood(observed, both)[1] == pytest.approx(expected, rel=1e-9)


def test_a_round_left_out_is_one_without_estimates() -> None:
    observed = drawn(missing=False)
    observed.estimates[2] = np.nan
    kept = [0, 1, 3, 4]
    rows = (observed.estimates[kept], observed.memo[kept], observed.fresh[kept])
    fewer = Observed(*rows, observed.frequency, observed.lasting, [1, 1, 3, 3])
    one, other = smooth(observed, PARAMETERS), smooth(fewer, PARAMETERS)
    for states in ("filtered", "smoothed"):
        for all_, some in zip(getattr(one, states), getattr(other, states), strict=True):
            assert all_[kept] == pytest.approx(some, abs=1e-12)
    assert np.isnan(one.innovations[2]).all()


def modelled(parameters: Parameters, tau: int, k: int, seed: int) -> Observed:
    """Estimates drawn from the model itself."""
    rng = np.random.default_rng(seed)
    f, variance, lasting = np.full(k, 1 / k), 1e-4, 0.3
    q = parameters.s * f * (1 - f) + parameters.s_0
    truth = f + np.cumsum(rng.normal(0, np.sqrt(q), (tau, k)), axis=0)
    noise = np.empty((tau, k))
    noise[0] = rng.normal(0, 1, k)
    for t in range(1, tau):
        step = rng.normal(0, np.sqrt(1 - parameters.rho**2), k)
        noise[t] = parameters.rho * noise[t - 1] + step
    memo = np.sqrt(lasting) * rng.normal(0, 1, k) + np.sqrt(1 - lasting) * noise
    estimates = truth + np.sqrt(variance) * (memo + rng.normal(0, 1, (tau, k)))
    both = np.full((tau, k), variance)
    return Observed(estimates, both, both, f, np.full(k, lasting), np.ones(tau, dtype=int))


def test_values_that_move_are_told_from_those_that_stand_still() -> None:
    """Three of 40 values are rolled out: their pace is higher, and the others' lower."""
    observed = modelled(Parameters(0.0, 1e-9, 0.7), 60, 40, seed=3)
    observed.estimates[:, :3] += np.cumsum(np.full((60, 3), 4e-3), axis=0)
    pace = fit(observed).pace
    assert pace.shape == (40,)
    assert pace[:3].min() > 4 * np.median(pace[3:])
    assert (PACES[0] <= pace).all()
    assert (pace <= PACES[-1]).all()


def test_the_fit_finds_how_the_estimates_were_drawn() -> None:
    """Within a quarter in s + s_0 and .03 in rho: some three standard errors of 9000 residuals."""
    true = Parameters(0.0, 2e-5, 0.7)
    observed = modelled(true, tau=150, k=60, seed=3)
    found = fit(observed)
    step = found.s / 60 * (1 - 1 / 60) + found.s_0
    assert step == pytest.approx(true.s_0, rel=0.25)
    assert found.rho == pytest.approx(true.rho, abs=0.06)
    # And the innovations are standard normal then.
    seen = smooth(observed, found).innovations[1:]
    assert seen.mean() == pytest.approx(0, abs=6 / np.sqrt(seen.size))
    assert (seen**2).mean() == pytest.approx(1, abs=6 * np.sqrt(2 / seen.size))


def test_no_parameters_of_the_grid_are_likelier_than_those_fitted() -> None:
    observed = modelled(Parameters(1e-3, 1e-5, 0.5), tau=40, k=12, seed=4)
    found = fit(observed)
    best = log_likelihood(observed, found)
    for part in range(3):
        for factor in (0.5, 0.8, 1.25, 2.0):
            other = [*found[:2], 1 - found.rho]
            other[part] *= factor
            near = Parameters(other[0], other[1], max(0.0, 1 - other[2]))
            assert log_likelihood(observed, near) <= best + 0.3


def test_values_are_filtered_each_by_itself() -> None:
    observed = drawn()
    order = np.array([2, 0, 1])
    one, other = (smooth(each, PARAMETERS) for each in (observed, observed.of(order)))
    assert (one.smoothed.mean[:, order] == other.smoothed.mean).all()
    last = list(forward(observed, PARAMETERS))[-1]
    assert np.allclose(last.covariance, last.covariance.transpose(1, 0, 2), atol=1e-15)
