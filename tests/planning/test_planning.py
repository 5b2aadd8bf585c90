"""The plan: every protocol beside the others, the recommendation, and when noise hides all."""

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import loloha
from loloha.errors import ParameterError
from loloha.planning import limits, planning
from loloha.planning.prospect import Prospect, prospect
from loloha.privacy.rounded import digits
from loloha.protocols import REGISTRY
from loloha.server.estimate import normal_quantile, simultaneous_error, variance
from loloha.server.unbiased import inversion
from loloha.server.variance import expected_eligible, harmonic_eligible

SURVEYS = [
    (2, 10, 1.0, 0.5),
    (3, 10**5, 6.0, 3.0),
    (10, 10**7, 2.0, 1.0),
    (96, 50_000, 2.0, 1.0),
    (360, 10_000, 0.5, 0.2),
    (1412, 10_336, 5.0, 3.0),
    (1 << 20, 10**6, 4.0, 2.0),
]


def row_of(plan: planning.Plan, label: str) -> Prospect:
    (row,) = [row for row in plan.rows if row.label == label]
    return row


# -- the table


@pytest.mark.parametrize("survey", SURVEYS)
def test_every_registered_protocol_has_its_rows(survey: Any) -> None:
    plan = loloha.plan(*survey)
    histograms = {name for name, cls in REGISTRY.items() if cls.histogram}
    assert {row.name for row in plan.rows} == histograms == set(REGISTRY) - {"onebit"}
    labels = [row.label for row in plan.rows]
    assert len(set(labels)) == len(labels)
    for row in plan.rows:
        assert row.protocol is not None
        assert row.protocol.name == row.name
        assert row.protocol.k == plan.k
        assert row.eligible is (row.note == "")
        assert row.spends_every_round is not row.protocol.longitudinal
        if not row.protocol.longitudinal:
            assert row.protocol.asked_first == plan.eps_1
            assert (row.eps_inf, row.cap, row.eligible) == (math.inf, math.inf, False)
            assert f"spends {plan.eps_1:g} every round" in row.note


@pytest.mark.long
def test_the_reason_says_why_no_more_symbols_compete() -> None:
    """Where e^eps_1 + 1 is above the least prime of k symbols; V* does rise beyond it."""
    for k, most, eps_1, said in ((10, 11, 3.0, True), (10, 11, 2.0, False), (96, 97, 4.5, False)):
        plan = loloha.plan(k, 5000, 5.0, eps_1)
        assert (f"up to g = {most}, the least prime of at least k = {k}" in plan.reason) is said
        assert plan.to_dict()["reason"] == plan.reason
        noise = [
            loloha.variance(loloha.OLOLOHA(k=k, eps_inf=5.0, eps_1=eps_1, g=g, hash="linear"), 1)
            for g in (most, {11: 13, 97: 101}[most])
        ]
        assert noise[0] < noise[1]
    assert "up to g" not in loloha.plan(10, 5000, 5.0, 3.0, calibration="published").reason
    assert "up to g" not in loloha.plan(10, 5000, 5.0, 3.0, protocols=["l-grr"]).reason
    assert "up to g = 11" in loloha.plan(10, 5000, 5.0, eps_2=4.0).reason


def test_what_no_reader_asks_for_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """How surely changes show takes longer than all else together."""
    asked: list[str] = []

    def change_auc(protocol: Any, reports: int) -> None:
        asked.append(protocol.name)

    monkeypatch.setattr("loloha.planning.prospect.change_auc", change_auc)
    plan = loloha.plan(96, 50_000, 2.0, 1.0)
    assert plan.recommendation is not None
    assert not asked
    assert "Best test" not in plan.reason
    assert asked == [plan.recommendation.name]


def test_sampled_buckets_have_a_row_for_one_some_and_all() -> None:
    labels = [row.label for row in loloha.plan(96, 1000, 2.0, 1.0).rows if row.name == "dbitflippm"]
    assert labels == ["dbitflippm d=1", "dbitflippm d=16", "dbitflippm d=96"]
    labels = [row.label for row in loloha.plan(5, 1000, 2.0, 1.0).rows if row.name == "dbitflippm"]
    assert labels == ["dbitflippm d=1", "dbitflippm d=5"]
    row = row_of(loloha.plan(96, 1000, 2.0, 1.0), "dbitflippm d=16")
    assert row.note == "the first report spends 2, more than eps_1 = 1"
    assert row.protocol == loloha.DBitFlipPM(k=96, eps_inf=2.0, d=16)


@pytest.mark.parametrize("survey", SURVEYS)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_numbers_of_a_row_are_those_of_the_estimate(survey: Any, level: float) -> None:
    _, n, *_ = survey
    for row in loloha.plan(*survey, level=level).rows:
        protocol: Any = row.protocol
        eligible = harmonic_eligible(protocol, n)
        both = normal_quantile((1 + level) / 2), normal_quantile(level)
        assert row.variance == variance(protocol, n, eligible=eligible)
        assert row.error_one == both[0] * math.sqrt(row.variance)
        assert row.error_all == simultaneous_error(protocol, eligible, level=level)
        assert (row.eps_1, row.cap) == (protocol.asked_first, protocol.cap)
        assert row.g == protocol.g
        for found, tested in ((row.visible_one, None), (row.visible_all, protocol.bins)):
            # The least that the test takes, and the noise that may hide it; a count is whole.
            none = inversion(protocol, n, np.zeros(1), np.array([eligible]))
            least = none.threshold(level, tested).item()
            unit = none.unit.item()
            noise = both[1] * math.sqrt(variance(protocol, n, min(found, 1.0), eligible=eligible))
            assert least - 1.5 * unit + noise < min(found, 1.0) + unit or math.isinf(found)
            if math.isfinite(found):
                assert found < least + 1.5 * unit + noise


@pytest.mark.parametrize(
    ("protocol", "n"),
    [
        (loloha.LGRR(k=1000, eps_inf=5.0, eps_1=3.0), 300),
        (loloha.LGRR(k=10, eps_inf=9.0, eps_1=8.0), 300),
        (loloha.OLOLOHA(k=100, eps_inf=5.0, eps_1=4.0), 50),
        (loloha.OLOLOHA(k=100, eps_inf=5.0, eps_1=4.0), 200),
        (loloha.LOSUE(k=96, eps_inf=5.0, eps_1=4.0), 50),
        (loloha.RAPPOR(k=10, eps_inf=2.0, eps_1=1.0), 500),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_visible_from_is_where_intervals_lie_above_0_as_often(
    protocol: Any, n: int, level: float
) -> None:
    """By the exact law of the count: the least such number of users, but for one or two of them."""
    stated = prospect(protocol, n, math.inf, math.inf, level=level).visible_one
    p, q = (float(one) for one in (protocol.realised.p_star, protocol.realised.q_star))
    estimates = (np.arange(n + 1) / n - q) / (p - q)
    lower, _ = inversion(protocol, n, estimates[:, None], np.full((n + 1, 1), n)).interval(level)
    above = lower[:, 0] > 0

    def power(users: int) -> float:
        holders = binom.pmf(np.arange(users + 1), users, p)
        others = binom.pmf(np.arange(n - users + 1), n - users, q)
        return float(np.convolve(holders, others)[above].sum())

    needed = next(users for users in range(n + 1) if power(users) >= level)
    assert abs(n * stated - needed) <= max(1.0, 0.025 * n * stated)


def test_a_visible_frequency_is_seen_as_often_as_it_says() -> None:
    """The interval of a value of that frequency lies above 0 in 95 % of rounds (seed 8).

    20 000 rounds, so the standard deviation is 0.15 %; 0.8 % cover it at alpha 2e-7 and the normal
    approximation. It would see the power quantile missing: 50 %.
    """
    n = 50_000
    row = row_of(loloha.plan(96, n, 4.0, 2.0), "ololoha")
    protocol: Any = row.protocol
    held = round(n * (row.visible_one or 0))
    rng = np.random.default_rng(8)
    support = rng.binomial(held, protocol.p_star, 20_000)
    support += rng.binomial(n - held, protocol.q_star, 20_000)
    found = (support / n - protocol.q_star) / protocol.contrast
    eligible = np.full((len(found), 1), n)
    lower, _ = inversion(protocol, n, found[:, None], eligible).interval(0.95)
    seen = float(np.mean(lower > 0))
    assert seen == pytest.approx(0.95, abs=0.008)


def test_rmse_is_that_of_every_population() -> None:
    rng = np.random.default_rng(2)
    for row in loloha.plan(8, 1000, 3.0, 1.5).rows:
        sampling = expected_eligible(row.protocol, 1000) < 1000  # type: ignore[arg-type]
        for truth in (*rng.dirichlet(np.full(8, 0.5), size=5), np.eye(8)[0], np.full(8, 1 / 8)):
            eligible = harmonic_eligible(row.protocol, 1000)  # type: ignore[arg-type]
            squared = float(np.mean(variance(row.protocol, 1000, truth, eligible=eligible)))  # type: ignore[arg-type]
            if sampling and np.ptp(truth):
                assert row.rmse > math.sqrt(squared)
            else:
                assert row.rmse == pytest.approx(math.sqrt(squared), rel=1e-9)
            # What always answering 1/k errs by is the spread of the truth.
            spread = float(np.std(truth))
            assert (spread < row.uniform_below) is (spread**2 < squared)


@pytest.mark.parametrize(
    ("protocol", "size"),
    [
        (loloha.LGRR(k=300, eps_inf=2, eps_1=1), 2),
        (loloha.RAPPOR(k=300, eps_inf=2, eps_1=1), 38),
        (loloha.BiLOLOHA(k=300, eps_inf=2, eps_1=1), 2),  # 9 bits of seed, 1 of symbol
        (loloha.OLOLOHA(k=300, eps_inf=5, eps_1=4, g=17, hash="affine"), 9),
        (loloha.OLH(k=300, eps=1, g=3), 2),
        (loloha.DBitFlipPM(k=300, eps_inf=1, d=10), 13),  # 10 buckets of 9 bits, 10 bits
    ],
    ids=lambda value: value.name if isinstance(value, loloha.Protocol) else "",
)
def test_bytes_of_a_report_count_its_key(protocol: Any, size: int) -> None:
    """Every message carries the key: `loloha.wire.encode` knows no report without it."""
    row = prospect(protocol, 100, 2.0, 1.0)
    assert (row.first_bytes, row.report_bytes) == (size, size)
    assert row.label == protocol.name


@pytest.mark.parametrize(
    ("protocol", "words", "operations"),
    [
        (loloha.LGRR(k=100, eps_inf=2, eps_1=1), "one addition a report", 1100),
        (loloha.GRR(k=100, eps=1), "one addition a report", 1100),
        (
            loloha.BiLOLOHA(k=100, eps_inf=2, eps_1=1),
            "one addition a report, one transform of 128 x 2 cells",
            1000 + 256 * 7,
        ),
        (
            loloha.BiLOLOHA(k=100, eps_inf=2, eps_1=1, hash="affine"),
            "one hash a user and value, once; then 100 bits a report, 64 to a word",
            2000,
        ),
        (loloha.BLH(k=100, eps=1, hash="affine"), "one hash a report and value", 100_000),
        (loloha.OUE(k=100, eps=1), "100 bits a report, 64 to a word", 2000),
        (loloha.DBitFlipPM(k=100, eps_inf=1, d=7), "7 bits a report", 7000),
    ],
    ids=lambda value: value.name if isinstance(value, loloha.Protocol) else "",
)
def test_what_the_server_does(protocol: Any, words: str, operations: int) -> None:
    row = prospect(protocol, 1000, 2.0, 1.0)
    assert (row.server_cost, row.server_operations) == (words, operations)


def test_unattainable_budgets_say_why() -> None:
    plan = loloha.plan(20, 1000, 2.0, 1.9)
    row = row_of(plan, "l-oue")
    assert row.protocol is None
    assert not row.eligible
    assert not row.spends_every_round
    assert row.note.startswith("eps_1 must be below 1.6")
    assert (row.variance, row.error_all, row.report_bytes, row.cap) == (math.inf,) * 4
    assert plan.recommendation is not None
    only = loloha.plan(20, 1000, 2.0, 1.9, protocols=["l-oue"])
    assert only.recommendation is None
    assert only.warning is None
    assert "notes of the rows" in only.reason


def test_the_published_calibration_costs_more() -> None:
    tight, published = (
        row_of(loloha.plan(96, 1000, 2.0, 1.0, calibration=one), "l-grr")
        for one in ("tight", "published")
    )
    assert published.protocol == loloha.LGRR(k=96, eps_inf=2, eps_1=1, calibration="published")
    assert published.variance == pytest.approx(83 * tight.variance, rel=0.01)  # type: ignore[operator]


# -- a choice of one's own


def test_own_protocols_are_compared_as_they_are() -> None:
    several = [loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0, g=g) for g in (2, 3, 5, 7)]
    plan = loloha.plan(96, 1000, 2.0, 1.0, protocols=several)
    assert [row.protocol for row in plan.rows] == several
    assert [row.label for row in plan.rows] == [repr(protocol) for protocol in several]
    assert [row.g for row in plan.rows] == [2, 3, 5, 7]
    assert plan.recommendation is plan.rows[1]


def test_names_and_protocols_mix() -> None:
    buckets = loloha.DBitFlipPM(k=96, eps_inf=1.0)
    plan = loloha.plan(96, 1000, 2.0, 1.0, protocols=["OLOLOHA", buckets])
    assert [row.name for row in plan.rows][:2] == ["ololoha", "dbitflippm"]
    assert {row.name for row in plan.rows[2:]} == {"ololoha"}
    assert all(row.eligible for row in plan.rows)
    alone = loloha.plan(96, 1000, 2.0, 1.0, protocols="ololoha")
    assert alone.rows[0].label == "ololoha"
    assert {row.name for row in alone.rows} == {"ololoha"}
    lonely = loloha.plan(96, 1000, 2.0, 1.0, protocols="l-grr")
    assert "and no other comes within 10 % of it." in lonely.reason
    assert loloha.plan(96, 1000, 2.0, 1.0, protocols=[]).recommendation is None


def test_own_protocols_beyond_the_budgets_are_not_recommended() -> None:
    spending = [
        loloha.BiLOLOHA(k=9, eps_inf=3.0, eps_1=1.0),
        loloha.BiLOLOHA(k=9, eps_inf=2.0, eps_1=1.5),
    ]
    plan = loloha.plan(9, 1000, 2.0, 1.0, protocols=spending)
    assert [row.note for row in plan.rows] == [
        "one value spends 3, more than eps_inf = 2",
        "the first report spends 1.5, more than eps_1 = 1",
    ]
    assert plan.recommendation is None


# -- the recommendation


@pytest.mark.parametrize("survey", SURVEYS)
def test_the_recommendation_follows_the_rule(survey: Any) -> None:
    plan = loloha.plan(*survey)
    best: Any = plan.recommendation
    assert best in plan.rows
    assert best.eligible
    assert best.label in plan.reason
    eligible: list[Any] = [row for row in plan.rows if row.eligible]
    least = min(row.error_one for row in eligible)
    assert best.error_one <= 1.1 * least
    for row in eligible:
        if row.error_one <= 1.1 * least:
            cost = (row.cap, row.report_bytes, row.server_operations)
            assert (best.cap, best.report_bytes, best.server_operations) <= cost


@pytest.mark.parametrize(
    ("survey", "label", "reason"),
    [
        (
            (96, 45_000, 2.0, 1.0),
            "ololoha linear g=3 joint",
            "within 10 % of the least (1.77 %, l-osue)",
        ),
        (
            (96, 50_000, 2.0, 1.0),
            "ololoha linear g=3 joint",
            "joint: its error of one value, 1.69 %",
        ),
        ((40, 50_000, 2.0, 1.0), "ololoha linear g=3 joint", "about 625 users share each key."),
        (
            (4000, 50, 2.0, 1.0),
            "ololoha linear g=3 joint",
            "can be linked by it; few users share one.",
        ),
        ((50, 50_000, 5.0, 3.0), "ololoha prime g=12 joint", "ololoha prime g=12: cap 60"),
        (
            (10, 500, 2.0, 1.0),
            "ololoha linear g=3 joint",
            "can lose up to 3.403 instead of 2.",
        ),
        ((2, 500, 2.0, 1.0), "l-grr", "biloloha: cap 4, 1 byte a report"),
        ((2, 500, 2.0, 1.0), "l-grr", "is the least within both budgets"),
    ],
)
def test_recommendations_to_expect(survey: Any, label: str, reason: str) -> None:
    plan = loloha.plan(*survey)
    assert plan.recommendation is not None
    assert plan.recommendation.label == label
    assert reason in plan.reason


@pytest.mark.parametrize("name", ["affine", "prime", "xxhash"])
def test_a_named_family_is_tried_however_few_users_share_its_keys(name: str) -> None:
    rows = loloha.plan(97, 97, 1.1, eps_2=0.11, hash=name).rows
    (row,) = (row for row in rows if row.label == "ololoha")
    assert row.eligible
    assert "inf" not in "".join(row.note for row in rows)


@pytest.mark.parametrize(("objective", "column"), [("round", "eps_2"), ("change", "change")])
def test_another_column_can_decide(objective: str, column: str) -> None:
    plan = loloha.plan(96, 50_000, 2.0, 1.0, objective=objective)
    best: Any = plan.recommendation
    eligible: list[Any] = [row for row in plan.rows if row.eligible]
    least = min(row.error_one for row in eligible)
    as_good = [row for row in eligible if row.error_one <= 1.1 * least]
    assert len(as_good) > 1
    assert getattr(best, column) == min(getattr(row, column) for row in as_good)
    assert f"Any one round of it loses at most {best.eps_2:.4g}" in plan.reason
    auc = f"AUC at most {math.ceil(100 * best.change) / 100:.2f} (over users who draw their keys"
    assert auc in plan.reason
    with pytest.raises(ParameterError, match="objective"):
        loloha.plan(96, 50_000, 2.0, 1.0, objective="taste")


WEIGHTS: dict[str, Any] = {"cap": lambda one: one.cap, "round": loloha.privacy.eps_2}
FAMILIES = ("linear", "prime", "affine")


def all_lolohas(k: int, eps_inf: float, eps_1: float) -> Any:
    """Every g, family and memo, one by one."""
    for g, family, memo in itertools.product(range(2, 200), FAMILIES, ("independent", "joint")):
        with suppress(ParameterError):
            yield loloha.OLOLOHA(k=k, eps_inf=eps_inf, eps_1=eps_1, g=g, hash=family, memo=memo)


@pytest.mark.parametrize("objective", ["cap", "round"])
@pytest.mark.parametrize(
    "survey",
    [(50, 50_000, 5.0, 3.0), (40, 50_000, 2.0, 1.0), (7, 100, 4.0, 1.0), (300, 10_336, 3.0, 2.5),
     (12, 10**6, 1.0, 0.9), (96, 10_000, 5.0, 4.0),
    (50, 1000, 3.0, 2.9)],
)  # fmt: skip
def test_no_g_family_or_memo_beats_the_recommendation(survey: Any, objective: str) -> None:
    """By exhaustion: among those within 10 % of the least error, none has less of what decides."""
    k, n, *budgets = survey
    best: Any = loloha.plan(*survey, objective=objective).recommendation
    plain = [row for row in loloha.plan(*survey).rows if row.eligible]
    every = [
        (math.sqrt(variance(one, n)), one)
        for one in all_lolohas(k, *budgets)
        if one.hash == "linear" or n >= 5 * one.encoding.family.members
    ]
    scale = normal_quantile(0.975)
    least = min([row.error_one for row in plain] + [scale * one for one, _ in every])
    assert best.error_one <= 1.1 * least * (1 + 1e-9)
    rivals = [WEIGHTS[objective](one) for error, one in every if scale * error <= 1.1 * least]
    assert WEIGHTS[objective](best.protocol) <= min(rivals) * (1 + 1e-9)


@pytest.mark.parametrize("given", ["eps_inf", "eps_2"])
@pytest.mark.parametrize(("k", "n", "eps_1"), [(96, 10_000, 4.0), (50, 1000, 2.9), (7, 100, 3.5)])
def test_no_family_of_many_keys_is_taken_unasked(k: int, n: int, eps_1: float, given: str) -> None:
    """docs/frontier.md: at least five users share each key of it; so in every function."""
    plan = loloha.plan(k, n, eps_1=eps_1, **{given: 5.0})
    hashed = [row for row in plan.rows if row.protocol and row.name == "ololoha"]
    assert {row.protocol.hash for row in hashed} == {"linear"}  # type: ignore[union-attr]
    asked = loloha.plan(k, n, eps_1=eps_1, **{given: 5.0}, hash="prime", protocols="ololoha")
    assert "prime" in asked.python  # type: ignore[operator]


def test_a_requested_hash_is_used() -> None:
    for row in loloha.plan(50, 50_000, 5.0, 3.0, hash="linear").rows:
        assert getattr(row.protocol, "hash", "linear") == "linear"


@pytest.mark.parametrize(
    "survey",
    [
        (2, 10**9, 0.01, 0.001),
        (50, 10**6, 0.01, 0.005),
        (50, 10**6, 1e-5, 1e-6),
        (2, 500, 2.0, 1.0),
    ],
)
def test_one_table_that_gains_nothing_is_not_taken_for_its_price(survey: Any) -> None:
    """At g = 2 its cap is that of independent answers: what rounding leaves decides nothing."""
    plan = loloha.plan(*survey)
    assert not any(row.protocol.joint for row in plan.rows if row.protocol)
    assert plan.recommendation.cap == 2 * survey[2]  # type: ignore[union-attr]


def test_what_ololoha_may_err_is_measured_by_the_least_error_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    def none(*_: Any, least: float, **__: Any) -> Iterator[Any]:
        asked.append(least)
        return iter(())

    monkeypatch.setattr(planning, "variants", none)
    plan = loloha.plan(20, 1000, 2.0, 1.0)
    errors = [row.error_one for row in plan.rows if row.eligible]
    assert asked == [min(errors)]
    assert min(errors) < max(errors)


def test_reports_of_megabytes_are_recommended_only_if_asked_for() -> None:
    survey = (1 << 24, 50_000, 5.0, 4.0)
    plan = loloha.plan(*survey)
    best: Any = plan.recommendation
    assert best.report_bytes <= 64_000
    large = [row for row in plan.rows if row.left_out]
    assert {row.name for row in large} == {"rappor", "l-osue", "l-oue"}
    assert all("a report takes 2.1 MB, more than 64 kB" in row.note for row in large)
    assert "Left out, unless it is named: rappor, 2.1 MB a report" in plan.reason
    asked: Any = loloha.plan(*survey, protocols=["l-osue"]).recommendation
    assert (asked.name, asked.left_out) == ("l-osue", False)
    # Nothing is left out where it fits.
    assert not any(row.left_out for row in loloha.plan(512_000, 50_000, 5.0, 4.0).rows)


def test_rows_say_how_far_above_the_least_variance_they_are() -> None:
    """Of any first report with that loss; of buckets that are no values nothing is known."""
    made = [row for row in loloha.plan(40, 10_000, 4.0, 2.0).rows if row.protocol is not None]
    for row in made:
        protocol: Any = row.protocol
        p, q = float(protocol.realised.p_star), float(protocol.realised.q_star)
        noise = q * (1 - q) / (p - q) ** 2 / protocol.encoding.expected_eligible(1)
        least = limits.variance(40, protocol.asked_first)
        assert row.above_optimum == pytest.approx(noise / least - 1, rel=1e-6, abs=1e-9)
    assert prospect(loloha.DBitFlipPM(k=40, b=4, eps_inf=2.0), 100).above_optimum is None


@pytest.mark.long
def test_rows_say_what_values_that_change_reveal() -> None:
    for row in loloha.plan(20, 1000, 2.0, 1.0).rows:
        assert row.protocol is not None
        area = loloha.privacy.change_auc(row.protocol, 10)
        assert area is not None
        assert (row.eps_2, row.change) == (loloha.privacy.eps_2(row.protocol), digits(area.auc, 12))
        assert row.to_dict()["eps_2"] == (row.eps_2 if row.name != "dbitflippm" else None)


# -- the warning


def test_many_users_need_no_warning() -> None:
    assert loloha.plan(10, 10**7, 2.0, 1.0).warning is None


def test_a_hidden_average_is_reported() -> None:
    warning = loloha.plan(96, 50_000, 2.0, 1.0).warning
    assert warning is not None
    for part in ("n = 50000", "1.69 %, is above", "1/96", "less than 0.865 %",
                 "at least 3.12 %, or 4.26 %", "About 140 000 reports"):  # fmt: skip
        assert part in warning
    for one in (10**5, 10**6):
        enough = loloha.plan(96, one, 2.0, 1.0).recommendation
        assert enough is not None
        assert (enough.error_one <= 1 / 96) is (one >= 1.32e5)  # type: ignore[operator]


def test_only_all_at_once_hidden_is_reported() -> None:
    warning = loloha.plan(96, 45_222, 4.0, 2.0).warning
    assert warning is not None
    assert "95 % error of all values at once, 2.11 %, is above" in warning


def test_noise_above_uniform_is_reported() -> None:
    plan = loloha.plan(360, 10_000, 0.5, 0.2)
    assert plan.warning is not None
    assert "always answering 1/360 has the smaller" in plan.warning
    assert "whatever the true frequencies are" in plan.warning
    # True of every population, the most uneven one included.
    best: Any = plan.recommendation
    rng = np.random.default_rng(4)
    for truth in (*rng.dirichlet(np.full(360, 0.01), size=20), np.eye(360)[0]):
        estimated = float(np.mean(variance(best.protocol, 10_000, truth)))
        assert estimated > float(np.mean((truth - 1 / 360) ** 2))


def test_projected_estimates_can_be_nearer_than_the_warning_of_raw_ones() -> None:
    """All users at one value (seed 3, means of 40 rounds): of 1/k, the total variation is .997.

    The rest of the sentence is needed: "whatever the truth, 1/k is nearer" would be false.
    """
    plan = loloha.plan(360, 10_000, 0.5, 0.2)
    protocol: Any = plan.recommendation.protocol  # type: ignore[union-attr]
    n, rng = 10_000, np.random.default_rng(3)
    truth = np.eye(360)[0]
    held = np.where(truth == 1, n, 0)
    support = rng.binomial(held, protocol.p_star, (40, 360))
    support += rng.binomial(n - held, protocol.q_star, (40, 360))
    shares = loloha.postprocess.project_simplex((support / n - protocol.q_star) / protocol.contrast)
    away = np.abs(shares - truth).sum(axis=1) / 2
    assert away.mean() < np.abs(1 / 360 - truth).sum() / 2 - 0.1


def test_nothing_visible_is_reported() -> None:
    warning = loloha.plan(2, 10, 1.0, 0.5).warning
    assert warning is not None
    assert "Nothing can be seen with 95 %" in warning
    warning = loloha.plan(10**6, 20, 4.0, 2.0).warning
    assert warning is not None
    assert "none when all values are tested at once" in warning


@pytest.mark.parametrize("survey", SURVEYS)
def test_numbers_are_rounded_for_people(survey: Any) -> None:
    plan = loloha.plan(*survey)
    for row in plan.rows:
        assert row.above_optimum is None or row.above_optimum == 0 or row.above_optimum > 1e-12
    for text in (plan.reason, plan.warning or ""):
        for number in re.findall(r"\d+\.\d+", text):
            assert len(number.replace(".", "").lstrip("0")) <= 4, number


# -- forms


@pytest.mark.parametrize(
    "survey",
    [SURVEYS[0], (4, 1000, 2.0, 1.9)]
    + [pytest.param(one, marks=pytest.mark.long) for one in SURVEYS[1:]],
)
def test_plans_are_json(survey: Any) -> None:
    plan = loloha.plan(*survey)
    plain = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert [row["label"] for row in plain["rows"]] == [row.label for row in plan.rows]
    assert plain["recommendation"] == plan.recommendation.label  # type: ignore[union-attr]
    assert (plain["k"], plain["n"], plain["eps_inf"], plain["eps_1"]) == survey
    for row, known in zip(plain["rows"], plan.rows, strict=True):
        assert row["variance"] == (known.variance if known.protocol else None)
        assert row["spends_every_round"] is known.spends_every_round
        if known.spends_every_round:
            assert row["cap"] is row["eps_inf"] is None
    assert loloha.plan(*survey, protocols=["grr"]).to_dict()["recommendation"] is None


def test_plans_are_frozen_and_take_what_numpy_gives() -> None:
    plan = loloha.plan(np.int64(96), np.int32(1000), np.float64(2.0), np.float32(1.0))
    assert plan == loloha.plan(96, 1000, 2.0, 1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.reason = ""  # type: ignore[misc]


@pytest.mark.parametrize("eps", [(2e-6, 1e-6), (700.0, 1e-6), (700.0, 350.0)])
@pytest.mark.parametrize("k", [2, pytest.param(1000, marks=pytest.mark.long)])
def test_extreme_budgets_give_a_plan(eps: tuple[float, float], k: int) -> None:
    for n in (1, 10**12):
        plan = loloha.plan(k, n, *eps)
        assert plan.recommendation is not None
        json.dumps(plan.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k": 1}, "k must be an integer"),
        ({"k": 3.0}, "k must be an integer"),
        ({"n": 0}, "n must be an integer"),
        ({"n": "many"}, "n must be an integer"),
        ({"eps_inf": 0}, "eps_inf must be a number"),
        ({"eps_1": math.nan}, "eps_1 must be a number"),
        ({"eps_1": 2.0}, "eps_1 must be below eps_inf = 2.0, got 2.0"),
        ({"level": 1.0}, "level must be inside"),
        ({"calibration": "loose"}, "calibration must be one of"),
        ({"protocols": ["rapport"]}, "protocols must be one of"),
        ({"protocols": [7]}, "protocols must be one of"),
        ({"protocols": loloha.GRR(k=3, eps=1.0)}, "protocols must have k = 96, got GRR"),
    ],
)
def test_bad_surveys_are_refused(changed: dict[str, Any], message: str) -> None:
    survey: dict[str, Any] = {"k": 96, "n": 1000, "eps_inf": 2.0, "eps_1": 1.0}
    with pytest.raises(ParameterError, match=message):
        loloha.plan(**(survey | changed))


def test_the_price_of_one_table_is_named_where_it_shows() -> None:
    def reason(k: int) -> str:
        protocol = loloha.OLOLOHA(k=k, eps_inf=2.0, eps_1=1.0, g=3, memo="joint")
        return loloha.plan(k, 5000, 2.0, 1.0, protocols=[protocol]).reason

    assert "can lose up to" in reason(3)
    # Of two values only one cell is left to exchange one for.
    assert "can lose up to" not in reason(2)


def test_a_plan_prints_its_rows_and_each_names_what_it_is() -> None:
    proposal = loloha.plan(96, 50_000, 2.0, 1.0)
    titles = [row.title for row in proposal.rows]
    assert len(set(titles)) == len(titles)
    for row in proposal.rows:
        assert (row.title == row.label) == (
            getattr(row.protocol, "hash", "linear") in f"linear {row.label}"
        )
        assert any(line.startswith(f"{row.title} ") for line in str(proposal).splitlines())
    assert any(row.title != row.label for row in proposal.rows)
    assert proposal.reason in str(proposal)
    assert proposal.recommendation.title in proposal._repr_html_()
