"""A private file: whole or not at all, and one opener's."""

import os
import stat
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from loloha.client import file
from loloha.client.file import LOCK, StateFile, read_private, sweep, write_private
from loloha.errors import StateError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks and links are those of POSIX")
LEFT = ".loloha-0123456789abcdef"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state"


def names(path: Path) -> set[str]:
    return {found.name for found in path.parent.iterdir()}


def test_what_is_written_is_read_by_the_next_opener(path: Path) -> None:
    one = StateFile(path)
    assert one.read() is None
    one.write(b"first")
    one.write(b"second")
    assert one.read() == b"second"
    one.write(b"third")
    with pytest.raises(StateError, match="another uses it"):
        StateFile(path)
    one.close()
    one.close()
    other = StateFile(path)
    assert other.read() == read_private(str(path)) == b"third"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(path) == {"state", "state" + LOCK}
    other.close()


def test_a_state_is_locked_even_where_its_lock_was_deleted(path: Path) -> None:
    one = StateFile(path)
    one.write(b"content")
    (path.parent / ("state" + LOCK)).unlink()
    for step in (one.read, one.check, one.delete, lambda: one.write(b"more")):
        with pytest.raises(StateError, match="must keep its lock"):
            step()
    other = StateFile(path)
    with pytest.raises(StateError, match="another uses it"):
        other.read()
    one.close()
    assert other.read() == b"content"
    other.close()


def test_a_file_of_two_names_is_nobodys(path: Path) -> None:
    write_private(str(path), b"content")
    os.link(path, path.parent / "other")
    one = StateFile(path)
    with pytest.raises(StateError, match="one file with one name"):
        one.read()
    (path.parent / "other").unlink()
    assert one.read() == b"content"
    one.close()


@pytest.mark.parametrize("before", [True, False])
def test_a_file_that_somebody_changed_is_left_alone(path: Path, before: bool) -> None:
    one = StateFile(path)
    if before:
        one.write(b"ours")
    one.check()
    write_private(str(path), b"theirs")
    with pytest.raises(StateError, match="must be left alone"):
        one.write(b"more")
    assert path.read_bytes() == b"theirs"
    assert one.read() == b"theirs"
    one.write(b"more")
    path.unlink()
    with pytest.raises(StateError, match="must be left alone"):
        one.check()
    one.close()


def test_who_closed_it_or_forked_has_it_no_more(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = StateFile(path)
    one.write(b"content")
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 1)
        with pytest.raises(StateError, match="by the process that opened it"):
            one.write(b"more")
    one.close()
    for step in (one.read, one.check, one.delete):
        with pytest.raises(StateError, match="must be open"):
            step()
    assert path.read_bytes() == b"content"


def test_what_is_deleted_leaves_nothing_but_the_lock(path: Path) -> None:
    one = StateFile(path)
    one.delete()
    one.write(b"content")
    (path.parent / LEFT).write_bytes(b"secret")
    one.delete()
    assert names(path) == {"state" + LOCK}
    assert one.read() is None
    one.close()


def test_leftovers_are_swept_and_nothing_else(path: Path) -> None:
    kept = {LEFT + "0", LEFT.upper(), "x" + LEFT, LEFT[:-1]}
    for name in (*kept, LEFT):
        (path.parent / name).write_bytes(b"")
    sweep(str(path))
    assert names(path) == kept
    sweep(str(path.parent / "nowhere" / "state"))


def test_a_check_that_fails_changes_nothing(path: Path) -> None:
    write_private(str(path), b"before")

    def check() -> None:
        raise StateError("no")

    with pytest.raises(StateError, match="no"):
        file._write(str(path), b"after", check)
    assert (path.read_bytes(), names(path)) == (b"before", {"state"})


def test_a_disk_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_private(str(path), b"before")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    for step in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, full)
            with pytest.raises(StateError, match=r"must be writable .*No space left"):
                write_private(str(path), b"after")
    assert (path.read_bytes(), names(path)) == (b"before", {"state"})
    with pytest.raises(StateError, match="must be writable"):
        StateFile(path.parent / "nowhere" / "state")
    one = StateFile(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", full)
        with pytest.raises(StateError, match="must be deletable"):
            one.delete()
    assert one.read() == b"before"
    one.close()


def test_a_disk_that_takes_little_at_a_time_gets_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(FileIO):
        def write(self, content: Any, /) -> int:
            return super().write(content[:3])

    monkeypatch.setattr(file, "FileIO", Slow)
    write_private(str(path), b"ten bytes!")
    assert path.read_bytes() == b"ten bytes!"


def test_a_pipe_is_no_state(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(StateError, match="must be a regular file"):
        read_private(str(path))
    path.unlink()
    with pytest.raises(StateError, match="must be readable"):
        read_private(str(path))


def test_the_largest_state_is_still_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "LARGEST_STATE", 4)
    write_private(str(path), b"four")
    assert read_private(str(path)) == b"four"
    with pytest.raises(StateError, match="must have at most"):
        write_private(str(path), b"five!")
    path.write_bytes(b"five!")
    with pytest.raises(StateError, match="must have at most"):
        read_private(str(path))
