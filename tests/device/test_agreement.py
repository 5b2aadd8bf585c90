"""One limit over agreements and campaigns, what outlives them, and a clock that heals."""

import json
from pathlib import Path

import pytest

import loloha
from collecting import HOUR, START, Clock, campaign
from devices import HOURS, PAGES, sender, url
from loloha.device.client import KEPT_ROUNDS, Account, Client
from loloha.device.rounds import MOST_INTERVALS, are_rounds, holds, including
from loloha.device.sender import explain_all
from loloha.errors import BudgetError, CampaignError, LolohaError, ParameterError, StateError
from loloha.rules.report import LARGEST_ROUND

pytestmark = pytest.mark.usefixtures("collector")


# -- what was spent


def test_the_loss_outlives_withdrawals_and_resets(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        for cycle in range(3):
            one.agree(url(), limit=8.0)
            assert one.loss == 2.0 * cycle
            assert one.report("a") == 0
            assert one.withdraw()
            assert one.loss == 2.0 * (cycle + 1)
        one.agree(url(), limit=8.0)
        one.report("a")
        one.reset()
        assert one.loss == 8.0
        # 8 are spent: nothing new is drawn, whoever asks.
        assert one.report("a") is None
        one.withdraw()
    with sender(tmp_path / "state", clock) as one:
        assert one.loss == 8.0
        with pytest.raises(ParameterError, match="with the 8 that were spent before"):
            one.agree(url(), limit=8.0)
        assert not one.consent
        one.agree(url(), limit=10.0)
        assert one.report("a") == 0


def test_a_new_start_may_wait_for_the_next_round(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        for round in (0, 1, 5):
            one.report("a", round=round)
        assert "not answered again" in one.reset(wait=True)
        assert one.report("b", round=1) == 1
        assert one.loss == 6.0 - 4.0
        one.report("b", round=2)
        assert "twice" in one.reset()
        assert one.report("b", round=2) == 2
        one.withdraw()
        one.agree(url(), wait=True)
        spent = one.loss
        for round in (0, 1, 2, 5):
            assert one.report("c", round=round) == round
        assert one.loss == spent
        assert one.report("c", round=3) == 3
        assert one.loss == spent + 2.0


def test_a_client_goes_on_from_an_account() -> None:
    client = HOURS.protocol.client(limit=4.0)
    client.report(0, round=3)
    assert client.account == Account(2.0, ((3, 3),))
    later = Client(HOURS.protocol, limit=4.0, account=client.account)
    assert (later.loss, later.has_answered(3), later.has_answered(2)) == (2.0, True, False)
    with pytest.raises(StateError, match="was not answered"):
        later.report(0, round=3)
    later.report(0, round=4)
    with pytest.raises(BudgetError):
        later.report(1, round=5)


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
        assert one.agree(url(HOURS), url(PAGES), limit=5.0) == HOURS
        assert one.campaigns == {"hours": HOURS, "pages": PAGES}
        assert one.report_all({"pages": "a", "hours": "b"}) == {"pages": 0, "hours": 0}
        assert one.loss == 4.0
        # A value that was answered before costs nothing; another does not fit any more.
        assert one.report_all({"hours": "b", "pages": "a"}, round=1) == {"hours": 1, "pages": 1}
        assert one.report_all({"hours": "c"}, round=2) == {"hours": None}
        assert one.loss == 4.0
        delivered = one.deliver_all()
        assert {name: each.sent for name, each in delivered.items()} == {
            "hours": (0, 1), "pages": (0, 1),
        }  # fmt: skip
    with sender(tmp_path / "state", clock) as one:
        assert (one.loss, one.limit) == (4.0, 5.0)
        assert one.agree(url(PAGES), url(HOURS)) == HOURS
        said = one.reset()
        assert "2 campaigns" in said
        assert "The 4 spent" in said
        assert one.report_all({"hours": "a"}, round=9) == {"hours": None}


def test_what_all_campaigns_reveal_together_is_said() -> None:
    one = explain_all([HOURS])
    assert "hours: one of 5 values, every hour" in one
    assert "e^1 = 2.718; all reports of a value that never changes, for ever, by at most" in one
    assert "at most 10 can be spent, the cap" in one
    assert "together" not in one
    both = explain_all([HOURS, PAGES], limit=5.0)
    assert "The first report of each, all of them known: a factor of at most e^2 = 7.389" in both
    assert "all reports of values that never change: e^4 = 54.6" in both
    assert "at most 5 can be spent, the limit that is agreed on" in both
    assert "the cap" in explain_all([HOURS], limit=50.0)
    fresh = campaign("fresh", protocol=loloha.GRR(k=5, eps=1.0))
    assert "no most that can be spent" in explain_all([fresh, HOURS])
    assert "no bound for ever" in explain_all([fresh, HOURS])
    with pytest.raises(ParameterError, match="at least one"):
        explain_all([])


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
        with pytest.raises(ParameterError, match=r"limit must be a number in \[4, inf\]"):
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
        for _ in range(3 * KEPT_ROUNDS):
            one.report("a")
            # Rounds that are skipped must not use up the gaps that are remembered.
            clock.now += 2 * HOUR
        ahead = one.answered
        assert min(ahead) > 80_000
        clock.now = START + HOUR
        for round in range(1, 2 * KEPT_ROUNDS):
            assert one.report("b") == round
            clock.now += HOUR
        assert max(one.answered) == 2 * KEPT_ROUNDS - 1
        assert one.loss == 4.0
    with sender(tmp_path / "state", clock) as one:
        client = one._state.agreed().enrolments[0].client
        assert all(client.has_answered(round) for round in (*range(2 * KEPT_ROUNDS), *ahead))
        assert not client.has_answered(2 * KEPT_ROUNDS)


def test_a_device_that_begins_ahead_of_time_heals(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        clock.now = START + 10 * 365 * 24 * HOUR
        for _ in range(2 * KEPT_ROUNDS):
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
