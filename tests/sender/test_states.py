"""States of both languages: written again without loss, or refused."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import loloha
from collecting import START, Clock, campaign
from devices import HOURS, sender, url
from loloha.client import Client
from loloha.errors import ParameterError, StateError
from loloha.protocols import Protocol
from loloha.sender.agreement import Agreement, Enrolment
from loloha.sender.ledger import Ledger
from state_vectors import checked, takes

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "states.json").read_text())
AGREEMENTS = [one for one in VECTORS if "least" in one]


def rewritten(state: dict[str, Any]) -> Any:
    """What is written of what was read."""
    if state["type"] == "loloha-client":
        return Client.from_dict(state).to_dict()
    kind = Ledger if state["type"] == "loloha-spent" else Agreement
    return json.loads(kind.from_plain(state).to_bytes())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["state"]["type"])
def test_a_state_is_written_again_whole_or_refused(vector: dict[str, Any]) -> None:
    state = vector["state"]
    if vector["kept"]:
        assert rewritten(state) == checked(state)
    else:
        with pytest.raises(StateError):
            rewritten(state)


@pytest.mark.parametrize("vector", [one for one in VECTORS if one["kept"]])
def test_no_member_that_is_not_known_is_dropped(vector: dict[str, Any]) -> None:
    """Wherever it stands, of a state that a later release may have written."""
    places = list(objects(vector["state"]))
    assert places
    for place in places:
        changed = json.loads(json.dumps(vector["state"]))
        one = changed
        for step in place:
            one = one[step]
        one["a_later_member"] = [1]
        if place and place[-1] == "client":
            one.update(checked(one))
        with pytest.raises(StateError):
            rewritten(checked(changed) if "checksum" in changed else changed)


def objects(plain: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all objects with members of their own; fingerprints are names."""
    if isinstance(plain, dict):
        yield at
        for name, part in plain.items():
            if not name.startswith("answered"):
                yield from objects(part, (*at, name))
    elif isinstance(plain, list):
        for place, part in enumerate(plain):
            yield from objects(part, (*at, place))


@pytest.mark.parametrize("vector", AGREEMENTS)
def test_an_agreement_takes_a_limit_that_covers_it(vector: dict[str, Any]) -> None:
    assert takes(vector["state"], vector["least"])
    assert not takes(vector["state"], vector["least"] - 0.5)


@pytest.mark.parametrize("vector", AGREEMENTS)
def test_what_outlives_an_agreement(vector: dict[str, Any]) -> None:
    left = Agreement.from_plain(vector["state"]).entered(Ledger())
    assert json.loads(left.to_bytes()) == checked(vector["withdrawn"])


MOVES = ("report", "reset", "agree")


@pytest.mark.parametrize(
    "protocol",
    [loloha.GRR(k=5, eps=1.0), loloha.BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0)],
    ids=lambda protocol: protocol.name,
)
def test_a_limit_leaves_every_key_a_report(protocol: Protocol) -> None:
    """Over all lives of four moves: what was committed before this key, and its own, one report
    at least. A client alone and an agreement take the same limits."""
    one = campaign("one", protocol=protocol)
    eps, capped = (protocol.asked_memo, False) if protocol.cap == float("inf") else (4.0, True)
    for life in product(MOVES, repeat=4):
        client, before, reports = Client(protocol), 0.0, 0
        for round, move in enumerate(life):
            if move == "report":
                client.report(0, round=round)
                reports += 1
            elif move == "reset":
                client.reset()
                before, reports = before + (eps if capped else reports * eps), 0
            else:
                client.set_limit(None)
        least = before + (eps if capped else max(reports, 1) * eps)
        enrolment = Enrolment(url(one), None, None, one, client)
        agreement = Agreement((enrolment,), None)
        for limit in (least - 0.5, least, least + 0.5):
            alone = Client.from_dict(client.to_dict())
            fits = [agreed(lambda: alone.set_limit(limit)), agreed(lambda: again(agreement, limit))]  # noqa: B023
            assert fits == [limit >= least] * 2, (life, limit)
            if limit >= least and not reports:
                # A key that nothing was reported with has its report.
                after = again(agreement, limit)
                after.answering(after.enrolments[0], 0, 99)
                alone.report(0, round=99)


def again(agreement: Agreement, limit: float) -> Agreement:
    return agreement.again([one.campaign.fingerprint for one in agreement.enrolments], limit)


def agreed(act: Any) -> bool:
    try:
        act()
    except ParameterError:
        return False
    return True


@pytest.mark.usefixtures("collector")
def test_a_state_of_javascript_knows_its_answered_rounds_in_python(tmp_path: Path) -> None:
    """JavaScript keeps no file beside its state: the rounds before a reset are in it."""
    states = [one["state"] for one in AGREEMENTS if "answered_before" in one["state"]]
    (state, *_) = (one for one in states if one["limit"] is None)
    (tmp_path / "state").write_text(json.dumps(state))
    with sender(tmp_path / "state", Clock(START)) as device:
        device.report("a", round=9)
        device.reset()
        for round in (1, 5, 9, 0):
            spent = device.loss
            device.report("b", round=round)
            assert device.loss == spent, round
        device.withdraw()
        assert "0" * 64 in json.loads((tmp_path / "state.spent").read_bytes())["answered"]


@pytest.mark.usefixtures("collector")
def test_a_state_of_python_alone_says_all_rounds(tmp_path: Path) -> None:
    """Without the file beside it, as JavaScript reads it."""
    with sender(tmp_path / "state", Clock(START)) as device:
        device.agree(url())
        device.report("a", round=3)
        device.reset(wait=False)
        device.report("a", round=4)
        device.withdraw()
        device.agree(url(), wait=False)
    plain = json.loads((tmp_path / "state").read_bytes())
    assert plain["answered_before"] == {HOURS.fingerprint: [[3, 4]]}
