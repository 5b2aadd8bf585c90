"""Populations under a budget for changes: the device's law, in array code."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.distribution import exact_distribution
from loloha.errors import DomainError, ParameterError
from loloha.population.samplers import History
from loloha.report import Report
from loloha.rng import Rng
from loloha_lab.dyadic import DyadicLH
from loloha_lab.dyadic import simulation as dyadic
from population import EnumeratedDraws


def counted(protocol: Any, values: Any, rng: Rng) -> Any:
    """Counts of the whole series, as the array code draws them."""
    tally = protocol.tally()
    dyadic.population(protocol, History(values, protocol.k), EnumeratedDraws(rng), tally)
    return tuple(tally.counts.ravel().tolist())


def sent(protocol: Any, values: Any, rng: Rng) -> Any:
    """The same of one user's client."""
    tally, client = protocol.tally(), protocol.client(rng=rng)
    for t, v in enumerate(values):
        report = client.report(v, round=t)
        if report:
            tally.add(Report(report.key, report.y), round=t)
    return tuple(tally.counts.ravel().tolist())


@pytest.mark.parametrize(
    ("rounds", "changes", "history"),
    [
        (1, 0, [2]), (3, 0, [0, 1, 1]), (3, 1, [1, 0, 1]), (3, 2, [1, 0, 1]), (4, 1, [1, 1, 2]),
        (4, 2, [0, 1, 0, 1]),
    ],
)  # fmt: skip
def test_a_user_has_the_distribution_of_the_device(
    rounds: int, changes: int, history: list[int]
) -> None:
    """Of all counts of the series, exactly."""
    protocol = DyadicLH(k=3, eps=1.2, rounds=rounds, changes=changes)
    ours = exact_distribution(lambda rng: counted(protocol, np.array([history]), rng))
    theirs = exact_distribution(lambda rng: sent(protocol, history, rng))
    assert ours == theirs


def test_users_are_independent() -> None:
    """Two at once have the law of two devices."""
    protocol = DyadicLH(k=2, eps=1.2, rounds=2, changes=1)
    values = np.array([[0, 1], [1, 1]])
    ours = exact_distribution(lambda rng: counted(protocol, values, rng))
    one, two = (
        exact_distribution(lambda rng, v=v: sent(protocol, v, rng)) for v in values.tolist()
    )
    theirs: dict[Any, Fraction] = {}
    for a, p in one.items():
        for b, q in two.items():
            both = tuple(np.add(a, b).tolist())
            theirs[both] = theirs.get(both, Fraction(0)) + p * q
    assert ours == theirs


def test_a_population_is_estimated_within_its_errors() -> None:
    """n = 20 000, a value that half leave: the estimates follow, and no z passes 6 (1e-9 each)."""
    n, tau = 20_000, 12
    rng = np.random.default_rng(3)
    values = np.tile(rng.integers(0, 4, n)[:, None], tau)
    leave = rng.random(n) < 0.5
    values[leave, 5:] = 3
    truth = np.stack([np.bincount(values[:, t], minlength=4) / n for t in range(tau)])
    protocol = DyadicLH(k=4, eps=4.0, rounds=tau, changes=1)
    found = dyadic.simulate(protocol, values, rng=1)
    z = (found.estimate.frequencies - truth) / found.estimate.standard_errors[:, None]
    assert np.abs(z).max() < 6
    assert found.used_up == 0
    assert truth[-1, 3] - truth[0, 3] > 8 * found.estimate.standard_errors.max()
    # Nobody's change counts: the estimates stay, and are told apart from the truth.
    frozen = dyadic.simulate(DyadicLH(k=4, eps=4.0, rounds=tau, changes=0), values, rng=1)
    z = (frozen.estimate.frequencies - truth[0]) / frozen.estimate.standard_errors[:, None]
    assert np.abs(z).max() < 6
    assert 0.1 < frozen.used_up < 0.2


def test_equal_seeds_give_equal_counts_and_data_sets_are_taken() -> None:
    data = loloha.datasets.syn(n=200, k=9, tau=6, change=0.1, rng=2)
    protocol = DyadicLH(k=9, eps=2.0, rounds=8, changes=2)
    one, two, other = (dyadic.simulate(protocol, data, rng=seed) for seed in (1, 1, 2))
    assert one.tally == two.tally != other.tally
    assert one.tally == dyadic.simulate(protocol, data.values, rng=1).tally
    # The series has two rounds more than the data.
    assert np.isnan(one.estimate.frequencies).any(axis=1).tolist() == [False] * 6 + [True] * 2


@pytest.mark.parametrize(
    "values", [[[0, -1]], [[0, 1, 2, 0, 1, 2, 0, 1, 2]], [0, 1], [[0.0, 1.0]]], ids=str
)
def test_unusable_values_are_refused(values: Any) -> None:
    protocol = DyadicLH(k=3, eps=1.0, rounds=8, changes=1)
    with pytest.raises(ParameterError, match=r"^values must be"):
        dyadic.simulate(protocol, np.array(values), rng=1)


def test_values_outside_the_domain_are_not_shown() -> None:
    protocol = DyadicLH(k=3, eps=1.0, rounds=8, changes=1)
    with pytest.raises(DomainError) as refused:
        dyadic.simulate(protocol, np.array([[0, 77]]), rng=1)
    assert "77" not in str(refused.value)
