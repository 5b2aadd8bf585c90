"""Checks of parameters and values: what passes, what is refused, and what the refusal says."""

import math
import re
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from loloha import checks
from loloha.errors import DomainError, ExtraError, LolohaError, ParameterError

NUMPY_INTEGERS = (
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip


class Shade(IntEnum):
    dark = 3


@pytest.mark.parametrize("three", [3, Shade.dark, *(kind(3) for kind in NUMPY_INTEGERS)], ids=repr)
def test_integers_of_any_make_are_accepted_as_int(three: Any) -> None:
    for number in (checks.integer("k", three, 2, 5, "count them"), checks.value(three, 5)):
        assert type(number) is int
        assert number == 3


NOT_INTEGERS = [
    3.0, "3", b"3", True, False, None, float("nan"), [3], (3,), {3}, 3 + 0j, object,
    Decimal(3), Fraction(3), np.float64(3), np.float32(3), np.bool_(True), np.str_("3"),
    np.array([3]), np.array(3.0),
]  # fmt: skip


@pytest.mark.parametrize("other", NOT_INTEGERS, ids=repr)
def test_what_is_no_integer_is_refused(other: Any) -> None:
    with pytest.raises(
        ParameterError, match=r"^k must be an integer in 2\.\.5, got .*; count them"
    ):
        checks.integer("k", other, 2, 5, "count them")
    with pytest.raises(
        DomainError, match=rf"in 0\.\.4, got .* of type {type(other).__name__}; map labels"
    ):
        checks.value(other, 5)


@pytest.mark.parametrize("outside", [-1, 5, 1 << 80, -(1 << 80), np.int64(-1), np.uint64(1 << 63)])
def test_a_value_outside_the_domain_is_refused_and_never_shown(outside: Any) -> None:
    with pytest.raises(DomainError, match=r"in 0\.\.4, got one outside \(not shown") as caught:
        checks.value(outside, 5)
    assert str(int(outside)) not in str(caught.value)


@pytest.mark.parametrize("bound", [2, 5])
def test_both_ends_of_a_range_belong_to_it(bound: int) -> None:
    assert checks.integer("k", bound, 2, 5, "") == bound
    assert checks.real("k", bound, 2, 5, "") == bound


@pytest.mark.parametrize("outside", [1, 6, -3, 1 << 200])
def test_an_integer_out_of_range_is_shown(outside: int) -> None:
    with pytest.raises(ParameterError, match=re.escape(f"got {outside!r}; ")):
        checks.integer("k", outside, 2, 5, "count them")


@pytest.mark.parametrize("one", [1, 1.0, Fraction(1), np.float32(1), np.float64(1), np.int8(1)])
def test_numbers_of_any_make_are_accepted_as_float(one: Any) -> None:
    number = checks.eps("eps", one)
    assert type(number) is float
    assert number == 1.0


NOT_REAL = [
    "1", b"1", True, None, float("nan"), 1 + 0j, np.bool_(True), np.array([1.0]), np.array(1.0),
    np.float64("nan"), [1.0], object,
]  # fmt: skip


@pytest.mark.parametrize("other", NOT_REAL, ids=repr)
def test_what_is_no_number_is_refused(other: Any) -> None:
    with pytest.raises(ParameterError, match=r"^eps must be a number in .*, got ") as caught:
        checks.eps("eps", other)
    assert repr(other) in str(caught.value)


@pytest.mark.parametrize("outside", [0, -1.0, 1e-7, 700.1, float("inf"), -float("inf"), 1 << 2000])
def test_a_number_out_of_range_is_shown(outside: float) -> None:
    with pytest.raises(ParameterError, match=re.escape("eps must be a number in [1e-06, 700]")):
        checks.eps("eps", outside)


@pytest.mark.parametrize("other", ["tidy", "", None, 3, ["tight"], b"tight", True])
def test_a_choice_is_one_of_its_options(other: Any) -> None:
    assert checks.choice("calibration", "tight", ("tight", "published")) == "tight"
    message = f"calibration must be one of ['published', 'tight'], got {other!r}; "
    with pytest.raises(ParameterError, match=re.escape(message)):
        checks.choice("calibration", other, ("tight", "published"))


def test_one_except_clause_catches_every_refusal() -> None:
    for error in (ParameterError, DomainError):
        assert issubclass(error, LolohaError)
        assert issubclass(error, ValueError)


@pytest.mark.parametrize("level", [0, 1, -0.5, math.nan, "0.95", None, True, 1 - 2**-53, 5e-324])
def test_a_level_has_quantiles(level: Any) -> None:
    with pytest.raises(ParameterError, match="level must be inside"):
        checks.level(level)


def test_what_is_shown_is_cut_after_80_characters() -> None:
    # With its quotes, 78 letters are 80 characters.
    assert checks.shown("a" * 78) == "'" + "a" * 78 + "'"
    assert checks.shown("a" * 79) == "'" + "a" * 79 + "..."
    assert checks.shown(b"a" * 5000) == "b'" + "a" * 78 + "..."
    assert checks.shown([1] * 26) == repr([1] * 26)
    assert checks.shown([1] * 27) == repr([1] * 27)[:80] + "..."
    assert checks.shown(10**5000) == "something of type int"


def test_the_first_budget_is_below_the_bound_on_all_reports() -> None:
    assert checks.budgets(2, 1) == (2.0, 1.0)
    for eps_inf, eps_1 in ((1.0, 1.0), (1.0, 2.0)):
        with pytest.raises(ParameterError, match=f"below eps_inf = {eps_inf}, got {eps_1}"):
            checks.budgets(eps_inf, eps_1)


def test_rounds_are_numbers_that_every_language_keeps() -> None:
    for edge in (0, 2**53 - 1):
        assert checks.round_number(edge) == edge
    for outside in (-1, 2**53):
        with pytest.raises(ParameterError, match="round must be an integer"):
            checks.round_number(outside)


def test_a_limit_that_never_binds_is_none() -> None:
    assert checks.limit(None, 1.0, "") is checks.limit(math.inf, 1.0, "") is None
    assert checks.limit(1, 1.0, "") == 1.0
    for refused in (0.5, True, math.nan):
        with pytest.raises(ParameterError, match=r"limit must be .*; ask for more"):
            checks.limit(refused, 1.0, "ask for more")


def test_what_names_another_campaign_is_refused() -> None:
    for actual, wanted in (("a", "a"), (None, "a"), ("a", None), (None, None)):
        checks.of_campaign("tallies", actual, wanted)
    with pytest.raises(ParameterError, match="tallies must be of campaign 'b', got those of 'a'"):
        checks.of_campaign("tallies", "a", "b")


def test_one_is_no_plural() -> None:
    words = [checks.counted(number, "round") for number in range(3)]
    assert words == ["0 rounds", "1 round", "2 rounds"]


def test_json_gets_numbers_that_it_has() -> None:
    given = [0.5, math.inf, -math.inf, math.nan, 3, None, "x"]
    assert [checks.finite(number) for number in given] == [0.5, None, None, None, 3, None, "x"]


def test_a_span_of_time_is_no_number() -> None:
    for span in (np.timedelta64(1, "s"), np.timedelta64(1)):
        with pytest.raises(ParameterError, match="eps must be a number"):
            checks.eps("eps", span)
        with pytest.raises(ParameterError, match="level must be inside"):
            checks.level(span)


def test_a_float_of_less_precision_stands_for_its_shortest_decimal() -> None:
    assert checks.eps("eps", np.float32(0.3)) == 0.3
    assert checks.eps("eps", Fraction(3, 10)) == 0.3


def test_a_missing_library_is_named_with_the_extra_that_has_it() -> None:
    with pytest.raises(ExtraError, match=r"no_such must be installed to fly; .*loloha\[wings\]"):
        checks.library("no_such.part", "fly", "wings")
    assert checks.library("math", "count", "cli") is math
