"""Filter and smoother against the joint normal distribution that they factorise."""

from typing import Any

import numpy as np
import pytest

from loloha.server import statespace
from loloha.server.smoother import smooth
from loloha.server.statespace import (
    PACES,
    PRIOR_VARIANCE,
    Observed,
    Parameters,
    Plausible,
    fit,
    forward,
    log_likelihood,
    plausible,
)

TAU, K = 5, 3
PARAMETERS = Parameters(2e-3, 1e-3, 0.8, 0.2)


def drawn(missing: bool = True, seed: int = 0) -> Observed:
    """Rounds of unequal size with gaps; estimates of some are missing."""
    rng = np.random.default_rng(seed)
    estimates = rng.normal(0.3, 0.1, (TAU, K))
    if missing:
        estimates[0, 0] = estimates[2, 1] = np.nan
        estimates[3] = np.nan
    memo, fresh = rng.uniform(1e-3, 4e-3, (2, TAU, 1)) * np.ones(K)
    shares, lasting = np.array([0.2, 0.3, 0.5]), np.array([0.3, 0.4, 0.5])
    turnover = np.array([0.0, 1e-3, 4e-3])
    return Observed(estimates, memo, fresh, shares, turnover, lasting, [7, 1, 2, 1, 3], 100.0)


def dense(observed: Observed, v: int) -> tuple[Any, Any, Any]:
    """Covariance of one value's truths, of these with its estimates, and of its estimates."""
    at = np.cumsum(observed.elapsed) - observed.elapsed[0]
    q = PARAMETERS.s * observed.frequency[v] * (1 - observed.frequency[v]) + PARAMETERS.s_0
    level = PRIOR_VARIANCE + q * np.minimum.outer(at, at)
    fading = PARAMETERS.rho ** np.abs(np.subtract.outer(at, at))
    loads = [observed.loads(t, PARAMETERS.revisiting) for t in range(TAU)]
    a, b, of_truth, rest = (np.array([one[part][v] for one in loads]) for part in range(4))
    truth = level + (np.outer(of_truth, of_truth) + np.outer(rest, rest)) * fading
    seen = level + np.outer(a, a) + np.outer(b, b) * fading + np.diag(observed.fresh[:, v])
    return truth, level + np.outer(of_truth, b) * fading, seen


def test_users_who_change_their_values_move_the_truth_and_fade_the_memo_noise() -> None:
    """Of the loads of a round: all variances that they stand for."""
    observed, revisiting = drawn(), PARAMETERS.revisiting
    lasting = revisiting + (1 - revisiting) * observed.lasting
    for t in range(TAU):
        a, b, truth, rest = observed.loads(t, revisiting)
        moved = (1 - revisiting) * observed.turnover
        assert a**2 == pytest.approx(lasting * observed.memo[t])
        assert a**2 + b**2 == pytest.approx(observed.memo[t] + moved)
        # What moves the truth is independent of the memo noise that fades.
        assert truth * b == pytest.approx(moved)
        assert truth**2 + rest**2 == pytest.approx(moved)


@pytest.mark.parametrize("missing", [False, True])
def test_the_smoother_is_the_dense_posterior(missing: bool) -> None:
    observed = drawn(missing)
    states = smooth(observed, PARAMETERS)
    for v in range(K):
        truth, both, seen = dense(observed, v)
        known = np.isfinite(observed.estimates[:, v])
        weights = np.linalg.solve(seen[np.ix_(known, known)], both[:, known].T).T
        mean = 1 / K + weights @ (observed.estimates[known, v] - 1 / K)
        covariance = truth - weights @ both[:, known].T
        assert states.smoothed.mean[:, v] == pytest.approx(mean, abs=1e-9)
        for s in range(TAU):
            assert states.smoothed.variance[s, v] == pytest.approx(covariance[s, s], abs=1e-9)
            for t in range(s, TAU):
                shared = states.covariance(s, t)[v]
                assert shared == pytest.approx(covariance[s, t], abs=1e-9, rel=1e-7)


def test_the_mean_over_plausible_parameters_is_that_of_their_posteriors() -> None:
    """Of a mixture: the mean of variances, and the variance of means."""
    observed, other = drawn(), Parameters(1e-5, 2e-6, 0.1, 0.7)
    both = Parameters(*(np.array([[x], [y]]) for x, y in zip(PARAMETERS, other, strict=True)))
    mixed = smooth(observed, PARAMETERS, Plausible(np.array([0.3, 0.7]), both))
    single = [smooth(observed, one) for one in (PARAMETERS, other)]
    for name in ("filtered", "smoothed"):
        means, variances = zip(*(getattr(states, name) for states in single), strict=True)
        mean = 0.3 * means[0] + 0.7 * means[1]
        within = 0.3 * variances[0] + 0.7 * variances[1]
        found = getattr(mixed, name)
        assert found.mean == pytest.approx(mean)
        assert found.variance == pytest.approx(within + 0.21 * (means[0] - means[1]) ** 2)
    # Changes are those of the first.
    assert mixed.covariance(1, 4) == pytest.approx(single[0].covariance(1, 4))


def test_plausible_parameters_begin_with_the_fitted_and_are_few_of_many_values() -> None:
    truth = Parameters(0.0, 1e-6, 0.7)
    for k, least, most in ((2, 10, 35), (200, 1, 8)):
        observed = modelled(truth, 60, k, seed=1)
        fitted = fit(observed)
        chances, each = plausible(observed, fitted)
        assert least <= len(chances) <= most
        assert chances.sum() == pytest.approx(1)
        first = [float(np.ravel(row)[0]) for row in each[:4]]
        assert first == pytest.approx(list(fitted[:4]))


def test_the_filter_is_the_posterior_of_the_rounds_so_far() -> None:
    observed = drawn()
    states = smooth(observed, PARAMETERS)
    for t in range(TAU):
        for v in range(K):
            truth, both, seen = dense(observed, v)
            known = np.isfinite(observed.estimates[:, v]) & (np.arange(TAU) <= t)
            weights = np.linalg.solve(seen[np.ix_(known, known)], both[t, known])
            mean = 1 / K + weights @ (observed.estimates[known, v] - 1 / K)
            variance = truth[t, t] - weights @ both[t, known]
            assert states.filtered.mean[t, v] == pytest.approx(mean, abs=1e-9)
            assert states.filtered.variance[t, v] == pytest.approx(variance, abs=1e-9)


@pytest.mark.parametrize("missing", [False, True])
def test_the_likelihood_is_the_dense_one(missing: bool) -> None:
    observed = drawn(missing)
    expected = 0.0
    for v in range(K):
        known = np.isfinite(observed.estimates[:, v])
        seen = dense(observed, v)[2][np.ix_(known, known)]
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
    columns = (observed.frequency, observed.turnover, observed.lasting)
    fewer = Observed(*rows, *columns, [1, 1, 3, 3], 100.0)
    one, other = smooth(observed, PARAMETERS), smooth(fewer, PARAMETERS)
    for states in ("filtered", "smoothed"):
        for all_, some in zip(getattr(one, states), getattr(other, states), strict=True):
            assert all_[kept] == pytest.approx(some, abs=1e-12)
    assert np.isnan(one.innovations[2]).all()


def modelled(parameters: Parameters, tau: int, k: int, seed: int) -> Observed:
    """Estimates drawn from the model itself."""
    rng = np.random.default_rng(seed)
    f, variance, share = np.full(k, 1 / k), 1e-4, 0.3
    lasting = parameters.revisiting + (1 - parameters.revisiting) * share
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
    columns = (f, np.zeros(k), np.full(k, share))
    return Observed(estimates, both, both, *columns, np.ones(tau, dtype=int), 1e4)


def test_moving_and_constant_values_are_distinguished() -> None:
    """Three of 40 values are rolled out: their pace is higher, and the others' lower."""
    observed = modelled(Parameters(0.0, 1e-9, 0.7), 60, 40, seed=3)
    observed.estimates[:, :3] += np.cumsum(np.full((60, 3), 4e-3), axis=0)
    pace = fit(observed).pace
    assert pace.shape == (40,)
    assert pace[:3].min() > 4 * np.median(pace[3:])
    assert (PACES[0] <= pace).all()
    assert (pace <= PACES[-1]).all()


def test_shares_of_paces_are_fitted_in_a_hundred_steps_from_equal_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of values that hardly tell their pace: the steps are slow, and the last still counts."""
    logs = np.random.default_rng(5).normal(0, 0.3, (5, 40))
    monkeypatch.setattr(statespace, "_log_densities", lambda observed, parameters: logs + 900)
    paces, likelihood = np.array([1 / 64, 1 / 16, 1 / 4, 1, 4]), np.exp(logs)
    shares = np.full(5, 0.2)
    for _ in range(100):
        chances = shares[:, None] * likelihood / (shares @ likelihood)
        shares = (chances.sum(axis=1) + 0.5) / (40 + 5 * 0.5)
    after = shares[:, None] * likelihood / (shares @ likelihood)
    pace = statespace._paces(drawn(), PARAMETERS)
    assert pace == pytest.approx(paces @ chances, rel=1e-12)
    assert abs(paces @ after - pace).max() > 1e-9


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


def test_the_fit_reads_the_most_frequent_half_and_a_spread_of_the_rest() -> None:
    few = np.random.default_rng(1).permutation(64) / 64.0
    assert statespace._representative(few).tolist() == np.argsort(-few).tolist()
    assert statespace._representative(np.full(3, 0.2)).tolist() == [0, 1, 2]
    chosen = statespace._representative(-np.arange(156.0))
    assert chosen.tolist() == [*range(32), *range(32, 156, 4)[:31], 155][:32] + [
        int(32 + 123 * step / 31) for step in range(32)
    ]


def test_values_are_filtered_each_by_itself() -> None:
    observed = drawn()
    order = np.array([2, 0, 1])
    one, other = (smooth(each, PARAMETERS) for each in (observed, observed.of(order)))
    assert (one.smoothed.mean[:, order] == other.smoothed.mean).all()
    last = list(forward(observed, PARAMETERS))[-1]
    assert np.allclose(last.covariance, last.covariance.transpose(1, 0, 2), atol=1e-15)
