"""Metrics of a run, against numbers worked out by hand."""

import json
import math
from typing import Any

import numpy as np
import pytest

from loloha import GRR, OLOLOHA, DBitFlipPM, LolohaError, OneBit, simulate, variance
from loloha.population.evaluation import binned, evaluate

PROTOCOL = GRR(k=4, eps=1.0)
TRUTH = np.array([[0.5, 0.25, 0.25, 0.0], [1.0, 0.0, 0.0, 0.0]])
ESTIMATES = np.array([[0.6, 0.2, 0.4, -0.2], [1.0, 0.0, 0.0, 0.0]])


def test_errors_are_those_of_each_round() -> None:
    found = evaluate(PROTOCOL, ESTIMATES, TRUTH, np.array([10, 20]), np.array([1.0, 3.0]))
    np.testing.assert_allclose(found.mse, [(0.01 + 0.0025 + 0.0225 + 0.04) / 4, 0], atol=1e-15)
    # 0.6, 0.2, 0.4 over their sum 1.2
    clipped = [(0 + (1 / 4 - 1 / 6) ** 2 + (1 / 3 - 1 / 4) ** 2 + 0) / 4, 0]
    np.testing.assert_allclose(found.mse_clipped, clipped, atol=1e-15)
    np.testing.assert_allclose(
        found.mse_uniform, [(0.0625 + 0.0625) / 4, (0.5625 + 3 * 0.0625) / 4]
    )
    np.testing.assert_allclose(found.v_star, [variance(PROTOCOL, 10), variance(PROTOCOL, 20)])
    expected = [
        np.mean([variance(PROTOCOL, n, f) for f in row])
        for n, row in zip((10, 20), TRUTH, strict=True)
    ]
    np.testing.assert_allclose(found.expected_mse, expected)
    assert (found.eps_avg, found.eps_max) == (2.0, 3.0)


def test_a_round_without_reports_counts_for_nothing() -> None:
    estimates, truth = ESTIMATES.copy(), TRUTH.copy()
    estimates[1] = truth[1] = math.nan
    found = evaluate(PROTOCOL, estimates, truth, np.array([10, 0]), np.array([1.0]))
    alone = evaluate(PROTOCOL, ESTIMATES[:1], TRUTH[:1], np.array([10]), np.array([1.0]))
    told, wanted = found.to_dict(), alone.to_dict()
    empty = told["rounds"].pop()
    assert told == wanted
    assert empty == {"n": 0} | dict.fromkeys(told["rounds"][0].keys() - {"n"})
    json.dumps(told, allow_nan=False)


def test_no_reports_at_all_is_none_and_not_a_number() -> None:
    nothing = np.full((1, 4), math.nan)
    told = evaluate(PROTOCOL, nothing, nothing, np.array([0]), np.array([0.0])).to_dict()
    assert [told[name] for name in told if name.startswith(("mse", "v_"))] == [None] * 4


def test_bins_that_nobody_sampled_are_left_out() -> None:
    protocol = DBitFlipPM(k=4, eps_inf=1.0, d=1)
    estimates = ESTIMATES[:1].copy()
    estimates[0, 3] = math.nan
    found = evaluate(protocol, estimates, TRUTH[:1], np.array([3]), np.array([1.0]))
    np.testing.assert_allclose(found.mse, [(0.01 + 0.0025 + 0.0225) / 3])
    estimates[:] = math.nan
    found = evaluate(protocol, estimates, TRUTH[:1], np.array([3]), np.array([1.0]))
    assert np.isnan(found.mse).all()


def test_expected_errors_of_sampled_buckets_count_on_those_who_sample_them() -> None:
    """Measured over expected at n = 500, k = 96, d = 1, 60 runs (seeds 0..59).

    The mean's standard error is 2 %, so 0.12 has a chance below 2e-9. The expected number of users
    of a bucket in place of its law gave 1.27.
    """
    protocol = DBitFlipPM(k=96, eps_inf=1.0, d=1)
    values = np.arange(500)[:, None] % 96
    truth = np.bincount(values[:, 0], minlength=96)[None] / 500
    ratios = []
    for seed in range(60):
        run = simulate(protocol, values, rng=seed)
        found = evaluate(protocol, run.estimates, truth, run.n, run.loss)
        ratios.append(found.mse[0] / found.expected_mse[0])
    assert np.mean(ratios) == pytest.approx(1, abs=0.12), f"seeds 0..59: {np.mean(ratios)}"


@pytest.mark.parametrize(("k", "b"), [(4, 4), (49, 21), (1412, 353), (7, 2)])
def test_buckets_hold_the_frequencies_of_their_values(k: int, b: int) -> None:
    protocol = DBitFlipPM(k=k, eps_inf=1.0, b=b)
    truth = np.random.default_rng(0).dirichlet(np.ones(k), size=3)
    found = binned(protocol, truth)
    for v in range(k):
        found[:, protocol.encoding.bin(v)] -= truth[:, v]
    np.testing.assert_allclose(found, 0, atol=1e-15)
    ends = [protocol.encoding.bin_values(bin) for bin in range(b)]
    assert [v for first, last in ends for v in range(first, last + 1)] == list(range(k))
    assert all(protocol.encoding.bin(v) == bin for bin, end in enumerate(ends) for v in end)


def test_values_are_their_own_bins() -> None:
    protocol = OLOLOHA(k=4, eps_inf=2, eps_1=1)
    np.testing.assert_array_equal(binned(protocol, TRUTH), TRUTH)


@pytest.mark.parametrize("wrong", [{"estimates": ESTIMATES[:1]}, {"truth": TRUTH[:, :3]}])
def test_shapes_must_fit(wrong: dict[str, Any]) -> None:
    given = {"estimates": ESTIMATES, "truth": TRUTH} | wrong
    with pytest.raises(LolohaError, match=r"must be of shape \(2, 4\)"):
        evaluate(PROTOCOL, **given, n=np.array([10, 20]), loss=np.array([1.0]))


def test_shares_above_thresholds_are_not_made_to_sum_to_one() -> None:
    protocol = OneBit(k=5, eps_inf=2, eps_1=1)
    truth = np.array([[0.9, 0.7, 0.4, 0.1]])
    estimates = np.array([[1.1, 0.7, 0.4, -0.2]])
    found = evaluate(protocol, estimates, truth, np.array([9]), np.ones(9))
    assert found.mse_clipped[0] == pytest.approx((0.1**2 + 0.1**2) / 4)
    even = [0.8, 0.6, 0.4, 0.2]
    assert found.mse_uniform[0] == pytest.approx(np.mean((np.array(even) - truth[0]) ** 2))
