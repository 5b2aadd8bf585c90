"""Simplex projection, clipping and the iterative Bayesian update."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.optimize import brentq

import loloha
from laws import variants
from loloha.distribution import exact_distribution
from loloha.errors import ParameterError
from loloha.postprocess import (
    clip_and_renormalise,
    iterative_bayesian_update,
    project_simplex,
    smooth_ordered,
)
from loloha.protocols import REGISTRY, Protocol
from loloha.rng import SimulationRng
from loloha.server.tally import Tally

BUDGETS = {"eps": 1.5, "eps_inf": 3.0, "eps_1": 1.5}
example = partial(variants.example, budgets=BUDGETS)

# -- projection

tables = arrays.arrays(
    np.float64,
    arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6),
    elements=st.floats(-1e3, 1e3),
)


@given(tables)
def test_the_projection_is_the_nearest_point(frequencies: Any) -> None:
    """The conditions of optimality (Karush, Kuhn, Tucker), which here are sufficient too."""
    before = frequencies.copy()
    projected = project_simplex(frequencies)
    assert np.array_equal(frequencies, before)
    assert projected.min() >= 0
    assert projected.sum(axis=-1) == pytest.approx(1.0, abs=1e-12)
    # What was subtracted is one number on the support, and nowhere else less was needed.
    taken = np.where(projected > 0, frequencies - projected, -np.inf).max(axis=-1, keepdims=True)
    assert np.abs(np.where(projected > 0, frequencies - projected - taken, 0)).max() <= 1e-9
    assert (np.where(projected > 0, -np.inf, frequencies) <= taken + 1e-9).all()


@given(arrays.arrays(np.float64, st.integers(1, 40), elements=st.floats(-2.0, 2.0, width=32)))
def test_the_projection_is_the_root_of_its_equation(frequencies: Any) -> None:
    low = frequencies.min() - 1
    common = brentq(
        lambda c: np.maximum(frequencies - c, 0).sum() - 1, low, frequencies.max(), xtol=1e-14
    )
    expected = np.maximum(frequencies - common, 0)
    assert project_simplex(frequencies) == pytest.approx(expected, abs=1e-12)


def test_the_projection_leaves_frequencies_alone() -> None:
    frequencies = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
    assert np.array_equal(project_simplex(frequencies), frequencies)


@pytest.mark.parametrize(
    ("frequencies", "expected"),
    [
        ([0.9, 0.3, -0.5], [0.8, 0.2, 0.0]),
        ([-5.0, -5.0], [0.5, 0.5]),
        ([3.0], [1.0]),
        ([1e308, -1e308, 0.0], [1.0, 0.0, 0.0]),
        ([1e300, 1e300], [0.5, 0.5]),
        ([0, 2], [0.0, 1.0]),
    ],
)
def test_the_projection_at_the_edges(frequencies: Any, expected: Any) -> None:
    assert project_simplex(frequencies) == pytest.approx(expected, abs=1e-15)


def test_the_projection_of_many_rounds_is_that_of_each() -> None:
    frequencies = np.random.default_rng(5).normal(0.01, 0.1, size=(4, 3, 100))
    projected = project_simplex(frequencies)
    for index in np.ndindex(4, 3):
        assert np.array_equal(projected[index], project_simplex(frequencies[index]))
    assert project_simplex(np.zeros((0, 3))).shape == (0, 3)


# -- clipping


@given(tables)
def test_clipping_keeps_the_proportions_of_what_is_positive(frequencies: Any) -> None:
    before = frequencies.copy()
    clipped = clip_and_renormalise(frequencies)
    assert np.array_equal(frequencies, before)
    assert clipped.min() >= 0
    assert clipped.sum(axis=-1) == pytest.approx(1.0, abs=1e-12)
    positive = np.maximum(frequencies, 0)
    total = positive.sum(axis=-1, keepdims=True)
    some = total[..., 0] > 0
    assert (clipped * total)[some] == pytest.approx(positive[some], rel=1e-12)


def test_clipping_at_the_edges() -> None:
    seen = clip_and_renormalise([[0.5, 1.5, -3], [-1, -2, 0], [1e308, 1e308, -1], [5e-324, 0, 0]])
    third = 1 / 3
    expected = [[0.25, 0.75, 0], [third, third, third], [0.5, 0.5, 0], [1, 0, 0]]
    assert seen == pytest.approx(np.array(expected), abs=1e-15)


@pytest.mark.parametrize("step", [project_simplex, clip_and_renormalise])
@pytest.mark.parametrize(
    ("frequencies", "message"),
    [
        ([0.5, np.nan], "finite, got 1"),
        ([[0.5, np.inf], [np.nan, -np.inf]], "finite, got 3"),
        (0.5, "at least one bin"),
        ([], "at least one bin"),
        (np.zeros((3, 0)), "at least one bin"),
        ("frequent", "an array of numbers"),
        ([[1.0], [1.0, 2.0]], "an array of numbers"),
        (None, "at least one bin|finite"),
    ],
)
def test_frequencies_must_be_numbers(step: Any, frequencies: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=f"frequencies must.*({message})"):
        step(frequencies)


# -- iterative Bayesian update

LIKELY = [
    loloha.GRR(k=2, eps=1.0),
    loloha.GRR(k=6, eps=1.5),
    loloha.LGRR(k=2, eps_inf=2.0, eps_1=1.0),
    loloha.LGRR(k=6, eps_inf=3.0, eps_1=1.5),
    loloha.LGRR(k=6, eps_inf=3.0, eps_1=2.5, calibration="published"),
    loloha.BLH(k=5, eps=4.0),
    loloha.OLH(k=8, eps=4.0, g=3),
    loloha.BiLOLOHA(k=2, eps_inf=3.0, eps_1=1.5),
    loloha.BiLOLOHA(k=8, eps_inf=8.0, eps_1=6.0),
    loloha.OLOLOHA(k=7, eps_inf=8.0, eps_1=4.0, g=3),
    loloha.OLOLOHA(k=25, eps_inf=12.0, eps_1=8.0, g=5),
    loloha.OLOLOHA(k=4, eps_inf=3.0, eps_1=2.5, g=7),
    loloha.OLOLOHA(k=7, eps_inf=8.0, eps_1=4.0, g=4, hash="prime"),
    loloha.OLH(k=4, eps=4.0, g=5, hash="prime"),
    loloha.OLOLOHA(k=10, eps_inf=8.0, eps_1=6.0, g=3, calibration="published"),
]


def channel(protocol: Protocol) -> Any:
    """Pr[cell of the counts | value], float64[k, cells], from every outcome of the client."""
    rows = np.zeros((protocol.k, protocol.encoding.cells))
    for v in range(protocol.k):

        def run(rng: Any, v: int = v) -> Any:
            return protocol.client(rng=rng).report(v, round=0)

        for report, probability in exact_distribution(run).items():
            tally = protocol.tally()
            tally.add(report)
            rows[v] += float(probability) * tally.counts
    return rows


def true_frequencies(k: int) -> Any:
    weights = np.arange(2, k + 2, dtype=float)
    return weights / weights.sum()


def tally_of(protocol: Protocol, counts: Any) -> Tally:
    tally = protocol.tally()
    tally.counts = np.asarray(counts, dtype=np.int64)
    tally.n = int(tally.counts.sum())
    return tally


@pytest.mark.parametrize("protocol", LIKELY, ids=repr)
def test_with_infinitely_many_reports_the_fixed_point_is_the_truth(protocol: Protocol) -> None:
    """PAINS 6: the counts expected of 10^15 users, by the law of the shipped client."""
    truth = true_frequencies(protocol.k)
    tally = tally_of(protocol, np.rint(1e15 * truth @ channel(protocol)))
    assert tally.estimate().frequencies == pytest.approx(truth, abs=1e-9)
    found = iterative_bayesian_update(tally, iterations=20_000, tolerance=1e-13)
    assert found == pytest.approx(truth, abs=1e-9)
    stayed = iterative_bayesian_update(tally, iterations=1, start=truth)
    assert stayed == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("protocol", LIKELY, ids=repr)
def test_one_step_is_that_of_the_enumerated_channel(protocol: Protocol) -> None:
    """With any counts and any start: the transforms do what the full matrix does."""
    rng = np.random.default_rng(11)
    law = channel(protocol)
    possible = law.sum(axis=0) > 0
    tally = tally_of(protocol, np.where(possible, rng.integers(0, 30, law.shape[1]), 0))
    frequencies = rng.dirichlet(np.ones(protocol.k))
    law, shares = law[:, possible], tally.counts[possible] / tally.n
    expected = frequencies * (law @ (shares / (frequencies @ law)))
    found = iterative_bayesian_update(tally, iterations=1, start=frequencies)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("k", "g"), [(200, 2), (100, 3), (200, 11)])
def test_one_step_of_many_digits_is_that_of_every_hash(k: int, g: int) -> None:
    protocol = loloha.OLOLOHA(k=k, g=g, eps_inf=3.0, eps_1=1.5)
    rng = np.random.default_rng(k)
    family = protocol.encoding.family  # type: ignore[attr-defined]
    keys, ys = family.draw_many(500, rng), rng.integers(0, g, 500)
    tally = protocol.tally()
    tally.update(keys, ys)
    supports = family.hash_many(keys[:, None], np.arange(k)) == ys[:, None]
    p = float(protocol.realised.p_star)
    likelihood = np.where(supports, p, (1 - p) / (g - 1))
    frequencies = rng.dirichlet(np.ones(k))
    posterior = frequencies * likelihood / (likelihood @ frequencies)[:, None]
    found = iterative_bayesian_update(tally, iterations=1, start=frequencies)
    assert found == pytest.approx(posterior.mean(axis=0), abs=1e-12)


@pytest.mark.parametrize("protocol", [LIKELY[3], LIKELY[9]], ids=repr)
def test_each_step_makes_the_counts_likelier(protocol: Protocol) -> None:
    law = channel(protocol)
    possible = law.sum(axis=0) > 0
    counts = np.random.default_rng(3).integers(0, 5, law.shape[1]) * possible
    tally, frequencies, before = tally_of(protocol, counts), None, -np.inf
    for _ in range(30):
        frequencies = iterative_bayesian_update(tally, iterations=1, start=frequencies)
        likelihood = counts[possible] @ np.log(frequencies @ law[:, possible])
        assert likelihood >= before - 1e-9
        before = likelihood
    assert frequencies.min() >= 0
    assert frequencies.sum() == pytest.approx(1.0, abs=1e-12)


def test_the_update_stops_when_nothing_moves() -> None:
    protocol = loloha.GRR(k=3, eps=1.0)
    tally = tally_of(protocol, [45, 30, 25])
    exact = iterative_bayesian_update(tally, iterations=5000, tolerance=0.0)
    # Within the simplex the likeliest is the unbiased estimate itself.
    assert exact == pytest.approx(tally.estimate().frequencies, abs=1e-9)
    loose = iterative_bayesian_update(tally, tolerance=0.5)
    assert np.array_equal(loose, iterative_bayesian_update(tally, iterations=1))


def test_the_update_of_few_real_reports() -> None:
    protocol = loloha.OLOLOHA(k=96, eps_inf=4.0, eps_1=3.0)
    tally = protocol.tally()
    for user in range(300):
        client = protocol.client(rng=SimulationRng(user))
        tally.add(client.report(user % 3, round=0))
    counts = tally.counts.copy()
    found = iterative_bayesian_update(tally)
    assert np.array_equal(tally.counts, counts)
    assert found.shape == (96,)
    # Three values share everything; seen 0.93 with these seeds, 3/96 without information.
    assert found[:3].sum() > 0.7


@pytest.mark.parametrize(
    "protocol",
    [
        *(example(name, k=9) for name in REGISTRY if example(name, k=9).g is None),
        loloha.OLOLOHA(k=9, eps_inf=2.0, eps_1=1.0, hash="affine"),
    ],
    ids=repr,
)
def test_supports_alone_are_refused(protocol: Protocol) -> None:
    tally = protocol.tally()
    tally.add(protocol.client(rng=SimulationRng(1)).report(0, round=0))
    with pytest.raises(ParameterError, match=f"{protocol.name}.*use project_simplex"):
        iterative_bayesian_update(tally)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "iterations must be"),
        ({"iterations": 1.5}, "iterations must be"),
        ({"tolerance": -1}, "tolerance must be"),
        ({"tolerance": np.nan}, "tolerance must be"),
        ({"start": [0.5, 0.5]}, "start must be 3 frequencies > 0"),
        ({"start": [1.0, 0.0, 0.0]}, "start must be 3 frequencies > 0"),
        ({"start": [1.0, np.nan, 0.0]}, "start must be finite"),
    ],
)
def test_the_options_of_the_update_are_checked(options: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        iterative_bayesian_update(tally_of(loloha.GRR(k=3, eps=1.0), [1, 2, 3]), **options)


def test_the_update_needs_reports() -> None:
    with pytest.raises(ParameterError, match="n must be"):
        iterative_bayesian_update(loloha.GRR(k=3, eps=1.0).tally())
    tally = tally_of(loloha.GRR(k=3, eps=1.0), [1, 2, 3])
    with pytest.raises(ParameterError, match="tally must be a Tally, got Estimate"):
        iterative_bayesian_update(tally.estimate())  # type: ignore[arg-type]


# -- smoothing


def cosines(k: int) -> Any:
    """The orthonormal cosines of k places, one a row: written out, not by a transform."""
    waves = np.cos(np.pi * np.outer(np.arange(k), np.arange(k) + 0.5) / k) * np.sqrt(2 / k)
    waves[0] /= np.sqrt(2)
    return waves


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 12, 97])
def test_smoothing_is_stein_shrinkage_of_blocks_of_cosines(k: int) -> None:
    rng = np.random.default_rng(k)
    noisy, variances = rng.normal(size=(5, k)), rng.uniform(0.0, 0.8, size=(5, k))
    sizes = [3, 4, 6, 10, 15, 22, 34, 51]
    starts = np.cumsum([1, *sizes])
    for given_row, v, row in zip(
        noisy, variances.mean(axis=1), smooth_ordered(noisy, variances), strict=True
    ):
        shrunk = cosines(k) @ given_row
        at = 1
        for start, size in zip(starts, sizes, strict=False):
            if at != start or k - at < 3:
                break
            stop = k if k - (at + size) < 3 else at + size
            m, power = stop - at, (shrunk[at:stop] ** 2).sum()
            shrunk[at:stop] *= max(0.0, 1 - min(2 * (m - 2), m + 2 * m**0.5) * v / power)
            at = stop
        assert row == pytest.approx(cosines(k).T @ shrunk, abs=1e-12)
        assert smooth_ordered(given_row, v) == pytest.approx(row, abs=1e-12)


@given(arrays.arrays(np.float64, st.integers(1, 60), elements=st.floats(-2.0, 2.0, width=32)))
def test_smoothing_keeps_the_sum_and_knows_no_direction(frequencies: Any) -> None:
    before = frequencies.copy()
    smoothed = smooth_ordered(frequencies, 0.01)
    assert np.array_equal(frequencies, before)
    assert smoothed.sum() == pytest.approx(frequencies.sum(), abs=1e-9)
    assert smooth_ordered(frequencies[::-1], 0.01) == pytest.approx(smoothed[::-1], abs=1e-9)
    assert smooth_ordered(frequencies, 0.0) == pytest.approx(frequencies, abs=1e-9)
    assert smooth_ordered(frequencies, 1e9) == pytest.approx(
        frequencies if len(frequencies) < 4 else np.full_like(frequencies, frequencies.mean()),
        abs=1e-9,
    )


def test_smoothing_gains_where_neighbours_are_alike_and_never_loses_to_the_estimate() -> None:
    # Seeded; means of 400 draws whose standard error is below 2 %, while a wrong constant, a
    # frequency in the wrong block or a variance taken for an error move them by far more.
    k, v, rng = 120, 1e-4, np.random.default_rng(5)
    bell = np.exp(-(((np.arange(k) - 45) / 15) ** 2))
    spike = np.zeros(k)
    spike[30] = 1.0
    gains = {}
    for name, truth in (("bell", bell / bell.sum()), ("spike", spike)):
        noisy = truth + rng.normal(scale=v**0.5, size=(400, k))
        gains[name] = ((smooth_ordered(noisy, v) - truth) ** 2).mean() / v
    assert gains["bell"] < 0.1
    assert 0.8 < gains["spike"] < 1.0


def test_smoothing_never_loses_where_stein_says_so() -> None:
    """Normal errors of one variance, small and large beside what is true (seed 6, 4000 draws).

    Standard errors are below 0.5 %; a constant twice as large loses more.
    """
    k, rng = 60, np.random.default_rng(6)
    truths = {"flat": np.full(k, 1 / k), "one": np.eye(k)[20], "two": np.eye(k)[[3, 40]].mean(0)}
    for name, truth in truths.items():
        for v in (1e-5, 1e-4, 1e-3, 1e-2):
            noisy = truth + rng.normal(scale=v**0.5, size=(4000, k))
            error = ((smooth_ordered(noisy, v) - truth) ** 2).sum(axis=1).mean()
            assert error < 1.005 * k * v, (name, v)


def test_smoothing_loses_where_one_value_holds_everybody() -> None:
    """L-GRR, 20 users at one of 64 values (seed 7, 2000 rounds): a third more, within 3 %.

    So no sentence may promise that smoothing is no worse whatever the truth.
    """
    protocol, n, k = loloha.LGRR(k=64, eps_inf=5.0, eps_1=4.0), 20, 64
    truth = np.eye(k)[32]
    chances = np.where(truth == 1, protocol.p_star, protocol.q_star)
    support = np.random.default_rng(7).multinomial(n, chances / chances.sum(), size=2000)
    raw = (support / n - protocol.q_star) / protocol.contrast
    variances = loloha.variance(protocol, n, np.clip(raw, 0, 1))
    errors = [
        ((one - truth) ** 2).sum(axis=1).mean() for one in (raw, smooth_ordered(raw, variances))
    ]
    assert 1.2 < errors[1] / errors[0] < 1.45
    assert "one value\n    holds nearly all users" in str(smooth_ordered.__doc__)


@pytest.mark.parametrize(
    ("variances", "message"),
    [
        (-1.0, "variances must be >= 0"),
        (np.nan, "variances must be finite"),
        (np.array([0.1, 0.1, -0.1]), "variances must be >= 0"),
        (np.array([0.1, np.inf, 0.1]), "variances must be finite"),
        (np.array([0.1, 0.1]), "variances must have the shape of the frequencies"),
        ("much", "variances must be"),
        (None, "variances must be"),
    ],
)
def test_the_variances_of_smoothing_are_checked(variances: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        smooth_ordered(np.array([0.2, 0.3, 0.5]), variances)
