"""One limit over agreements and campaigns, what outlives them, and a clock that heals."""

import json
import math
from pathlib import Path

import pytest

import loloha
from collecting import HOUR, START, Clock, campaign
from devices import FRESH, HOURS, PAGES, sender, url
from faulty import Collector
from loloha.client.answered import MOST_INTERVALS, are_rounds, holds, including
from loloha.client.client import STORED_ROUNDS, Account, Client
from loloha.errors import BudgetError, CampaignError, LolohaError, ParameterError, StateError
from loloha.report import LARGEST_ROUND
from loloha.sender import consent_text, explain_all

pytestmark = pytest.mark.usefixtures("collector")


# -- what was spent


def test_the_loss_outlives_withdrawals_and_resets(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        for cycle in range(3):
            one.agree(url(), limit=40.0)
            assert (one.loss, one.committed) == (2.0 * cycle, 10.0 * (cycle + 1))
            assert one.report("a", round=cycle) == cycle
            assert f"the {one.loss:g} spent so far" in one.withdraw()
            assert (one.loss, one.committed) == (2.0 * (cycle + 1), 10.0 * (cycle + 1))
        one.agree(url(), limit=40.0)
        one.report("a", round=3)
        before = (tmp_path / "state").read_bytes(), (tmp_path / "state.spent").read_bytes()
        # Four caps are committed: there is none for another user.
        with pytest.raises(BudgetError, match="limit must cover 50 for a new user, with the 40 of"):
            one.reset()
        after = (tmp_path / "state").read_bytes(), (tmp_path / "state.spent").read_bytes()
        assert (one.loss, after) == (8.0, before)
        # But this one reports for ever.
        for round in range(4, 40):
            assert one.report("abcde"[round % 5], round=round) == round
        one.withdraw()
    with sender(tmp_path / "state", clock) as one:
        assert (one.loss, one.committed) == (16.0, 40.0)
        with pytest.raises(ParameterError, match="with the 40 of earlier enrolments"):
            one.agree(url(), limit=40.0)
        assert not one.consent
        one.agree(url(), limit=50.0)
        assert one.report("a", round=50) == 50
        with pytest.raises(ParameterError, match=r"limit must be a number in \[50, inf\]"):
            one.agree(url(), limit=49.0)


def test_a_sentence_quotes_the_whole_loss(tmp_path: Path, clock: Clock) -> None:
    """What was spent before an agreement is part of it; with one campaign, and with several."""
    with sender(tmp_path / "state", clock) as one:
        for round, urls in enumerate([[url()], [url()], [url(HOURS), url(PAGES)]]):
            one.agree(*urls)
            one.report_all(dict.fromkeys(one.campaigns, "a"), round=round)
            assert f"The {one.loss:g} spent so far stays spent" in one.reset()
            one.report_all(dict.fromkeys(one.campaigns, "a"), round=round + 10)
            assert f"the {one.loss:g} spent so far stays spent" in one.withdraw()
        assert one.loss == 16.0
        one.agree(url(FRESH))
        one.report("a", round=0)
        assert "17 spent so far stays spent" in one.reset()


def test_a_client_that_never_reported_commits_nothing(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        for _ in range(3):
            one.agree(url(), limit=10.0)
            one.withdraw()
            assert one.committed == 0.0
        one.agree(url(HOURS), url(PAGES), limit=14.0)
        one.report_all({"pages": "a"})
        one.withdraw()
        # That of the pages is what is left of the agreement.
        assert (one.loss, one.committed) == (2.0, 4.0)


def test_an_added_campaign_needs_memory(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url(HOURS), limit=20.0)
        one.report("a")
        with pytest.raises(CampaignError, match="withdraw and ask again"):
            one.agree(url(HOURS), url(PAGES), limit=20.0)
        one.withdraw()
        with pytest.raises(ParameterError, match=r"limit must be a number in \[24, inf\]"):
            one.agree(url(HOURS), url(PAGES), limit=20.0)
        one.agree(url(HOURS), url(PAGES), limit=24.0)
        # The round that was answered is left out, for its campaign alone.
        assert one.report_all({"hours": "b", "pages": "b"}) == {"hours": 0, "pages": 0}
        assert one.loss == 4.0


def test_one_round_rules_share_what_caps_leave(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        with pytest.raises(ParameterError, match=r"limit must be a number in \[5, inf\]"):
            one.agree(url(FRESH), url(PAGES), limit=4.9)
        one.agree(url(FRESH), url(PAGES), limit=6.5)
        for round in range(2):
            one.report_all({"fresh": "a", "pages": "abc"[round]}, round=round)
        before = (tmp_path / "state").read_bytes()
        with pytest.raises(BudgetError, match="one more report to 'fresh' would exceed it"):
            one.report_all({"pages": "a", "fresh": "a"}, round=2)
        assert (tmp_path / "state").read_bytes() == before
        for round in range(2, 30):
            assert one.report_all({"pages": "abcde"[round % 5]}, round=round) == {"pages": round}
        assert one.report_all({"fresh": "b", "pages": "a"}, round=1) == {"fresh": 1, "pages": 1}
        with pytest.raises(ParameterError, match=r"number in \[6, inf\]"):
            one.agree(url(FRESH), url(PAGES), limit=5.0)
        one.agree(url(FRESH), url(PAGES), limit=math.inf)
        assert one.limit is None
        one.report_all({"fresh": "a"}, round=2)


def test_what_cannot_be_agreed_to_draws_nothing(
    tmp_path: Path, clock: Clock, collector: Collector
) -> None:
    """Neither state nor ledger, and no key that a collector assigns."""
    assigned = campaign("assigned", keys="assigned")
    collector.campaigns[assigned.fingerprint] = assigned
    with sender(tmp_path / "state", clock) as one:
        with pytest.raises(ParameterError, match="limit must be"):
            one.agree(url(assigned), limit=1.0)
        assert not one.consent
    assert {path.name for path in tmp_path.iterdir()} <= {"state.lock"}


def old_state(path: Path, limit: float | None, spent_before: float = 0.0) -> None:
    """As release 0.2.0 wrote it: no checksum, nothing of what was committed."""
    plain = json.loads(path.read_bytes())
    del plain["checksum"]
    plain.pop("committed_before", None)
    path.write_text(json.dumps({**plain, "limit": limit, "spent_before": spent_before}))


@pytest.mark.parametrize(("limit", "spent_before"), [(2.0, 0.0), (9.0, 0.0), (99.0, 2.0)])
def test_a_state_of_0_2_0_asks_for_consent_anew(
    tmp_path: Path, clock: Clock, limit: float, spent_before: float
) -> None:
    """Its limit does not cover the cap, or it is not known what was committed before."""
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
    old_state(tmp_path / "state", limit, spent_before)
    before = json.loads((tmp_path / "state").read_bytes())
    with sender(tmp_path / "state", clock) as one:
        for value in "abcde":
            with pytest.raises(BudgetError, match="ask the user for consent anew"):
                one.report(value, round=1)
        with pytest.raises(BudgetError, match="consent anew"):
            one.reset()
        assert one.report("b", round=0) == 0
        assert one.loss == 2.0 + spent_before
        assert one.deliver().sent == (0,)
    with sender(tmp_path / "state", clock) as one:
        with pytest.raises(BudgetError, match="consent anew"):
            one.report("a", round=1)
        one.agree(url(), limit=10.0 + spent_before)
        assert one.committed == 10.0 + spent_before
    with sender(tmp_path / "state", clock) as one:
        for round in range(1, 30):
            assert one.report("abcde"[round % 5], round=round) == round
        client = json.loads((tmp_path / "state").read_bytes())["enrolments"][0]["client"]
        assert before["enrolments"][0]["client"]["memo"][0] in client["memo"]


def test_a_state_of_0_2_0_may_withdraw_and_keeps_its_ledger(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
    old_state(tmp_path / "state", 2.0)
    with sender(tmp_path / "state", clock) as one:
        one.withdraw()
        assert (one.loss, one.committed) == (2.0, 10.0)
    ledger = json.loads((tmp_path / "state.spent").read_bytes())
    # One of 0.2.0 says only what was spent.
    del ledger["committed"], ledger["checksum"]
    (tmp_path / "state.spent").write_text(json.dumps(ledger))
    with sender(tmp_path / "state", clock) as one:
        assert (one.loss, one.committed) == (2.0, 2.0)
        one.agree(url(), limit=12.0)
        assert one.report("b") == 0
        assert one.loss == 2.0


def test_a_new_start_may_wait_for_the_next_round(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        for round in (0, 1, 5):
            one.report("a", round=round)
        assert "not answered again" in one.reset()
        assert one.report("b", round=1) == 1
        assert one.loss == 6.0 - 4.0
        one.report("b", round=2)
        assert "twice" in one.reset(wait=False)
        assert one.report("b", round=2) == 2
        assert one.loss == 6.0
        one.withdraw()
        one.agree(url())
        spent = one.loss
        for round in (0, 1, 2, 5):
            assert one.report("c", round=round) == round
        assert one.loss == spent
        assert one.report("c", round=3) == 3
        assert one.loss == spent + 2.0
        one.withdraw()
        one.agree(url(), wait=False)
        assert one.report("c", round=3) == 3
        assert one.loss == spent + 4.0


def test_a_round_is_answered_once_through_five_withdrawals(
    tmp_path: Path, clock: Clock, collector: Collector
) -> None:
    with sender(tmp_path / "state", clock) as one:
        for _ in range(5):
            one.agree(url())
            one.report("a")
            one.deliver()
            one.withdraw()
    assert len(collector.left) == 1


def test_a_client_goes_on_from_an_account() -> None:
    client = HOURS.protocol.client(limit=10.0)
    client.report(0, round=3)
    assert client.account == Account(2.0, ((3, 3),), 10.0)
    with pytest.raises(ParameterError, match=r"in \[20, inf\].*the 10 of earlier enrolments"):
        Client(HOURS.protocol, limit=19.0, account=client.account)
    # Who knows only what was spent says so.
    Client(HOURS.protocol, limit=12.0, account=Account(2.0, ()))
    later = Client(HOURS.protocol, limit=20.0, account=client.account)
    assert (later.loss, later.has_answered(3), later.has_answered(2)) == (2.0, True, False)
    with pytest.raises(StateError, match="was not answered"):
        later.report(0, round=3)
    for round in range(4, 14):
        later.report(round % 5, round=round)
    assert (later.loss, later.committed) == (12.0, 20.0)


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"{}", b"[]", b"null", b"[" * 100_000, b'{"type":"loloha-spent","version":2}',
        *(
            json.dumps({"type": "loloha-spent", "version": 1, "spent": 0.0, "answered": {}, **bad})
            for bad in (
                {"spent": -1}, {"spent": float("inf")}, {"spent": float("nan")}, {"spent": "2"},
                {"spent": True}, {"answered": []}, {"answered": {"x": [[2, 1]]}},
                {"answered": {"x": [[0, 1], [2, 3]]}}, {"answered": {"x": [[-1, 3]]}},
                {"committed": -1}, {"committed": "2"}, {"committed": None},
                {"answered": {"x": [[0.0, 3]]}}, {"answered": {"x": [3]}}, {"answered": None},
            )
        ),
    ],
)  # fmt: skip
def test_a_damaged_ledger_is_refused(tmp_path: Path, clock: Clock, damage: bytes | str) -> None:
    (tmp_path / "state.spent").write_bytes(damage if isinstance(damage, bytes) else damage.encode())
    with sender(tmp_path / "state", clock) as one:
        with pytest.raises(StateError):
            one.agree(url())
        assert not one.consent


# -- several campaigns under one limit


def test_one_limit_bounds_the_sum_of_all_campaigns(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        assert one.agree(url(HOURS), url(PAGES), limit=14.0) == HOURS
        assert one.campaigns == {"hours": HOURS, "pages": PAGES}
        assert one.report_all({"pages": "a", "hours": "b"}) == {"pages": 0, "hours": 0}
        assert one.loss == 4.0
        # A value that was answered before costs nothing; another always fits.
        assert one.report_all({"hours": "b", "pages": "a"}, round=1) == {"hours": 1, "pages": 1}
        assert one.report_all({"hours": "c"}, round=2) == {"hours": 2}
        assert one.loss == 6.0
        delivered = one.deliver_all()
        assert {name: each.sent for name, each in delivered.items()} == {
            "hours": (0, 1, 2), "pages": (0, 1),
        }  # fmt: skip
    with sender(tmp_path / "state", clock) as one:
        assert (one.loss, one.limit) == (6.0, 14.0)
        assert one.agree(url(PAGES), url(HOURS)) == HOURS
        with pytest.raises(BudgetError, match="limit must cover 28 for a new user"):
            one.reset()
        one.agree(url(HOURS), url(PAGES), limit=28.0)
        said = one.reset()
        assert "2 campaigns" in said
        assert "The 6 spent" in said
        assert "up to 14 on top" in said
        assert one.report_all({"hours": "a"}, round=9) == {"hours": 9}


def test_the_joint_loss_of_all_campaigns_is_shown() -> None:
    one = explain_all([HOURS])
    assert "hours: one of 5 values, every hour" in one
    assert "e^1 = 2.718: of two that seemed equally likely one can then seem at most 73.2 %" in one
    assert "by at most e^2 = 7.389: at most 88.1 % likely" in one
    assert one.startswith("- Values stay on the device.")
    certain = explain_all([campaign(protocol=loloha.GRR(k=5, eps=700.0))])
    assert "one can then seem almost certain. Every" in certain
    assert "at most 10 can be spent, the cap" in one
    assert "together" not in one
    both = explain_all([HOURS, PAGES], limit=13.0)
    assert "a limit of 13 does not cover the 14" in both
    both = explain_all([HOURS, PAGES], limit=14.0)
    assert "all of them known: a factor of at most e^2 = 7.389" in both
    assert "all reports of values that never change: e^4 = 54.6" in both
    assert "at most 14 can be spent, the cap" in both
    assert "the cap" in explain_all([HOURS], limit=50.0)
    assert "no most that can be spent" in explain_all([FRESH, HOURS])
    assert "no bound for ever" in explain_all([FRESH, HOURS])
    limited = explain_all([FRESH, HOURS], limit=20.0)
    assert "at most 20 can be spent, the limit that is agreed on" in limited
    assert "does not cover the 11" in explain_all([FRESH, HOURS], limit=10.9)
    with pytest.raises(ParameterError, match="at least one"):
        explain_all([])


def test_what_was_reported_to_before_is_added_to_what_comes() -> None:
    both = explain_all([HOURS], after=[PAGES])
    assert "After pages: what was spent there stays spent" in both
    assert "never change: a factor of at most e^4 = 54.6; at most 14 can be spent in all" in both
    assert "After fresh, pages: " in (last := explain_all([HOURS], after=[FRESH, PAGES]))
    assert "In all there is no bound for ever" in last
    assert "e^4" not in last
    assert "After" not in explain_all([HOURS])


def test_factors_and_times_are_in_words() -> None:
    """Odds are rounded up: 1 / (1 + e^-6.9) is .99899, and .9990025 of 6.91."""
    likely = [consent_text.belief(eps) for eps in (0.0, 1.0, 6.9, 6.91)]
    parts = ["50.0", "73.2", "99.9"]
    assert likely == [*(f"at most {part} % likely" for part in parts), "almost certain"]
    assert [consent_text.factor(eps) for eps in (0.0, 699.9, 700.0)] == [
        "e^0 = 1", "e^699.9 = 9.177e+303", "e^700"
    ]  # fmt: skip
    times = [1, 59, 60, 90, 5400, 3600, 7200, 86_400, 90_000, 172_800]
    assert [consent_text.span(seconds) for seconds in times] == [
        "second", "59 seconds", "minute", "90 seconds", "90 minutes", "hour", "2 hours", "day",
        "25 hours", "2 days",
    ]  # fmt: skip


def test_all_are_queued_or_none(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url(HOURS), url(PAGES))
        for bad in ({"hours": "a", "pages": "z"}, {"hours": "a", "others": "a"}):
            with pytest.raises((LolohaError, ParameterError)):
                one.report_all(bad)
        assert one.loss == 0
        assert all(not each.queue for each in one._state.agreed().enrolments)
        for act in (lambda: one.report("a"), one.deliver, lambda: one.campaign):
            with pytest.raises(StateError, match="the only one, the user agreed to 2"):
                act()


def test_an_agreement_is_to_different_campaigns(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        for wrong in ([], [url(), url()]):
            with pytest.raises(ParameterError, match="different campaigns"):
                one.agree(*wrong)
        with pytest.raises(ParameterError, match=r"limit must be a number in \[14, inf\]"):
            one.agree(url(HOURS), url(PAGES), limit=3.0)
        one.agree(url(HOURS), url(PAGES))
        with pytest.raises(CampaignError, match="which the user agreed to"):
            one.agree(url(HOURS))


def test_an_answered_round_checks_its_value_too(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
        with pytest.raises(LolohaError, match="value must"):
            one.report("z")


# -- clocks


def test_a_clock_that_was_years_ahead_heals(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
        clock.now = START + 10 * 365 * 24 * HOUR
        for _ in range(3 * STORED_ROUNDS):
            one.report("a")
            # Rounds that are skipped must not use up the gaps that are remembered.
            clock.now += 2 * HOUR
        ahead = one.answered
        assert min(ahead) > 80_000
        clock.now = START + HOUR
        for round in range(1, 2 * STORED_ROUNDS):
            assert one.report("b") == round
            clock.now += HOUR
        assert max(one.answered) == 2 * STORED_ROUNDS - 1
        assert one.loss == 4.0
    with sender(tmp_path / "state", clock) as one:
        client = one._state.agreed().enrolments[0].client
        assert all(client.has_answered(round) for round in (*range(2 * STORED_ROUNDS), *ahead))
        assert not client.has_answered(2 * STORED_ROUNDS)


def test_a_device_that_begins_ahead_of_time_heals(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        clock.now = START + 10 * 365 * 24 * HOUR
        for _ in range(2 * STORED_ROUNDS):
            one.report("a")
            clock.now += HOUR
        clock.now = START + 60
        before = one._state.agreed().enrolments[0].queue
        assert one.report("b") == 0
        assert 0 not in before


def test_rounds_are_a_set_that_only_grows() -> None:
    """Against a plain set: nothing is forgotten, and few gaps are lost, the shortest first."""
    import random

    draw = random.Random(7)
    for span in (30, 300, 10_000, LARGEST_ROUND):
        rounds, plain = (), set[int]()
        for _ in range(300):
            round = draw.choice([draw.randrange(span + 1), max(plain, default=0) + 1])
            round = min(round, LARGEST_ROUND)
            rounds = including(rounds, ((round, round),))
            plain.add(round)
            assert are_rounds(rounds, LARGEST_ROUND)
            assert all(holds(rounds, one) for one in plain)
        probes = {draw.randrange(span + 1) for _ in range(300)} - plain
        if len(rounds) < MOST_INTERVALS:
            assert not any(holds(rounds, one) for one in probes)
    wide = including((), tuple((10 * i, 10 * i) for i in range(MOST_INTERVALS)))
    assert len(wide) == MOST_INTERVALS
    closed = including(wide, ((633, 633),))
    assert holds(closed, 632)
    assert not holds(closed, 5)
    assert including(closed, wide) == closed
