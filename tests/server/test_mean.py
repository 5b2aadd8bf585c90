"""The mean of rounds: unbiased always, with the variance of users who keep their memo."""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.distribution import exact_distribution
from loloha.errors import MergeError, ParameterError
from loloha.server.estimate import temporal_covariance, variance
from loloha.server.mean import mean, mean_variance

BUDGETS = {"eps_inf": 2.0, "eps_1": 1.0}
PROTOCOLS = [
    loloha.BiLOLOHA(k=3, **BUDGETS),
    loloha.OLOLOHA(k=3, g=3, hash="prime", **BUDGETS),
    loloha.OLOLOHA(k=3, g=3, hash="prime", memo="joint", **BUDGETS),
    loloha.LGRR(k=3, **BUDGETS),
    loloha.RAPPOR(k=2, **BUDGETS),
    loloha.DBitFlipPM(k=3, b=3, d=3, eps_inf=2.0),
    loloha.GRR(k=3, eps=1.0),
]
CHANGING = [protocol for protocol in PROTOCOLS if protocol.k == 3]

Rounds = tuple[tuple[int, ...], ...]


def law_of_rounds(protocol: Any, values: tuple[int, ...]) -> dict[Rounds, Fraction]:
    """Law of the counts that one user adds to each round; -1 where nothing is sent."""

    def run(rng: Any) -> Rounds:
        client, found = protocol.client(rng=rng), []
        for t, v in enumerate(values):
            tally = protocol.tally()
            if v >= 0:
                tally.add(client.report(v, round=t))
            found.append(tuple(int(count) for count in tally.counts))
        return tuple(found)

    return exact_distribution(run)


def moments(protocol: Any, users: list[tuple[int, ...]]) -> tuple[Any, Any]:
    """Exact mean and variance of `mean` for a population: float64[bins] each."""
    law = law_of_rounds(protocol, users[0])
    for values in users[1:]:
        grown: dict[Any, Fraction] = defaultdict(Fraction)
        for (before, p), (one, q) in product(law.items(), law_of_rounds(protocol, values).items()):
            both = zip(before, one, strict=True)
            grown[tuple(tuple(map(sum, zip(*pair, strict=True))) for pair in both)] += p * q
        law = grown
    sizes = [sum(values[t] >= 0 for values in users) for t in range(len(users[0]))]
    first, second = np.zeros(protocol.bins), np.zeros(protocol.bins)
    for counts, probability in law.items():
        tallies = []
        for n, one in zip(sizes, counts, strict=True):
            tally = protocol.tally()
            tally.counts, tally.n = np.array(one, dtype=np.int64), n
            tallies.append(tally)
        found = mean(tallies).frequencies
        first += float(probability) * found
        second += float(probability) * found**2
    return first, second - first**2


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
@pytest.mark.parametrize("rounds", [2, 3])
def test_the_mean_has_the_variance_of_users_who_stay(protocol: Any, rounds: int) -> None:
    found, spread = moments(protocol, [(1,) * rounds])
    f = (np.arange(protocol.bins) == 1).astype(float)
    assert found == pytest.approx(f, abs=1e-12)
    assert spread == pytest.approx(mean_variance(protocol, [1] * rounds, f), rel=1e-9)
    alone, shared = variance(protocol, 1, f), temporal_covariance(protocol, 1, f)
    assert spread == pytest.approx(shared + (alone - shared) / rounds, rel=1e-9)


@pytest.mark.parametrize("protocol", [p for p in PROTOCOLS[:4] if not p.joint], ids=repr)
def test_rounds_of_different_sizes_share_the_users_of_the_smaller(protocol: Any) -> None:
    """Two users of one value, one of them in one of two rounds only: exact."""
    found, spread = moments(protocol, [(1, 1), (1, -1)])
    f = (np.arange(protocol.bins) == 1).astype(float)
    assert found == pytest.approx(f, abs=1e-12)
    assert spread == pytest.approx(mean_variance(protocol, [2, 1], f), rel=1e-9)
    assert mean_variance(protocol, [2, 1], f) == pytest.approx(mean_variance(protocol, [1, 2], f))


@pytest.mark.parametrize("protocol", CHANGING, ids=repr)
def test_users_who_change_err_no_more(protocol: Any) -> None:
    """Every history of two rounds: unbiased for the mean truth, within the stated variance."""
    for values in product(range(3), repeat=2):
        found, spread = moments(protocol, [values])
        f = np.bincount(values, minlength=3) / 2
        assert found == pytest.approx(f, abs=1e-12)
        assert (spread <= mean_variance(protocol, [1, 1], f) * (1 + 1e-9)).all()


def test_simulated_errors_are_the_stated_ones() -> None:
    """z of the squared error over 96 values and 20 runs; independent rounds would be 4.3 off."""
    protocol = loloha.OLOLOHA(k=96, **BUDGETS)
    values = np.repeat(np.random.default_rng(1).integers(96, size=(2000, 1)), 20, axis=1)
    truth = np.bincount(values[:, 0], minlength=96) / 2000
    ratios = []
    for seed in range(20):
        found = mean(loloha.simulate(protocol, values, rng=seed).tallies)
        assert found.n == 2000
        ratios.append(((found.frequencies - truth) ** 2 / found.standard_errors**2).mean())
    # 1920 squared normal errors, nearly independent: sd 0.032 of their mean.
    assert np.mean(ratios) == pytest.approx(1, abs=6 * 0.035)
    naive = variance(protocol, 2000) / 20
    assert mean_variance(protocol, [2000] * 20) > 4 * naive


@pytest.mark.parametrize("given", [None, [None], PROTOCOLS[0].tally(), 3])
def test_only_lists_of_tallies_are_averaged(given: Any) -> None:
    with pytest.raises(ParameterError, match=r"list of loloha\.Tally"):
        mean(given)


def test_what_cannot_be_averaged_is_refused() -> None:
    protocol = PROTOCOLS[0]
    with pytest.raises(MergeError, match="one twice"):
        mean([protocol.tally()] * 2)
    with pytest.raises(ParameterError, match="got none"):
        mean([protocol.tally()])
    other = PROTOCOLS[1].tally()
    both = [protocol.tally(), other]
    both[0].add(protocol.client().report(1, round=0))
    other.add(PROTOCOLS[1].client().report(1, round=0))
    with pytest.raises(MergeError, match="one protocol"):
        mean(both)
    with pytest.raises(ParameterError, match="at least one round"):
        mean_variance(protocol, [])
    with pytest.raises(ParameterError, match="reports must be"):
        mean_variance(protocol, [3, 0])


def test_a_bucket_that_nobody_sampled_stays_unknown() -> None:
    protocol = loloha.DBitFlipPM(k=3, b=3, d=1, eps_inf=2.0)
    tally = protocol.tally()
    tally.add(protocol.client().report(1, round=0))
    found = mean([tally, protocol.tally()])
    assert np.isnan(found.frequencies).sum() == np.isnan(found.standard_errors).sum() == 2
