"""Whose environment says that nothing is to be reported: nothing is drawn, sent or deleted."""

import json
from pathlib import Path
from typing import Any

import pytest

from collecting import Clock
from devices import HOURS, PAGES, sender, url
from faulty import Collector
from loloha.cli import main
from loloha.errors import ParameterError, StateError


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is set, and who so much as connects fails."""

    def connected(*_: Any, **__: Any) -> None:
        pytest.fail("connected, though DO_NOT_TRACK is set")

    for module in ("sender", "collector"):
        monkeypatch.setattr(f"loloha.sender.{module}.Connection", connected)
    monkeypatch.setenv("DO_NOT_TRACK", "1")


@pytest.mark.usefixtures("silent")
def test_nobody_agrees(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        assert one.opted_out
        assert one.agree(url(), url(PAGES), limit=99.0, token="a") is None
        with pytest.raises(ParameterError):
            one.agree("x")
        assert not one.consent
        with pytest.raises(StateError, match="consent"):
            one.report("a")
    assert {path.name for path in tmp_path.iterdir()} <= {"state.lock"}


def test_nothing_is_sent_or_deleted_of_who_had_agreed(
    tmp_path: Path, clock: Clock, collector: Collector, request: pytest.FixtureRequest
) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url(), url(PAGES))
        one.report_all({"hours": "a", "pages": "a"})
        kept = (tmp_path / "state").read_bytes()
        request.getfixturevalue("silent")
        silenced = one.report_all({"hours": "b", "pages": "b"}, round=1)
        assert silenced == {"hours": None, "pages": None}
        assert one.agree(url(), url(PAGES), limit=99.0) is None
        told = one.deliver_all()
        assert {(each.waiting, each.sent, each.refused == {}) for each in told.values()} == {
            ((0,), (), True)
        }
        assert all("DO_NOT_TRACK is set" in each.reason for each in told.values())
        assert (tmp_path / "state").read_bytes() == kept
        assert collector.left == []
        one.withdraw()
    assert not (tmp_path / "state").exists()


def test_a_paused_campaign_is_not_asked_about(
    tmp_path: Path, clock: Clock, collector: Collector, request: pytest.FixtureRequest
) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one._state.halt(one._state.only(), "paused")
        request.getfixturevalue("silent")
        assert one.deliver().campaign == "paused"


@pytest.mark.parametrize("text", ["", " ", "0", "false", "False"])
def test_it_goes_on_where_the_variable_says_no(
    tmp_path: Path, clock: Clock, collector: Collector, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    with sender(tmp_path / "state", clock) as one:
        monkeypatch.setenv("DO_NOT_TRACK", "yes")
        assert one.agree(url()) is None
        monkeypatch.setenv("DO_NOT_TRACK", text)
        assert one.agree(url()) == HOURS
        assert one.report("a") == 0
        assert one.deliver().sent == (0,)


@pytest.mark.usefixtures("silent")
def test_the_command_says_so_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["report", "a", "--state", str(tmp_path / "state"), "--campaign", url(), "--consent"]
    assert main(line) == 0
    out, said = capsys.readouterr()
    assert (out, said.count("\n")) == ("", 1)
    assert "DO_NOT_TRACK is set" in said
    assert "Unset it" in said
    assert main([*line, "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["sent"] == status["waiting"] == []
    assert "DO_NOT_TRACK is set" in status["reason"]


def test_the_command_keeps_what_waits(
    tmp_path: Path,
    clock: Clock,
    collector: Collector,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
    kept = (tmp_path / "state").read_bytes()
    request.getfixturevalue("silent")
    line = ["report", "b", "--state", str(tmp_path / "state")]
    assert main([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["waiting"] == [0]
    assert main(line) == 0
    assert (tmp_path / "state").read_bytes() == kept
    # To withdraw sends nothing, and is what a user may want now.
    assert main([*line[:1], *line[2:], "--withdraw"]) == 0
    assert not (tmp_path / "state").exists()
