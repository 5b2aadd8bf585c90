"""Terms of a campaign: when rounds take reports, are shown and are forgotten."""

from typing import Any

import pytest

from collecting import HOUR, START
from loloha.campaign import Schedule
from loloha.collector.terms import Terms
from loloha.errors import CampaignError, ParameterError

HOURLY = Schedule(START, HOUR)
TERMS = Terms(late_seconds=2 * HOUR, early_seconds=60, minimum_cohort=10, publish_every=3)


@pytest.mark.parametrize(
    ("after", "opened"),
    [
        (-61, (0, -1)), (-60, (0, 0)), (HOUR - 61, (0, 0)), (HOUR - 60, (0, 1)),
        (3 * HOUR - 1, (0, 3)), (3 * HOUR, (1, 3)),
    ],
)  # fmt: skip
def test_a_round_opens_early_and_closes_late(after: int, opened: tuple[int, int]) -> None:
    assert TERMS.open_rounds(HOURLY, START + after) == opened


def test_no_round_takes_reports_at_its_close_or_after_the_end_of_all() -> None:
    for schedule in (HOURLY, Schedule(START, HOUR, expires=START + 10 * HOUR)):
        for round in range(3):
            closes = TERMS.closes(schedule, round)
            assert closes == START + (round + 3) * HOUR
            for now, first in ((closes - 1, round), (closes, round + 1)):
                assert TERMS.open_rounds(schedule, now)[0] == first
    short = Schedule(START, HOUR, expires=START + 3 * HOUR)
    assert TERMS.closes(short, 2) == START + 3 * HOUR
    assert TERMS.open_rounds(short, START + 3 * HOUR - 1) == (0, 2)
    first, last = TERMS.open_rounds(short, START + 3 * HOUR)
    assert first > last == short.last


def test_sums_stay_for_days_after_their_round_has_closed() -> None:
    assert TERMS.first_stored(HOURLY, START + 10**9) == 0
    kept = Terms(late_seconds=2 * HOUR, keep_days=1)
    for round in (0, 5):
        gone = START + (round + 1) * HOUR + 2 * HOUR + 86_400
        assert [kept.first_stored(HOURLY, gone - 1), kept.first_stored(HOURLY, gone)] == [
            round, round + 1,
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("n", "waiting", "shown"),
    [(10, 3, True), (10, 2, False), (9, 9, False), (12, 12, True), (10, 0, False)],
)
def test_reports_are_shown_by_steps_and_never_of_few(n: int, waiting: int, shown: bool) -> None:
    assert TERMS.publishes(n, waiting) is shown
    assert not Terms(minimum_cohort=1, publish_every=0).publishes(n, waiting)


def test_by_default_reports_are_shown_by_cohorts() -> None:
    assert Terms(minimum_cohort=7).publish_every == 7
    assert Terms.from_dict({}) == Terms()
    assert Terms().to_dict() == {
        "late_seconds": 86_400, "early_seconds": 60, "minimum_cohort": 100, "publish_every": 100,
    }  # fmt: skip
    for terms in (TERMS, Terms(keep_days=3)):
        assert Terms.from_dict(terms.to_dict()) == terms


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("late_seconds", 0, 366 * 86_400), ("early_seconds", 0, 366 * 86_400),
        ("minimum_cohort", 1, 1 << 53), ("publish_every", 0, 1 << 53), ("keep_days", 1, 36_525),
    ],
)  # fmt: skip
def test_terms_lie_within_bounds(name: str, least: int, most: int) -> None:
    for good in (least, most):
        assert Terms(**{name: good}).to_dict()[name] == good
    for bad in (least - 1, most + 1, 1.5, True):
        wrong: dict[str, Any] = {name: bad}
        with pytest.raises(ParameterError, match=f"{name} must be"):
            Terms(**wrong)
        with pytest.raises(CampaignError, match=f"{name} must be"):
            Terms.from_dict(wrong)


def test_at_most_a_thousand_rounds_are_open_together() -> None:
    minutes = Schedule(START, 60)
    Terms(late_seconds=59_000, early_seconds=1_000).require_few_rounds(minutes)
    for late, early in ((59_000, 1_001), (59_001, 1_000)):
        with pytest.raises(CampaignError, match="at most 60000 "):
            Terms(late_seconds=late, early_seconds=early).require_few_rounds(minutes)
    for wrong in ([], {"late": 1}):
        with pytest.raises(CampaignError, match="terms must be an object"):
            Terms.from_dict(wrong)
