"""``loloha campaign list, pause, resume, close, archive, delete`` against a real collector."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

from collecting import ADMIN_KEY, Clock, campaign
from loloha.cli import main
from loloha.collector.settings import Settings
from loloha.collector.store import store
from loloha.sender.collector import Collector
from serving import Served, create


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("LOLOHA_ADMIN_KEY", ADMIN_KEY)
    settings = Settings(store=f"sqlite:///{tmp_path / 'loloha.db'}", admin_key=ADMIN_KEY)
    with Served(settings, Clock()) as base:
        yield base + create(base, campaign())


def test_a_life(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    base = url.partition("/v1/")[0]
    for words, state in (
        (["pause"], "paused"),
        (["resume"], "open"),
        (["close", "--yes"], "closed"),
        (["archive", "--yes"], "archived"),
        (["delete", "--yes"], "deleted"),
    ):
        assert main(["campaign", words[0], url, *words[1:]]) == 0
        told = capsys.readouterr()
        assert f"is {state}" in told.err
        assert main(["campaign", "show", url]) == 0
        assert f"\n{state}, round " in capsys.readouterr().out
        assert main(["campaign", "list", base, "--archived"]) == 0
        listed = capsys.readouterr().out
        assert state in listed
        assert url in listed
        assert main(["campaign", "list", base, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert [one["state"] for one in shown] == [state] * (state in ("paused", "open", "closed"))
    assert main(["campaign", "resume", url]) == 1
    assert "it is deleted" in capsys.readouterr().err


def test_a_long_deletion_is_waited_for(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["campaign", "close", url, "--yes"]) == 0
    # The first request ends before anything is deleted.
    monkeypatch.setattr(store, "SECONDS_TO_DELETE", -1.0)
    go_on = Collector.set_state

    def ask(collector: Collector, state: str) -> object:
        answer = go_on(collector, state)
        monkeypatch.setattr(store, "SECONDS_TO_DELETE", 5.0)
        return answer

    monkeypatch.setattr(Collector, "set_state", ask)
    assert main(["campaign", "delete", url, "--yes"]) == 0
    told = capsys.readouterr().err
    assert "deleting takes a while" in told
    assert told.rstrip().endswith("is deleted")


def test_consequences_are_shown_before_an_end(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "close", url]) == 2
    told = capsys.readouterr().err
    assert "for ever" in told
    assert "--yes" in told
    assert main(["campaign", "list", url.partition("/v1/")[0]]) == 0
    assert "open" in capsys.readouterr().out


def test_a_second_open_campaign_of_a_name_is_told(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base = url.partition("/v1/")[0]
    line = ["campaign", "create", "twice", "--domain", "a,b", "--protocol", "biloloha"]
    line += ["--eps-inf", "2", "--eps-1", "1", "--to", base, "--start"]

    def create_at(year: int) -> tuple[str, str]:
        assert main([*line, f"{year}-01-01T00:00:00Z"]) == 0
        told = capsys.readouterr()
        return told.out.strip(), told.err

    first, said = create_at(2026)
    assert "this name" not in said
    # The same again is the same campaign.
    assert "this name" not in create_at(2026)[1]
    second, said = create_at(2027)
    assert f"this name: {first};" in said
    assert main(["campaign", "close", first, "--yes"]) == 0
    capsys.readouterr()
    said = create_at(2028)[1]
    assert second in said
    assert first not in said


def test_a_wrong_key_is_named(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOLOHA_ADMIN_KEY", "another")
    assert main(["campaign", "pause", url]) == 1
    assert "LOLOHA_ADMIN_KEY" in capsys.readouterr().err
    monkeypatch.delenv("LOLOHA_ADMIN_KEY")
    assert main(["campaign", "pause", url]) == 1
    assert "an admin key, got none" in capsys.readouterr().err
