"""Estimates against the exact law of the shipped client, and bounds against exact tails."""

import csv
import inspect
import itertools
import math
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import loloha
from laws import oracle
from laws.variants import example
from loloha.distribution import exact_distribution
from loloha.errors import ParameterError
from loloha.protocols import REGISTRY, Protocol
from loloha.rng import SCALE, Rng, SimulationRng
from loloha.server.estimate import (
    Estimate,
    normal_quantile,
    simultaneous_error,
    temporal_covariance,
    variance,
)
from loloha.server.total import EstimatedSum
from loloha.server.variance import (
    Channel,
    eligible_of,
    expected_eligible,
    harmonic_eligible,
    spread,
)

EXAMPLES = [example(name, k=k) for k in (2, 3) for name in REGISTRY] + [
    loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0, calibration="published"),
    loloha.OLOLOHA(k=4, g=3, eps_inf=2.0, eps_1=1.0),
    loloha.DBitFlipPM(k=4, b=3, d=2, eps_inf=2.0),
    loloha.DBitFlipPM(k=3, d=1, eps_inf=2.0),
    loloha.DBitFlipPM(k=3, d=1, eps_inf=2.0, calibration="published"),
]
# Two rounds of three bits have half a million outcomes, and no more to show than two bits.
TWO_ROUNDS = [
    protocol
    for protocol in EXAMPLES
    if protocol.longitudinal and (protocol.k == 2 or protocol.encoding.kind != "bits")
]


def law_of_counts(protocol: Protocol, v: int) -> dict[tuple[int, ...], Fraction]:
    """Law of the counts of one report of ``v``, exactly."""

    def run(rng: Any) -> tuple[int, ...]:
        tally = protocol.tally()
        tally.add(protocol.client(rng=rng).report(v, round=0))
        return tuple(int(count) for count in tally.counts)

    return exact_distribution(run)


def law_of_tallies(protocol: Protocol, values: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """Law of the counts of a population, one report a user."""
    law = {(0,) * protocol.encoding.cells: Fraction(1)}
    ones = {v: law_of_counts(protocol, v) for v in set(values)}
    for v in values:
        merged: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for (before, p), (one, q) in itertools.product(law.items(), ones[v].items()):
            merged[tuple(map(sum, zip(before, one, strict=True)))] += p * q
        law = merged
    return law


def estimate_of(protocol: Protocol, counts: tuple[int, ...], n: int) -> Estimate:
    tally = protocol.tally()
    tally.counts, tally.n = np.array(counts, dtype=np.int64), n
    return tally.estimate()


def truth(protocol: Protocol, values: tuple[int, ...]) -> Any:
    return np.mean([held(protocol, v) for v in values], axis=0)


def held(protocol: Protocol, v: int) -> list[float]:
    """By how much a user of this value counts in each bin."""
    return [float(oracle.held(protocol, v, bin)) for bin in range(protocol.bins)]


@pytest.mark.parametrize("protocol", EXAMPLES, ids=repr)
@pytest.mark.parametrize("values", [(0,), (1,), (0, 0), (0, 1), (1, 1, 0)])
def test_estimates_are_unbiased_with_the_stated_variance(
    protocol: Protocol, values: tuple[int, ...]
) -> None:
    """PAINS 8 too: f in {0, 1}, k = 2, n = 1. Sampled buckets: given how many sampled each."""
    n, f = len(values), truth(protocol, values)
    moments: dict[tuple[int, int], Any] = defaultdict(lambda: np.zeros(3))
    for counts, probability in law_of_tallies(protocol, values).items():
        found = estimate_of(protocol, counts, n)
        for bin, (estimate, eligible) in enumerate(
            zip(found.frequencies, found.eligible, strict=True)
        ):
            if eligible:
                assert math.isfinite(found.standard_errors[bin])
                error = estimate - f[bin]
                moments[bin, int(eligible)] += float(probability) * np.array([1, error, error**2])
            else:
                assert math.isnan(estimate)
                assert math.isnan(found.standard_errors[bin])
    assert {bin for bin, _ in moments} == set(range(protocol.bins))
    for (bin, eligible), (weight, bias, square) in moments.items():
        assert bias / weight == pytest.approx(0, abs=1e-12)
        expected = variance(protocol, n, f[bin], eligible=eligible)
        assert square / weight == pytest.approx(expected, rel=1e-11), (bin, eligible)


@pytest.mark.parametrize("protocol", EXAMPLES, ids=repr)
def test_the_realised_parameters_are_those_of_the_distribution(protocol: Protocol) -> None:
    """Exactly, as fractions: Pr[support | held], Pr[support | not held] of the shipped client."""
    realised = protocol.realised
    for v in range(protocol.k):
        reached = [Fraction(0)] * protocol.bins
        supported = [Fraction(0)] * protocol.bins
        for counts, probability in law_of_counts(protocol, v).items():
            array = np.array(counts)
            support, eligible = (
                protocol.encoding.support(array),
                protocol.encoding.eligible(array, 1),
            )
            for bin in range(protocol.bins):
                reached[bin] += int(eligible[bin]) * probability
                supported[bin] += int(support[bin]) * probability
        for bin in range(protocol.bins):
            share = oracle.held(protocol, v, bin)
            expected = realised.q_star + share * realised.contrast
            assert supported[bin] == expected * reached[bin]


class Recorder(Rng):
    """Remembers every threshold that a device draws with."""

    def __init__(self) -> None:
        self.thresholds: set[int] = set()
        self._rng = SimulationRng(1)

    def bernoulli(self, threshold: int) -> bool:
        self.thresholds.add(threshold)
        return self._rng.bernoulli(threshold)

    def below(self, n: int) -> int:
        return self._rng.below(n)


@pytest.mark.parametrize("protocol", EXAMPLES, ids=repr)
def test_what_the_clients_did_goes_out_with_the_estimate(protocol: Protocol) -> None:
    """PAINS 16: each published probability is one that the client drew with, to the last bit."""
    recorder = Recorder()
    tally = protocol.tally()
    for user in range(20):
        tally.add(protocol.client(rng=recorder).report(user % protocol.k, round=0))
    published = tally.estimate().parameters
    drawn = {threshold / SCALE for threshold in recorder.thresholds}
    rounds = [protocol.realised.p1]
    if protocol.second is not None:
        assert protocol.realised.p2 is not None
        rounds.append(protocol.realised.p2)
    assert published["p1"] == float(rounds[0])
    assert {float(p) for p in rounds} <= drawn
    if protocol.g is None:
        assert published["q1"] in drawn
        assert published["q2"] is None or published["q2"] in drawn
    else:
        assert published["q1"] == float((1 - rounds[0]) / (protocol.g - 1))
    assert published["g"] == protocol.g
    assert published["protocol"] == protocol.to_dict()
    assert published["p_star"] == float(protocol.realised.p_star)
    assert published["eps_first"] <= protocol.asked_first
    assert published["eps_memo"] <= protocol.asked_memo


# -- variance


def test_variance_is_the_reference(reference: Path) -> None:
    names = {"RAPPOR": "rappor", "L-OSUE": "l-osue", "L-GRR": "l-grr"}
    checked = 0
    with (reference / "calibration.csv").open() as file:
        for row in csv.DictReader(file):
            name = names.get(row["protocol"])
            if name is None:
                continue
            eps_inf = float(row["eps_inf"])
            params = {"eps_inf": eps_inf, "eps_1": float(row["alpha"]) * eps_inf}
            if name == "l-grr":
                params["calibration"] = row["calibration"]
            protocol = loloha.protocol(name, k=int(row["k"] or 50), **params)
            expected = float(row["approx_variance_n10000"])
            assert variance(protocol, 10_000) == pytest.approx(expected, rel=1e-12), row
            checked += 1
    with (reference / "dbitflip.csv").open() as file:
        for row in csv.DictReader(file):
            b, d, eps_inf = int(row["b"]), int(row["d"]), float(row["eps_inf"])
            protocol = loloha.DBitFlipPM(k=b, d=d, eps_inf=eps_inf, calibration="published")
            expected = float(row["approx_variance_n10000"])
            assert variance(protocol, 10_000) == pytest.approx(expected, rel=1e-12), row
            checked += 1
    assert checked > 300


def test_variance_takes_what_numpy_gives() -> None:
    protocol = loloha.BiLOLOHA(k=4, eps_inf=2.0, eps_1=1.0)
    assert isinstance(variance(protocol, np.int64(10)), float)
    each = variance(protocol, 10, [0.0, 0.5, 1.0, 0.25])
    assert each.shape == (4,)
    assert each[1] == variance(protocol, 10, 0.5)
    assert variance(protocol, 10) == pytest.approx(10 * variance(protocol, 100))


def test_variance_of_sampled_buckets_is_that_of_a_sample() -> None:
    """MATH section 1 fixes the population; who samples a bucket still is a sample of it."""
    protocol = loloha.DBitFlipPM(k=10, d=1, eps_inf=700.0)
    # Without noise the estimate is the share among those who sampled: hypergeometric.
    assert variance(protocol, 100, 0.3, eligible=10) == pytest.approx(
        stats.hypergeom(100, 30, 10).var() / 100, rel=1e-9
    )
    assert variance(protocol, 100, 0.3) == variance(protocol, 100, 0.3, eligible=10)
    assert variance(protocol, 100, 0.3, eligible=100) == pytest.approx(0, abs=1e-12)


# -- intervals and bounds


def share_law(protocol: Protocol, n: int, held: int) -> tuple[Any, Any]:
    """(support, probability): exact law of how many of n reports support a value."""
    p, q = protocol.p_star, protocol.q_star
    holders = stats.binom.pmf(np.arange(held + 1), held, p)
    others = stats.binom.pmf(np.arange(n - held + 1), n - held, q)
    return np.arange(n + 1), np.convolve(holders, others)


def for_each(protocol: Protocol, n: int, supports: Any, bound: Any) -> tuple[Any, Any]:
    """Frequency and ``bound(estimate)`` for each of many possible supports of a value."""
    rows = np.resize(supports, (-(-len(supports) // protocol.k), protocol.k))
    eligible = np.full(protocol.k, n)
    found = [Estimate.from_support(protocol, n, row, eligible) for row in rows]
    frequencies = np.concatenate([estimate.frequencies for estimate in found])
    errors = np.concatenate([bound(estimate) for estimate in found])
    return frequencies[: len(supports)], errors[: len(supports)]


BOUNDED = [
    loloha.RAPPOR(k=20, eps_inf=2.0, eps_1=1.0),
    loloha.LOSUE(k=20, eps_inf=4.0, eps_1=3.0),
    loloha.LGRR(k=20, eps_inf=4.0, eps_1=2.0),
    loloha.BiLOLOHA(k=20, eps_inf=2.0, eps_1=1.0),
    loloha.OLOLOHA(k=20, eps_inf=4.0, eps_1=3.0),
]


@pytest.mark.parametrize("protocol", BOUNDED, ids=repr)
@pytest.mark.parametrize("f", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("bound", ["hoeffding", "chebyshev", "bernstein"])
@pytest.mark.parametrize("n", [1, 10, 1000])
def test_the_simultaneous_bounds_hold(protocol: Protocol, f: float, bound: str, n: int) -> None:
    """Exact chance that one value's error passes the bound: at most beta over the number of bins.

    Then the union over the bins is at most beta.
    """
    beta = 0.2
    held = round(n * f)
    supports, law = share_law(protocol, n, held)
    frequencies, errors = for_each(
        protocol, n, supports, lambda one: one.simultaneous(1 - beta, bound)
    )
    passed = float(law[np.abs(frequencies - held / n) > errors * (1 + 1e-12)].sum())
    assert passed <= beta / protocol.bins
    known = simultaneous_error(protocol, n, level=1 - beta, bound=bound, f=held / n)
    passed = float(law[np.abs(frequencies - held / n) > known * (1 + 1e-12)].sum())
    assert passed <= beta / protocol.bins


def test_the_bounds_are_those_of_the_specification() -> None:
    """MATH section 9, Chebyshev with the square that the paper lacks."""
    protocol = loloha.LOSUE(k=50, eps_inf=4.0, eps_1=3.0)
    n, beta = 1000, 0.05
    hoeffding = math.sqrt(math.log(2 * 50 / beta) / (2 * n)) / protocol.contrast
    assert simultaneous_error(protocol, n) == pytest.approx(hoeffding, rel=1e-12)
    chebyshev = math.sqrt(50 / (4 * n * beta)) / protocol.contrast
    seen = simultaneous_error(protocol, n, level=0.95, bound="chebyshev")
    assert seen == pytest.approx(chebyshev, rel=1e-12)
    # Rare values are where Bernstein's is the tightest.
    rare = simultaneous_error(protocol, n, bound="bernstein")
    common = simultaneous_error(protocol, n, bound="bernstein", f=0.5)
    assert rare < hoeffding < chebyshev
    assert rare < common
    each = simultaneous_error(protocol, [n, 0, 4 * n], bound="bernstein", f=[0.0, 0.0, 0.5])
    assert each == pytest.approx([rare, math.inf, each[2]])


@pytest.mark.parametrize("bound", ["hoeffding", "chebyshev", "bernstein"])
def test_bounds_of_sampled_buckets(bound: str) -> None:
    """Each bucket by the users who sampled it; none did: nothing is known."""
    protocol = loloha.DBitFlipPM(k=4, d=1, eps_inf=2.0)
    tally = protocol.tally()
    tally.update(np.array([[0]] * 3 + [[1]] * 12), np.zeros((15, 1), dtype=np.uint8))
    found = tally.estimate()
    errors = found.simultaneous(bound=bound)
    assert errors[1] < errors[0]
    assert errors[2:].tolist() == [math.inf, math.inf]
    assert np.isnan(found.frequencies[2:]).all()
    assert np.isnan(found.interval()[0][2:]).all()


def test_an_interval_of_real_clients() -> None:
    """Seed 0..399, 400 users, 8 values at 6 standard errors: alpha = 8 * 2e-9.

    It would see a wrong q_star (0.4 standard errors a percent of n) or a wrong key in the tally.
    """
    protocol = loloha.BiLOLOHA(k=8, eps_inf=4.0, eps_1=2.0)
    values = [user % 4 for user in range(400)]
    tally = protocol.tally()
    for user, v in enumerate(values):
        tally.add(protocol.client(rng=SimulationRng(user)).report(v, round=0))
    found = tally.estimate()
    low, high = found.interval(1 - 2e-9)
    expected = truth(protocol, tuple(values))
    z = (found.frequencies - expected) / found.standard_errors
    assert (low <= expected).all(), f"seeds 0..399, n = 400, z = {z}"
    assert (expected <= high).all(), f"seeds 0..399, n = 400, z = {z}"
    # With hundreds of reports close to the normal one.
    width = normal_quantile(0.975) * found.standard_errors
    low, high = found.interval()
    assert low == pytest.approx(np.maximum(found.frequencies - width, 0), abs=0.02)
    assert high == pytest.approx(found.frequencies + width, abs=0.02)


# -- two rounds


def covariance_of_one_user(protocol: Protocol, u: int, v: int) -> Any:
    """Covariance of the frequencies that one user who holds u and then v makes, float64[bins].

    Given, for each bin, that the user's key lets the user support it.
    """
    laws: dict[Any, Any] = defaultdict(lambda: defaultdict(Fraction))

    def run(rng: Any) -> Any:
        client = protocol.client(rng=rng)
        tallies = []
        for t, value in enumerate((u, v)):
            tally = protocol.tally()
            tally.add(client.report(value, round=t))
            tallies.append(tally)
        return tuple(
            (tuple(map(int, tally.support())), tuple(map(int, tally.eligible())))
            for tally in tallies
        )

    for ((one, eligible), (other, _)), probability in exact_distribution(run).items():
        laws[eligible][one, other] += probability
    covariance = np.zeros(protocol.bins)
    for bin in range(protocol.bins):
        reaching = [law for eligible, law in laws.items() if eligible[bin]]
        joint: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
        for law in reaching:
            for (one, other), probability in law.items():
                joint[one[bin], other[bin]] += probability
        total = sum(joint.values())
        first = (joint[1, 0] + joint[1, 1]) / total
        second = (joint[0, 1] + joint[1, 1]) / total
        covariance[bin] = float(joint[1, 1] / total - first * second)
    return covariance / float(protocol.realised.contrast) ** 2


@pytest.mark.parametrize("protocol", TWO_ROUNDS, ids=repr)
def test_covariance_of_two_rounds_with_the_same_values(protocol: Protocol) -> None:
    for v in range(protocol.k):
        covariance = covariance_of_one_user(protocol, v, v)
        for bin in range(protocol.bins):
            f = held(protocol, v)[bin]
            # One user whom the round reaches, so without the noise of sampling buckets.
            expected = temporal_covariance(protocol, 1, f) * expected_eligible(protocol, 1)
            assert covariance[bin] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("protocol", TWO_ROUNDS, ids=repr)
def test_covariance_of_two_rounds_with_other_values(protocol: Protocol) -> None:
    """At most the geometric mean of the floors; nothing at all where memo cells are the values."""
    for u, v in {(0, 1), (1, 0), (0, protocol.k - 1)}:
        covariance = covariance_of_one_user(protocol, u, v)
        for bin in range(protocol.bins):
            floors = [
                temporal_covariance(protocol, 1, held(protocol, value)[bin])
                * expected_eligible(protocol, 1)
                for value in (u, v)
            ]
            assert abs(covariance[bin]) <= math.sqrt(floors[0] * floors[1]) * (1 + 1e-10)
            if protocol.encoding.kind in ("symbol", "bits"):
                assert covariance[bin] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("k", "d", "n"), [(3, 1, 1), (3, 1, 4), (4, 2, 3), (5, 4, 3)])
def test_variance_at_harmonic_eligible_is_its_mean_over_who_samples_a_bucket(
    k: int, d: int, n: int
) -> None:
    """Every choice of buckets of n users, those that leave bucket 0 unsampled apart."""
    protocol = loloha.DBitFlipPM(k=k, d=d, eps_inf=1.0)
    choices = [0 in buckets for buckets in itertools.combinations(range(k), d)]
    reaches = [sum(users) for users in itertools.product(choices, repeat=n) if any(users)]
    mean = np.mean([1 / eligible for eligible in reaches])
    assert harmonic_eligible(protocol, n) == pytest.approx(1 / mean, rel=1e-14)
    for f in (0.0, 0.3, 1.0):
        each = [variance(protocol, n, f, eligible=eligible) for eligible in reaches]
        seen = variance(protocol, n, f, eligible=harmonic_eligible(protocol, n))
        assert seen == pytest.approx(np.mean(each), rel=1e-12, abs=1e-15)


def test_harmonic_eligible_is_whole_where_all_are_and_smooth_where_a_series_takes_over() -> None:
    assert harmonic_eligible(BINARY, 17) == 17
    assert harmonic_eligible(loloha.DBitFlipPM(k=9, eps_inf=1.0), 17) == 17
    protocol = loloha.DBitFlipPM(k=4, d=1, eps_inf=1.0)
    # The series is in use from a mean of 20 000 on: up to 1 - d/b, the same below it.
    below, above = (harmonic_eligible(protocol, n) - n / 4 for n in (80_000, 80_004))
    assert below == pytest.approx(-0.75, abs=1e-4)
    assert above == pytest.approx(below, abs=1e-7)


def test_covariance_without_a_fresh_round_is_the_variance() -> None:
    for protocol in (
        loloha.DBitFlipPM(k=30, eps_inf=2.0),
        loloha.DBitFlipPM(k=30, d=4, eps_inf=2.0),
        loloha.DBitFlipPM(k=30, b=10, d=1, eps_inf=2.0),
    ):
        f = np.linspace(0, 1, protocol.bins)
        assert temporal_covariance(protocol, 500, f) == pytest.approx(
            variance(protocol, 500, f), rel=1e-10
        )


def test_covariance_is_below_the_variance_and_none_for_one_round_rules() -> None:
    for protocol in EXAMPLES:
        for f in (0.0, 0.3, 1.0):
            covariance = temporal_covariance(protocol, 100, f)
            assert isinstance(covariance, float)
            if protocol.longitudinal:
                assert 0 < covariance <= variance(protocol, 100, f) * (1 + 1e-10)
            else:
                assert covariance == 0.0
    assert temporal_covariance(loloha.OUE(k=3, eps=1.0), 5, [0.1, 0.9]).tolist() == [0.0, 0.0]


# -- refusals

BINARY = loloha.BiLOLOHA(k=2, eps_inf=2.0, eps_1=1.0)
BUCKETS = loloha.DBitFlipPM(k=4, d=2, eps_inf=2.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BINARY.tally().estimate(), "n must be an integer in 1"),
        (lambda: variance(BINARY, 0), "n must be"),
        (lambda: variance(BINARY, 1.5), "n must be"),
        (lambda: variance(BINARY, 9, 1.1), r"f must lie in \[0, 1\], got 1 outside"),
        (lambda: variance(BINARY, 9, [0.1, -0.1, math.nan]), "f must lie in .* got 2 outside"),
        (lambda: variance(BINARY, 9, "rare"), "f must lie in"),
        (lambda: variance(BUCKETS, 9, eligible=10), r"eligible must lie in \[0, 9\]"),
        (lambda: variance(BUCKETS, 9, eligible=[1, 0]), "eligible must be above 0"),
        (lambda: temporal_covariance(BINARY, 0), "n must be"),
        (lambda: temporal_covariance(BINARY, 1, 2), "f must lie in"),
        (lambda: simultaneous_error(BINARY, -1), "n must lie in"),
        (lambda: simultaneous_error(BINARY, math.nan), "n must lie in"),
        (lambda: simultaneous_error(BINARY, 1, level=1.0), "level must be inside"),
        (lambda: simultaneous_error(BINARY, 1, level=math.nan), "level must be inside"),
        (lambda: simultaneous_error(BINARY, 1, bound="markov"), "bound must be one of"),
        (lambda: simultaneous_error(BINARY, 1, bound="bernstein", f=-1), "f must lie in"),
        (lambda: Estimate.from_support(BINARY, 3, [1], [3]), r"got shapes \(1,\) and \(1,\)"),
        (lambda: Estimate.from_support(BINARY, 0, [1, 0], [1, 1]), "n must be"),
    ],
)
def test_refusals_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, "0.95", None])
def test_levels_must_be_inside(level: Any) -> None:
    tally = BINARY.tally()
    tally.update(np.array([1]), np.array([0]))
    for call in (tally.estimate().interval, tally.estimate().simultaneous):
        with pytest.raises(ParameterError, match="level must be"):
            call(level)
    with pytest.raises(ParameterError, match="level must be"):
        tally.estimate().simultaneous(level, "bernstein")


@pytest.mark.parametrize(
    "cls",
    [loloha.Estimate, EstimatedSum],
    ids=lambda cls: cls.__name__,
)
def test_what_takes_a_level_takes_95_percent_by_default(cls: type) -> None:
    methods = {name: each for name, each in vars(cls).items() if inspect.isfunction(each)}
    levels = {
        name: inspect.signature(method).parameters["level"].default
        for name, method in methods.items()
        if "level" in inspect.signature(method).parameters and not name.startswith("_")
    }
    assert len(levels) > 0
    assert levels == dict.fromkeys(levels, 0.95)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_errors_tell_how_many_users_were_eligible(d: int) -> None:
    """As many as the errors were computed with, whatever the frequencies are; 0 of unknown ones."""
    protocol = loloha.DBitFlipPM(k=10, eps_inf=2.0, b=5, d=d)
    f, eligible = np.array([0.0, 0.1, 0.5, 0.9, 1.0]), np.array([7, 40, 41, 99, 200])
    n = np.full(5, 200)
    errors = np.sqrt(spread(Channel.realised(protocol), n, eligible, f))
    found = eligible_of(protocol, n, f, errors)
    assert found.tolist() == (eligible if d < 5 else n).tolist()
    if d < 5:
        errors[2] = np.nan
        assert eligible_of(protocol, n, f, errors).tolist() == [7, 40, 0, 99, 200]
