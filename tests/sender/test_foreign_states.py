"""States of protocols that are gone, and of two writers at once."""

import json
import threading
from pathlib import Path

import pytest

import loloha
from devices import HOURS
from loloha.client import Client
from loloha.client.file import StateFile, resolved, write_private
from loloha.errors import StateError

pytestmark = pytest.mark.usefixtures("collector")


def test_a_limit_that_never_binds_is_none() -> None:
    client = loloha.GRR(k=5, eps=1.0).client(limit=float("inf"))
    assert client.limit is None
    assert "Infinity" not in json.dumps(client.to_dict())


def test_a_state_of_a_protocol_that_is_not_installed_says_so(tmp_path: Path) -> None:
    from loloha.client.seal import checksum

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
