"""What theory expects is what enumeration of the devices gives, and z is what it says."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

import loloha
from loloha.distribution import exact_distribution
from loloha.protocols import Protocol
from loloha.rng import Rng
from loloha_lab.paper.theory import chance_beyond, deviation_of, expected_mse

EPS = {"eps_inf": 1.5, "eps_1": 0.5}


def exact_mse(protocol: Protocol, values: list[int]) -> float:
    """Mean over bins of E[(f_hat - f)^2 | somebody reaches the bin], by enumeration."""
    n, bins = len(values), protocol.bins
    buckets = [protocol.encoding.bin(value) for value in values]
    exact = protocol.realised

    def run(rng: Rng) -> tuple[tuple[int, int], ...]:
        tally = protocol.tally()
        for value in values:
            key = protocol.enroll(rng)
            kept = protocol.permanent(rng, protocol.memo_index(key, value))
            tally.add(loloha.Report(key, protocol.instant(rng, kept)))
        return tuple(zip(tally.support().tolist(), tally.eligible().tolist(), strict=True))

    squares: defaultdict[int, Fraction] = defaultdict(Fraction)
    weights: defaultdict[int, Fraction] = defaultdict(Fraction)
    for measurements, chance in exact_distribution(run).items():
        for place, (support, eligible) in enumerate(measurements):
            if eligible:
                f = Fraction(buckets.count(place), n)
                f_hat = (Fraction(support, eligible) - exact.q_star) / exact.contrast
                squares[place] += chance * (f_hat - f) ** 2
                weights[place] += chance
    return float(sum(squares[place] / weights[place] for place in range(bins)) / bins)


@pytest.mark.parametrize(
    ("protocol", "values"),
    [
        (loloha.LGRR(k=3, **EPS), [0, 1, 1]),
        (loloha.LGRR(k=3, calibration="published", **EPS), [0, 1, 1]),
        (loloha.BiLOLOHA(k=3, **EPS), [0, 2]),
        (loloha.OLOLOHA(k=3, g=3, **EPS), [0, 2]),
        (loloha.RAPPOR(k=2, **EPS), [0, 1]),
        (loloha.LOSUE(k=2, **EPS), [0, 0]),
        (loloha.DBitFlipPM(k=2, eps_inf=1.0), [0, 1, 1]),
        (loloha.DBitFlipPM(k=3, d=1, eps_inf=1.0), [0, 1, 1]),
        (loloha.DBitFlipPM(k=4, b=3, d=1, eps_inf=1.0, calibration="published"), [0, 3, 3]),
        (loloha.DBitFlipPM(k=3, d=2, eps_inf=1.0), [0, 1]),
    ],
    ids=lambda one: getattr(one, "name", None),
)
def test_expected_mse_is_that_of_the_devices(protocol: Protocol, values: list[int]) -> None:
    buckets = [protocol.encoding.bin(value) for value in values]
    truth = np.bincount(buckets, minlength=protocol.bins)[None] / len(values)
    expected = expected_mse(protocol, len(values), truth)
    assert expected == pytest.approx(exact_mse(protocol, values), rel=1e-11)


def test_z_is_the_normal_deviate_of_students_tail() -> None:
    # Mean 1, standard error 1/sqrt(3) at 2 degrees of freedom: t = sqrt(3), tail 0.1127.
    found = deviation_of(np.array([0.0, 1.0, 2.0]), 0.0)
    assert found.measured == 1.0
    assert found.z == pytest.approx(1.2122, abs=1e-4)
    assert deviation_of(np.array([0.0, 1.0, 2.0]), 2.0).z == pytest.approx(-1.2122, abs=1e-4)
    assert deviation_of(np.array([0.0, 1.0, 2.0]), 1.0).z == 0
    assert np.isnan(deviation_of(np.array([1.0]), 1.0).z)
    assert deviation_of(np.array([1.0, 1.0]), 1.0).z == 0
    assert deviation_of(np.array([1.0, 1.0]), 2.0).z == np.inf
    assert deviation_of(np.array([1.0, 2.0]), 4.0).ratio == 0.375


@pytest.mark.long
def test_z_is_normal_at_any_number_of_runs() -> None:
    # 8 000 points at 20 runs: |z| > 2 has chance 4.55 %, so 364 +- 18.6; alpha 2e-9 at 6
    # deviations. Sees the normal deviate taken for Student's, which gives 480.
    rng = np.random.default_rng(11)
    zs = [deviation_of(rng.normal(5, 2, 20), 5.0).z for _ in range(8_000)]
    beyond = int(np.count_nonzero(np.abs(zs) > 2))
    assert abs(beyond - 364) < 6 * 18.6, f"seed 11, n 8000: {beyond} beyond 2, expected 364"


def test_chance_of_so_many_far_points() -> None:
    assert chance_beyond(0, 100) == 1
    assert chance_beyond(1, 1) == pytest.approx(0.0026998, abs=1e-7)
    assert chance_beyond(3, 800) == pytest.approx(0.366, abs=0.002)
