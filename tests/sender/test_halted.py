"""A device whose campaign is paused or has ended: it drops what waits, and draws nothing more."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

from collecting import ADMIN_KEY, HOUR, START, Clock, campaign
from loloha.campaign import Schedule
from loloha.cli import main
from loloha.errors import CampaignError, StateError
from loloha.sender import Collector, Sender
from loloha.sender.connection import Answer, Connection
from loloha.sender.receipt import halted
from sending import ONCE, address, rounds
from serving import answering

OTHER = campaign("other")


def become(where: str, *states: str) -> None:
    with Collector(where, token=ADMIN_KEY, patience=ONCE) as collector:
        for state in states:
            collector.set_state(state)


@pytest.mark.parametrize(
    ("states", "said"),
    [(["paused"], "paused"), (["closed"], "ended"), (["closed", "deleted"], "ended")],
)
def test_it_drops_what_waits_and_draws_nothing(
    url: str, tmp_path: Path, clock: Clock, states: list[str], said: str
) -> None:
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        where = address(url)
        one.agree(where)
        one.report("a", round=0)
        one.report("b", round=1)
        become(where, *states)
        told = one.deliver()
        assert (told.campaign, told.sent, told.waiting) == (said, (), ())
        assert set(told.refused) == {0, 1}
        kept, loss = (tmp_path / "state").read_bytes(), one.loss
        assert one.report("c", round=2) is None
        assert one.report("a", round=0) is None
        assert one.loss == loss
        assert (tmp_path / "state").read_bytes() == kept
        assert one.deliver().campaign == said
    # It outlives the process, and a reset.
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        assert one.report("c", round=2) is None
        one.reset()
        assert one.report("c", round=3) is None


def test_a_paused_one_goes_on_when_it_is_resumed(url: str, tmp_path: Path, clock: Clock) -> None:
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        where = address(url)
        one.agree(where)
        one.report("a")
        become(where, "paused")
        one.deliver()
        become(where, "open")
        # Nobody has said so yet.
        clock.now = START + HOUR + 60
        assert one.report("a") is None
        assert one.deliver().campaign == "open"
        assert one.report("a") == 1
        assert one.deliver().sent == (1,)
        assert rounds(where)[-1] == (1, 1, 0)
        become(where, "paused")
        one.report("a", round=2)
        clock.now += HOUR
        assert one.deliver().campaign == "paused"
        become(where, "closed")
        assert one.deliver().campaign == "ended"


def test_an_end_is_for_ever(url: str, tmp_path: Path, clock: Clock) -> None:
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        one.agree(address(url))
        before = one._state.only()
        one.report("a")
        assert one._state.halt(before, "ended") == (0,)
        # Another thread asked before it was so, and is told late.
        for late in ("paused", None):
            assert one._state.halt(before, late) == ()
            assert one.deliver().campaign == "ended"


def test_a_late_answer_to_a_deleted_report_drops_nothing_that_came_after_it(
    url: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        where = address(url)
        one.agree(where)
        one.report("a", round=0)
        become(where, "paused")
        post = Connection.post

        def answered_late(self: Connection, *arguments: Any, **options: Any) -> Answer:
            answer = post(self, *arguments, **options)
            monkeypatch.undo()
            one.reset()
            assert one.report("b", round=1) == 1
            become(where, "open")
            return answer

        monkeypatch.setattr(Connection, "post", answered_late)
        assert set(one.deliver().refused) == {0}
        clock.now = START + HOUR + 60
        assert one.deliver().sent == (1,)


def test_others_of_the_agreement_go_on(url: str, tmp_path: Path, clock: Clock) -> None:
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        first, second = address(url), address(url, OTHER)
        one.agree(first, second, limit=99.0)
        one.report_all({"hours": "a", "other": "a"})
        become(first, "paused")
        told = one.deliver_all()
        assert {name: (each.campaign, each.sent) for name, each in told.items()} == {
            "hours": ("paused", ()),
            "other": ("open", (0,)),
        }
        clock.now = START + HOUR + 60
        assert one.report_all({"hours": "a", "other": "a"}) == {"hours": None, "other": 1}
        become(first, "open")
        told = one.deliver_all()
        assert {name: each.campaign for name, each in told.items()} == dict.fromkeys(told, "open")


def test_an_away_collector_changes_nothing(url: str, tmp_path: Path, clock: Clock) -> None:
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        where = address(url)
        one.agree(where)
        one.report("a")
        become(where, "paused")
        one.deliver()
    text = (tmp_path / "state").read_text()
    assert json.loads(text)["enrolments"][0]["halted"] == "paused"
    with Sender(tmp_path / "state", clock=clock, patience=ONCE, timeout=0.001) as one:
        assert one.deliver().campaign == "paused"
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        become(where, "open")
        assert one.deliver().campaign == "open"
    assert "halted" not in json.loads((tmp_path / "state").read_text())["enrolments"][0]


def test_the_command_says_why_nothing_is_reported(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, state = address(url), str(tmp_path / "state")
    become(where, "paused")
    line = ["report", "a", "--state", state, "--campaign", where, "--consent"]
    assert main([*line, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["campaign"] == "paused"
    assert main(line) == 0
    assert "is paused: nothing is drawn" in capsys.readouterr().err
    become(where, "open")
    assert main(line) == 0
    assert "goes on now: report again" in capsys.readouterr().err
    other = [str(tmp_path / "another") if one == state else one for one in line]
    assert main(other) == 1
    capsys.readouterr()
    become(where, "closed")
    assert main(other) == 1
    assert main(other) == 0
    assert "has ended: nothing is drawn" in capsys.readouterr().err


def test_only_the_word_for_it_counts() -> None:
    for told in ("open", "gone", 5, None, ["ended"], {"ended": 1}):
        assert halted(Answer(410, {}, json.dumps({"campaign": told}).encode())) is None
    for body in (b"[]", b"{", b'"ended"'):
        assert halted(Answer(410, {}, body)) is None


@pytest.mark.parametrize("said", [[], {}, None, 5, "gone", ["closed"], {"closed": 1}])
def test_a_state_that_is_none_changes_nothing(tmp_path: Path, clock: Clock, said: object) -> None:
    one = campaign()
    plain = (200, {}, json.dumps({"state": said}).encode())
    paused = {"type": "urn:loloha:problem:late", "status": 410, "title": "", "detail": ""}
    paused |= {"reason": "late", "campaign": "paused", "reporter": "0" * 32}
    refused = (410, {"Content-Type": "application/problem+json"}, json.dumps(paused).encode())
    with (
        pytest.MonkeyPatch.context() as patch,
        answering([(200, {}, one.to_json()), plain, refused, plain]) as (url, _),
        Sender(tmp_path / "state", clock=clock, patience=ONCE) as device,
    ):
        patch.setattr("loloha.client.Client.reporter", lambda *_: "0" * 32)
        device.agree(f"{url}/v1/campaigns/{one.fingerprint}")
        device.report("a")
        assert device.deliver().campaign == "paused"
        assert device.deliver().campaign == "paused"


def test_a_state_with_another_word_is_refused(url: str, tmp_path: Path, clock: Clock) -> None:
    from loloha.sender.agreement import Enrolment

    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        one.agree(address(url))
    plain = json.loads((tmp_path / "state").read_text())["enrolments"][0]
    for word in ("open", "", 5, ["ended"]):
        with pytest.raises(StateError):
            Enrolment.from_plain({**plain, "halted": word})


UNTIL = campaign("until", schedule=Schedule(START, 600, expires=START + 1500))


def test_from_its_end_date_on_it_draws_sends_and_keeps_nothing(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    other = campaign("other", schedule=Schedule(START, 600))
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        where, goes_on = address(url, UNTIL), address(url, other)
        one.agree(where, goes_on)
        one.report_all({"until": "a", "other": "a"}, round=0)
        # Nobody answers a round that begins after the end.
        assert one.report_all({"until": "a"}, round=3) == {"until": None}
        end = UNTIL.schedule.expires or 0
        clock.now = end - 1
        assert one.deliver_all()["until"].sent == (0,)
        one.report_all({"until": "b", "other": "b"}, round=1)
        clock.now, loss = end, one.loss
        assert one.report_all({"until": "c"}) == {"until": None}
        assert one.report_all({"until": "c"}, round=1) == {"until": None}
        assert one.loss == loss
        told = one.deliver_all()
        assert (told["until"].campaign, told["until"].sent) == ("ended", ())
        assert set(told["until"].refused) == {1}
        assert (told["other"].campaign, told["other"].sent) == ("open", (1,))
        assert [n for _, n, _ in rounds(where)] == [1]
        # A clock that was ahead may be set right.
        clock.now = START + 600
        assert one.report_all({"until": "c"}, round=2) == {"until": 2}
        clock.now = end
    with Sender(tmp_path / "another", clock=clock, patience=ONCE) as one:
        with pytest.raises(CampaignError, match="must not have ended, 'until' did at 2026"):
            one.agree(where)
        assert not one.consent


@pytest.mark.parametrize(
    "states",
    [
        ["closed"],
        pytest.param(["closed", "archived"], marks=pytest.mark.long),
        pytest.param(["closed", "deleted"], marks=pytest.mark.long),
    ],
)
def test_nobody_agrees_to_what_was_closed_by_hand(
    url: str, tmp_path: Path, clock: Clock, states: list[str]
) -> None:
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        where = address(url)
        become(where, "paused")
        # Goes on one day.
        one.agree(where)
        one.withdraw()
        become(where, "open", *states)
        with pytest.raises(CampaignError, match=f"must not have ended, .* is {states[-1]}; ask"):
            one.agree(where)
        assert not one.consent


def test_the_collector_ends_it_as_well(url: str, tmp_path: Path, clock: Clock) -> None:
    """A device whose clock is behind is told, and stops for ever."""
    behind = Clock(START)
    with Sender(tmp_path / "state", clock=behind, patience=ONCE) as one:
        where = address(url, UNTIL)
        one.agree(where)
        one.report("a")
        clock.now = UNTIL.schedule.expires or 0
        told = one.deliver()
        assert (told.campaign, set(told.refused)) == ("ended", {0})
        assert one.report("a", round=1) is None
        with Collector(where, token=ADMIN_KEY, patience=ONCE) as collector:
            assert collector.summary()["state"] == "closed"
            assert not collector.open_rounds()
            with pytest.raises(CampaignError, match="it is closed"):
                collector.set_state("open")
            assert collector.set_state("archived")["state"] == "archived"
