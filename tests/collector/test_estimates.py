"""What is shown of a round, and why not; which values are the most frequent ones."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from collecting import HOUR, START, campaign
from loloha.collector.estimates import most_frequent, round_state, suppressed_because
from loloha.collector.life import Life
from loloha.collector.store import Round
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.terms import Terms

STORED = StoredCampaign(
    1, campaign(), Terms(late_seconds=HOUR, early_seconds=60, minimum_cohort=10), None, b"", 0
)


def shown(*rows: list[float]) -> Any:
    return iter([SimpleNamespace(frequencies=np.array(row)) for row in rows])


def test_the_most_frequent_values_are_those_of_the_mean_of_known_rounds() -> None:
    nan = np.nan
    # Means 0.2, 0.3, 0.25, none, -0.1: the second was seen in one of the rounds.
    rows = [0.1, nan, 0.3, nan, -0.1], [0.3, 0.3, 0.2, nan, -0.1]
    for top, values in enumerate(([], [1], [1, 2], [0, 1, 2], [0, 1, 2, 4], [0, 1, 2, 3, 4])):
        assert most_frequent(shown(*rows), top) == values
    # Of equal ones the first.
    assert most_frequent(shown([0.1, 0.2, 0.2, 0.1]), 3) == [0, 1, 2]
    assert most_frequent(shown(), 3) == []


@pytest.mark.parametrize(
    ("n", "published", "why"),
    [
        (0, 0, "no_reports"), (1, 0, "minimum_cohort"), (9, 9, "minimum_cohort"),
        (10, 0, "not_published"), (12, 9, "not_published"), (10, 10, None), (99, 10, None),
    ],
)  # fmt: skip
def test_why_a_round_is_not_shown(n: int, published: int, why: str | None) -> None:
    assert suppressed_because(STORED, Round(0, n=n, waiting=n - published)) == why


@pytest.mark.parametrize("state", ["open", "paused", "closed", "archived"])
def test_a_round_is_to_come_open_or_closed(state: Any) -> None:
    """At the beginning of round 3 the one before takes late reports; paused it would again."""
    life = Life(state, 0)
    states = [round_state(STORED, life, round, START + 3 * HOUR) for round in range(1, 5)]
    lasts = state in ("open", "paused")
    assert states == (["closed", "open", "open", "future"] if lasts else ["closed"] * 4)
