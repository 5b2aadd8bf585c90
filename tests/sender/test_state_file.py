"""The state file: one opener, one name; withdrawn without a trace."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import loloha
from collecting import Clock
from devices import HOURS, sender, url
from faulty import Collector
from loloha.client import Client
from loloha.client.file import StateFile, read_private, write_private
from loloha.errors import LolohaError, StateError
from loloha.sender.agreement_file import AgreementFile
from loloha.sender.sender import Sender

pytestmark = pytest.mark.usefixtures("collector")


posix = pytest.mark.skipif(os.name != "posix", reason="locks and links are those of POSIX")


# -- one opener


@posix
def test_a_link_is_the_file_that_it_points_to(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "link").symlink_to("state")
    (tmp_path / "folder").symlink_to(tmp_path, target_is_directory=True)
    names = [tmp_path / "link", tmp_path / "folder" / "state", tmp_path / "folder" / "link"]
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        for name in names:
            with pytest.raises(StateError, match="another uses it"):
                sender(name, clock)
    with sender(names[2], clock) as one:
        one.report("a")
    assert (tmp_path / "link").is_symlink()
    with sender(tmp_path / "state", clock) as one:
        assert one.answered == {0}


@posix
def test_a_state_of_two_names_is_refused(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
    os.link(tmp_path / "state", tmp_path / "other")
    for name in ("state", "other"):
        with pytest.raises(StateError, match="one file with one name"):
            sender(tmp_path / name, clock)
    (tmp_path / "other").unlink()
    sender(tmp_path / "state", clock).close()


@posix
def test_deleting_the_lock_admits_nobody(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        before = (tmp_path / "state").read_bytes()
        (tmp_path / "state.lock").unlink()
        # The state itself is locked as well.
        with pytest.raises(StateError, match="another uses it"):
            sender(tmp_path / "state", clock)
        for act in (
            lambda: one.report("a"),
            one.deliver,
            one.reset,
            one.withdraw,
            lambda: one.loss,
        ):
            with pytest.raises(StateError, match="must keep its lock"):
                act()
        assert (tmp_path / "state").read_bytes() == before
    with sender(tmp_path / "state", clock) as one:
        assert one.report("a") == 0


@posix
def test_deleting_the_lock_before_there_is_consent_leaves_one(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        (tmp_path / "state.lock").unlink()
        with sender(tmp_path / "state", clock) as two:
            two.agree(url())
            with pytest.raises(StateError, match="must keep its lock"):
                one.agree(url())
            assert two.report("a") == 0


@posix
@pytest.mark.parametrize("change", ["deleted", "replaced", "restored"])
def test_a_state_that_is_changed_under_a_sender_stops_it(
    tmp_path: Path, clock: Clock, change: str
) -> None:
    path = tmp_path / "state"
    with sender(path, clock) as one:
        one.agree(url())
        one.report("a")
        copy = path.read_bytes()
        path.unlink()
        if change != "deleted":
            path.write_bytes(copy if change == "restored" else b"{}")
        for act in (lambda: one.report("b", round=1), one.deliver, one.reset, lambda: one.consent):
            with pytest.raises(StateError, match="deleted or replaced"):
                act()
        assert path.exists() == (change != "deleted")


def test_a_closed_sender_is_of_no_use(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
    before = (tmp_path / "state").read_bytes()
    for act in (
        lambda: one.report("a"), one.deliver, one.reset, one.withdraw, lambda: one.agree(url()),
        lambda: one.consent, lambda: one.loss, lambda: one.answered,
    ):  # fmt: skip
        with pytest.raises(StateError, match="it was closed"):
            act()
    one.close()
    assert (tmp_path / "state").read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_fork_has_neither_sender_nor_client(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        client = HOURS.protocol.client()
        child = os.fork()
        if child == 0:  # pragma: no cover - the other process
            refused = 0
            for act in (
                lambda: one.report("a"), one.deliver, one.withdraw, lambda: one.loss,
                lambda: client.report(1, round=0), client.reset,
            ):  # fmt: skip
                try:
                    act()
                except StateError:
                    refused += 1
            one.close()
            os._exit(refused)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 6
        # The child has closed its copies; the lock is still ours.
        with pytest.raises(StateError, match="another uses it"):
            sender(tmp_path / "state", clock)
        assert one.report("a") == 0
    assert client.report(1, round=0)


@posix
@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, clock: Clock, kind: str) -> None:
    path = tmp_path / "state"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(StateError, match=r"^state must "):
        Client.load(path)
    if kind != "device":
        with pytest.raises(StateError, match=r"^state must "):
            sender(path, clock)


@pytest.mark.parametrize("content", [b'{"name": "x"}', b"notes", b"%PDF-1.7\0"])
def test_nothing_is_made_beside_a_file_that_is_no_state(
    tmp_path: Path, clock: Clock, content: bytes
) -> None:
    path = tmp_path / "theirs"
    path.write_bytes(content)
    path.chmod(0o644)
    for attempt in (lambda: Sender(path, clock=clock), lambda: AgreementFile.erase(path)):
        with pytest.raises(StateError):
            attempt()
        assert list(tmp_path.iterdir()) == [path]
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (content, 0o644)


@pytest.mark.parametrize(
    ("content", "ledger", "kept"),
    [
        (b'{"type":"loloha-sender",', "whole", True),
        (b'{"type":"loloha-sender",', "damaged", False),
        (b'{"type":"loloha-sender",', None, False),
        (b"{", "whole", True),
        (b"\0\0", None, False),
    ],
)
def test_a_damaged_state_is_erased_and_its_ledger_stays_if_it_can_be_read(
    tmp_path: Path, clock: Clock, content: bytes, ledger: str | None, kept: bool
) -> None:
    path, spent = tmp_path / "state", tmp_path / "state.spent"
    with sender(path, clock) as one:
        one.agree(url())
        one.report("a")
        one.withdraw()
    if ledger != "whole":
        spent.unlink()
    if ledger == "damaged":
        spent.write_bytes(b"{")
        spent.chmod(0o600)
    path.write_bytes(content)
    path.chmod(0o600)
    said = AgreementFile.erase(path)
    assert ("stays counted. If" in said, "Nothing is known" in said) == (kept, not kept)
    left = {each.name for each in tmp_path.iterdir()} - {"state.lock"}
    assert left == ({"state.spent"} if kept else set())
    with sender(path, clock) as one:
        assert not one.consent


def test_a_state_of_two_names_is_not_erased(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b'{"type":"loloha-sender",')
    path.chmod(0o600)
    (tmp_path / "other").hardlink_to(path)
    with pytest.raises(StateError, match="one name"):
        AgreementFile.erase(path)
    assert path.exists()


def test_a_tilde_is_the_home(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with sender(Path("~/state"), clock) as one:
        one.agree(url())
    assert one.path == tmp_path / "state"
    assert (tmp_path / "state").exists()
    HOURS.protocol.client().save("~/client")
    assert Client.load("~/client").loss == 0
    assert not Path("~").exists()


def test_threads_share_a_sender(tmp_path: Path, clock: Clock, collector: Collector) -> None:
    wrong: list[LolohaError] = []
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())

        def work(n: int) -> None:
            try:
                for round in range(12):
                    one.report("abcde"[n], round=round)
                    if round % 4 == n:
                        one.deliver()
            except LolohaError as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one.deliver()
        assert wrong == []
        assert one.answered == set(range(12))
    by_round: dict[int, set[str]] = {}
    for round, body in collector.left:
        by_round.setdefault(round, set()).add(body)
    assert {round: len(bodies) for round, bodies in by_round.items()} == dict.fromkeys(range(12), 1)


def test_threads_share_a_client() -> None:
    client = loloha.GRR(k=5, eps=1.0).client()
    threads = [
        threading.Thread(target=lambda n=n: [client.report(n, round=round) for round in range(50)])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.loss == 50.0


def test_a_report_does_not_wait_for_a_delivery(
    tmp_path: Path, clock: Clock, collector: Collector
) -> None:
    reached, go_on = threading.Event(), threading.Event()
    post = collector.post

    def slow(*parts: Any) -> Any:
        reached.set()
        assert go_on.wait(300)
        return post(*parts)

    collector.post = slow  # type: ignore[method-assign]
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
        thread = threading.Thread(target=one.deliver)
        thread.start()
        assert reached.wait(300)
        assert one.report("b", round=1) == 1
        assert one.loss == 4.0
        go_on.set()
        thread.join()
        assert one.deliver().sent == (1,)


def test_nothing_leaves_after_a_withdrawal_in_the_middle_of_a_delivery(
    tmp_path: Path, clock: Clock, collector: Collector
) -> None:
    post = collector.post

    def withdrawing(*parts: Any) -> Any:
        answer = post(*parts)
        one.withdraw()
        return answer

    collector.post = withdrawing  # type: ignore[method-assign]
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        for round in range(3):
            one.report("a", round=round)
        assert one.deliver().waiting == ()
        assert not one.consent
    assert [round for round, _ in collector.left] == [0]
    assert not (tmp_path / "state").exists()


def test_a_sender_is_not_entered_twice_by_one_thread(tmp_path: Path, clock: Clock) -> None:
    """As a signal handler would: the step that it interrupts must not lose what it did."""
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one._clock = lambda: one.report("b", round=5) or 0.0
        with pytest.raises(StateError, match="one call before the next"):
            one.report("a")
        one._clock = clock
        assert one.report("a") == 0


# -- withdrawal


def test_a_withdrawal_is_complete_and_may_be_repeated(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
        said = one.withdraw()
        assert one.withdraw() == said
        assert "2 spent so far stays spent" in said
        assert "counts you twice" in said
    with sender(tmp_path / "state", clock) as one:
        assert not one.consent
        assert one.withdraw() == said
    assert {path.name for path in tmp_path.iterdir()} == {"state.lock", "state.spent"}
    kept = json.loads((tmp_path / "state.spent").read_text())
    assert len(kept.pop("checksum")) == 64
    assert kept == {
        "type": "loloha-spent", "version": 1, "spent": 2.0, "committed": 10.0,
        "answered": {HOURS.fingerprint: [[0, 0]]},
    }  # fmt: skip
    assert (tmp_path / "state.spent").stat().st_mode & 0o777 == 0o600


def test_a_withdrawal_before_anything_happened_leaves_nothing(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.withdraw()
    assert {path.name for path in tmp_path.iterdir()} == {"state.lock"}


@posix
def test_what_killed_writers_left_is_swept(tmp_path: Path, clock: Clock) -> None:
    secrets = [".loloha-fedcba9876543210", ".loloha-0123456789abcdef"]
    others = [".loloha", "loloha-abcdefgh", ".loloha-ABC", "x.loloha-abcdefgh"]
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        for name in [*secrets, *others]:
            (tmp_path / name).write_text("key and memo")
        one.withdraw()
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {"state.lock", *others}
        (tmp_path / secrets[0]).write_text("key and memo")
    with sender(tmp_path / "state", clock):
        assert not (tmp_path / secrets[0]).exists()
    (tmp_path / secrets[1]).write_text("key and memo")
    HOURS.protocol.client().save(tmp_path / "client")
    assert not (tmp_path / secrets[1]).exists()


@posix
def test_a_writer_that_is_at_work_is_not_swept(tmp_path: Path, clock: Clock) -> None:
    kept: list[bool] = []

    def sweeping() -> None:
        sender(tmp_path / "other", clock).close()
        kept.extend(path.exists() for path in tmp_path.glob(".loloha-*"))

    from loloha.client.file import _write

    _write(str(tmp_path / "state"), b"{}", sweeping).close()
    assert kept == [True]


@posix
def test_what_a_killed_process_left_is_gone_after_a_withdrawal(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "import loloha.client.file as file\n"
        "file.os = type('os', (), {**vars(os), 'replace': lambda *a: os.kill(os.getpid(), 9)})\n"
        "file.write_private(sys.argv[1], b'key, memo and queue')\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path / "state")], check=False)
    assert ended.returncode == -9
    (left,) = tmp_path.glob(".loloha-*")
    assert left.read_bytes() == b"key, memo and queue"
    with Sender(tmp_path / "state") as one:
        one.withdraw()
    assert not left.exists()


def test_a_state_that_cannot_be_deleted_stays_agreed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> None:
        raise OSError(16, "Device or resource busy")

    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
        with monkeypatch.context() as patch:
            patch.setattr("loloha.client.file.os.unlink", busy)
            with pytest.raises(StateError, match=r"must be deletable.*busy"):
                one.withdraw()
        assert one.consent
        assert one.report("b", round=1) == 1
        one.withdraw()
        assert one.loss == 4.0
    assert not (tmp_path / "state").exists()


def test_a_state_without_measure_is_neither_read_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    with path.open("wb") as file:
        # Holes: a gigabyte that takes no place.
        file.truncate(1 << 30)
    with pytest.raises(StateError, match="at most 256 MiB"):
        read_private(str(path))
    opened = StateFile(path)
    with pytest.raises(StateError, match="at most 256 MiB"):
        opened.read()
    opened.close()
    monkeypatch.setattr("loloha.client.file.LARGEST_STATE", 4)
    write_private(str(path), b"1234")
    with pytest.raises(StateError, match="at most"):
        write_private(str(path), b"12345")
    assert read_private(str(path)) == b"1234"
