"""What was asked for is printed as it was asked for; what is read by people is rounded."""

import json
import math
import re
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import loloha
from loloha.planning.prospect import prospect
from loloha.population.samplers.history import History
from loloha.privacy import rounded
from loloha.protocols import REGISTRY
from loloha.protocols.realised import NEAR, as_asked

# Binary fractions can say none of the first.
BUDGETS = [
    (0.3, 0.1),
    *(pytest.param(*one, marks=pytest.mark.long) for one in (
        (2.0, 1.0), (0.7, 0.3), (5.0, 1.1), (3.3, 2.9)
    )),
]  # fmt: skip
LONG = re.compile(r"\d\.\d*?(?:0{9,}|9{9,})\d*")


def protocols(k: int, eps_inf: float, eps_1: float) -> list[Any]:
    rows = loloha.plan(k, 100, eps_inf, eps_1).rows
    return [row.protocol for row in rows if row.protocol is not None]


@pytest.mark.parametrize(("eps_inf", "eps_1"), BUDGETS)
@pytest.mark.parametrize("k", [2, 20])
def test_losses_that_were_asked_for_are_as_they_were_asked_for(
    k: int, eps_inf: float, eps_1: float
) -> None:
    names = set()
    for protocol in protocols(k, eps_inf, eps_1):
        names.add(protocol.name)
        assert loloha.privacy.growth(protocol, 1) == protocol.asked_first
        if protocol.longitudinal:
            assert loloha.privacy.growth(protocol, 10**12) == protocol.asked_memo
        else:
            assert loloha.privacy.eps_2(protocol) == eps_1
            shown = [loloha.privacy.growth(protocol, 3), loloha.privacy.window_loss(protocol, 3)]
            assert not LONG.search(repr(shown))
    assert names >= set(REGISTRY) - {"l-oue", "l-soue", "onebit"}


@pytest.mark.parametrize("name", ["ololoha", "grr"])
def test_an_explanation_prints_what_was_asked_for(name: str) -> None:
    protocol = next(one for one in protocols(20, 0.3, 0.1) if one.name == name)
    plain = loloha.privacy.explain(protocol, reports=[1, 3]).to_dict()
    losses = [plain["parameters"][name] for name in ("eps_first", "eps_memo")]
    assert not LONG.search(json.dumps([plain["growth"], plain["windows"], plain["cap"], losses]))


def test_rows_of_a_plan_have_no_digits_of_rounding() -> None:
    """0.8750234375000001 and 2.999999999999 for 3."""
    rows = loloha.plan(2, 10, 1e-3, 5e-4).rows + loloha.plan(2, 10, 50.0, 49.9).rows
    for row in rows:
        plain = row.to_dict()
        assert not LONG.search(json.dumps([plain["change"], plain["above_optimum"]])), row.label


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_one_of_a_kind_is_no_plural(name: str) -> None:
    few = {"k": 2, "eps": 1.0, "eps_inf": 1.0, "eps_1": 0.5, "b": 2, "d": 1}
    cls = REGISTRY[name]
    asked = {key: few[key] for key in few.keys() & {field.name for field in fields(cls)}}
    protocol = cls(**asked)
    rounds = loloha.simulate(protocol, np.zeros((1, 1), dtype=int), rng=1)
    texts = [
        str(loloha.privacy.explain(protocol)), repr(rounds), repr(rounds.tallies[0].estimate()),
        repr(History(np.zeros((1, 1), dtype=int), 2)), repr(loloha.plan(2, 1, 2.0, 1.0)),
    ]  # fmt: skip
    for text in texts:
        assert not re.search(
            r"\b1 (sampled )?(buckets|users|rounds|reports|values|cells|symbols)\b", text
        )


@pytest.mark.parametrize(("eps_inf", "eps_1"), BUDGETS)
def test_tables_print_what_was_asked_for(eps_inf: float, eps_1: float) -> None:
    for row in loloha.plan(20, 100, eps_inf, eps_1).rows:
        assert not row.eligible or (row.eps_1, row.eps_inf) == (eps_1, eps_inf)
    held = loloha.plan(20, 100, eps_inf, eps_2=2 * eps_1)
    for line in held.rows:
        assert not line.eligible or line.eps_2 == 2 * eps_1 or line.eps_2 < 1.999999 * eps_1
    for record in loloha.sweep(4, 100, eps_inf, protocols=["l-grr"]).records():
        assert not LONG.search(repr((record["eps_inf"], record["eps_1"])))
    needed = loloha.plan_for(
        error=0.2, k=20, eps_inf=eps_inf, alpha=eps_1 / eps_inf, protocols=["l-grr"]
    )
    found: Any = needed.rows[0].prospect
    assert found.eps_1 == eps_1


def test_a_curve_of_another_first_loss_is_left_as_it_is() -> None:
    """The published calibration spends less than eps_1: 0.947 for 1."""
    protocol = loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0, calibration="published")
    assert loloha.privacy.growth(protocol, 1) == pytest.approx(0.948, abs=1e-3)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (rounded.frequency(0.0169363), "1.69 %"),
        (rounded.frequency(4462.52), "above 100 %"),
        (rounded.frequency(math.inf), "none"),
        (rounded.percent(9.78), "978 %"),
        (rounded.percent(36.78), "3680 %"),
        (rounded.percent(76820.73), "7 680 000 %"),
        (rounded.about(132_456), "130 000"),
        (rounded.about(61.4), "61"),
        (rounded.about(18.12, 3), "18.1"),
        (rounded.about(0), "0"),
        (rounded.about(8.2e13), "8.2e+13"),
        (rounded.about(9.9e11), "990 000 000 000"),
        (rounded.about(1e12), "1e+12"),
        (rounded.about(9_940), "9900"),
        (rounded.about(9_999), "10 000"),
        (rounded.about(math.inf), "inf"),
        (rounded.frequency(1.0), "100 %"),
        (rounded.percent(9.994), "999 %"),
        (rounded.percent(9.996), "1000 %"),
        (rounded.at_least(1.01), "2"),
        (rounded.at_least(9.2), "10"),
        (rounded.at_least(101), "110"),
        (rounded.at_least(110), "110"),
        (rounded.at_least(math.inf), "inf"),
        (rounded.percent(1.01e-152), "below 1e-10 %"),
        (rounded.percent(0.0), "0 %"),
        (rounded.loss(9_999), "9999"),
        (rounded.loss(10_000), "10 000"),
        (rounded.in_bytes(999), "999 bytes"),
        (rounded.in_bytes(1000), "1 kB"),
        (rounded.in_bytes(1_000_000), "1 MB"),
        (rounded.loss(22.67037), "22.67"),
        (rounded.loss(74_802_000), "75 000 000"),
        (rounded.loss(math.inf), "no bound"),
        (rounded.in_bytes(1), "1 byte"),
        (rounded.in_bytes(44), "44 bytes"),
        (rounded.in_bytes(64_000), "64 kB"),
        (rounded.in_bytes(2_097_152), "2.1 MB"),
    ],
)
def test_numbers_for_people(shown: str, text: str) -> None:
    assert shown == text


def test_two_shares_have_the_digits_that_tell_them_apart() -> None:
    assert rounded.in_order(0.3, 0.2) == ("30 %", "20 %")
    assert rounded.in_order(0.12346, 0.12344) == ("12.35 %", "12.34 %")
    assert rounded.in_order(1.5, 0.2) == ("above 100 %", "20 %")
    assert rounded.in_order(1.0, 0.99999) == ("100 %", "99.999 %")


def test_what_was_asked_for_is_told_where_rounding_alone_makes_a_difference() -> None:
    assert as_asked(0.3 * (1 - NEAR / 2), 0.3) == 0.3
    other = 0.3 * (1 - NEAR * 2)
    assert as_asked(other, 0.3) == other
    assert (rounded.product(3, 0.1), rounded.product(3, 0.3)) == (0.3, 0.9)
    assert rounded.product(1, 0.123456789012345) == 0.123456789012345
    assert rounded.digits(0.123456) == 0.1235


def test_a_cap_is_a_product_of_what_was_asked_for() -> None:
    plain = prospect(loloha.LGRR(k=3, eps_inf=0.3, eps_1=0.1), 100).to_dict()
    assert plain["cap"] == 0.9 != 3 * 0.3
