"""The shipped schemas: what is written has their form, and what they exclude is refused."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from collecting import ADMIN_KEY, START, Clock, campaign, clients, messages
from loloha.collector.settings import Settings
from loloha.conform import SCHEMAS, case, document_case, schema
from loloha.errors import ParameterError
from loloha.rng import SimulationRng
from loloha.sender.connection import Connection
from loloha.wire.message import encode
from serving import Served, create

VALID = {name: jsonschema_rs.Draft202012Validator(schema(name)) for name in SCHEMAS}


def is_valid(name: str, plain: Any) -> bool:
    return VALID[name].is_valid(plain)


def test_documents() -> None:
    for one in document_case.good_documents():
        assert is_valid("campaign", one.to_dict()), one.name
    bad = []
    for wrong, document in document_case.bad_documents():
        try:
            plain = json.loads(document)
        except (ValueError, RecursionError):
            continue
        bad.append((wrong, is_valid("campaign", plain)))
    passed = [wrong for wrong, valid in bad if valid]
    # What only the text can ask for: sizes that fit, texts that differ, dates that exist.
    assert len(passed) < len(bad) / 4, passed


def test_messages_and_states_of_every_protocol() -> None:
    for protocol in case.variants():
        one = case.campaign(protocol)
        client = protocol.client(rng=SimulationRng(0), limit=1e6)
        for round in (0, 1, 70):
            report = client.report(1, round=round)
            message = encode(one, report, round=round, reporter=client.reporter(round))
            assert is_valid("report", json.loads(message)), message
        assert is_valid("client-state", json.loads(json.dumps(client.to_dict())))


def test_answers_of_a_collector(tmp_path: Path) -> None:
    one = campaign()
    message = messages(one, clients(one, 1), 0)[0]
    other = messages(one, clients(one, 1), 900)[0]
    settings = Settings(store=f"sqlite:///{tmp_path}/loloha.db", admin_key=ADMIN_KEY)
    with Served(settings, Clock(START + 60)) as url, Connection(url) as connection:
        path = create(url, one) + "/reports"
        for body, status, form in (
            (message, 200, "receipt"),
            (message, 200, "receipt"),
            (other, 425, "problem"),
            (b"{}", 422, "problem"),
            (b"nonsense", 400, "problem"),
        ):
            answer = connection.post(path, body, "application/json")
            assert (answer.status, is_valid(form, answer.json())) == (status, True)
        document = connection.get(path.removesuffix("/reports") + "/document")
        assert document.body == one.to_json()


def test_there_is_no_other() -> None:
    with pytest.raises(ParameterError, match="name must be one of"):
        schema("../case")
