"""States of earlier releases, of protocols that are gone, and of two writers at once."""

import json
import math
import shutil
import threading
from pathlib import Path

import pytest

import loloha
from collecting import HOUR, START, Clock
from devices import HOURS, sender
from faulty import Collector
from loloha.campaign import Campaign
from loloha.client import Client
from loloha.client.file import StateFile, resolved, write_private
from loloha.errors import BudgetError, StateError

pytestmark = pytest.mark.usefixtures("collector")


OLD = Path(__file__).parent / "states-0.1.0"


# -- what 0.1.0 wrote


@pytest.mark.parametrize("name", ["fresh", "forgetful", "reset", "limited", "never"])
def test_states_of_the_first_release_go_on(tmp_path: Path, name: str) -> None:
    plain = json.loads((OLD / f"client-{name}.json").read_text())
    expected = json.loads((OLD / f"client-{name}.expected.json").read_text())
    client = Client.load(OLD / f"client-{name}.json")
    assert (client.loss, client.limit) == (expected["loss"], expected["limit"])
    assert client.reporter(7) == expected["reporter"]
    for round, key, y in plain["sent"]:
        report = client.report(0, round=round)
        assert report.key == (tuple(key) if isinstance(key, list) else key)
        assert report.y == (bytes.fromhex(y) if isinstance(y, str) else y)
    for round in range(plain["floor"] + 1):
        with pytest.raises(StateError, match="was not answered"):
            client.report(0, round=round)
    client.save(tmp_path / "again")
    again = Client.load(tmp_path / "again")
    assert again.to_dict() == client.to_dict()
    assert again.to_dict()["version"] == 2


def test_a_sender_of_the_first_release_goes_on(tmp_path: Path, collector: Collector) -> None:
    shutil.copy(OLD / "sender.json", tmp_path / "state")
    plain = json.loads((OLD / "sender.json").read_text())
    one = Campaign.from_dict(plain["campaign"])
    collector.campaigns[one.fingerprint] = one
    with sender(tmp_path / "state", Clock(START + 3 * HOUR)) as device:
        assert device.campaign == one
        assert (device.loss, device.limit) == (4.0, 6.0)
        assert device.answered == set(plain["answered"])
        with pytest.raises(BudgetError, match="consent anew"):
            device.report("b")
        device.agree(f"http://c/v1/campaigns/{one.fingerprint}", limit=math.inf)
        assert device.report("b") == 3
        queued = dict(device._state.agreed().enrolments[0].queue)
        assert [[round, queued[round]] for round, _ in plain["queue"]] == plain["queue"]
        kept = {round for round, _ in plain["queue"]}
        device._state.adopt(device._state.agreed())
    with sender(tmp_path / "state", Clock(START + 3 * HOUR)) as device:
        assert set(device.deliver().sent) == {3, *kept}
    assert [[round, body] for round, body in collector.left if round in kept] == plain["queue"]


def test_a_limit_that_never_binds_is_none() -> None:
    client = loloha.GRR(k=5, eps=1.0).client(limit=float("inf"))
    assert client.limit is None
    assert "Infinity" not in json.dumps(client.to_dict())


def test_a_state_of_a_protocol_that_is_not_installed_says_so(tmp_path: Path) -> None:
    from loloha.client.state import checksum

    plain = HOURS.protocol.client().to_dict()
    del plain["checksum"]
    plain["protocol"] = {"type": "some-plugin", "version": 1, "k": 5}
    (tmp_path / "client").write_text(json.dumps({**plain, "checksum": checksum(plain)}))
    with pytest.raises(StateError, match=r"installed here, got 'some-plugin'.*untouched"):
        Client.load(tmp_path / "client")


def test_a_file_that_is_written_twice_at_once_is_whole(tmp_path: Path) -> None:
    path = resolved(tmp_path / "state")
    threads = [
        threading.Thread(
            target=lambda n=n: [write_private(path, bytes([n]) * 9999) for _ in range(20)]
        )
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = Path(path).read_bytes()
    assert len(content) == 9999
    assert len(set(content)) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["state"]
    file = StateFile(path)
    assert file.read() == content
    file.close()
