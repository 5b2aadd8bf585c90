"""The accuracy check of a campaign: the same numbers as the plan, and promises that are kept."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import loloha
from loloha.campaign import Campaign, Labels, Schedule
from loloha.errors import CampaignError
from loloha.planning.accuracy_check import (
    check_accuracy,
    require_fit_keys,
    require_strong_privacy,
    weaknesses,
)
from loloha.planning.numeric import histogram_noise
from loloha.planning.prospect import prospect
from loloha.population.samplers import Draws, History, sample_reports
from loloha.privacy.rounded import percent
from loloha.protocols import Protocol
from loloha.server.estimate import Estimate

N, LEVEL = 500, 0.95
# At f = 0 its variance is a third of that at f = 1.
STEEP = loloha.LGRR(k=33, eps_inf=2.0, eps_1=1.0)


def campaign(protocol: Protocol) -> Campaign:
    domain = Labels(tuple(range(protocol.k)))
    return Campaign(name="any", protocol=protocol, domain=domain, schedule=Schedule(0, 3600))


def test_an_accuracy_check_agrees_with_the_plan() -> None:
    (row,) = [row for row in loloha.plan(33, N, 2.0, 1.0).rows if row.name == "l-grr"]
    seen = check_accuracy(campaign(STEEP), N)
    assert seen.visible == row.visible_one == pytest.approx(0.675, abs=5e-4)
    assert seen.error_95 == row.error_one
    assert seen.error_all_95 == row.error_all
    assert seen.standard_error**2 == pytest.approx(row.variance)
    assert prospect(STEEP, N, 2.0, 1.0).visible_one == row.visible_one


def shown(f: float) -> float:
    """How likely the interval of a value of this frequency lies above 0."""
    holders, p, q = round(f * N), STEEP.realised.p_star, STEEP.realised.q_star
    truly, falsely = (
        binom.pmf(np.arange(n + 1), n, float(chance))
        for n, chance in ((holders, p), (N - holders, q))
    )
    above = [
        Estimate.from_support(STEEP, N, part, np.full(STEEP.k, N)).interval(LEVEL)[0] > 0
        for part in np.resize(np.arange(N + 1.0), (N // STEEP.k + 1, STEEP.k))
    ]
    return float(np.convolve(truly, falsely) @ np.concatenate(above)[: N + 1])


def test_a_visible_frequency_shows_as_often_as_is_promised() -> None:
    """Exact; what would be visible with the variance of f = 0 shows in 85 % of rounds."""
    assert LEVEL <= shown(check_accuracy(campaign(STEEP), N).visible) < LEVEL + 0.005
    assert 0.85 < shown(0.545) < 0.86


def test_numbers_are_promised_a_mean_and_nothing_of_frequencies() -> None:
    protocol = loloha.OneBit(k=96, eps_inf=2.0, eps_1=1.0)
    seen = check_accuracy(campaign(protocol), N)
    result = loloha.simulate(protocol, np.zeros((N, 1), dtype=int), rng=1)
    assert seen.mean_95 == pytest.approx(1.959964 * result.mean_error[0] / 95)
    hidden = loloha.OneBit(k=96, eps_inf=2.0, eps_1=1.0, target="mean")
    without = check_accuracy(campaign(hidden), N).mean_95
    assert without == pytest.approx(1.959964 * np.sqrt(loloha.variance(hidden, N, 0.5)))
    assert seen.mean_95 < without
    assert seen.mean_95**2 * N < 1.96**2 * 1.2
    assert not seen.warnings
    assert check_accuracy(campaign(STEEP), N).mean_95 is None


def test_a_plan_says_what_a_mean_takes() -> None:
    """The error of the mean of unbiased frequencies, exactly, for values that all users share."""
    planned = loloha.plan(33, N, 2.0, 1.0)
    mean = planned.mean
    assert (
        mean.error
        == check_accuracy(campaign(loloha.OneBit(k=33, eps_inf=2.0, eps_1=1.0)), N).mean_95
    )
    assert mean.users == pytest.approx(N * (mean.error / 0.01) ** 2, abs=1)
    # Ten times fewer users than the histogram takes, even unprojected.
    assert 8 < mean.histogram_users / mean.users < 12
    assert loloha.plan(33, N, eps_1=1.0, eps_2=1.5).mean is None


def test_the_mean_of_a_histogram_is_as_uncertain_as_a_plan_says() -> None:
    """Variance over 4000 rounds of 200 users, seed 3; its own standard error is 2.2 %."""
    protocol = loloha.OLOLOHA(k=33, eps_inf=2.0, eps_1=1.0)
    values = np.tile(np.random.default_rng(3).binomial(32, 0.4, size=200), 4000)[:, None]
    (sent,) = sample_reports(protocol, History(values, 33), Draws(3))
    means = []
    for keys, ys in zip(sent.keys.reshape(4000, -1), sent.ys.reshape(4000, -1), strict=True):
        tally = protocol.tally()
        tally.update(keys, ys)
        means.append(tally.estimate().frequencies @ (np.arange(33) - 16) / 32)
    assert 200 * np.var(means) == pytest.approx(histogram_noise(protocol), rel=0.12)


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (loloha.LGRR(k=5, eps_inf=5.0, eps_1=1.0), []),
        (loloha.LGRR(k=5, eps_inf=5.01, eps_1=1.0), ["eps_inf = 5.01 is above the limit of 5"]),
        (loloha.GRR(k=5, eps=2.0), ["spends 2 anew"]),
        (loloha.GRR(k=5, eps=6.0), ["eps = 6 is above the limit of 5", "spends 6 anew"]),
    ],
)
def test_weak_privacy_is_named_and_must_be_accepted(protocol: Protocol, said: list[str]) -> None:
    found = weaknesses(protocol)
    assert len(found) == len(said)
    assert all(part in reason for part, reason in zip(said, found, strict=True))
    assert check_accuracy(campaign(protocol), 10**9).warnings == found
    require_strong_privacy(campaign(protocol), accept_weak_privacy=True)
    if found:
        with pytest.raises(CampaignError, match="must not have weak privacy"):
            require_strong_privacy(campaign(protocol))
    else:
        require_strong_privacy(campaign(protocol))


def test_undetectable_values_bring_a_warning_with_numbers() -> None:
    at = {n: check_accuracy(campaign(STEEP), n) for n in (2, N, 10**7)}
    assert [len(seen.warnings) for seen in at.values()] == [1, 1, 0]
    assert "With 2 reports a round no frequency" in at[2].warnings[0]
    assert (
        f"shows with 95 % probability from a frequency of {percent(at[N].visible)}"
        in (at[N].warnings[0])
    )
    assert f"({percent(at[N].error_95)}) exceeds" in at[N].warnings[0]
    assert f"({percent(1 / 33)}):" in at[N].warnings[0]
    assert (at[2].to_dict()["visible"], at[2].visible) == (None, np.inf)
    plain = at[N].to_dict()
    assert plain["warnings"] == list(at[N].warnings)
    assert plain["visible"] == at[N].visible
    assert plain["cap"] == pytest.approx(STEEP.cap, rel=1e-14)


@pytest.mark.parametrize(
    ("hash", "keys", "refused"),
    [("affine", "assigned", True), ("affine", "drawn", False), ("prime", "assigned", False)],
)
def test_keys_that_tell_nothing_are_not_assigned(hash: str, keys: str, refused: bool) -> None:
    protocol = loloha.OLOLOHA(k=9, eps_inf=2.0, eps_1=1.0, g=3, hash=hash)
    asked = replace(campaign(protocol), keys=keys)
    if refused:
        with pytest.raises(CampaignError, match="keys must be 'drawn' for hash='affine' and g = 3"):
            require_fit_keys(asked)
    else:
        require_fit_keys(asked)
