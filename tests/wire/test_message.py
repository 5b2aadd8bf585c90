"""What a report is, said once: the schema, the reader and its three ways in agree on everything."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import make_vectors
from loloha.campaign import Campaign
from loloha.collector.openapi import schemas
from loloha.conform import schema
from loloha.wire import Refusal
from loloha.wire.batch import Reader
from loloha.wire.message import decode, encode
from loloha.wire.refusal import REASONS
from message_vectors import FORMS, REPORTER, TICKET, VALID

VECTORS = json.loads((make_vectors.VECTORS / "messages.json").read_text())
OF_THE_CAMPAIGN = {Refusal.CAMPAIGN, Refusal.KEY, Refusal.ANSWER, Refusal.TICKET}
"""Reasons that only a campaign knows; all others show in the schema."""


def ways(reader: Reader, text: str) -> set[Refusal | None]:
    """Why a message is refused, alone, in an array, and on a line."""
    body, found = text.encode(), set()
    for batch in (
        reader.read_json(body),
        reader.read_json(b"[%b]" % body),
        reader.read_lines(body),
    ):
        (code,) = batch.codes
        found.add(REASONS[code - 1] if code else None)
    return found


def must_agree(reader: Reader, plain: dict[str, Any]) -> None:
    """Counted is valid; what is not counted is not valid, or is wrong for this campaign alone."""
    (reason,) = ways(reader, json.dumps(plain))
    if VALID.is_valid(plain):
        assert reason is None or reason in OF_THE_CAMPAIGN, (plain, reason)
    else:
        assert reason is not None, plain


@pytest.mark.parametrize("vector", VECTORS, ids=lambda one: one["campaign"]["protocol"]["type"])
def test_the_vectors_are_refused_alike_whatever_way_they_come(vector: dict[str, Any]) -> None:
    reader = Reader(Campaign.from_dict(vector["campaign"]))
    plain = json.loads(vector["message"])
    assert ways(reader, vector["message"]) == {None}
    seen = set()
    for one in vector["tried"]:
        tried = {name: value for name, value in plain.items() if name != one["field"]}
        if "value" in one:
            tried[one["field"]] = one["value"]
        assert ways(reader, json.dumps(tried)) == {one["reason"]}, tried
        assert VALID.is_valid(tried) == one["valid"], tried
        # One field differs: what is wrong with its form alone, the schema tells.
        assert one["valid"] or one["reason"] is not None
        assert not one["valid"] or one["reason"] is None or one["reason"] in OF_THE_CAMPAIGN
        seen.add(one["reason"])
    assert seen >= {None, *OF_THE_CAMPAIGN, Refusal.MALFORMED, Refusal.VERSION, Refusal.REPORTER}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda one: one["campaign"]["protocol"]["type"])
def test_a_message_is_decoded_to_the_report_that_was_encoded(vector: dict[str, Any]) -> None:
    campaign = Campaign.from_dict(vector["campaign"])
    text, plain = vector["message"], json.loads(vector["message"])
    report = decode(campaign, text)
    others = {name: plain.get(name) for name in ("round", "reporter", "ticket")}
    assert json.loads(encode(campaign, report, **others)) == plain
    refused = 0
    for name, digit in product({"y", "key"} & plain.keys(), "0f"):
        tried = plain | {name: digit * len(plain[name])}
        (reason,) = ways(Reader(campaign), json.dumps(tried))
        if reason is None:
            report = decode(campaign, json.dumps(tried))
            assert json.loads(encode(campaign, report, **others)) == tried
        else:
            refused += 1
            with pytest.raises(ValueError, match="must hold a key and an answer"):
                decode(campaign, json.dumps(tried))
    assert refused > 0


FIELD = st.sampled_from(sorted(FORMS)) | st.sampled_from(["key", "y", "x"])
TEXT = st.text("0123456789abcdefABCDEF", max_size=70) | st.sampled_from([REPORTER, TICKET])
ANY = st.none() | st.booleans() | st.integers(-2, 1 << 54) | st.text(max_size=34) | TEXT
CHANGES = st.dictionaries(FIELD, ANY | TEXT, max_size=3)


@settings(max_examples=100)
@given(st.sampled_from(VECTORS), CHANGES, st.sets(FIELD, max_size=1))
def test_schema_and_reader_agree_on_any_message(
    vector: dict[str, Any], changes: dict[str, Any], without: set[str]
) -> None:
    plain = {**json.loads(vector["message"]), **changes}
    for name in without:
        plain.pop(name, None)
    must_agree(Reader(Campaign.from_dict(vector["campaign"])), plain)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        # A parser of JSON does not tell these from an integer, and the last of two from one.
        ('"version":1', '"version":1.0', Refusal.MALFORMED),
        ('"round":7', '"round":7.0', Refusal.MALFORMED),
        ('"round":7', '"round":7e0', Refusal.MALFORMED),
        ('"round":7', '"round":5,"round":7', None),
    ],
)
def test_what_only_the_text_tells(old: str, new: str, reason: Refusal | None) -> None:
    vector = VECTORS[0]
    text = json.dumps(json.loads(vector["message"]), separators=(",", ":")).replace(old, new)
    assert ways(Reader(Campaign.from_dict(vector["campaign"])), text) == {reason}
    assert VALID.is_valid(json.loads(text))


def test_both_schemas_are_of_the_one_struct() -> None:
    shipped = schema("report")
    assert {name: part for name, part in shipped.items() if name[0] != "$"} == schemas()["Message"]
