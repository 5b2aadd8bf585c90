"""What would go, shown without drawing, keeping or sending anything."""

import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import loloha
from collecting import HOUR, START, Clock, campaign
from devices import FRESH, HOURS, PAGES, sender, url
from faulty import Collector
from loloha.campaign import Campaign
from loloha.cli import main
from loloha.conform import case
from loloha.encodings.part import ANSWER_WORDS
from loloha.errors import BudgetError, ParameterError, StateError
from loloha.sender import Preview, Sender, preview
from loloha.sender.consent_text import factor
from loloha.sender.preview import _listed, _words, example

VARIANTS = {one.fingerprint: one for one in case.variants() if one.k == 3}


def test_a_few_labels_are_listed() -> None:
    ten = [str(place) for place in range(10)]
    for places, parts in (([], None), ([7], ["7"]), (range(10), ten), (range(11), [*ten, "..."])):
        quoted = None if parts is None else ", ".join(p if p == "..." else f'"{p}"' for p in parts)
        assert _listed(str, places) == ("" if quoted is None else f" ({quoted})")


@pytest.mark.parametrize("protocol", [loloha.OLH(k=5, eps=1.0), PAGES.protocol], ids=repr)
def test_it_says_whether_a_key_lasts(protocol: loloha.Protocol) -> None:
    (key,) = [
        line for line in _words(example(campaign(protocol=protocol), 0)) if line[:4] == "key:"
    ]
    assert ("join" in key, "anew" in key) == (protocol.longitudinal, not protocol.longitudinal)


def untouched(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_it_is_the_report_that_goes(tmp_path: Path, clock: Clock, collector: Collector) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
        before = untouched(tmp_path)
        waiting = one.preview()
        assert (waiting.kind, waiting.round, waiting.reason) == ("queued", 0, "")
        assert waiting.url == url()
        assert f"They go to {url()}/reports." in waiting.text
        assert "thrown away" not in waiting.text
        assert waiting == one.preview() == one.preview(HOURS, round=0)
        assert untouched(tmp_path) == before
        assert collector.left == []
        one.deliver()
        assert collector.left == [(0, waiting.message.decode())]
        gone = one.preview()
        assert (gone.kind, gone.message) == ("answered", waiting.message)


def test_an_example_is_of_nobody(tmp_path: Path, clock: Clock, collector: Collector) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url(), url(PAGES))
        one.report_all({"hours": "a", "pages": "a"})
        before = untouched(tmp_path)
        own = json.loads(one.preview(PAGES).message)
        for _ in range(20):
            shown = one.preview(PAGES, round=1)
            plain = json.loads(shown.message)
            assert (shown.kind, shown.reason) == ("example", "")
            assert plain["round"] == 1
            assert plain["reporter"] != own["reporter"]
            assert len(shown.message) == len(one.preview(PAGES).message)
        assert untouched(tmp_path) == before
        assert one.report_all({"pages": "a"}, round=1) == {"pages": 1}
        made = one.preview(PAGES, round=1)
        assert made.kind == "queued"
        assert json.loads(made.message)["key"] == own["key"]
        with pytest.raises(StateError, match="only one"):
            one.preview()
        with pytest.raises(ParameterError, match="round"):
            one.preview(PAGES, round=-1)


def test_no_consent_and_no_campaign_that_has_begun_is_needed(tmp_path: Path) -> None:
    with Sender(tmp_path / "state", clock=lambda: START - 9.0 * HOUR) as one:
        shown = one.preview(HOURS)
        assert (shown.kind, shown.round, shown.url) == ("example", 0, "")
        assert shown.reason == "The user has not agreed to this campaign."
        with pytest.raises(StateError, match="consent"):
            one.preview()
    assert {path.name for path in tmp_path.iterdir()} <= {"state.lock"}


def test_it_says_why_nothing_goes(
    tmp_path: Path, clock: Clock, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url(FRESH), limit=1.0)
        assert one.preview(round=1).reason == ""
        one.report("a")
        why = one.preview(round=1).reason
        with pytest.raises(BudgetError) as refused:
            one.report("a", round=1)
        assert why == str(refused.value)
        one._state.halt(one._state.only(), "paused")
        assert one.preview(round=1).reason.startswith("The campaign is paused")
        assert one.preview(round=0).kind == "answered"
        monkeypatch.setenv("DO_NOT_TRACK", "1")
        assert "DO_NOT_TRACK" in one.preview(round=1).reason
        assert "DO_NOT_TRACK" in one.preview(HOURS).reason


def test_a_round_whose_report_is_forgotten(
    tmp_path: Path, clock: Clock, collector: Collector
) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        for round in range(70):
            one.report("a", round=round)
        assert one.preview(round=3).kind == "queued"
        one.deliver()
        gone = one.preview(round=3)
        assert gone.kind == "example"
        assert "answered" in gone.reason


def campaign_of(fingerprint: str, keys: str = "drawn") -> Campaign:
    return case.campaign(VARIANTS[fingerprint], keys=keys)


@pytest.mark.parametrize("fingerprint", VARIANTS)
def test_it_says_what_each_member_means(fingerprint: str) -> None:
    campaign = campaign_of(fingerprint)
    for _ in range(5):
        shown = example(campaign, random.Random(1).randrange(99))
        title, message, *lines = shown.text.splitlines()
        assert "an example" in title
        assert message.encode() == shown.message
        members = json.loads(message).keys() - {"version"}
        said = {line[2:].partition(":")[0] for line in lines}
        assert members <= said
        assert not {"key", "ticket"} & said - members
        assert f"{len(shown.message)} bytes" in shown.text
        assert f"at most {factor(campaign.protocol.asked_first)}." in shown.text
        assert f"taken from the {campaign.protocol.k} at random" in shown.text
        assert ("its own reporter, key and answer" in shown.text) == ("key" in members)
        assert repr(shown) == f"Preview(kind='example', round={shown.round}, report hidden)"
        assert shown.to_dict()["message"] == message


def test_a_ticket_is_none() -> None:
    fingerprint = next(
        name for name, one in VARIANTS.items() if one.longitudinal and one.encoding.key_bits
    )
    shown = example(campaign_of(fingerprint, "assigned"), 0)
    assert json.loads(shown.message)["ticket"] == "0" * 32
    assert "zeros stand for it here" in shown.text


SUPPORTED: list[tuple[loloha.Protocol, Any, Any, list[str]]] = [
    (loloha.GRR(k=3, eps=1.0), None, 2, ['value "label 2"']),
    (
        loloha.SUE(k=10, eps=1.0),
        None,
        b"\x81\x02",
        ["each of 10 values, 3 of", '("label 0", "label 7", "label 9")'],
    ),
    (
        # Seed 6 is 110 in base 2: the parity of the digits of a value but the last.
        loloha.BLH(k=5, eps=1.0),
        6,
        1,
        ["cell 1 of 2, which holds 3 of 5", '("label 2", "label 3", "label 4")'],
    ),
    (
        loloha.DBitFlipPM(k=6, eps_inf=1.0, b=3, d=2),
        (0, 2),
        b"\x02",
        ["2 buckets of 3", "1 of them set", '("label 4 … label 5")'],
    ),
    (loloha.OneBit(k=4, eps_inf=2.0, eps_1=1.0), 2, 1, ['at least "label 2"']),
    (loloha.OneBit(k=4, eps_inf=2.0, eps_1=1.0), 2, 0, ['below "label 2"']),
    (loloha.OneBit(k=4, eps_inf=2.0, eps_1=1.0, target="mean"), None, 1, ["at least a thres"]),
    (loloha.OneBit(k=4, eps_inf=2.0, eps_1=1.0, target="mean"), None, 0, ["below a threshold"]),
]


@pytest.mark.parametrize(("protocol", "key", "y", "parts"), SUPPORTED)
def test_an_answer_names_the_values_that_it_supports(
    protocol: loloha.Protocol, key: Any, y: Any, parts: list[str]
) -> None:
    words = " / ".join(ANSWER_WORDS.required(protocol.encoding)(case.campaign(protocol), key, y))
    assert [part for part in parts if part not in words] == [], words


def test_the_values_of_a_cell_are_listed_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "MOST_HASHED", 5)
    for k in (5, 6):
        text = example(case.campaign(loloha.BLH(k=k, eps=1.0)), 0).text
        assert ("which holds" in text) == (k == 5)


def test_rounds_beyond_the_calendar_and_hashes_of_large_domains_are_explained() -> None:
    assert "round: 9007199254740991." in example(HOURS, (1 << 53) - 1).text
    last = replace(HOURS.schedule, expires=None).last
    assert f"round: {last}, which begins at" in example(HOURS, last).text
    assert f"round: {last + 1}." in example(HOURS, last + 1).text
    from loloha.campaign import Range, Schedule
    from loloha.protocols import BiLOLOHA

    large = Campaign(
        name="large",
        protocol=BiLOLOHA(k=1 << 20, eps_inf=2.0, eps_1=1.0),
        domain=Range(0, 1, 1 << 20),
        schedule=Schedule(0, 60),
    )
    assert ", which holds" not in example(large, 0).text


# -- on the command line


@pytest.fixture
def document(tmp_path: Path) -> str:
    (tmp_path / "campaign.json").write_bytes(HOURS.to_json())
    return str(tmp_path / "campaign.json")


def previews(capsys: pytest.CaptureFixture[str], *line: str) -> list[dict[str, str]]:
    assert main(["report", "--preview", "--json", *line]) == 0
    shown: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return shown


def test_the_command_needs_no_state(
    tmp_path: Path, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["--state", str(tmp_path / "state"), "--campaign", document]
    (one,) = previews(capsys, *line)
    assert (one["kind"], one["campaign"]) == ("example", "hours")
    assert main(["report", "--preview", *line]) == 0
    assert one["message"][:40] in capsys.readouterr().out
    # Not even a lock is made.
    assert [path.name for path in tmp_path.iterdir()] == ["campaign.json"]


def test_the_command_shows_what_waits(
    tmp_path: Path, collector: Collector, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Sender(tmp_path / "state") as one:
        one.agree(url(), url(PAGES))
        one.report_all({"hours": "a", "pages": "a"})
        kept = [one.preview(HOURS), one.preview(PAGES)]
    line = ["--state", str(tmp_path / "state")]
    before = untouched(tmp_path)
    shown = previews(capsys, *line)
    assert [one["message"] for one in shown] == [one.message.decode() for one in kept]
    assert [one["kind"] for one in shown] == ["queued", "queued"]
    (only,) = previews(capsys, *line, "--campaign", url(PAGES))
    assert only == shown[1]
    (file,) = previews(capsys, *line, "--campaign", document)
    assert file == shown[0]
    assert untouched(tmp_path) == before
    assert collector.left == []


def test_the_command_refuses_what_it_would_not_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["report", "--preview", "--state", str(tmp_path / "state")]
    for more in (["a"], ["--consent"], ["--withdraw"], ["--limit", "3"], ["--no-wait"]):
        assert main([*line, *more]) == 2
    assert main(line) == 1
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    assert main([*line, "--campaign", url()]) == 2
    assert "as a file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_it_needs_the_standard_library_alone() -> None:
    script = (
        "import sys; from loloha.sender.preview import _listed, example; import loloha.campaign\n"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_report_is_not_printed() -> None:
    shown = example(HOURS, 1)
    assert isinstance(shown, Preview)
    assert json.loads(shown.message)["reporter"] not in f"{shown!r} {shown}"
