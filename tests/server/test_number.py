"""Mean, quantiles and distribution function of numbers: against enumeration and brute force."""

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from scipy.stats import chi2

import loloha
from loloha.campaign import Range
from loloha.distribution import exact_distribution
from loloha.errors import ParameterError
from loloha.report import Report
from loloha.server import quantile_interval
from loloha.server.estimate import Estimate
from loloha.server.number import Numbers, mean_scatter
from loloha.server.number_series import of_series
from loloha.server.quantile_interval import Blocks, likely, quantile_ends
from loloha.server.statespace import Posterior
from loloha.server.variance import Channel

BUDGETS = {"eps_inf": 2.0, "eps_1": 1.0}
CHANNEL = Channel.realised(loloha.OneBit(k=2, **BUDGETS))


def one_bit(k: int, **more: Any) -> loloha.OneBit:
    return loloha.OneBit(k=k, **BUDGETS, **more)


def estimate_of(protocol: Any, reports: tuple[tuple[Any, int], ...]) -> Estimate:
    tally = protocol.tally()
    for key, y in reports:
        tally.add(Report(key, y))
    return tally.estimate()


@pytest.mark.parametrize("target", ["distribution", "mean"])
@pytest.mark.parametrize("values", [(0,), (1,), (0, 2), (1, 1), (2, 1)])
def test_the_mean_is_unbiased_with_the_stated_variance(target: str, values: tuple[int]) -> None:
    """Every outcome of the shipped clients: exact where all hold one value, else at most that."""
    protocol = one_bit(3, target=target)
    alone = []
    for v in values:

        def run(rng: Any, v: int = v) -> Any:
            report = protocol.client(rng=rng).report(v, round=0)
            return report.key, report.y

        alone.append(exact_distribution(run))
    mean = square = Fraction(0)
    for reports in product(*alone):
        chance = math.prod(law[one] for law, one in zip(alone, reports, strict=True))
        found = Fraction(estimate_of(protocol, reports).mean)
        mean, square = mean + chance * found, square + chance * found**2
    assert float(mean) == pytest.approx(np.mean(values), abs=1e-12)
    if target == "mean":
        stated = 4 * loloha.variance(protocol, len(values), np.mean(values) / 2)
        # What the values' own spread takes off: the thresholds are drawn one a user.
        exact = stated - np.var(values) / len(values)
        assert stated <= 4 / (4 * math.tanh(0.5) ** 2) / len(values) * (1 + 1e-9)
    else:
        errors = {estimate_of(protocol, reports).mean_error for reports in product(*alone)}
        exact = max(errors) ** 2
        assert max(errors) == pytest.approx(min(errors), rel=1e-12)
    assert float(square - mean**2) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("k", [2, 5, 96, 1 << 20])
def test_the_variance_of_a_mean_is_below_1_2_squared_ranges_whatever_k(k: int) -> None:
    assert loloha.variance(one_bit(k, target="mean"), 1, 0.5) < 1.2


def counted(k: int, seed: int, *, gaps: bool = False) -> tuple[Any, Any, Numbers]:
    """Bits of some users at each threshold, and what is made of them."""
    rng = np.random.default_rng(seed)
    eligible = rng.integers(0 if gaps else 1, 6, size=k - 1)
    ones = rng.binomial(eligible, 0.5)
    tally = one_bit(k).tally()
    bits = [np.arange(m) < y for y, m in zip(ones, eligible, strict=True)]
    tally.update(np.repeat(np.arange(1, k), eligible), np.concatenate(bits).astype(np.int64))
    return ones, eligible, tally.estimate().numbers


@pytest.mark.parametrize("seed", range(20))
def test_shares_are_the_likeliest_decreasing_ones(seed: int) -> None:
    ones, eligible, numbers = counted(9, seed, gaps=seed % 2 == 1)
    drawn = eligible > 0
    fit = isotonic_regression(
        ones[drawn] / eligible[drawn], weights=eligible[drawn], increasing=False
    )
    expected = np.clip((fit.x - CHANNEL.q) / CHANNEL.contrast, 0, 1)
    places = [0, *(1 + np.flatnonzero(drawn)), 9]
    between = np.interp(np.arange(9), places, [1, *expected, 0])
    assert numbers.survival == pytest.approx(between, abs=1e-12)
    assert (np.diff(numbers.survival) <= 1e-12).all()
    # Nine tenths of the way from the 10 % to the 90 % quantile, over the fifth root of n.
    low, high = (int((between[1:] > rest).sum()) for rest in (0.9, 0.1))
    steps = round(0.9 * (high - low) / eligible.sum() ** 0.2)
    weights = [1 - (i / (steps + 0.5)) ** 2 for i in range(-steps, steps + 1)]
    beside = np.concatenate([np.ones(steps), between, np.zeros(steps)])
    smooth = [np.average(beside[v : v + len(weights)], weights=weights) for v in range(9)]
    for level in (0.1, 0.5, 0.9):
        # The least value whose next one at most 1 - level reach; but for rounding.
        v = int(numbers.quantile(level))
        assert v == 0 or smooth[v] > 1 - level - 1e-9
        assert v == 8 or smooth[v + 1] <= 1 - level + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_of_a_quantile_is_that_of_the_likelihood(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every decreasing distribution function on a grid, for each value that the quantile may be."""
    monkeypatch.setattr(quantile_interval, "HALF", 0.0)
    k, level, steps = 4, 0.6, 20
    ones, eligible, numbers = counted(k, seed)
    rest = 1 - level
    grid = [i / steps for i in range(steps + 1)]
    best: dict[int | None, float] = {}
    for shares in product(grid, repeat=k - 1):
        if list(shares) != sorted(shares, reverse=True):
            continue
        chances = CHANNEL.q + CHANNEL.contrast * np.array(shares)
        value = float((ones * np.log(chances) + (eligible - ones) * np.log1p(-chances)).sum())
        allowed = [
            v
            for v in range(k)
            if all(s >= rest - 1e-9 for s in shares[:v])
            and all(s <= rest + 1e-9 for s in shares[v:])
        ]
        for v in [None, *allowed]:
            best[v] = max(best.get(v, -math.inf), value)
    below = np.array([np.count_nonzero(eligible[:v]) for v in range(k)])
    longer = np.maximum(below, below[-1] - below)
    ratios = np.array([2 * (best[None] - best[v]) for v in range(k)])
    for confidence in (0.6, 0.8, 0.95):
        # A grid finds a little less than the most.
        inner = np.flatnonzero(likely(ratios + 0.04, longer, confidence))
        outer = np.flatnonzero(likely(ratios - 0.04, longer, confidence))
        low, high = numbers.quantile_interval(level, confidence)
        assert min(outer) <= low <= min(inner, default=low)
        assert max(inner, default=high) <= high <= max(outer)
        assert low <= high


@pytest.mark.parametrize("m", [1, 2, 4, 7])
def test_a_likelihood_ratio_is_a_mixture_of_chi_squares_by_the_blocks_of_a_fit(m: int) -> None:
    """Blocks of every order of unequal shares, each on the wrong side by the toss of a coin."""
    rng = np.random.default_rng(m)
    reports, ones = rng.uniform(0.1, 9, size=(2, m))
    counted = np.zeros(m + 1)
    for order in permutations(range(m)):
        some = np.array(order)
        fit = isotonic_regression(ones[some] / reports[some], weights=reports[some]).x
        wrong = len(np.unique(fit))
        counted[: wrong + 1] += [math.comb(wrong, i) / 2**wrong for i in range(wrong + 1)]
    counted /= math.factorial(m)
    for ratio in (0.5, 3.0, 7.3, 30.0):
        larger = float(counted[1:] @ chi2.sf(ratio, range(1, m + 1)))
        ratios, thresholds = np.full(m + 1, ratio), np.full(m + 1, m)
        assert not likely(ratios, thresholds, 1 - larger - 1e-9).any()
        assert likely(ratios, thresholds, 1 - larger + 1e-9).all()


def test_pooled_neighbours_know_their_likelihood() -> None:
    blocks = Blocks(CHANNEL, 0.0, 1.0)
    assert blocks.likelihood == 0
    for ones, reports in ((1, 4), (3, 4), (2, 5)):
        blocks.add(ones, reports)
    pooled = 8 * math.log(0.5)
    assert blocks.likelihood == pytest.approx(pooled + 2 * math.log(0.4) + 3 * math.log(0.6))


def test_a_round_without_reports_knows_nothing() -> None:
    values = np.array([[3, -1], [4, -1], [0, -1]])
    result = loloha.simulate(one_bit(6), values, rng=1)
    assert result.mean.shape == result.quantile(0.5).shape == (2,)
    assert result.survival.shape == (2, 6)
    for numbers in (result.mean, result.mean_error, result.quantile(0.9), result.median,
                    *result.mean_interval(), *result.quantile_interval(0.9)):  # fmt: skip
        assert np.isfinite(numbers[0])
        assert np.isnan(numbers[1])
    assert np.isnan(result.survival[1]).all()


def test_estimate_and_simulation_say_the_same() -> None:
    values = np.random.default_rng(3).binomial(30, 0.4, size=(2000, 2))
    result = loloha.simulate(one_bit(31), values, rng=3)
    for t, tally in enumerate(result.tallies):
        one = tally.estimate()
        assert one.mean == pytest.approx(result.mean[t], rel=1e-12)
        assert one.mean_error == pytest.approx(result.mean_error[t], rel=1e-12)
        assert one.mean_interval() == pytest.approx([end[t] for end in result.mean_interval()])
        assert (one.median, one.quantile(0.9)) == (result.median[t], result.quantile(0.9)[t])
        ends = [end[t] for end in result.quantile_interval(0.9)]
        assert list(one.quantile_interval(0.9)) == ends
        assert one.survival == pytest.approx(result.survival[t])
    assert result.mean == pytest.approx(values.mean(axis=0), abs=5 * result.mean_error.max())


def test_what_cannot_be_estimated_is_refused() -> None:
    tally = one_bit(5, target="mean").tally()
    tally.add(Report(None, 1))
    estimate = tally.estimate()
    assert math.isfinite(estimate.mean)
    for call in (lambda: estimate.quantile(0.5), lambda: estimate.survival,
                 lambda: estimate.quantile_interval(0.5)):  # fmt: skip
        with pytest.raises(ParameterError, match="target='distribution'"):
            call()
    other = loloha.GRR(k=3, eps=1.0).tally()
    other.add(Report(None, 1))
    with pytest.raises(ParameterError, match="protocol must be for numbers, got grr; use OneBit"):
        _ = other.estimate().mean
    known = estimate_of(one_bit(5), ((2, 1),))
    for level in (0, 1, -0.5, math.nan, "0.5", True):
        with pytest.raises(ParameterError, match="level must be"):
            known.quantile(level)  # type: ignore[arg-type]


def test_an_error_names_the_probability_that_is_wrong() -> None:
    tally = loloha.OneBit(k=4, eps_inf=2.0, eps_1=1.0).tally()
    tally.add(tally.protocol.client().report(1, round=0))
    estimate = tally.estimate()
    with pytest.raises(ParameterError, match=r"^level must .* 50; 0.5 is the median"):
        estimate.quantile(50)
    with pytest.raises(ParameterError, match=r"^confidence must .* 95; 0.95 is usual"):
        estimate.quantile_interval(0.5, 95)


@pytest.mark.parametrize(("k", "shown"), [(1 << 14, True), ((1 << 14) + 1, False)])
def test_summaries_of_a_large_domain_leave_quantiles_out(
    monkeypatch: pytest.MonkeyPatch, k: int, shown: bool
) -> None:
    monkeypatch.setattr(Numbers, "quantile", lambda *_: 1.0)
    monkeypatch.setattr(Numbers, "quantile_interval", lambda *_: (0.0, 2.0))
    summary = estimate_of(one_bit(k), ((2, 1),)).numbers.summary()
    assert ("quantile_50_upper" in summary) is shown


def outcomes(
    values: Sequence[Any], channel: Channel = CHANNEL, reach: Any = operator.ge
) -> tuple[Any, Any, Any]:
    """All that can be counted at the two thresholds of k = 3: chances, ones, eligible users."""
    size = len(values) + 1
    chances = np.zeros((size, size, size))  # by users and ones of t = 1, and ones of t = 2
    chances[0, 0, 0] = 1.0
    for v in values:
        low, high = (channel.q + channel.contrast * reach(v, t) for t in (1, 2))
        after = np.zeros_like(chances)
        after[1:] += chances[:-1] * (1 - low) / 2
        after[1:, 1:] += chances[:-1, :-1] * low / 2
        after += chances * (1 - high) / 2
        after[:, :, 1:] += chances[:, :, :-1] * high / 2
        chances = after
    users, first, second = np.nonzero(chances)
    eligible = np.stack([users, len(values) - users], axis=-1)
    return chances[users, first, second], np.stack([first, second], axis=-1), eligible


@pytest.mark.parametrize("values", [(0,) * 24, (1,) * 24, (0, 2) * 12, (0, 1, 2) * 8, (2,) * 24])
def test_intervals_of_few_users_cover(values: tuple[int, ...]) -> None:
    """Every outcome of 24 users: mean, shares and median, by the exact distribution."""
    chances, ones, eligible = outcomes(values)
    assert chances.sum() == pytest.approx(1)
    protocol = one_bit(3)
    with np.errstate(invalid="ignore"):
        shares = (ones / eligible - CHANNEL.q) / CHANNEL.contrast
    numbers = Numbers.of(protocol, shares, eligible, len(values))
    low, high = numbers.mean_interval()
    at = np.mean(values)
    covered = chances[(low <= at) & (at <= high)].sum()
    # At an end of the range it can miss on one side alone.
    assert 0.945 < covered < (0.98 if 0 < at < 2 else 0.985)
    mean = (chances * numbers.mean).sum()
    assert mean == pytest.approx(at, abs=1e-12)
    scatter = (chances * (numbers.mean - at) ** 2).sum()
    assert numbers.mean_error**2 == pytest.approx(np.full(len(chances), scatter))
    low, high = loloha.server.estimate.inversion(protocol, len(values), shares, eligible).interval(
        0.95
    )
    for j in (1, 2):
        share = np.mean([v >= j for v in values])
        known = eligible[:, j - 1] > 0
        inside = (low[:, j - 1] <= share) & (share <= high[:, j - 1])
        assert chances[known & inside].sum() > 0.945 * chances[known].sum()
        assert (chances * np.where(known, shares[:, j - 1] - share, 0)).sum() == pytest.approx(
            0, abs=1e-12
        )
    some = np.flatnonzero(chances > 1e-5)
    median = np.quantile(values, 0.5, method="inverted_cdf")
    few = Numbers.of(protocol, shares[some], eligible[some], len(values))
    low, high = few.quantile_interval(0.5)
    covered = chances[some][(low <= median) & (median <= high)].sum() / chances[some].sum()
    # Also in the least favourable case: half of them at each end.
    assert covered > 0.945


@pytest.mark.parametrize("eps_1", [1.0, 4.0, 8.0])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_a_quantile_of_few_users_is_covered_whatever_the_budget(eps_1: float, share: float) -> None:
    """Every outcome of 16 users who are drawn from many, a share of whom is at the upper end."""
    channel = Channel.realised(loloha.OneBit(k=3, eps_inf=10.0, eps_1=eps_1))
    chances, ones, eligible = outcomes((share,) * 16, channel, lambda share, _: share)
    some = np.flatnonzero(chances > 1e-5)
    ends = [
        quantile_ends(*row, channel, share, 0.95)
        for row in zip(ones[some].astype(float), eligible[some].astype(float), strict=True)
    ]
    # All values are quantiles of this level.
    for v in range(3):
        covered = np.array([low <= v <= high for low, high in ends])
        assert chances[some][covered].sum() > 0.948 * chances[some].sum()


@pytest.mark.parametrize("spread", [pytest.param(2, marks=pytest.mark.long), 8])
def test_intervals_cover(spread: int) -> None:
    """Seed 5; at .95 the chance of 36 misses among 400 is 3e-4, and as many are seen of .90."""
    k, n, rounds = 33, 1500, 400
    rng = np.random.default_rng(5)
    shares = np.exp(-((np.arange(k) - 20) ** 2) / 2 / spread**2)
    values = rng.choice(k, p=shares / shares.sum(), size=n)
    held = np.zeros(3)
    for _ in range(rounds):
        keys = rng.integers(1, k, size=n)
        chances = CHANNEL.q + CHANNEL.contrast * (values >= keys)
        tally = one_bit(k).tally()
        tally.update(keys, (rng.random(n) < chances).astype(np.int64))
        estimate = tally.estimate()
        ends = [estimate.mean_interval()]
        truths = [values.mean()]
        for level in (0.5, 0.9):
            ends.append(estimate.quantile_interval(level))
            truths.append(np.quantile(values, level, method="inverted_cdf"))
        held += [low <= truth <= high for (low, high), truth in zip(ends, truths, strict=True)]
    assert (held > 0.91 * rounds).all(), held / rounds
    # The mean's is not wider than it need be; a quantile is a whole bin.
    assert held[0] < 0.99 * rounds


@pytest.mark.parametrize(
    ("k", "level"), [(96, 0.5), (20, 0.3), pytest.param(250, 0.9, marks=pytest.mark.long)]
)
def test_a_quantile_at_a_gap_is_covered(k: int, level: float) -> None:
    """A share of ``level`` at each of several values and the others far above: seed 8.

    At .95 the chance of 35 misses among 400 is 6e-4; at most 57 % were covered by intervals for
    shares that fall.
    """
    n, rounds = 2000, 400
    rng = np.random.default_rng(8)
    low = rng.integers(0, k // 4, size=round(level * n))
    values = np.concatenate([low, np.full(n - len(low), k - 1)])
    missed = 0
    for _ in range(rounds):
        keys = rng.integers(1, k, size=n)
        chances = CHANNEL.q + CHANNEL.contrast * (values >= keys)
        tally = one_bit(k).tally()
        tally.update(keys, (rng.random(n) < chances).astype(np.int64))
        first, last = tally.estimate().quantile_interval(level)
        missed += not first <= low.max() <= last
    assert missed < 35


@pytest.mark.parametrize("target", ["distribution", "mean"])
def test_a_summary_is_in_the_units_of_the_range(target: str) -> None:
    values = np.random.default_rng(3).binomial(30, 0.4, size=(2000, 1))
    result = loloha.simulate(one_bit(31, target=target), values, rng=3)
    start, step, half = 10.0, 4.0, 2.0
    plain, scaled = result.numbers.summary(0.9), result.numbers.summary(0.9, (start, step, half))
    assert scaled.keys() == plain.keys()
    assert ("quantile_50" in plain) == (target == "distribution")
    for name, number in plain.items():
        end = half * (name.endswith("_upper") - float(name.endswith("_lower")))
        begin = 0 if name == "mean_standard_error" else start
        end *= name.startswith("quantile")
        assert scaled[name] == pytest.approx(begin + step * number + end, rel=1e-12)


def test_the_interval_of_a_mean_is_that_of_its_share_times_the_range() -> None:
    tally = one_bit(5, target="mean").tally()
    tally.update(None, (np.arange(50) < 20).astype(np.int64))
    numbers = tally.estimate().numbers
    share = numbers.share
    assert numbers.mean == 4 * share.frequencies[0]
    assert [4 * end[0] for end in share.interval(0.8)] == [*numbers.mean_interval(0.8)]
    low, high = numbers.mean_interval(0.8)
    assert 0 < low < numbers.mean < high < 4


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_mean_of_some_of_all_users_errs_as_if_drawn_without_replacement(n: int) -> None:
    """Beside the noise: of values at the ends of the range, half of them each."""
    population = (0.0, 0.0, 1.0, 1.0)
    drawn = [np.mean(some) for some in combinations(population, n)]
    scatter = mean_scatter(one_bit(5), CHANNEL, float(n), len(population))
    assert scatter.bend * 0.5 * 0.5 == pytest.approx(np.var(drawn), abs=1e-15)


def test_rounds_together_are_as_many_reports_of_one_as_have_their_variance() -> None:
    """Of so many fixed users, a share of whom reaches a threshold, the unbiased share varies so."""
    shares, variances = np.array([[0.9, 0.4, -0.01]]), np.array([[1e-3, 2e-4, 5e-2]])
    mean, protocol = Posterior(np.array([[0.43]]), np.array([[0.02**2]])), one_bit(4)
    observed: Any = SimpleNamespace(protocol=protocol)
    numbers = of_series(observed, Posterior(shares, variances), mean)
    p, q = (float(one) for one in (protocol.realised.p_star, protocol.realised.q_star))
    for place, share in enumerate([0.9, 0.4, 0.0]):
        n = numbers.eligible[0, place]
        ones = share * n * p * (1 - p) + (1 - share) * n * q * (1 - q)
        assert ones / (n * (p - q)) ** 2 == pytest.approx(variances[0, place], rel=1e-9)
    np.testing.assert_allclose(numbers.shares, shares, rtol=1e-9)
    assert (numbers.mean, numbers.mean_error) == (pytest.approx([1.29]), pytest.approx([0.06]))
    low, high = numbers.mean_interval(0.95)
    assert (low, high) == (pytest.approx([1.29 - 0.1176], rel=1e-4), pytest.approx([1.4076], 1e-4))
    hidden: Any = SimpleNamespace(protocol=one_bit(4, target="mean"))
    alone = of_series(hidden, mean, mean)
    assert alone.ones is alone.eligible is None
    assert alone.mean == numbers.mean


def test_frames_of_numbers_take_the_units_of_a_campaign() -> None:
    protocol = loloha.OneBit(k=5, eps_inf=4.0, eps_1=2.0)
    values = np.random.default_rng(3).integers(5, size=(500, 3))
    simulated = loloha.simulate(protocol, values, rng=3)
    scale = Range(0, 50, 5).scale
    for result in (simulated, loloha.series(simulated), simulated.tallies[0].estimate()):
        plain, scaled = (result.to_frame(scale=given).to_pydict() for given in (None, scale))
        assert scaled["mean"] == pytest.approx(5 + 10 * np.array(plain["mean"]))
        assert scaled["estimate"] == plain["estimate"]
