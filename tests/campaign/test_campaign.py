"""The campaign document: what it accepts, how it is pinned, when its rounds begin."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError
from datetime import datetime
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loloha
from loloha.campaign import Campaign, Labels, Range, Schedule
from loloha.campaign.schedule import from_text, to_text
from loloha.errors import CampaignError, DomainError, ParameterError
from loloha.planning.accuracy_check import check_accuracy, require_strong_privacy, weaknesses
from loloha.server.estimate import variance

DAY = 86400
SCHEDULE = Schedule(from_text("2026-01-01T00:00:00Z"), 3600)


def campaign(**changes: Any) -> Campaign:
    parts: dict[str, Any] = {
        "name": "Hours of use",
        "protocol": loloha.OLOLOHA(k=4, eps_inf=2.0, eps_1=1.0),
        "domain": Labels(("none", "some", "many"), other="unknown"),
        "schedule": SCHEDULE,
    }
    return Campaign(**{**parts, **changes})


def test_document_survives_a_round_trip_and_keeps_its_fingerprint() -> None:
    for one in (
        campaign(),
        campaign(domain=Labels((1, 2, 3, "vier"))),
        campaign(domain=Range(0, 1.5, 4)),
        campaign(keys="assigned"),
    ):
        again = Campaign.from_json(one.to_json(), fingerprint=one.fingerprint)
        assert again == one
        assert again.to_json() == one.to_json()


def test_fingerprint_is_fixed_for_ever() -> None:
    # A release that changes this number cuts off every enrolled client.
    one = campaign(protocol=loloha.BiLOLOHA(k=4, eps_inf=2.0, eps_1=1.0))
    assert one.fingerprint == "aca6db0bf6b0de29f206f8f99a9171742797ff8b8e230c18c721d11c06bdee86"


def test_fingerprint_ignores_spelling_and_sees_every_change() -> None:
    one = campaign()
    document = one.to_dict()
    shuffled = json.dumps(dict(reversed(document.items())), indent=3)
    assert Campaign.from_json(shuffled).fingerprint == one.fingerprint
    shifted = {**document, "round": {"start": "2026-01-01T01:00:00+01:00", "seconds": 3600}}
    assert Campaign.from_dict(shifted).fingerprint == one.fingerprint
    others = [
        campaign(name="Hours of sleep"),
        campaign(protocol=loloha.OLOLOHA(k=4, eps_inf=2.0, eps_1=0.9)),
        campaign(protocol=loloha.OLOLOHA(k=4, eps_inf=2.0, eps_1=1.0, hash="affine")),
        campaign(domain=Labels(("none", "many", "some"), other="unknown")),
        campaign(domain=Labels(("none", "some", "many", "unknown"))),
        campaign(schedule=Schedule(SCHEDULE.start, 3601)),
        campaign(keys="assigned"),
    ]
    assert len({other.fingerprint for other in [one, *others]}) == len(others) + 1


def test_a_campaign_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        campaign().name = "another"  # type: ignore[misc]


def test_another_fingerprint_is_refused() -> None:
    with pytest.raises(CampaignError, match="agreed on"):
        Campaign.from_json(campaign().to_json(), fingerprint="0" * 64)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 2}, "version 2"),
        ({"version": True}, "version True"),
        ({"type": "other"}, "'other'"),
        ({"surprise": 1}, "surprise"),
        ({"name": ""}, "name must be"),
        ({"name": "a\nb"}, "name must be"),
        ({"name": "\ud800"}, "name must be"),
        ({"name": 3}, "name must be"),
        ({"labels": ["a"]}, "k = 2"),
        ({"labels": ["a", "b", "a"]}, "different"),
        ({"labels": [1, "1", "2"]}, "different"),
        ({"labels": [True, 1, 2]}, "texts or integers"),
        ({"labels": [1.5, 1, 2]}, "texts or integers"),
        ({"labels": [10**300, 1, 2]}, "label must be"),
        ({"labels": ["unknown", "a", "b"]}, "other must differ"),
        ({"labels": "abcd"}, "labels must be a list"),
        ({"labels": {"range": [0, 1]}}, "labels must be a list"),
        ({"labels": {"range": [0, 1, 2], "bins": 3}}, "labels must be a list"),
        ({"labels": {"range": "01", "bins": 3}}, "labels must be a list"),
        ({"labels": {"range": [1, 1], "bins": 3}}, "low < high"),
        ({"labels": {"range": [0, float("nan")], "bins": 3}}, "high must be"),
        ({"labels": {"range": [0, 1], "bins": 0}}, "bins must be"),
        ({"labels": {"range": [0, 1], "bins": 7}}, "k = 8"),
        ({"round": {"start": "2026-01-01T00:00:00", "seconds": 1}}, "offset from UTC"),
        ({"round": {"start": "2026-01-01T00:00:00.5Z", "seconds": 1}}, "whole seconds"),
        ({"round": {"start": "1969-01-01T00:00:00Z", "seconds": 1}}, "start must be"),
        ({"round": {"start": 5, "seconds": 1}}, "start must be"),
        ({"round": {"start": "2026-01-01T00:00:00Z", "seconds": 0}}, "seconds must be"),
        ({"round": {"start": "2026-01-01T00:00:00Z", "seconds": 1.5}}, "seconds must be"),
        ({"round": {"start": "2026-01-01T00:00:00Z"}}, "round must be"),
        ({"keys": "chosen"}, "keys must be"),
        ({"protocol": []}, "protocol must be an object"),
        ({"protocol": {"type": "ololoha", "version": 1, "k": 4}}, "missing eps_1, eps_inf"),
    ],
)
def test_a_bad_document_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(CampaignError, match=says):
        Campaign.from_dict({**campaign().to_dict(), **change})


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"null", b"[" * 100_000])
def test_what_is_no_document_is_refused(text: bytes) -> None:
    with pytest.raises(CampaignError):
        Campaign.from_json(text)


def test_a_missing_field_is_refused() -> None:
    for field in campaign().to_dict().keys() - {"keys", "other"}:
        document = campaign().to_dict()
        del document[field]
        with pytest.raises(CampaignError):
            Campaign.from_dict(document)


def test_only_permanent_keys_can_be_assigned() -> None:
    for protocol in (loloha.OLH(k=4, eps=1.0), loloha.RAPPOR(k=4, eps_inf=2.0, eps_1=1.0)):
        with pytest.raises(CampaignError, match="'drawn'"):
            campaign(protocol=protocol, keys="assigned")


def test_labels_become_indices_and_others_go_last() -> None:
    one = campaign()
    assert [one.index(label) for label in ("none", "some", "many")] == [0, 1, 2]
    assert one.index("a surprise") == one.index(7) == 3
    assert one.labels == ["none", "some", "many", "unknown"]
    assert campaign(domain=Labels((3, 5, 7, 9))).index("5") == 1


def test_a_value_outside_is_refused_and_not_shown() -> None:
    strict = campaign(domain=Labels((3, 5, 7, 9)))
    for value in ("secret", 4, None):
        with pytest.raises(DomainError) as caught:
            strict.index(value)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_range_is_cut_exactly() -> None:
    hours = campaign(domain=Range(0, 24, 4))
    assert hours.labels == ["[0, 6)", "[6, 12)", "[12, 18)", "[18, 24]"]
    expected = {0: 0, 5.999: 0, 6: 1, "6": 1, "17.5": 2, 18: 3, 24: 3, "24.0": 3}
    assert {value: hours.index(value) for value in expected} == expected
    for outside in (-0.001, 24.001, float("nan"), float("inf"), "x", None, True, "1e999999999"):
        with pytest.raises(DomainError):
            hours.index(outside)


def test_a_range_asks_for_a_number_of_it_and_not_for_the_label_of_a_part() -> None:
    hours = campaign(domain=Range(0, 24, 4))
    for value in (hours.labels[1], 25):
        with pytest.raises(DomainError, match="value must be a number from 0 to 24, got another"):
            hours.index(value)
    with pytest.raises(DomainError, match="value must be one of the campaign's labels, got"):
        campaign(domain=Labels((3, 5, 7, 9))).index("secret")


@given(st.integers(1, 60), st.integers(0, 10**6))
def test_every_number_lies_in_the_part_that_its_index_names(bins: int, step: int) -> None:
    low, high = -1.7, 3.1
    domain = Range(low, high, bins)
    value = low + (high - low) * step / 10**6
    index = domain.index(value)
    if value > high:
        assert index is None
        return
    assert index is not None
    # Decimals, not what the floats come to in binary.
    width = Fraction("4.8") / bins
    assert Fraction("-1.7") + index * width <= Fraction(str(value))
    assert index == bins - 1 or Fraction(str(value)) < Fraction("-1.7") + (index + 1) * width


def test_equal_ranges_have_one_fingerprint() -> None:
    assert campaign(domain=Range(0, 4, 4)).fingerprint == (
        campaign(domain=Range(0.0, 4.0, 4)).fingerprint
    )


def test_buckets_are_named_by_their_first_and_last_label() -> None:
    protocol = loloha.DBitFlipPM(k=5, eps_inf=2.0, b=2, d=1)
    one = campaign(protocol=protocol, domain=Labels(tuple("abcde")))
    assert one.bin_labels == ["a … c", "d … e"]


@pytest.mark.parametrize(
    "domain",
    [
        Labels(tuple("abcdefg")),
        Labels(tuple("abcdef"), other="?"),
        Range(0, 7, 7),
        Range(-1, 2.5, 6, other="?"),
        Range(0.1, 0.8, 7),
    ],
)
def test_labels_are_the_same_one_by_one(domain: Labels | Range) -> None:
    assert [domain.text(v) for v in range(domain.k)] == domain.texts
    for b in range(2, 8):
        protocol = loloha.DBitFlipPM(k=7, eps_inf=2.0, b=b, d=1)
        one = campaign(protocol=protocol, domain=domain)
        held = [[] for _ in range(b)]
        for v, text in enumerate(domain.texts):
            held[protocol.encoding.bin(v)].append(text)
        expected = [part[0] if len(part) == 1 else f"{part[0]} … {part[-1]}" for part in held]
        assert one.bin_labels == expected


def test_rounds_change_at_midnight() -> None:
    daily = Schedule(from_text("2026-01-01T00:00:00Z"), DAY)
    midnight = from_text("2026-03-01T00:00:00Z")
    assert daily.round_at(midnight - 1) == 58
    assert daily.round_at(midnight - 1e-6) == 58
    assert daily.round_at(midnight) == 59
    assert daily.round_at(daily.start - 1) == -1
    assert daily.ends(58) == daily.begins(59) == midnight


def test_rounds_do_not_notice_daylight_saving() -> None:
    # In Paris 2026-03-29 has 23 hours; 24 rounds of an hour are still 24 rounds.
    paris = ZoneInfo("Europe/Paris")
    hourly = Schedule(from_text("2026-03-28T00:00:00+01:00"), 3600)
    before = datetime(2026, 3, 29, 0, 0, tzinfo=paris).timestamp()
    after = datetime(2026, 3, 30, 0, 0, tzinfo=paris).timestamp()
    assert hourly.round_at(after) - hourly.round_at(before) == 23
    assert hourly.round_at(before) == 24


@given(st.integers(0, 10**10), st.integers(1, 10**6), st.floats(0, 1e10))
def test_a_moment_lies_within_its_round(start: int, seconds: int, moment: float) -> None:
    schedule = Schedule(start, seconds)
    round = schedule.round_at(moment)
    assert schedule.begins(round) <= moment < schedule.ends(round)


@given(st.integers(0, 10**11))
def test_moments_survive_as_text(seconds: int) -> None:
    assert from_text(to_text(seconds)) == seconds
    assert datetime.fromisoformat(to_text(seconds)).timestamp() == seconds


def test_weak_privacy_has_to_be_accepted() -> None:
    assert weaknesses(campaign().protocol) == ()
    require_strong_privacy(campaign())
    for protocol in (
        loloha.BiLOLOHA(k=4, eps_inf=5.5, eps_1=1.0),
        loloha.GRR(k=4, eps=1.0),
    ):
        weak = campaign(protocol=protocol)
        with pytest.raises(CampaignError, match="accept it explicitly"):
            require_strong_privacy(weak)
        require_strong_privacy(weak, accept_weak_privacy=True)


def test_an_accuracy_check_says_what_can_be_seen() -> None:
    one = campaign()
    seen = check_accuracy(one, 10_000)
    assert seen.standard_error == pytest.approx(variance(one.protocol, 10_000) ** 0.5)
    assert seen.error_95 == pytest.approx(1.959964 * seen.standard_error)
    assert seen.error_95 < seen.visible < 1
    assert seen.warnings == ()
    assert "no frequency at all" in check_accuracy(one, 3).warnings[0]
    assert "average frequency" in check_accuracy(one, 100).warnings[0]
    assert check_accuracy(campaign(protocol=loloha.GRR(k=4, eps=1.0)), 10).to_dict()["cap"] is None
    with pytest.raises(ParameterError):
        check_accuracy(one, 0)


def test_a_device_reads_a_campaign_with_the_standard_library_alone() -> None:
    script = "import sys, loloha.campaign; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_numbers_of_a_domain_are_the_middles_of_its_parts() -> None:
    assert Range(0, 24, 96).scale == (0.125, 0.25, 0.125)
    assert Range(-0.1, 0.2, 3).scale == pytest.approx((-0.05, 0.1, 0.05))
    assert Labels((3, 5, 7)).scale == Labels(("3", "5", "7")).scale == (3.0, 2.0, 0.0)
    for other in (
        Labels((1, 2, 4)), Labels((3, 2, 1)), Labels(("a", "b")), Labels((1, 2), other="else"),
        Range(0, 1, 5, other="else"), Labels((1, 1_000, 1_999_000)),
    ):  # fmt: skip
        assert other.scale is None


def test_an_end_date_ends_rounds_and_changes_no_other_document() -> None:
    plain = Schedule(100, 10)
    assert "expires" not in plain.to_dict()
    assert plain.takes(plain.last, 1e15)
    # The round that it falls into is the last one; at the beginning of a round it takes none more.
    for expires, last in ((101, 0), (110, 0), (111, 1), (120, 1), (125, 2)):
        schedule = Schedule(100, 10, expires=expires)
        assert schedule.last == last
        assert Schedule.from_dict(schedule.to_dict()) == schedule
        assert (schedule.takes(last, expires - 0.5), schedule.takes(0, expires)) == (True, False)
        assert not schedule.takes(last + 1, 0)
        assert (schedule.has_ended(expires - 0.5), schedule.has_ended(expires)) == (False, True)
    for wrong in (100, 0, -1, True, 1.5, "2027-01-01T00:00:00Z", 1 << 60):
        with pytest.raises(ParameterError, match="expires"):
            Schedule(100, 10, expires=wrong)  # type: ignore[arg-type]
    with pytest.raises(CampaignError, match="expires must be a moment"):
        Schedule.from_dict({**plain.to_dict(), "expires": None})


@pytest.mark.parametrize(
    ("change", "most"),
    [
        (lambda n: {"name": "n" * n}, 200),
        (lambda n: {"labels": ["a", "b", "c" * n], "other": "unknown"}, 200),
        (lambda n: {"other": "o" * n}, 200),
        (lambda n: {"round": {"start": "2026-01-01T00:00:00Z", "seconds": n}}, 366 * 86400),
        (lambda n: {"round": {**SCHEDULE.to_dict(), "every": n}}, 1 << 24),
        (lambda n: {"labels": {"range": [0, 1 << n], "bins": 3}}, 53),
    ],
    ids=["name", "label", "other", "seconds", "every", "range"],
)
def test_the_largest_that_a_document_may_hold(change: Any, most: int) -> None:
    document = campaign().to_dict()
    one = Campaign.from_dict(document | change(most))
    assert Campaign.from_json(one.to_json()) == one
    with pytest.raises(CampaignError):
        Campaign.from_dict(document | change(most + 1))


def test_rounds_of_which_one_is_asked_are_in_the_document() -> None:
    plain = SCHEDULE.to_dict()
    assert "every" not in plain
    assert Schedule.from_dict({**plain, "every": 2}).to_dict() == {**plain, "every": 2}
    for wrong in (1, 0, True, 2.0, None):
        with pytest.raises(ParameterError, match="every must be an integer"):
            Schedule.from_dict({**plain, "every": wrong})


def test_each_frequency_has_its_text() -> None:
    domain = Labels(tuple(range(5)), other="else")
    buckets = campaign(domain=domain, protocol=loloha.DBitFlipPM(k=6, b=4, d=2, eps_inf=1.0))
    values = [buckets.protocol.encoding.bin_values(bin) for bin in range(4)]
    for text, (first, last) in zip(buckets.bin_labels, values, strict=True):  # type: ignore[misc]
        ends = [buckets.labels[first], buckets.labels[last]]
        assert all(end in text for end in ends)
    assert sorted(v for first, last in values for v in range(first, last + 1)) == list(range(6))  # type: ignore[misc]
    mean = campaign(
        domain=domain, protocol=loloha.OneBit(k=6, eps_inf=2.0, eps_1=1.0, target="mean")
    )
    assert mean.bin_labels == ["mean"]
