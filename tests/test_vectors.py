"""Golden vectors: read as a port would read them, and equal to what the code makes today."""

import json
from fractions import Fraction
from typing import Any

import pytest

import make_vectors
from loloha.campaign.domain import domain_from_plain
from loloha.client import Client
from loloha.errors import DomainError, StateError
from loloha.hashing import hash_family
from loloha.protocols import REGISTRY, protocol_from_dict
from loloha.rng import SCALE
from scripted import ScriptedRng


def stored(name: str) -> list[dict[str, Any]]:
    return json.loads((make_vectors.VECTORS / name).read_text())


@pytest.mark.parametrize("name", make_vectors.FILES)
def test_vectors_are_what_the_code_makes(name: str) -> None:
    """PAINS 4: what an old release wrote stays readable. For a new protocol run the script."""
    assert (make_vectors.VECTORS / name).read_text() == make_vectors.text(name)


@pytest.mark.parametrize(
    "vector", stored("hashes.json"), ids=lambda vector: f"{vector['family']}-{vector['g']}"
)
def test_hashes(vector: dict[str, Any]) -> None:
    """PAINS 4: the families are pinned, whatever release of a library is installed."""
    family = hash_family(vector["family"], vector["k"], vector["g"])
    assert family.collision == Fraction(vector["collision"])
    for key, symbols in vector["symbols"].items():
        assert family.is_key(int(key))
        assert [family.hash(int(key), v) for v in vector["values"]] == symbols
    assert not any(family.is_key(int(key)) for key in vector["refused"])


@pytest.mark.parametrize(
    "vector",
    stored("clients.json") + stored("tables.json"),
    ids=lambda vector: vector["protocol"]["type"],
)
def test_clients(vector: dict[str, Any]) -> None:
    """A client that is given these draws makes these reports, and uses each draw once."""
    protocol = protocol_from_dict(vector["protocol"])
    assert protocol.fingerprint == vector["fingerprint"]
    assert all(0 <= draw < SCALE for draw in vector["draws"])
    script = ScriptedRng(vector["draws"])
    client = protocol.client(rng=script)
    for round, v, key, y in vector["reports"]:
        report = client.report(v, round=round)
        assert (make_vectors.plain(report.key), make_vectors.plain(report.y)) == (key, y)
    assert script.finished()
    assert client.loss == vector["loss"]


@pytest.mark.parametrize(
    "vector",
    stored("panels.json"),
    ids=lambda vector: f"{vector['protocol']['type']}-{vector['every']}",
)
def test_panels(vector: dict[str, Any]) -> None:
    """The residue is drawn last at enrolment; a client says nothing in the rounds of others."""
    script = ScriptedRng(vector["draws"])
    client = Client(protocol_from_dict(vector["protocol"]), rng=script, every=vector["every"])
    for round, v, key, y in vector["reports"]:
        assert client.is_due(round) == (y is not None)
        if y is None:
            with pytest.raises(StateError, match="in which this client reports"):
                client.report(v, round=round)
            continue
        report = client.report(v, round=round)
        assert (make_vectors.plain(report.key), make_vectors.plain(report.y)) == (key, y)
    assert script.finished()
    assert client.loss == vector["loss"]


@pytest.mark.parametrize("vector", stored("values.json"), ids=lambda vector: str(vector["labels"]))
def test_values(vector: dict[str, Any]) -> None:
    """Ports give a value the index that we give it, at every edge."""
    domain = domain_from_plain(vector["labels"], vector["other"])
    assert domain.k == vector["k"]
    assert {v: domain.text(int(v)) for v in vector["texts"]} == vector["texts"]
    for value, index in vector["values"]:
        if index == "missing":
            with pytest.raises(DomainError, match="missing or blank"):
                domain.index(value)
        else:
            assert domain.index(value) == index


def test_every_protocol_and_family_has_vectors() -> None:
    assert {vector["protocol"]["type"] for vector in stored("clients.json")} == set(REGISTRY)
    assert {vector["family"] for vector in stored("hashes.json")} == set(make_vectors.SIZES)
