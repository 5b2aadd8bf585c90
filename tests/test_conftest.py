"""The guard that keeps tests on this machine, and what programs that they start inherit."""

import os
import socket
import subprocess
import sys

import pytest


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "a.invalid"])
def test_other_machines_cannot_connect(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.socket(family) as one,
        pytest.raises(pytest.fail.Exception, match="stay on this machine"),
    ):
        one.connect((host, 80))


def test_this_machine_can_connect() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getpeername() == server.getsockname()


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT", "SIGTERM", "SIGQUIT", "SIGCHLD"])
def test_programs_get_the_usual_signals_whatever_started_the_tests(name: str) -> None:
    code = (
        "import signal; "
        f"print(signal.getsignal(signal.{name}) == signal.SIG_IGN, "
        "len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "0"]
