"""A foreign command ends with whoever started it, and so does all that it started."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loloha.audit import CommandDevice
from loloha.audit.device import SHOWN_ERRORS, Program, words_of
from loloha.cli import main
from loloha.conform import connect
from loloha.errors import AuditError, ParameterError
from loloha.protocols import GRR

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs sessions")

# A child that starts a child, tells its number, and waits.
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
child.wait()
"""


def line_of(program: Program) -> str:
    line: str = program.process.stdout.readline()  # type: ignore[union-attr]
    return line


def must_end(number: int) -> None:
    """Until nobody reaps an orphan it stays as a zombie: which runs no more."""
    for _ in range(30_000):
        try:
            state = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
    pytest.fail("it still runs")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_what_a_command_starts_ends_with_it() -> None:
    program = Program([sys.executable, "-c", PARENT], encoding="utf-8")
    child = int(line_of(program))
    program.close()
    must_end(child)
    program.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_whoever_started_it_ends_all(number: int) -> None:
    code = (
        "import sys\nfrom loloha.audit.device import Program\n"
        "program = Program([sys.executable, '-c', sys.argv[1]], encoding='utf-8')\n"
        "try:\n print(program.process.stdout.readline(), end='', flush=True)\n"
        " program.process.wait()\n"
        "finally:\n program.close()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, PARENT],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as outer:  # fmt: skip
        assert outer.stdout is not None
        child = int(outer.stdout.readline())
        outer.send_signal(number)
        try:
            assert outer.wait(300) != 0
        finally:
            outer.kill()
    must_end(child)


@pytest.fixture
def handled(request: pytest.FixtureRequest) -> Iterator[Any]:
    """How SIGTERM is taken while the test runs, whatever whoever started it ignores."""
    before = signal.signal(signal.SIGTERM, request.param)
    yield request.param
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("handled", [signal.SIG_IGN], indirect=True)
def test_a_signal_that_is_ignored_stays_ignored(handled: Any) -> None:
    """Under nohup a hang-up ends neither the audit nor the program."""
    program = Program([sys.executable, "-c", ""])
    assert signal.getsignal(signal.SIGTERM) == handled
    program.close()
    assert signal.getsignal(signal.SIGTERM) == handled


@pytest.mark.parametrize("handled", [signal.SIG_DFL], indirect=True)
def test_handlers_are_put_back(handled: Any) -> None:
    before = signal.getsignal(signal.SIGTERM)
    program = Program([sys.executable, "-c", ""])
    assert signal.getsignal(signal.SIGTERM) != before
    program.close()
    assert signal.getsignal(signal.SIGTERM) == before


def test_errors_without_end_are_shown_in_part(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys\nfor _ in range(64): sys.stderr.write('x' * 16384)\nprint('over', flush=True)"
    )
    program = Program([sys.executable, "-c", code], encoding="utf-8")
    assert line_of(program) == "over\n"
    program.close()
    told = capsys.readouterr().err
    assert told.count("x") == SHOWN_ERRORS
    assert "further errors" in told


def test_an_audit_and_a_port_use_it() -> None:
    words = [sys.executable, "-c", PARENT]
    protocol = GRR(k=3, eps=1.0)
    with CommandDevice(protocol, shlex.join(words), timeout=300) as device:
        child = int(device._answer())
        with pytest.raises(AuditError):
            raise AuditError
    must_end(child)
    with connect(words) as port:
        child = int(port._line())
    must_end(child)


@pytest.mark.parametrize("command", ["", "  ", "'unclosed"])
def test_no_program_at_all(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ParameterError, match="command must"):
        words_of(command)
    assert main(["conform", "--command", command]) == 2
    assert "command must" in capsys.readouterr().err
