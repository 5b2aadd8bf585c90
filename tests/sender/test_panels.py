"""A campaign that asks each user in one round of some: the same one for life, and no other."""

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

import loloha
from collecting import HOUR, START, Clock, campaign
from loloha import privacy
from loloha.campaign import Campaign, Schedule
from loloha.client import Client
from loloha.client.state import Account
from loloha.distribution import exact_distribution
from loloha.errors import CampaignError, ParameterError, StateError
from loloha.protocols import GRR, LGRR
from loloha.rng import SimulationRng
from loloha.sender.sender import Sender
from sending import ONCE, address

EVERY = 3
PANELS = campaign("panels", schedule=Schedule(START, HOUR, every=EVERY))


def residue(one: Sender) -> int:
    """What all rounds that a sender takes leave, asked for in rounds that were not answered."""
    first = 1 + max(one.answered, default=0)
    asked = [one.report("a", round=round) for round in range(first, first + EVERY)]
    (taken,) = {round % EVERY for round in asked if round is not None}
    assert asked.count(None) == EVERY - 1
    return taken


def test_a_user_reports_in_one_round_of_some_for_life(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        where = address(url, PANELS, late_seconds=12 * HOUR)
        one.agree(where)
        mine = residue(one)
        clock.now = START + 12 * HOUR
        assert len(one.deliver().sent) == 1
        assert one.report("b") == (12 if mine == 0 else None)
        loss = one.loss
        assert one.report("c", round=12 + mine + 1) is None
        assert one.loss == loss
        for wait in (True, False):
            one.reset(wait=wait)
            assert residue(one) == mine
            one.withdraw()
            one.agree(where, wait=wait)
            assert residue(one) == mine
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        assert residue(one) == mine


def test_a_residue_is_uniform_and_says_nothing_of_values() -> None:
    for protocol in (LGRR(k=2, eps_inf=2.0, eps_1=1.0), GRR(k=2, eps=1.0)):
        law = exact_distribution(
            lambda rng, protocol=protocol: Client(protocol, rng=rng, every=4).account.residue
        )
        assert sorted(law) == [0, 1, 2, 3]
        assert len(set(law.values())) == 1


def test_each_window_holds_one_report_of_each_user() -> None:
    protocol = LGRR(k=3, eps_inf=2.0, eps_1=1.0)
    clients = [Client(protocol, every=EVERY, rng=SimulationRng(seed)) for seed in range(30)]
    sent: Counter[int] = Counter()
    for client in clients:
        due = [round for round in range(30) if client.is_due(round)]
        assert all(sum(t <= round < t + EVERY for round in due) == 1 for t in range(28))
        client.report(0, round=due[0])
        sent[due[0]] += 1
        with pytest.raises(StateError, match="in which this client reports"):
            client.report(0, round=due[0] + 1)
        # A limit and a reset change nothing in it.
        client.reset()
        assert [round for round in range(30) if client.is_due(round)] == due
        restored = Client.from_dict(client.to_dict())
        assert (restored.every, restored.account) == (EVERY, client.account)
    assert set(sent) == {0, 1, 2}


def test_no_window_holds_two_reports_whoever_asks_for_another(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    """Not through resets, withdrawals and new agreements that do not wait: eps_2 would double."""
    client = Client(PANELS.protocol, every=EVERY)
    due = next(round for round in range(EVERY) if client.is_due(round))
    client.report(0, round=due)
    assert "not answered again" in client.reset(wait=False)
    with pytest.raises(StateError, match="answered"):
        client.report(1, round=due)
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        where = address(url, PANELS, late_seconds=12 * HOUR)
        one.agree(where)
        residue(one)
        (answered,), spent = one.answered, one.loss
        for _ in range(2):
            assert "not answered again" in one.reset(wait=False)
            one.report("b", round=answered)
            one.withdraw()
            one.agree(where, wait=False)
            one.report("b", round=answered)
        assert one.loss == spent
        assert one.report("b", round=answered + EVERY) == answered + EVERY


def test_a_device_that_was_off_in_its_round_waits_for_the_next(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    with Sender(tmp_path / "state", clock=clock, patience=ONCE) as one:
        one.agree(address(url, PANELS, late_seconds=12 * HOUR))
        mine = residue(one)
        # Off from before its next round until after it.
        missed = 12 + mine
        for later in range(1, EVERY):
            clock.now = START + (missed + later) * HOUR
            assert one.report("b") is None
            # Not even by its number: that would be a second report in some window.
        clock.now = START + (missed + EVERY) * HOUR
        assert one.report("b") == missed + EVERY
        answered = one.answered
    assert all(round % EVERY == mine for round in answered)
    assert missed not in answered


def test_a_reinstalled_device_can_report_once_more_as_documented() -> None:
    protocol = PANELS.protocol
    before, after = (Client(protocol, every=EVERY, rng=SimulationRng(seed)) for seed in (1, 4))
    sent = [(round, who) for round in range(EVERY) for who in (before, after) if who.is_due(round)]
    assert len(sent) == 2
    assert len({round for round, _ in sent}) == 2
    said = "A device that is installed anew can report once more"
    assert said in privacy.explain(protocol, every=EVERY).text
    assert said not in privacy.explain(protocol).text
    plan = loloha.plan(k=5, n=3000, window=EVERY, loss=2.0)
    assert "installed anew can report once more" in plan.reason


def test_without_panels_states_and_documents_are_as_before() -> None:
    client = Client(PANELS.protocol)
    assert "panel" not in client.to_dict()
    assert client.account.residue is None
    assert campaign().to_dict()["round"].keys() == {"start", "seconds"}


def test_a_document_says_every_or_leaves_it_out() -> None:
    assert PANELS.to_dict()["round"]["every"] == EVERY
    assert Campaign.from_json(PANELS.to_json(), fingerprint=PANELS.fingerprint) == PANELS
    for every in (0, 1, True, "3", 1 << 30):
        document = PANELS.to_dict()
        with pytest.raises(CampaignError, match="every"):
            Campaign.from_dict({**document, "round": {**document["round"], "every": every}})


def test_what_no_client_can_be_is_refused() -> None:
    with pytest.raises(ParameterError, match="residue"):
        Client(PANELS.protocol, every=2, account=Account(residue=2))
    with pytest.raises(ParameterError, match="every"):
        Client(PANELS.protocol, every=0)
