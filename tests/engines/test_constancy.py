"""That users change is said of users who keep their values no more often than stated: exactly."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.distribution import exact_distribution
from loloha.engines import constancy
from loloha.engines.scores import Scores
from loloha.engines.window import decode
from loloha.population import linked

SMALL = [
    loloha.LGRR(k=3, eps_inf=2.0, eps_1=1.0),
    loloha.LGRR(k=2, eps_inf=8.0, eps_1=7.5),
    loloha.BiLOLOHA(k=3, eps_inf=4.0, eps_1=3.0),
]
MANY = [
    cls(k=k, eps_inf=eps_inf, eps_1=eps_1)
    for cls in (loloha.LGRR, loloha.BiLOLOHA, loloha.OLOLOHA)
    for k in (2, 100)
    for eps_inf, eps_1 in ((0.2, 0.1), (2.0, 1.0), (8.0, 7.5), (20.0, 10.0))
]
WINDOWS = [{10: 300}, {1: 40, 2: 70, 3: 70, 4: 60, 5: 40, 6: 10}, {60: 1, 2: 9000}, {2: 1}]


def lengths(protocol: Any, users: dict[int, int]) -> list[constancy.Length]:
    reports = sum(t * n for t, n in users.items())
    return [Scores(protocol, t).length(n, t / reports) for t, n in users.items()]


def supports(protocol: Any, values: tuple[int, ...]) -> dict[Any, float]:
    """Law of how many reports of one user support each value, by the shipped device."""

    def run(rng: Any) -> Any:
        client = protocol.client(rng=rng)
        sent = [client.report(v, round=t) for t, v in enumerate(values)]
        cells = [protocol.memo_index(sent[0].key, v) for v in range(protocol.k)]
        return tuple(sum(report.y == cell for report in sent) for cell in cells)

    return {s: float(p) for s, p in exact_distribution(run).items()}


@pytest.mark.parametrize("protocol", SMALL, ids=repr)
def test_what_speaks_against_users_who_stay_has_a_mean_of_at_most_one(protocol: Any) -> None:
    """Every outcome of every draw of two users, of two values and two numbers of reports."""
    window = lengths(protocol, {3: 1, 2: 1})
    tables = constancy.exponents(window, protocol.k)
    for values in ((0, 0), (0, 1)):
        laws = [supports(protocol, (v,) * t) for v, t in zip(values, (3, 2), strict=True)]
        mean = 0.0
        for (one, p), (two, q) in itertools.product(*(law.items() for law in laws)):
            sums = tables[:, list(one)] + tables[:, [4 + s for s in two]]
            mean += p * q * math.exp(constancy.evidence(sums))
        assert 0.3 < mean <= 1 + 1e-9


def test_an_unchanging_user_adds_no_evidence_for_any_value() -> None:
    """The exponential of each function has a mean of at most 1, and nearly that: none is wasted."""
    for protocol, users in itertools.product(MANY, WINDOWS):
        window = lengths(protocol, users)
        tables = constancy.exponents(window, protocol.k)
        start = 0
        for one in window:
            ends = start, start + len(one.plain)
            start = ends[1]
            means = [np.exp(tables[:, slice(*ends)]) @ law for law in one.pmfs]
            assert np.maximum(*means) == pytest.approx(1, abs=1e-9), (protocol, users)
            assert (np.minimum(*means) > 0.99).all(), (protocol, users)
            assert np.isfinite(tables).all()
            # What moves an estimate is of mean 0 in both cases.
            assert [law @ one.apart for law in one.pmfs] == pytest.approx([0, 0], abs=1e-12)


def test_a_value_that_many_hold_for_a_part_of_the_window_is_evidence() -> None:
    """5 000 users, of whom half hold it for one of ten rounds: expected supports, no noise."""
    protocol = loloha.OLOLOHA(k=100, eps_inf=2.0, eps_1=1.0)
    window = lengths(protocol, {10: 5000})
    tables = constancy.exponents(window, 100)
    held, other = window[0].pmfs
    shorter, once = Scores(protocol, 9).pmfs[1], Scores(protocol, 1).pmfs[0]
    moved = np.convolve(shorter, once)
    quiet = tables @ (5000 * (0.01 * held + 0.99 * other))
    loud = tables @ (5000 * (0.01 * held + 0.49 * other + 0.5 * moved))
    sums = np.stack([loud, *[quiet] * 99], axis=1)
    assert constancy.evidence(sums) > -math.log(constancy.FALSE_ALARM)
    assert constancy.evidence(np.stack([quiet] * 100, axis=1)) < 0


@pytest.mark.parametrize(
    ("protocol", "n", "rounds"),
    [
        (loloha.LGRR(k=20, eps_inf=2.0, eps_1=1.0), 1000, 6),
        (loloha.BiLOLOHA(k=20, eps_inf=2.0, eps_1=1.0), 60, 3),
    ],
    ids=["pairs", "alone"],
)
def test_the_difference_of_squared_errors_scatters_as_stated(
    protocol: Any, n: int, rounds: int
) -> None:
    """300 windows of users who stay, seeds 0..299.

    The deviation of a sample has a standard error of .041 times it: a quarter more or less has a
    chance of 1e-9. Without pairs, or without users by themselves, it would be a third of it in one
    of both cases.
    """
    values = np.repeat(np.arange(n)[:, None] % 20, rounds, axis=1)
    differences = []
    for seed in range(300):
        found = decode(protocol, *linked(protocol, values, rng=seed), method="mean")
        differences.append((found.gain or 0) - (found.seen or 0))
    window = lengths(protocol, {rounds: n})
    held, other = constancy.variances(window, lambda one: one.plain)
    spread = constancy.spread(window, 20, protocol.g or 20, np.full(20, 0.05))
    stated = spread / (held + 19 * other)
    assert np.mean(differences) == pytest.approx(0, abs=6 * stated / math.sqrt(300))
    assert np.std(differences) == pytest.approx(stated, rel=0.25)
