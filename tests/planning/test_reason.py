"""What a plan says follows its numbers: each sentence on both sides of where it begins to hold."""

import math
import re
from dataclasses import replace
from typing import Any

import pytest

import loloha
from loloha.planning import reason
from loloha.planning.prospect import Prospect
from loloha.privacy.plain_words import OVER_KEYS

BUDGETS: Any = {"k": 20, "eps_inf": 2.0, "eps_1": 1.0}


def row(protocol: Any = None, **numbers: Any) -> Prospect:
    known = {"eps_2": 1.5, "eps_inf": 2.0} | numbers
    return Prospect("some", "some", protocol or loloha.LGRR(**BUDGETS), True, "", **known)


@pytest.mark.parametrize(
    ("protocol", "area", "shown", "keys_differ"),
    [
        (loloha.BiLOLOHA(**BUDGETS), 0.7123, "0.72", True),
        (loloha.BiLOLOHA(**BUDGETS), 0.98, "0.98", True),
        (loloha.BiLOLOHA(**BUDGETS), 0.99, "0.99", False),
        (loloha.LGRR(**BUDGETS), 0.7, "0.70", False),
        (loloha.LGRR(**BUDGETS), 0.9999, "1.00", False),
    ],
)
def test_the_best_test_of_a_change_is_rounded_up(
    protocol: Any, area: float, shown: str, keys_differ: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Prospect, "change", area)
    text = reason.over_time(row(protocol))
    assert f"AUC at most {shown}" in text
    assert (OVER_KEYS in text) is keys_differ
    monkeypatch.setattr(Prospect, "change", None)
    assert "AUC" not in reason.over_time(row(protocol))


def test_keys_are_shared_from_two_users_on() -> None:
    assert "hash key" not in reason.over_time(row())
    for shared, said in (
        (1.99, "few users"),
        (2.0, "about 2.00 users"),
        (1234.5, "about 1230 users"),
    ):
        assert said in reason.over_time(row(shared=shared))
    users = [reason.users_of_a_key(row(shared=shared)) for shared in (None, 0.99, 1.0)]
    assert users == [None, "below 1", "1.00"]


def test_joint_responses_have_a_price_where_it_is_above_eps_inf() -> None:
    joint: Any = {"memo": "joint", "m0": 0.0}
    for protocol, dearer in (
        (loloha.BiLOLOHA(**BUDGETS), False),
        (loloha.OLOLOHA(**BUDGETS, g=2, **joint), False),
        (loloha.OLOLOHA(**BUDGETS, g=3, **joint), True),
    ):
        assert ("can lose up to" in reason.over_time(row(protocol))) is dearer, protocol
    assert "has no bound" in reason.over_time(row(eps_2=math.inf))
    assert "loses at most 1.5" in reason.over_time(row(eps_2=1.5))


@pytest.mark.parametrize(
    ("single", "every", "what", "needed"),
    [
        (0.05, 0.05, None, None),
        (0.05, 0.1, "all values at once", "4000"),
        (0.055, 0.1, "one value", "1300"),
        (0.1, 0.05, "one value", "4000"),
    ],
)
def test_noise_hides_what_its_error_exceeds(
    single: float, every: float, what: str | None, needed: str | None
) -> None:
    """Twenty values: a twentieth each on average. Twice the error takes four times the reports."""
    found = row(error_one=single, error_all=every, visible_one=0.1, visible_all=0.2)
    text = reason.warning(found, 1000, 0.95)
    assert (text is None) == (what is None)
    if text is not None:
        assert f"error of {what}," in text
        assert f"About {needed} reports" in text
        assert "95 %" in text


@pytest.mark.parametrize("n", [1, 1000, 9_999, 10_000, 123_456])
@pytest.mark.parametrize("more", [1e-9, 1e-4, 0.01, 0.3])
def test_figures_are_in_the_column_of_their_subject(n: int, more: float) -> None:
    # "About 1000 reports would bring this error down", said of 1000 reports.
    text = reason.warning(row(error_one=(1 + more) / 20, error_all=0.05), n, 0.95)
    assert text is not None
    needed = re.search(r"About ([\d ]+) reports", text)
    error, average = re.findall(r"([\d.]+) %(?:, is above|\. Before)", text)
    assert needed is not None
    assert int(needed[1].replace(" ", "")) > n
    assert float(error) > float(average)


def test_the_true_frequencies_spread_at_most_as_if_one_value_had_all() -> None:
    widest = math.sqrt(19) / 20
    for below, always in ((widest, True), (0.999 * widest, False)):
        text = reason.warning(row(error_one=0.1, error_all=0.1, uniform_below=below), 1000, 0.9)
        assert text is not None
        assert ("whatever the true frequencies are" in text) is always


def test_what_is_still_visible_has_a_frequency_of_at_most_one() -> None:
    found = row(error_one=0.1, error_all=0.1, visible_one=0.25, visible_all=0.5)
    for known, said, unsaid in (
        (found, ("25 %", "50 %"), "not even"),
        (replace(found, visible_all=math.inf), ("25 %", "none when"), "50 %"),
        (replace(found, visible_one=math.inf), ("not even",), "25 %"),
    ):
        text = reason.warning(known, 1000, 0.9)
        assert text is not None
        assert all(part in text for part in said)
        assert unsaid not in text
