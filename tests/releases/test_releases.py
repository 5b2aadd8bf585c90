"""What loloha 0.2.0 wrote is read as before: ``v0_2_0/`` was written by that version itself."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from loloha.campaign import Campaign
from loloha.client import Client
from loloha.collector.store import Store
from loloha.collector.store.admin_key import AdminKey, AdminKeys
from loloha.collector.submission import Submission
from loloha.engines import make_engine
from loloha.engines.saved import find, load
from loloha.errors import BudgetError, StateError, StoreError
from loloha.reportlog import ReportLog
from loloha.sender import Sender
from loloha.wire.batch import Reader
from make_vectors import Draws, plain

RELEASES = Path(__file__).parent / "v0_2_0"


def read(name: str) -> Any:
    return json.loads((RELEASES / name).read_text(encoding="utf-8"))


CLIENTS, CAMPAIGNS = read("clients.json"), read("campaigns.json")
MESSAGES, LOGS = read("messages.json"), read("logs.json")


@pytest.mark.parametrize("kept", CLIENTS, ids=lambda kept: kept["name"])
def test_a_client_goes_on_as_it_would_have(kept: dict[str, Any]) -> None:
    client = Client.from_dict(kept["state"], rng=Draws(kept["draws"]))
    # Later releases round bounds up more closely.
    assert client.loss == pytest.approx(kept["loss"], rel=1e-13)
    assert client.reporter(3) == kept["reporter"]
    for round, v, key, y in kept["next"]:
        report = client.report(v, round=round)
        assert [plain(report.key), plain(report.y)] == [key, y]
    assert client.loss == pytest.approx(kept["loss_next"], rel=1e-13)
    sent = {round for round, _, _ in kept["state"]["sent"]}
    for first, last in kept["state"]["answered"]:
        for round in {*range(first, last + 1)} - sent:
            with pytest.raises(StateError, match="was not answered"):
                client.report(0, round=round)
    again = client.to_dict()
    assert Client.from_dict(again).to_dict() == again


@pytest.mark.parametrize("kept", CAMPAIGNS, ids=lambda kept: json.loads(kept["document"])["name"])
def test_a_campaign_keeps_its_name_and_its_meaning(kept: dict[str, Any]) -> None:
    campaign = Campaign.from_json(kept["document"], fingerprint=kept["fingerprint"])
    assert campaign.to_json().decode() == kept["document"]
    assert campaign.labels == kept["labels"]
    for value, index in kept["index"]:
        assert campaign.index(value) == index


@pytest.mark.parametrize("kept", MESSAGES, ids=lambda kept: str(kept["campaign"]))
def test_messages_are_counted_alike(kept: dict[str, Any]) -> None:
    campaign = Campaign.from_json(CAMPAIGNS[kept["campaign"]]["document"])
    batch = Reader(campaign).read_lines("\n".join(kept["lines"]).encode())
    assert not batch.refusals
    tally = campaign.protocol.tally()
    tally.update(batch.keys, batch.ys)
    assert tally.counts.tolist() == kept["counts"]
    assert tally.support().tolist() == kept["support"]


@pytest.mark.parametrize("name", sorted({kept["log"] for kept in LOGS}))
def test_logs_and_tallies_hold_the_same_counts(name: str) -> None:
    campaign = Campaign.from_json((RELEASES / f"log-{name}.json").read_bytes())
    log = ReportLog(RELEASES / "log", campaign)
    counted = {one.round: one.tally for one in make_engine("local").tally(log, log.scan())}
    saved = find([RELEASES / f"tallies-{name}"])
    expected = {kept["round"]: kept for kept in LOGS if kept["log"] == name}
    assert counted.keys() == saved.keys() == expected.keys()
    for round, kept in expected.items():
        for tally in (counted[round], load(saved[round], protocol=campaign.protocol)):
            assert tally.n == kept["n"]
            assert tally.counts.tolist() == kept["counts"]


def test_a_store_goes_on(tmp_path: Path) -> None:
    # A copy: opening it brings it up to date.
    file = shutil.copy(RELEASES / "store.sqlite", tmp_path / "store.sqlite")
    store = Store(f"sqlite:///{file}")
    # A key of 0.2 stays valid; nothing more is known of it.
    assert AdminKeys(store).all() == [AdminKey(bytes([1]) * 32, "", None, None, None)]
    assert store.seen() > 0
    for kept in read("stored.json"):
        stored = store.campaign(kept["fingerprint"])
        assert stored is not None
        assert stored.terms.to_dict() == kept["terms"]
        tally = store.tally(stored, kept["round"])
        assert (tally.n, tally.counts.tolist()) == (kept["n"], kept["counts"])
        (round,) = store.rounds(stored)
        assert (round.waiting, round.duplicates) == (kept["waiting"], kept["duplicates"])
        # The guard still knows who has reported, and what waited is shown with what comes.
        body = "\n".join([kept["first"], *kept["more"]]).encode()
        begins = stored.campaign.schedule.begins(kept["round"])
        store.record([Submission.of(stored, Reader(stored.campaign).read_lines(body))], begins + 1)
        tally = store.tally(stored, kept["round"])
        n = kept["n"] + kept["waiting"] + len(kept["more"])
        assert (tally.n, tally.counts.tolist()) == (n, kept["counts_then"])
        (round,) = store.rounds(stored)
        assert (round.n, round.duplicates) == (n, kept["duplicates"] + 1)
    store.close()


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        ("0001", "must be of loloha 0.2 or newer, this one is of 0.1"),
        ("0999", "a newer one has changed it"),
    ],
)
def test_a_store_of_another_release_is_refused_untouched(
    tmp_path: Path, revision: str, said: str
) -> None:
    file = shutil.copy(RELEASES / "store.sqlite", tmp_path / "store.sqlite")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        before = list(connection.iterdump())
    with pytest.raises(StoreError, match=said):
        Store(f"sqlite:///{file}")
    with closing(sqlite3.connect(file)) as connection:
        assert list(connection.iterdump()) == before


def test_a_device_sends_its_stored_queue(tmp_path: Path) -> None:
    path = Path(shutil.copy(RELEASES / "sender.json", tmp_path / "sender.json"))
    path.chmod(0o600)
    before = json.loads(path.read_text())
    with Sender(path, clock=lambda: 1_767_571_260) as sender:
        assert list(sender.campaigns) == ["stored linear", "stored bits"]
        assert (sender.loss, sender.limit) == (6.0, 40.0)
        with pytest.raises(BudgetError, match="consent anew"):
            sender.report_all({"stored linear": "v3", "stored bits": "v3"}, round=1)
        sender.report_all(
            {"stored linear": "v3", "stored bits": "v3"}
        )  # answered: nothing is drawn
    after = json.loads(path.read_text())
    for one, other in zip(before["enrolments"], after["enrolments"], strict=True):
        assert one["queue"] == other["queue"]


def test_what_was_spent_before_a_withdrawal_stays_spent(tmp_path: Path) -> None:
    path = Path(shutil.copy(RELEASES / "spent.spent", tmp_path / "state.spent"))
    path.chmod(0o600)
    with Sender(tmp_path / "state") as sender:
        assert (sender.consent, sender.loss) == (False, 4.0)
