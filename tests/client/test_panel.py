"""A client that reports in one round of several, and what a client refuses to be."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

import loloha
from loloha.client.client import Client
from loloha.client.state import Account
from loloha.errors import ParameterError, StateError

PROTOCOL = loloha.BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0)


@pytest.mark.parametrize("residue", [0, 1, 2])
def test_it_reports_where_its_residue_is_left(residue: int, tmp_path: Path) -> None:
    client = Client(PROTOCOL, every=3, account=Account(residue=residue))
    client.report(1, round=9 + residue)
    client.save(tmp_path / "state")
    for one in (client, Client.load(tmp_path / "state")):
        assert one.every == 3
        assert [one.is_due(t) for t in range(7)] == [t % 3 == residue for t in range(7)]
        assert [one.has_answered(t) for t in (9 + residue, 12 + residue)] == [True, False]
        with pytest.raises(StateError, match="must be one in which this client reports"):
            one.report(1, round=10 + residue)
        assert one.account.residue == residue
        one.reset()
        assert one.is_due(residue)
        assert one.account.residue == residue


@pytest.mark.parametrize("residue", [3, -1, 100])
def test_a_residue_that_is_never_left_is_refused(residue: int) -> None:
    with pytest.raises(ParameterError, match="residue must be below every = 3"):
        Client(PROTOCOL, every=3, account=Account(residue=residue))


def test_every_residue_is_drawn() -> None:
    drawn = {Client(PROTOCOL, every=3).account.residue for _ in range(200)}
    assert drawn == {0, 1, 2}
    assert Client(PROTOCOL).every == 1
    for wrong in (0, -1, 1.0, True):
        with pytest.raises(ParameterError, match="every must be an integer"):
            Client(PROTOCOL, every=wrong)  # type: ignore[arg-type]


def test_it_stays_in_the_process_that_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(PROTOCOL)
    monkeypatch.setattr(client, "_process", object())
    steps: list[Any] = [
        lambda: client.report(1, round=0), client.reset, lambda: client.set_limit(99.0),
    ]  # fmt: skip
    for step in steps:
        with pytest.raises(StateError, match="must stay in the process that made it"):
            step()


def test_it_is_hidden_and_single() -> None:
    client = Client(PROTOCOL)
    assert repr(client) == f"Client({PROTOCOL!r}, state hidden)"
    assert repr(client._state.record) == "Record(hidden)"
    for twice in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(StateError, match="must not be pickled or copied"):
            twice(client)


def test_a_key_of_another_family_is_refused_and_not_shown() -> None:
    for protocol, key in (
        (PROTOCOL, 12_345_678),
        (loloha.OLH(k=5, eps=1.0), 1),
        (PROTOCOL, (1, 2)),
    ):
        with pytest.raises(ParameterError, match="key must be one of the family") as caught:
            Client(protocol, key=key)  # type: ignore[arg-type]
        assert "12345678" not in str(caught.value)
    assert Client(PROTOCOL, key=3).report(1, round=0).key == 3


def test_a_signal_handler_that_reports_in_between_is_not_overrun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, real = Client(PROTOCOL), Client._memoised
    inner: list[Any] = []

    def interrupted(self: Client, before: Any, value: int) -> Any:
        if not inner:
            inner.append(None)
            inner[0] = client.report(2, round=5)
        return real(self, before, value)

    monkeypatch.setattr(Client, "_memoised", interrupted)
    client.report(1, round=4)
    assert client.has_answered(4)
    assert client.has_answered(5)
    assert client.report(2, round=5) == inner[0]
