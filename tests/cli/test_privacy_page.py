"""One page on campaigns: what it claims stands elsewhere, and what others wrote in it is text."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import loloha
from collecting import campaign
from loloha import privacy
from loloha.campaign import Campaign, Labels, Schedule
from loloha.cli import main
from loloha.cli.privacy_page import privacy_page
from loloha.conform import case
from loloha.sender import explain_all

HOURS = campaign("hours")
EVIL = Campaign(
    name="<script>alert(1)</script> | _x_ [a](b)",
    protocol=loloha.GRR(k=3, eps=1.0),
    domain=Labels(("<b>", "a|b", "`c`")),
    schedule=Schedule(0, 86400, every=30, expires=10**9),
)


class Page(HTMLParser):
    """Tags, what they would load, and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.loads: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [name for name, _ in attrs if name in ("src", "href", "style", "onload")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_a_user_reads_is_what_they_agree_to() -> None:
    for some, limit in (([HOURS], None), ([HOURS, EVIL], 60.0)):
        page = privacy_page(some, "user", limit=limit)
        sentences = {one for section in page.sections for one in section.sentences}
        assert {line[2:] for line in explain_all(some, limit=limit).splitlines()} <= sentences
        assert page.sections[0].sentences[0].startswith("Values stay on the device")


@pytest.mark.parametrize(
    "protocol",
    [
        pytest.param(variant, marks=[pytest.mark.long] * (place % 10 > 0))
        for place, variant in enumerate(one for one in case.variants() if one.k == 3)
    ],
    ids=lambda one: one.fingerprint[:8],
)
def test_an_officer_reads_all_that_is_known(protocol: loloha.Protocol) -> None:
    one = case.campaign(protocol)
    page = privacy_page([one], "officer")
    explanation = privacy.explain(protocol)
    sentences = {text for section in page.sections for text in section.sentences}
    assert {*explanation.protected, *explanation.leaks} <= sentences
    figures = {name: value for section in page.sections for name, value, _ in section.figures}
    assert figures["eps_1"] == f"{explanation.eps_1:.4g}"
    assert (figures["cap"] == "no bound") == (not protocol.longitudinal)
    assert "inf" not in figures.values()


@pytest.mark.parametrize("audience", ["officer", "user"])
def test_names_and_labels_are_text(audience: str) -> None:
    page = privacy_page([EVIL, HOURS], audience)
    parsed = Page(page.html)
    assert not {"script", "b", "a", "img", "link"} & parsed.tags
    assert parsed.loads == []
    assert EVIL.name in parsed.text
    assert "url(" not in page.html
    assert re.search(r"(?<!\\)<script", page.markdown) is None
    assert r"\<b\>, a\|b, \`c\`" in page.markdown
    # A row of the table has three cells, whatever the name holds.
    rows = [line for line in page.markdown.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {4}


def test_the_command_writes_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, one in (("a.json", HOURS), ("b.json", EVIL)):
        (tmp_path / name).write_bytes(one.to_json())
    line = ["explain", "--campaign", str(tmp_path / "a.json")]
    assert main([*line, "--campaign", str(tmp_path / "b.json"), "--limit", "60"]) == 0
    assert capsys.readouterr().out == privacy_page([HOURS, EVIL], "officer", limit=60.0).markdown
    out = tmp_path / "page.html"
    assert main([*line, "--html", "--audience", "user", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == privacy_page([HOURS], "user").html
    assert main([*line, "--html", "--out", str(out)]) == 1
    for more in (["--html", "--markdown"], ["--audience", "nobody"], ["--k", "3"], ["--json"]):
        assert main([*line, *more]) == 2
    for alone in (["--html"], ["--audience", "user"], [], ["grr"]):
        assert main(["explain", *alone]) == 2
