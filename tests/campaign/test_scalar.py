"""Single values: foreign scalars, look-alikes, blanks, and numbers as decimals."""

import datetime
import enum
import math
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loloha
from loloha import checks
from loloha.campaign import Campaign, Labels, Range, Schedule
from loloha.campaign.scalar import exact, identity, is_missing, unboxed, whole
from loloha.errors import CampaignError, DomainError

DAY = datetime.date(2026, 1, 5)
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
UNIQUE = uuid.UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize("kind", [*INTEGERS, int, float, str, Decimal, Fraction, pa.scalar])
def test_a_number_of_any_type_falls_into_its_part(kind: Any) -> None:
    domain = Range(0, 100, 10, "other")
    assert [domain.index(kind(v)) for v in range(101)] == [min(v // 10, 9) for v in range(101)]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, float])
def test_a_float_stands_for_its_shortest_decimal(kind: Any) -> None:
    domain = Range(0, 1, 10)
    assert [domain.index(kind(f"0.{d}")) for d in range(10)] == list(range(10))
    assert exact(kind("0.3")) == Fraction(3, 10)


@pytest.mark.parametrize(
    ("bins", "second"),
    [
        (8, "0.125, 0.25"), (512, "0.001953125, 0.00390625"),
        (1024, "0.0009765625, 0.001953125"), (2048, "0.000488281…, 0.000976562…"),
        (3, "0.333333…, 0.666666…"),
    ],
)  # fmt: skip
def test_an_edge_is_written_in_full_with_at_most_six_more_decimals(bins: int, second: str) -> None:
    """2048 parts need four decimals to differ, and their edges have eleven."""
    assert Range(0, 1, bins).texts[1] == f"[{second})"


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.integers(1, 400), st.data())
def test_labels_of_parts_are_true_and_no_two_alike(
    low: int, width: int, bins: int, data: st.DataObject
) -> None:
    scale = 10 ** data.draw(st.integers(-9, 9))
    domain = Range(float(f"{low}e-3") / scale, float(f"{low}e-3") / scale + width / scale, bins)
    texts = domain.texts
    assert len(set(texts)) == bins
    ends = [exact(domain.low), exact(domain.high)]
    assert None not in ends
    for i in {0, bins // 2, bins - 1}:
        edge = ends[0] + (ends[1] - ends[0]) * i / bins  # type: ignore[operator]
        said = texts[i][1:].split(",")[0]
        head = Fraction(Decimal(said.replace("…", "")))
        if "…" in said:
            last = Decimal(said.replace("…", "")).as_tuple().exponent
            assert 0 <= abs(edge) - abs(head) < Fraction(10) ** int(last)
        else:
            assert edge == head
        assert domain.index(edge) == i


@pytest.mark.parametrize(
    "value",
    [None, float("nan"), np.float32("nan"), np.datetime64("NaT"), pd.NA, pd.NaT, "", " \t",
     "\u00a0", Decimal("nan"), Decimal("snan"), pa.scalar(None), pa.scalar(""), np.str_(" ")],
    ids=repr,
)  # fmt: skip
def test_what_is_missing_is_no_value_even_where_others_have_a_label(value: Any) -> None:
    assert is_missing(value)
    for domain in (Labels(("a", "b"), "other"), Range(0, 1, 2, "other")):
        with pytest.raises(DomainError, match="missing or blank"):
            domain.index(value)


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("red", np.str_("red")), ("red", b"red"), ("red", np.bytes_(b"red")), ("red", Colour.RED),
        ("red", "\u2003red "), ("caf\u00e9", "cafe\u0301"), ("cafe\u0301", "caf\u00e9"),
        ("7", 7), ("7", 7.0), ("7", np.int8(7)), (7, "7"), (7, "7.0"), (7, np.float32(7)),
        ("7", Decimal("7.00")), ("1.10", Decimal("1.10")), ("1.1", Decimal("1.10")),
        ("0.3", np.float32(0.3)), ("2.5", 2.5), (1 << 53, float(1 << 53)),
        ("true", True), ("True", True), ("false", np.bool_(False)),
        ("2026-01-05", DAY), ("2026-01-05", pd.Timestamp(DAY)), ("2026-01-05", np.datetime64(DAY)),
        ("2026-01-05", np.datetime64("2026-01-05T00:00", "ns")), (str(UNIQUE), UNIQUE),
    ],
    ids=repr,
)  # fmt: skip
def test_a_label_is_found_by_its_text(label: Any, value: Any) -> None:
    assert Labels((label, -1)).index(value) == 0


@pytest.mark.parametrize("text", ["1.1", "2", "1E2", "10E1", "0100", "+1.9", "100.00", "1_9"])
def test_text_is_no_label_that_it_only_looks_like(text: str) -> None:
    assert Labels(("1.9", "1.10", "2.0", "100"), "older").index(text) is None


@pytest.mark.parametrize("text", ["1E2", "10E1", "0100", "+100", "100.00", "1e2"])
def test_an_integer_label_is_no_text_that_is_written_otherwise(text: str) -> None:
    assert Labels((100, 7)).index(text) is None
    assert whole(text) is None


@pytest.mark.parametrize("value", [object(), [1], {"a": 1}, 1j, pd.Interval(0, 1)])
def test_what_no_label_can_stand_for_is_never_one_of_the_others(value: Any) -> None:
    with pytest.raises(DomainError, match=f"got {type(value).__name__};") as caught:
        Labels(("a", "b"), "other").index(value)
    assert "0x" not in str(caught.value)
    assert Labels(("a", "b"), "other").index(b"\xff") is None


@pytest.mark.parametrize("labels", [("caf\u00e9", "cafe\u0301"), (1, "1"), ("\u212b", "\u00c5")])
def test_labels_that_look_alike_are_one(labels: tuple[Any, ...]) -> None:
    with pytest.raises(CampaignError, match="different"):
        Labels(labels)
    with pytest.raises(CampaignError, match="other must differ"):
        Labels(labels[:1], labels[1] if isinstance(labels[1], str) else str(labels[1]))


def test_parameters_are_taken_by_their_shortest_decimal() -> None:
    assert checks.real("eps", np.float32(0.3), 0, 1, "") == 0.3
    assert checks.integer("k", np.uint8(200), 0, 255, "") == 200
    for foreign in (np.bool_(True), True, "1", np.timedelta64(1, "s"), 1j):
        with pytest.raises(ValueError, match="must be a number"):
            checks.real("eps", foreign, 0, 1, "")


@pytest.mark.parametrize("number", ["1e401", "1e-401", "9" * 401, "1e999999999", "--1", "1 0", "٣"])
def test_what_is_no_plain_decimal_is_no_number(number: str) -> None:
    assert exact(number) is None


def test_a_document_of_foreign_scalars_is_the_one_of_plain_ones() -> None:
    def campaign(*, number: Any, small: Any, domain: Any) -> Campaign:
        return Campaign(
            name="x",
            protocol=loloha.GRR(k=number(2), eps=small(0.3)),
            domain=domain,
            schedule=Schedule(number(0), number(100)),
        )

    plain = campaign(number=int, small=float, domain=Labels((1, 2)))
    foreign = campaign(number=np.int8, small=np.float32, domain=Labels((np.int64(1), np.uint8(2))))
    assert foreign.to_json() == plain.to_json()
    parts = Range(np.float32(0.1), np.int8(1), np.int8(2))
    assert campaign(number=np.int16, small=np.float16, domain=parts).to_json() == (
        campaign(number=int, small=float, domain=Range(0.1, 1, 2)).to_json()
    )
    assert foreign.schedule.ends(np.int8(127)) == 12_800
    assert foreign.schedule.round_at(np.uint8(250)) == 2


def test_spellings_of_one_thing_are_one_identity() -> None:
    noon = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
    there = noon.astimezone(datetime.timezone(datetime.timedelta(hours=3)))
    far = datetime.datetime.max.replace(tzinfo=datetime.timezone(-datetime.timedelta(hours=3)))
    groups: list[list[Any]] = [
        ["Zu\u0308rich", " Z\u00fcrich ", np.str_("Z\u00fcrich"), pa.scalar("Z\u00fcrich")],
        [1, 1.0, Decimal("1.00"), np.int8(1), np.float32(1), Fraction(1), pa.scalar(1)],
        [0.3, Decimal("0.3"), np.float32("0.3"), Fraction(3, 10)],
        ["1"], [True, np.True_], [False], [math.inf, np.float64("inf")], [-math.inf],
        [noon, there, pa.scalar(noon)], [noon.replace(tzinfo=None)], [far], [DAY],
        [UNIQUE, str(UNIQUE)],
        [None, "", " ", math.nan, Decimal("nan"), pd.NaT, pd.NA, np.datetime64("NaT")],
    ]  # fmt: skip
    found = [{identity(value) for value in group} for group in groups]
    assert [len(group) for group in found] == [1] * len(groups)
    assert len(set.union(*found)) == len(groups)
    assert found[-1] == {None}


def test_a_moment_that_python_has_not_stays_as_it_is() -> None:
    for odd in (
        np.datetime64("12345-01-01"),
        np.datetime64(1, "ns"),
        pa.scalar(1, pa.timestamp("ns")),
    ):
        assert type(unboxed(odd)) is not int
    beyond = pa.scalar(1 << 62, pa.timestamp("s"))
    assert unboxed(beyond) is beyond
    assert unboxed(pa.scalar(5)) == 5
    assert is_missing(pa.scalar(None))
