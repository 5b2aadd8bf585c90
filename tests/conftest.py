"""What all tests share: no network, the same examples every time, and the reference numbers."""

import gc
import os
import re
import signal
import socket
from collections import Counter
from collections.abc import Generator, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Before anything imports matplotlib: no display is needed, or asked for.
os.environ["MPLBACKEND"] = "Agg"
# Widths, colours, settings and wishes of whoever runs the tests are no part of what is tested.
_USERS = "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PYTHONWARNINGS", "DO_NOT_TRACK"
_OWN = ("LOLOHA_TEST_", "LOLOHA_FUZZ", "LOLOHA_KILLS")
for _name in [*os.environ]:
    if _name in _USERS or (_name.startswith("LOLOHA_") and not _name.startswith(_OWN)):
        del os.environ[_name]


def _as_if_started_by_hand() -> None:
    """Programs that tests start get the usual signals, also under nohup or in the background.

    An ignored signal stays so across exec, one with a handler does not: a handler that does nothing
    lets the tests themselves go on as whoever started them wished.
    """
    for name in ("SIGHUP", "SIGINT", "SIGTERM", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        # Ignored, it takes away how a child ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


_as_if_started_by_hand()

# Each collector that a test starts leaves 1e5 objects in circles: at the usual pace, a third of the
# time of such tests went by in looking for them.
gc.set_threshold(200_000, 20, 20)

# The same examples on every run and machine; a loaded machine is no failure.
settings.register_profile(
    "loloha",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("loloha")

ROOT = Path(__file__).resolve().parents[1]


def _is_here(address: Any) -> bool:
    """Whether a socket address lies on this machine."""
    if not isinstance(address, tuple):
        return True  # a Unix socket's path
    if address[0] in ("", "localhost"):
        return True
    try:
        return ip_address(address[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    """Fail the test that connects to another machine."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            original = getattr(socket.socket, name)

            def guarded(self: socket.socket, address: Any, original: Any = original) -> Any:
                if not _is_here(address):
                    pytest.fail(f"tests must stay on this machine, got a connection to {address}")
                return original(self, address)

            patch.setattr(socket.socket, name, guarded)
        yield


@pytest.fixture(scope="session", autouse=True)
def _nothing_fetched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Data sets that somebody fetched on this machine are not found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOLOHA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def _beside_the_repository(folder: str) -> Path:
    path = ROOT.parent / "shared" / folder
    if not path.is_dir():
        pytest.skip(f"no ../shared/{folder} beside this checkout; it is not part of the project")
    return path


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def reference() -> Path:
    """Folder of independently computed numbers, where it lies beside the checkout."""
    return _beside_the_repository("reference")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of real data sets, where it lies beside the checkout."""
    return _beside_the_repository("data")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Names are the same in each process: workers refuse to share out what is named otherwise."""
    # An address, or a set of texts, whose order is drawn by each process.
    varying = re.compile(r" at 0x|\{('[^':]*', )+'[^':]*'\}")
    named = [item.nodeid for item in items if varying.search(item.nodeid)]
    if named:
        raise pytest.UsageError(f"give these cases ids without addresses and sets: {named}")


def pytest_collection_finish() -> None:
    """What is imported and collected stays: it is not looked through for garbage."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--cpu 20``, without -n: the tests that cost most, with the programs that they start."""
    parser.addoption("--cpu", type=int, default=0, help="list so many tests by CPU seconds")


_SECONDS: Counter[str] = Counter()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before = sum(os.times()[:4])
    result = yield
    _SECONDS[item.nodeid.partition("[")[0]] += sum(os.times()[:4]) - before
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, seconds in _SECONDS.most_common(terminalreporter.config.option.cpu):
        terminalreporter.write_line(f"{seconds:7.2f} s of CPU: {name}")
