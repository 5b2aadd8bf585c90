"""What loloha 0.1.0 wrote is read as before: ``v0_1_0/`` was written by that version itself."""

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from loloha.campaign import Campaign
from loloha.client import Client
from loloha.engines import make_engine
from loloha.engines.saved import find, load
from loloha.reportlog import ReportLog
from loloha.sender.sender import Sender
from loloha.wire.batch import Reader
from make_vectors import Draws, plain

KEPT = Path(__file__).parent / "v0_1_0"


def read(name: str) -> Any:
    return json.loads((KEPT / name).read_text(encoding="utf-8"))


CLIENTS, CAMPAIGNS = read("clients.json"), read("campaigns.json")
MESSAGES, LOGS = read("messages.json"), read("logs.json")


@pytest.mark.parametrize("kept", CLIENTS, ids=lambda kept: kept["state"]["protocol"]["type"])
def test_a_client_goes_on_as_it_would_have(kept: dict[str, Any]) -> None:
    client = Client.from_dict(kept["state"], rng=Draws(kept["draws"]))
    assert (client.loss, client.reporter(3)) == (kept["loss"], kept["reporter"])
    for round, v, key, y in kept["next"]:
        report = client.report(v, round=round)
        assert [plain(report.key), plain(report.y)] == [key, y]
    assert client.loss == kept["loss_next"]


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
    campaign = Campaign.from_json((KEPT / f"log-{name}.json").read_bytes())
    log = ReportLog(KEPT / "log", campaign)
    counted = {one.round: one.tally for one in make_engine("local").tally(log, log.scan())}
    saved = find([KEPT / f"tallies-{name}"])
    expected = {kept["round"]: kept for kept in LOGS if kept["log"] == name}
    assert counted.keys() == saved.keys() == expected.keys()
    for round, kept in expected.items():
        for tally in (counted[round], load(saved[round], protocol=campaign.protocol)):
            assert tally.n == kept["n"]
            assert tally.counts.tolist() == kept["counts"]


def test_a_store_goes_on(tmp_path: Path) -> None:
    from loloha.collector.store import Store
    from loloha.collector.submission import Submission

    # A copy: opening it brings it up to date.
    file = shutil.copy(KEPT / "store.sqlite", tmp_path / "store.sqlite")
    store = Store(f"sqlite:///{file}")
    for kept in read("stored.json"):
        entry = store.campaign(kept["fingerprint"])
        assert entry is not None
        tally = store.tally(entry, kept["round"])
        assert (tally.n, tally.counts.tolist()) == (kept["n"], kept["counts"])
        # The guard still knows who has reported.
        again = Submission.of(entry, Reader(entry.campaign).read_lines(kept["first"].encode()))
        inside = entry.campaign.schedule.begins(kept["round"]) + 1
        store.record([again], inside)
        assert store.tally(entry, kept["round"]) == tally
        (round,) = store.rounds(entry)
        assert (round.n, round.duplicates) == (kept["n"], 1)
    store.close()


def test_a_device_sends_what_it_had_kept(tmp_path: Path) -> None:
    kept = read("stored.json")[0]
    path = Path(shutil.copy(KEPT / "sender.json", tmp_path / "sender.json"))
    path.chmod(0o600)
    inside = datetime.fromisoformat(kept["campaign"]["round"]["start"]).timestamp() + 60
    with Sender(path, clock=lambda: inside) as sender:
        assert sender.campaign.fingerprint == kept["fingerprint"]
        assert (sender.answered, sender.loss) == ({kept["round"]}, 2.0)
        sender.report("v3")  # answered: nothing new is drawn
    assert json.loads(path.read_text())["queue"] == read("sender.json")["queue"]
