"""The verdict on a campaign: the same numbers as the plan, and promises that are kept."""

import numpy as np
import pytest
from scipy.stats import binom

import loloha
from loloha.campaign import Campaign, Labels, Schedule
from loloha.planning.prospect import prospect
from loloha.planning.verdict import verdict
from loloha.population import supports
from loloha.protocols import Protocol
from loloha.server.estimate import Estimate

ALPHA = 2e-9
N, RUNS, LEVEL = 500, 800, 0.95
# At f = 0 its variance is a third of that at f = 1.
STEEP = loloha.LGRR(k=33, eps_inf=2.0, eps_1=1.0)


def campaign(protocol: Protocol) -> Campaign:
    domain = Labels(tuple(range(protocol.k)))
    return Campaign(name="any", protocol=protocol, domain=domain, schedule=Schedule(0, 3600))


def test_a_verdict_says_what_the_plan_says() -> None:
    (row,) = [row for row in loloha.plan(33, N, 2.0, 1.0).rows if row.name == "l-grr"]
    seen = verdict(campaign(STEEP), N)
    assert seen.visible == row.visible_one == pytest.approx(0.675, abs=5e-4)
    assert seen.error_95 == row.error_one
    assert seen.error_all_95 == row.error_all
    assert seen.standard_error**2 == pytest.approx(row.variance)
    assert prospect(STEEP, N, 2.0, 1.0).visible_one == row.visible_one


def shown(f: float) -> int:
    """In how many of `RUNS` rounds the interval of a value of this frequency lies above 0."""
    holders = round(f * N)
    values = np.zeros((N, 1), dtype=int)
    values[holders:, 0] = 1 + np.arange(N - holders) % (STEEP.k - 1)
    above = 0
    for seed in range(RUNS):
        found = supports(STEEP, values, rng=seed)
        estimate = Estimate.from_support(STEEP, N, found.supports[0], found.eligible[0])
        above += bool(estimate.interval(LEVEL)[0][0] > 0)
    return above


def test_a_visible_frequency_shows_as_often_as_is_promised() -> None:
    """Sees a promise that is kept in 88 % of rounds or fewer; that of f = 0 is kept in 80 %."""
    promised = binom.ppf(ALPHA, RUNS, LEVEL)
    assert shown(verdict(campaign(STEEP), N).visible) >= promised, f"seeds 0..{RUNS - 1}, n = {N}"
    at_zero = 0.545
    assert shown(at_zero) < promised
