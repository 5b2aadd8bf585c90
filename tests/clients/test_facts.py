"""Limits that Python, JavaScript and the documentation state: one number each."""

import re
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from javascript import CLIENT
from loloha.campaign import schedule
from loloha.sender.agreement import MOST_QUEUED
from loloha.wire.message import LARGEST_UPLOAD, MOST_TOGETHER

DOCS = Path(__file__).resolve().parents[2] / "docs"
# File and name in JavaScript, module and name in Python.
LIMITS = [
    ("outbox", "MOST_TOGETHER", "loloha.wire.message", "MOST_TOGETHER"),
    ("client", "KEPT_ROUNDS", "loloha.client.state", "STORED_ROUNDS"),
    ("client", "TYPE", "loloha.client.state", "STATE_TYPE"),
    ("state", "TYPE", "loloha.sender.agreement", "STATE_TYPE"),
    ("state", "VERSION", "loloha.sender.agreement", "STATE_VERSION"),
    ("state", "LEDGER", "loloha.sender.ledger", "LEDGER_TYPE"),
    ("rounds", "MOST_INTERVALS", "loloha.client.answered", "MOST_INTERVALS"),
    ("sender", "MOST_QUEUED", "loloha.sender.agreement", "MOST_QUEUED"),
    ("delivery", "FRUITLESS", "loloha.sender.delivery", "_FRUITLESS"),
    ("answer", "LARGEST_ANSWER", "loloha.sender.receipt", "_LARGEST"),
    ("answer", "MOST_BRACKETS", "loloha.sender.receipt", "_MOST_BRACKETS"),
    ("answer", "LONGEST_WAIT", "loloha.sender.connection", "_LONGEST_WAIT"),
    ("post", "LARGEST_DOCUMENT", "loloha.sender.connection", "_LARGEST_ANSWER"),
    ("node", "LARGEST", "loloha.client.file", "LARGEST_STATE"),
    ("exact", "SCALE", "loloha.rng", "SCALE"),
    ("domain", "LONGEST_NUMBER", "loloha.campaign.scalar", "LONGEST_NUMBER"),
    ("domain", "MORE_DIGITS", "loloha.campaign.edge", "MORE_DIGITS"),
    ("hashing", "LARGEST_TABLE", "loloha.hashing.linear", "LARGEST_TABLE"),
    ("hashing", "MERSENNE", "loloha.hashing.modular", "MERSENNE_31"),
]


def stated(file: str, name: str) -> Any:
    """What a file of the JavaScript client says that a constant is."""
    source = (CLIENT / "src" / f"{file}.js").read_text()
    (text,) = re.findall(rf"^(?:export )?const {name} = (.+);$", source, re.M)
    assert re.fullmatch(r'[0-9_e<*+ -]+|"[a-z-]+"', text), text
    return eval(text)


@pytest.mark.parametrize(("file", "name", "module", "counterpart"), LIMITS)
def test_a_limit_is_one_number_in_both_languages(
    file: str, name: str, module: str, counterpart: str
) -> None:
    assert stated(file, name) == getattr(import_module(module), counterpart)


def test_a_year_is_as_long_in_both_languages() -> None:
    start = stated("campaign", "LAST_START")
    assert start == datetime(9000, 1, 1, tzinfo=UTC).timestamp()
    source = (CLIENT / "src" / "campaign.js").read_text()
    assert f"integer(1, {schedule._LONGEST_ROUND // 86400} * 86400)" in source


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("collector.md", f"of an upload of at most {LARGEST_UPLOAD:,} reports".replace(",", " ")),
        ("client.md", f"At most {MOST_QUEUED} reports of a campaign wait"),
        ("javascript.md", f"{MOST_TOGETHER} reports and 48 KB in one request"),
        ("http.md", f"up to {MOST_TOGETHER} single reports"),
    ],
)
def test_the_documentation_states_the_limits(page: str, sentence: str) -> None:
    assert sentence in " ".join((DOCS / page).read_text().split())
