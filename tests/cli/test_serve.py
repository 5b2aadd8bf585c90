"""`loloha serve` before it serves: nothing is drawn or written for a start that fails."""

import socket
from pathlib import Path

import pytest

from loloha.cli import main


def test_a_port_in_use_fails_before_a_key_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        store = tmp_path / "loloha.db"
        assert main(["serve", "--store", f"sqlite:///{store}", "--port", str(port)]) == 1
        # No port helps a wrong store.
        assert main(["serve", "--store", "mysql://h/d", "--port", str(port)]) == 2
        assert main(["serve", "--store", f"sqlite:///{store}", "--host", "999.1.1.1"]) == 1
    said = capsys.readouterr().err
    assert f"port {port} of 127.0.0.1 must be free" in said
    assert "a collector may run there already" in said
    assert "store must be" in said
    assert "host must be" in said
    assert "key" not in said
    assert not store.exists()


@pytest.mark.parametrize("wrong", [["--limit", "2"], ["--withdraw"]])
def test_a_device_says_when_there_is_nothing_to_change(
    wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "typo.json"
    assert main(["report", "--state", str(state), *wrong]) != 0
    said = capsys.readouterr()
    assert "must" in said.err
    assert "deleted" not in said.out
    assert not state.exists()
