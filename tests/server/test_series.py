"""Series of estimates: what goes in, what comes out, and how far it can be trusted."""

from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.errors import MergeError, ParameterError
from loloha.postprocess import project_simplex
from loloha.server.alarm_rule import AlarmRule, deviate
from loloha.server.estimate_table import COLUMNS
from loloha.server.observations import Observations
from loloha.server.smoother import smooth
from loloha_lab.tables.series import SeriesCase, draw_burst, drifting, returning, score

BUDGETS = {"eps_inf": 2.0, "eps_1": 1.0}
DOCS = Path(__file__).resolve().parents[2] / "docs"
PROTOCOL = loloha.OLOLOHA(k=6, **BUDGETS)


def population(k: int, n: int, tau: int, churn: float, seed: int) -> tuple[Any, Any]:
    """Users of a drifting Zipf distribution, and their true frequencies."""
    values = drifting(churn, seed, n, tau, k)
    return values, np.array([np.bincount(row, minlength=k) / n for row in values.T])


VALUES, TRUTH = population(6, 2000, 20, 0.05, seed=1)
SIMULATED = loloha.simulate(PROTOCOL, VALUES, rng=2)
SERIES = loloha.series(SIMULATED)


def test_every_source_gives_the_same() -> None:
    tallies = SIMULATED.tallies
    for source in (tuple(tallies), {t: one.estimate() for t, one in enumerate(tallies)}):
        other = loloha.series(source)
        assert (other.estimates == SERIES.estimates).all()
        assert (other.standard_errors == SERIES.standard_errors).all()


def test_estimates_are_shares_and_the_raw_state_stays() -> None:
    assert SERIES.estimates.shape == SERIES.standard_errors.shape == (20, 6)
    assert (SERIES.estimates >= 0).all()
    assert SERIES.estimates.sum(axis=1) == pytest.approx(1)
    assert (SERIES.estimates == project_simplex(SERIES.posterior.mean)).all()
    filtered = loloha.series(SIMULATED, smooth=False)
    assert (filtered.posterior.mean == SERIES.states.filtered.mean).all()
    # The last round has the same past as it has rounds.
    assert filtered.estimates[-1] == pytest.approx(SERIES.estimates[-1])
    assert (SERIES.standard_errors <= filtered.standard_errors + 1e-12).all()


def test_series_err_less_than_single_rounds_and_know_by_how_much() -> None:
    def error(estimates: Any) -> float:
        return float(((estimates - TRUTH) ** 2).mean())

    single = error(project_simplex(SIMULATED.estimates))
    filtered = error(loloha.series(SIMULATED, smooth=False).estimates)
    assert error(SERIES.estimates) < filtered < single / 1.3
    lower, upper = SERIES.interval()
    assert 0.8 < ((lower <= TRUTH) & (upper >= TRUTH)).mean() <= 1
    wider = SERIES.interval(0.99)
    assert (wider[0] <= lower).all()
    assert (wider[1] >= upper).all()


def test_a_change_has_the_variance_of_the_joint_distribution() -> None:
    change = SERIES.change(15, 5)
    mean, variance = SERIES.states.smoothed
    assert change.estimates == pytest.approx(mean[15] - mean[5])
    assert (change.standard_errors < np.sqrt(variance[15] + variance[5])).all()
    back = SERIES.change(5, 15)
    assert (back.estimates == -change.estimates).all()
    assert (back.standard_errors == change.standard_errors).all()
    assert SERIES.change(3, 3).standard_errors == pytest.approx(0, abs=1e-9)
    lower, upper = change.interval(0.9)
    assert (lower < change.estimates).all()
    assert (change.estimates < upper).all()


@pytest.mark.parametrize(
    ("protocol", "churn"),
    [
        (loloha.DBitFlipPM(k=16, eps_inf=2.0), 0.01),
        (loloha.DBitFlipPM(k=16, eps_inf=2.0), 0.1),
        (loloha.DBitFlipPM(k=16, d=1, eps_inf=4.0), 0.5),
        (loloha.LGRR(k=16, eps_inf=6.0, eps_1=2.0), 0.5),
    ],
    ids=lambda case: getattr(case, "name", case),
)
def test_changes_are_covered_where_rounds_hardly_tell_what_moves(
    protocol: Any, churn: float
) -> None:
    """Users who keep their values or draw them anew, nothing else moves: 16 values, 4 populations.

    Little of the noise is fresh, or all but little of it. By the joint distribution alone 95 %
    intervals cover .28, .49, .58 and .83.
    """
    shares = 1 / np.arange(1, 17)
    shares /= shares.sum()
    covered = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        values = rng.choice(16, (10_000, 30), p=shares)
        for t in range(1, 30):
            kept = rng.random(10_000) >= churn
            values[kept, t] = values[kept, t - 1]
        truth = np.array([np.bincount(column, minlength=16) / 10_000 for column in values.T])
        found = loloha.series(loloha.simulate(protocol, values, rng=seed))
        for t, s in ((20, 10), (29, 0), (15, 14)):
            lower, upper = found.change(t, s).interval()
            grown = truth[t] - truth[s]
            covered.append(((lower <= grown) & (grown <= upper)).mean())
    assert np.mean(covered) >= 0.92


def test_missing_rounds_are_estimated_and_gaps_are_time() -> None:
    tallies: list[Any] = list(SIMULATED.tallies)
    tallies[7], tallies[8] = None, PROTOCOL.tally()
    listed = loloha.series(tallies)
    mapped = loloha.series({t: one for t, one in enumerate(tallies) if one is not None and one.n})
    kept = [t for t in range(20) if t not in (7, 8)]
    assert mapped.rounds == kept
    assert mapped.estimates == pytest.approx(listed.estimates[kept], abs=1e-9)
    assert listed.estimates[7].sum() == pytest.approx(1)
    filtered = loloha.series(tallies, smooth=False).standard_errors
    assert (filtered[7] > filtered[6]).all()
    assert np.isnan(listed.innovations[[0, 7, 8]]).all()
    assert list(listed.table().n[6:9]) == [2000, 0, 0]


def test_smaller_rounds_count_less() -> None:
    few = loloha.simulate(PROTOCOL, VALUES[:100], rng=3).tallies
    mixed = [few[t] if t == 10 else one for t, one in enumerate(SIMULATED.tallies)]
    observed = Observations.of(mixed).observed()
    variance = observed.memo + observed.fresh
    assert variance[10] == pytest.approx(20 * variance[9], rel=1e-9)
    moved = np.abs(loloha.series(mixed).estimates - SERIES.estimates)[10]
    assert moved.max() < np.abs(few[10].estimate().frequencies - SERIES.estimates[10]).max() / 4


def test_rounds_of_panels_are_samples_that_share_memos_by_windows() -> None:
    """Of w panels; in the long run a mean over windows has 1/w of a panel's memo noise."""
    rounds = SIMULATED.observations()
    alone = rounds.observed()
    panels = replace(rounds, population=None).of_panels(4).observed()
    assert panels.memo == pytest.approx(alone.memo / 4)
    f = alone.frequency
    drawn = f * (1 - f) * (8000 - 2000) / (7999 * 2000)
    assert panels.memo + panels.fresh == pytest.approx(alone.memo + alone.fresh + drawn)
    found = loloha.series(SIMULATED.tallies, every=4)
    with pytest.raises(ParameterError, match="every must be 1"):
        loloha.series(SIMULATED, every=4)  # it knows that each user reported in each round
    assert (found.observations.every, SERIES.observations.every) == (4, 1)
    with pytest.raises(ParameterError, match="every must be"):
        loloha.series(SIMULATED, every=0)


def test_values_may_come_in_any_order() -> None:
    order = np.random.default_rng(5).permutation(6)
    shuffled = [
        loloha.Estimate(PROTOCOL, one.n, *(row[order] for row in rows))
        for one in (tally.estimate() for tally in SIMULATED.tallies)
        for rows in [(one.frequencies, one.standard_errors, one.eligible)]
    ]
    assert loloha.series(shuffled).estimates == pytest.approx(SERIES.estimates[:, order], abs=1e-9)


@pytest.mark.parametrize(
    "protocol",
    [
        loloha.OUE(k=4, eps=1.0),
        loloha.LGRR(k=4, **BUDGETS),
        loloha.DBitFlipPM(k=4, b=4, d=1, eps_inf=2.0),
        loloha.OLOLOHA(k=4, memo="joint", **BUDGETS),
    ],
    ids=repr,
)
def test_every_kind_of_protocol_has_series(protocol: Any) -> None:
    values, truth = population(4, 500, 8, 0.1, seed=6)
    simulated = loloha.simulate(protocol, values, rng=7)
    found = loloha.series(simulated)
    assert (np.abs(found.posterior.mean - truth) < 6 * found.standard_errors + 1e-3).all()
    observed = Observations.of(simulated).observed()
    variance = simulated.standard_errors**2
    assert observed.memo + observed.fresh == pytest.approx(variance, rel=0.5)
    assert bool(observed.memo.any()) == protocol.longitudinal
    # Without a second round all noise is the memo's.
    memo_alone = protocol.longitudinal and protocol.p2 is None
    assert (observed.fresh < 1e-9).all() == memo_alone


def test_shares_above_thresholds_are_not_projected_to_add_up_to_one() -> None:
    values, _ = population(5, 4000, 8, 0.05, seed=6)
    protocol = loloha.OneBit(k=5, **BUDGETS)
    found = loloha.series(loloha.simulate(protocol, values, rng=7))
    truth = np.array([[(column >= j).mean() for j in range(1, 5)] for column in values.T])
    assert (np.abs(found.estimates - truth) < 5 * found.standard_errors).all()
    assert found.estimates.sum(axis=1).min() > 1.1


@pytest.mark.parametrize(
    ("protocol", "v"), [(loloha.OneBit(k=9, **BUDGETS), 4), (loloha.LGRR(k=2, **BUDGETS), 1)]
)
def test_a_value_that_all_hold_for_ever_has_a_series(protocol: Any, v: int) -> None:
    """No memo noise fades then: the covariance of the states had no inverse."""
    found = loloha.series(loloha.simulate(protocol, np.full((300, 6), v), rng=1))
    assert np.isfinite(found.estimates).all()
    at = protocol.encoding.bin(v)
    assert (found.interval()[1][:, at] > 0.97).all()


@pytest.mark.parametrize("target", ["distribution", "mean"])
@pytest.mark.parametrize("smooth", [False, True])
def test_numbers_of_a_series_are_nearer_than_those_of_single_rounds(
    target: str, smooth: bool
) -> None:
    rng = np.random.default_rng(1)
    values = np.repeat(rng.binomial(20, 0.3, size=(3000, 1)), 12, axis=1)
    values[:, 6:] += rng.integers(0, 2, size=(3000, 1))
    protocol = loloha.OneBit(k=22, target=target, **BUDGETS)
    result = loloha.simulate(protocol, values, rng=2)
    found = loloha.series(result, smooth=smooth)
    truth = values.mean(axis=0)
    assert (np.abs(found.mean - truth) < 4 * found.mean_error).all()
    assert (found.mean_error[1:] < 0.95 * result.mean_error[1:]).all()
    low, high = found.mean_interval()
    assert (low < found.mean).all()
    assert (found.mean < high).all()
    # What the memo keeps does not average out.
    least = 0.8 if smooth else 0.95
    assert ((found.mean - truth) ** 2).mean() < least * ((result.mean - truth) ** 2).mean()
    if target == "mean":
        with pytest.raises(ParameterError, match="target='distribution'"):
            found.quantile(0.9)
        return
    for shares in (found.survival, found.estimates):
        assert (np.diff(shares, axis=1) <= 1e-12).all()
    high = np.quantile(values, 0.9, axis=0, method="inverted_cdf")
    assert (np.abs(found.quantile(0.9) - high) <= 2).all()
    ends, single = found.quantile_interval(0.9), result.quantile_interval(0.9)
    assert (ends[1] - ends[0]).sum() < (single[1] - single[0]).sum()
    assert ((ends[0] <= high) & (high <= ends[1])).all()


def test_only_numbers_have_a_mean() -> None:
    with pytest.raises(ParameterError, match="protocol must be for numbers, got ololoha"):
        _ = SERIES.mean


RETURNERS = [
    PROTOCOL,
    loloha.RAPPOR(k=6, **BUDGETS),
    pytest.param(loloha.LGRR(k=6, **BUDGETS), marks=pytest.mark.long),
    pytest.param(loloha.BiLOLOHA(k=6, **BUDGETS), marks=pytest.mark.long),
    pytest.param(loloha.LOSUE(k=6, **BUDGETS), marks=pytest.mark.long),
    loloha.DBitFlipPM(k=6, b=6, d=6, eps_inf=2.0),
]


@pytest.mark.parametrize("protocol", RETURNERS, ids=lambda protocol: protocol.name)
def test_users_who_return_to_their_values_keep_that_share_of_their_memo_noise(
    protocol: Any,
) -> None:
    """Two values of each user, one of which is held in a round: 1/2 return beyond chance.

    The covariance of the errors of two rounds, in 80 populations; within four standard errors, and
    more than that of users who draw their values anew.
    """
    of_model, n, tau, runs = [], 400, 12, 80
    for seed in range(runs):
        values = returning(seed, own=2, n=n, tau=tau, k=6)
        truth = np.array([np.bincount(row, minlength=6) / n for row in values.T])
        simulated = loloha.simulate(protocol, values, rng=seed, keep_tallies=False)
        observed = Observations.of(simulated).observed()
        errors = simulated.estimates - truth
        pairs = errors.sum(axis=0) ** 2 - (errors**2).sum(axis=0)
        seen = pairs.mean() / (tau * (tau - 1))
        lasts = [
            np.mean([observed.loads(t, share).a ** 2 for t in range(tau)]) for share in (0.5, 0)
        ]
        of_model.append(seen - lasts)
    differences = np.array(of_model)
    z = differences.mean(axis=0) / differences.std(axis=0) * np.sqrt(runs)
    assert abs(z[0]) < 4
    assert z[1] > 2.5


@pytest.mark.parametrize("eps_inf", [2.0, 5.0])
def test_intervals_hold_the_truth_of_users_who_return(eps_inf: float) -> None:
    """Without fresh noise nothing hides the memo noise that stays, nor that the truth moves."""
    protocol = loloha.DBitFlipPM(k=32, b=32, d=32, eps_inf=eps_inf)
    covered, n = [], 4000
    for seed in range(3):
        values = returning(seed, n=n, tau=40)
        truth = np.array([np.bincount(row, minlength=32) / n for row in values.T])
        lower, upper = loloha.series(loloha.simulate(protocol, values, rng=seed)).interval()
        covered.append(((lower <= truth) & (truth <= upper)).mean())
    assert 0.92 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize(
    ("n", "tau", "runs"), [(1000, 12, 8), pytest.param(3000, 24, 60, marks=pytest.mark.long)]
)
def test_intervals_of_two_values_allow_for_what_these_leave_open(
    n: int, tau: int, runs: int
) -> None:
    """Half of the users report, half draw anew: one contrast hardly tells what moves.

    At the fitted parameters alone 90 % intervals cover .83 and .79.
    """
    covered, wider = [], []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        values = rng.integers(0, 2, (n, tau))
        for t in range(1, tau):
            kept = rng.random(n) >= 0.5
            values[kept, t] = values[kept, t - 1]
        shown = np.where(rng.random((n, tau)) < 0.5, values, -1)
        protocol = loloha.LGRR(k=2, eps_inf=4.0, eps_1=2.0)
        found = loloha.series(loloha.simulate(protocol, shown, rng=seed, keep_tallies=False))
        lower, upper = found.interval(0.9)
        truth = values.mean(axis=0)
        covered.append(((lower[:, 1] <= truth) & (truth <= upper[:, 1])).mean())
        alone = smooth(found.states.observed, found.parameters).smoothed.variance
        wider.append(np.sqrt(found.posterior.variance / alone).mean())
    assert 0.86 <= np.mean(covered) <= 0.96
    assert np.mean(wider) > 1.08


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_sampled_buckets_share_a_memo_as_often_as_their_samples_say(d: int) -> None:
    f = np.array([0.5, 0.3, 0.2, 0.0])
    expected = np.zeros(4)
    for v, sample in product(range(4), combinations(range(4), d)):
        if v in sample:
            shares = f[list(sample)]
            expected[v] += (shares**2).sum() + (1 - shares.sum()) ** 2
    expected /= len(list(combinations(range(3), d - 1)))
    protocol = loloha.DBitFlipPM(k=4, b=4, d=d, eps_inf=2.0)
    assert protocol.encoding.lasting_share(f, 0.5) == pytest.approx(expected)


def test_the_table_has_the_columns_of_every_table() -> None:
    pytest.importorskip("pyarrow")
    labels = list("abcdef")
    frame = loloha.series(SIMULATED.tallies, labels=labels, level=0.9).to_frame()
    assert frame.column_names == [*COLUMNS, "unbiased"]
    assert frame.num_rows == 120
    assert frame["label"].to_pylist()[:6] == labels
    assert frame["level"][0].as_py() == 0.9
    assert np.array(frame["unbiased"]).reshape(20, 6) == pytest.approx(SIMULATED.estimates)
    assert np.array(frame["estimate"]).reshape(20, 6) == pytest.approx(SERIES.estimates)


def test_a_data_set_brings_its_labels_and_rounds() -> None:
    data = loloha.datasets.Dataset(
        VALUES[:, :3], list("abcdef"), "made up", "user", "", ("mon", "tue", "wed")
    )
    table = loloha.series(loloha.simulate(PROTOCOL, data, rng=2)).table()
    assert (table.label, table.start) == (list("abcdef"), ["mon", "tue", "wed"])


def test_no_round_has_more_reports_than_there_are_users() -> None:
    """Whoever says how many there are: a sample larger than its population has no variance."""
    few = replace(SIMULATED, loss=SIMULATED.loss[:1])
    for source in (few.observations, lambda: SIMULATED.observations().of_users(1)):
        with pytest.raises(ParameterError, match="population must be"):
            source()


def test_a_burst_is_smoothed_but_alarms() -> None:
    """A third of the users hold one value in round 12 alone."""
    values = VALUES.copy()
    values[:700, 12] = 5
    bursting = loloha.series(loloha.simulate(PROTOCOL, values, rng=2))
    truth = (VALUES[700:, 12] == 5).sum() / 2000 + 0.35
    assert bursting.estimates[12, 5] < truth - 0.05
    for alarmed in (bursting.alarms(expected=0.01), bursting.alarms(fdr=0.05)):
        assert alarmed[12, 5]
        assert not alarmed[:12].any()


def test_the_picture_of_a_burst_shows_what_its_page_says() -> None:
    """Peak, smoothed peak and alarms of docs/images/burst.svg."""
    above, below = draw_burst().axes
    together, single, truth = [np.array(line.get_ydata())[12] for line in above.lines]
    assert (together, single, truth) == pytest.approx((0.276, 0.47, 0.39), abs=0.005)
    bars = [bar for bar in below.patches if bar.get_facecolor() != below.patches[0].get_facecolor()]
    assert [round(bar.get_center()[0]) for bar in bars] == [12, 13]
    assert bars[0].get_height() == pytest.approx(7.6, abs=0.05)


def test_nearly_no_noise_and_nearly_no_alarms_have_numbers() -> None:
    """Variances below 0 by rounding gave errors of NaN, and a tail that 1 swallows no quantile."""
    result = loloha.simulate(loloha.GRR(k=2, eps=50.0), np.array([[0, 0, 1]] * 50), rng=1)
    known = loloha.series(result)
    assert np.isfinite(known.standard_errors).all()
    assert np.isfinite(loloha.series(result, smooth=False).standard_errors).all()
    for rule in ({"expected": 1e-300}, {"fdr": 1e-300}, {"expected": 5e-324}):
        assert not SERIES.alarms(**rule).any()
    assert deviate(1e-17) == pytest.approx(8.57, abs=0.01)


def test_no_more_alarms_than_were_expected() -> None:
    """Innovations of a still population: 19 rounds of 6 values, two alarms expected in each."""
    alarmed = SERIES.alarms(expected=2.0).sum()
    assert 38 / 2 < alarmed < 38 * 1.6
    assert SERIES.alarms(expected=6.0)[1:].all()
    assert not SERIES.alarms(expected=1e-6).any()
    assert not SERIES.alarms(expected=6.0)[0].any()


@pytest.mark.parametrize("target", ["mean", pytest.param("distribution", marks=pytest.mark.long)])
def test_alarms_of_the_mean_are_as_many_as_were_expected(target: Any) -> None:
    """Of a still, a drifting and a churning population; and a burst of one in five alarms.

    Each round alarms with chance .1: of 590 rounds 59, with a standard deviation of 7.3; the fit
    takes a few of them for moves.
    """
    protocol, alarms, rounds = loloha.OneBit(k=25, target=target, **BUDGETS), 0, 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        values = np.empty((1500, 40), dtype=np.int64)
        for t in range(40):
            new = rng.binomial(24, 0.4 + 0.002 * t * (seed % 3 == 1), 1500)
            moves = rng.random(1500) < (0.0, 0.05, 0.3)[seed % 3]
            values[:, t] = np.where(moves, new, values[:, t - 1]) if t else new
        estimated = loloha.series(loloha.simulate(protocol, values, rng=seed))
        alarmed = estimated.alarms(expected=0.1, mean=True)
        assert alarmed.shape == (40, 1)
        alarms, rounds = alarms + int(alarmed.sum()), rounds + 39
    assert rounds == 585
    assert 32 <= alarms <= 80
    values[:500, 30] = 24
    burst = loloha.series(loloha.simulate(protocol, values, rng=1))
    assert burst.alarms(expected=0.01, mean=True)[30, 0]


def test_a_rule_names_the_mean_of_numbers_by_its_label() -> None:
    numbers, labels = loloha.OneBit(k=4, **BUDGETS), ["1 … 3", "2 … 3", "3"]

    def rule(watched: Any, protocol: Any = numbers) -> AlarmRule:
        return AlarmRule.of_labels(watched, labels, protocol, expected=0.1)

    assert rule(None) == rule(["mean"]) == AlarmRule(expected=0.1, mean=True)
    assert rule(["3", "1 … 3"]) == AlarmRule(expected=0.1, values=(2, 0))
    other = loloha.LGRR(k=3, **BUDGETS)
    assert rule(None, other) == AlarmRule(expected=0.1)
    for watched, protocol in ((["mean"], other), (["mean", "3"], numbers)):
        with pytest.raises(ParameterError, match="got 1 other;"):
            rule(watched, protocol)
    with pytest.raises(ParameterError, match="at most the 1 value "):
        AlarmRule.of_labels(None, labels, numbers, expected=2.0)
    with pytest.raises(ParameterError, match="got both"):
        AlarmRule(expected=0.1, mean=True, values=(1,))
    with pytest.raises(ParameterError, match="protocol must be for numbers"):
        SERIES.alarms(expected=0.1, mean=True)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: loloha.series(3), ParameterError, "source must hold rounds, got int"),
        (lambda: loloha.series([]), ParameterError, "source must hold reports, got none"),
        (lambda: loloha.series([PROTOCOL.tally()]), ParameterError, "got none"),
        (lambda: loloha.series([3]), ParameterError, "a round must be a Tally or an Estimate"),
        (
            lambda: loloha.series([loloha.mean(SIMULATED.tallies)]),
            ParameterError,
            "a round must be a Tally or an Estimate, got Mean",
        ),
        (lambda: loloha.series({-1: SIMULATED.tallies[0]}), ParameterError, "round must be"),
        (
            lambda: loloha.series(
                [SIMULATED.tallies[0], loloha.simulate(loloha.GRR(k=6, eps=1.0), VALUES).tallies[1]]
            ),
            MergeError,
            "one protocol",
        ),
        (lambda: loloha.series(SIMULATED, labels=["a"]), ParameterError, "labels must be 6"),
        (lambda: loloha.series(SIMULATED, level=1.0), ParameterError, "level must be inside"),
        (lambda: SERIES.interval(0.0), ParameterError, "level must be inside"),
        (lambda: SERIES.change(20, 1), ParameterError, "t must be a round of the series, got 20"),
        (lambda: SERIES.alarms(), ParameterError, "exactly one of expected and fdr"),
        (lambda: SERIES.alarms(expected=1, fdr=0.1), ParameterError, "got both"),
        (lambda: SERIES.alarms(expected=0), ParameterError, "expected must be above 0"),
        (lambda: SERIES.alarms(fdr=1.5), ParameterError, "fdr must be a number"),
    ],
)
def test_what_is_no_series_is_refused(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


LONG = [
    loloha.OLOLOHA(k=32, **BUDGETS),
    loloha.BiLOLOHA(k=32, **BUDGETS),
    loloha.LGRR(k=32, **BUDGETS),
    loloha.RAPPOR(k=32, **BUDGETS),
]


@pytest.mark.long
@pytest.mark.parametrize("protocol", LONG, ids=lambda protocol: protocol.name)
@pytest.mark.parametrize("churn", [0.02, 0.1])
def test_gain_and_coverage_on_drifting_populations(protocol: Any, churn: float) -> None:
    """A drifting Zipf distribution, n = 10^4, k = 32, 60 rounds; the mean of four populations."""
    gains, covered = [], []
    for seed in range(4):
        values, truth = population(32, 10_000, 60, churn, seed)
        simulated = loloha.simulate(protocol, values, rng=seed)
        single = ((project_simplex(simulated.estimates) - truth) ** 2).mean()
        both = [loloha.series(simulated, smooth=smooth) for smooth in (False, True)]
        gains.append([single / ((one.estimates - truth) ** 2).mean() for one in both])
        ends = [one.interval() for one in both]
        covered.append([((low <= truth) & (truth <= high)).mean() for low, high in ends])
    filtered, smoothed = np.mean(gains, axis=0)
    assert filtered >= 1.9
    assert smoothed >= 2.0
    for coverage in np.mean(covered, axis=0):
        assert 0.9 <= coverage <= 0.995


def test_rounds_that_miss_users_at_random_are_samples_of_all() -> None:
    """Where reports lie little, who is missing is most of the noise, and not who has moved."""
    protocol = loloha.OLOLOHA(k=16, eps_inf=5.0, eps_1=4.0)
    known, unknown = [], []
    for seed in range(6):
        values, truth = population(16, 1000, 20, 0.0, seed)
        missing = np.random.default_rng(seed).random(values.shape) < 0.8
        simulated = loloha.simulate(protocol, np.where(missing, -1, values), rng=seed)
        for scores, one in (
            (known, loloha.series(simulated)),
            (unknown, loloha.series(simulated.tallies)),
        ):
            low, high = one.interval()
            covered = ((low <= truth) & (truth <= high)).mean()
            scores.append((covered, ((one.estimates - truth) ** 2).mean()))
    (covered, error), (without, larger) = np.mean(known, axis=0), np.mean(unknown, axis=0)
    assert larger > 2 * error
    assert min(covered, without) > 0.9


def test_the_noise_of_a_sample_is_that_of_its_round_and_of_who_is_in_it() -> None:
    tallies = [tally.estimate() for tally in SIMULATED.tallies]
    alone = loloha.series(tallies).observations.observed()
    drawn = loloha.series(tallies, population=5000).observations.observed()
    f, n = alone.frequency, SIMULATED.n[:, None]
    # Of two rounds of 2000 out of 5000, two in five report in both.
    assert drawn.memo == pytest.approx(alone.memo * n / 5000)
    extra = f * (1 - f) * (5000 - n) / (4999 * n)
    assert drawn.memo + drawn.fresh == pytest.approx(alone.memo + alone.fresh + extra)
    with pytest.raises(ParameterError, match="population"):
        loloha.series(tallies, population=1999)


@pytest.mark.long
def test_rows_of_the_documented_tables_are_measured_again() -> None:
    """``python -m loloha_lab.tables.series --data FOLDER > docs/series-table.md`` writes them."""
    from loloha_lab.tables.series import alarm_row, cases, protocols, row

    documented = (DOCS / "series-table.md").read_text().splitlines()
    some = [case for case in cases() if case.protocol.name == "l-grr" and case.silent == 0.3]
    measured = [row(some[0]), alarm_row(protocols()[1], 1000)]
    for line in measured:
        assert f"| {' | '.join(line)} |" in documented


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({}, "exactly one .* got none"),
        ({"expected": 0.1, "fdr": 0.1}, "exactly one .* got both"),
        ({"expected": 0.0}, "expected must be above 0"),
        ({"fdr": 1.01}, "fdr must be"),
        ({"fdr": 0.1, "values": []}, "values must be at least one"),
        ({"fdr": 0.1, "values": [1, -1]}, "values must be an integer"),
    ],
)
def test_a_rule_of_alarms_that_says_nothing_is_refused(rule: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        AlarmRule(**rule)


def test_a_rule_of_alarms_suits_the_values_that_it_watches() -> None:
    for expected, values, bins, says in (
        (3.0, None, 3, None), (3.1, None, 3, "at most the 3 values"),
        (2.0, [0, 4, 4], 5, None), (2.1, [0, 4, 4], 5, "at most the 2 values"),
        (1.0, [4, 0], 4, r"must lie in 0\.\.3"),
    ):  # fmt: skip
        rule = AlarmRule(expected=expected, values=values)
        if says is None:
            rule.must_suit(bins)
        else:
            with pytest.raises(ParameterError, match=says):
                rule.must_suit(bins)
    AlarmRule(fdr=1.0).must_suit(1)


@pytest.mark.parametrize(
    ("source", "says"),
    [(5, "must hold rounds, got int"), ("ab", "must hold rounds, got str"), ([], "got none"),
     ([None, None], "got none"), ([3], "must be a Tally or an Estimate, got int")],
)  # fmt: skip
def test_what_holds_no_rounds_is_refused(source: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Observations.of(source)


def test_no_forecast_stands_at_the_ends_of_a_series() -> None:
    """Whatever says that a round had no reports, and also where all of its values are hidden."""
    tallies = [
        None,
        *SIMULATED.tallies[1:6],
        None,
        *SIMULATED.tallies[7:10],
        PROTOCOL.tally(),
        None,
    ]
    table = SIMULATED.table()
    rows = [None if t in (0, 6, *range(10, 20)) else row for t, row in enumerate(table.estimate)]
    hidden = replace(
        table, estimate=rows, about={"parameters": {"protocol": PROTOCOL.to_dict()}}
    )  # fmt: skip
    for source in (tallies, hidden):
        found = loloha.series(source)
        assert found.rounds == list(range(1, 10))
        assert len(found.to_frame()) == 9 * 6
        assert np.isfinite(found.estimates).all()
        assert found.change(9, 1).estimates.shape == (6,)
    with pytest.raises(ParameterError, match="got none"):
        loloha.series(replace(hidden, estimate=[None] * 20))


NUMBERS = loloha.OneBit(k=6, **BUDGETS)
NUMBERED = loloha.simulate(NUMBERS, VALUES[:, :4], rng=4)


def test_frames_of_numbers_have_mean_and_quantiles_as_the_command_line_has_them() -> None:
    together = loloha.series(NUMBERED)
    estimate = NUMBERED.tallies[2].estimate()
    for source, numbers in (
        (NUMBERED, {"": NUMBERED.numbers}),
        (estimate, {"": estimate.numbers}),
        (together, {"": together.numbers, "single_": together.observations.numbers}),
    ):
        frame = source.to_frame(0.9)
        for prefix, of in numbers.items():
            for name, rows in of.summary(0.9).items():
                column = frame[f"{prefix}{name}"].to_pylist()
                assert column == pytest.approx(np.atleast_1d(rows).repeat(5).tolist())
    assert "mean" not in SERIES.to_frame().column_names


@pytest.mark.parametrize("target", ["distribution", "mean"])
def test_the_mean_grows_as_its_rounds_say(target: Any) -> None:
    protocol = loloha.OneBit(k=6, target=target, **BUDGETS)
    found = loloha.series(loloha.simulate(protocol, VALUES[:, :5], rng=4))
    grown = found.change(4, 1, mean=True)
    assert grown.estimates == pytest.approx([found.mean[4] - found.mean[1]])
    apart = np.hypot(found.mean_error[4], found.mean_error[1])
    # Both rounds share noise.
    assert 0 < grown.standard_errors[0] < apart
    low, high = grown.interval(1 - 1e-12)
    assert -5 <= low[0] < grown.estimates[0] < high[0] <= 5
    with pytest.raises(ParameterError, match="numbers"):
        SERIES.change(4, 1, mean=True)


def test_alarms_take_labels_and_bins() -> None:
    labelled = loloha.series(SIMULATED.tallies, labels=list("abcdef"))
    for rule in ({"expected": 1.0}, {"fdr": 1.0}):
        alarmed = labelled.alarms(**rule, values=["e", "b"])
        assert alarmed.any()
        assert (alarmed == SERIES.alarms(**rule, values=[4, 1])).all()
        assert (alarmed == labelled.alarms(**rule, values=["b", 4])).all()
    for wrong in (["e", "x"], ["4"], [-1]):
        with pytest.raises(ParameterError, match="got 1 other;"):
            labelled.alarms(fdr=0.1, values=wrong)
    with pytest.raises(ParameterError, match=r"fdr must .*0\.05"):
        labelled.alarms(fdr=1.5)


def test_a_series_is_drawn_as_a_simulation_is() -> None:
    pytest.importorskip("matplotlib", reason="the extra for pictures is not installed")
    from matplotlib import pyplot

    axes = loloha.series(SIMULATED.tallies, labels=list("abcdef")).plot(top=2)
    assert [line.get_label() for line in axes.lines] == [*"ab"]
    assert axes.lines[0].get_ydata() == pytest.approx(SERIES.estimates[:, 0])
    pyplot.close(axes.figure)


def test_rounds_from_one_on_keep_their_columns() -> None:
    protocol = loloha.GRR(k=2, eps=1.0)
    rounds = {}
    for t, n in ((2, 9), (5, 7), (6, 8)):
        rounds[t] = protocol.tally()
        rounds[t].counts[:], rounds[t].n = (n - 3, 3), n
    seen = replace(Observations.of(rounds), start=["b", "e", "f"])
    later = seen.since(5)
    assert (later.rounds, later.n.tolist(), later.start) == ([5, 6], [7, 8], ["e", "f"])
    assert (later.estimates == seen.estimates[1:]).all()
    assert (later.eligible == seen.eligible[1:]).all()
    assert seen.since(3).rounds == [5, 6]
    assert replace(seen, start=None).since(6).start is None
    assert Observations.of(later) is later
    with pytest.raises(ParameterError, match="rounds must reach 7"):
        seen.since(7)


def test_a_row_of_panels_is_measured() -> None:
    case = SeriesCase("panels", PROTOCOL, lambda seed: VALUES[:300, :6], every=3)
    assert np.isfinite(score(case, 0).smoothed)
