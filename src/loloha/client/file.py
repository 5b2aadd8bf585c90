"""A private file: written atomically, and used by one opener at a time."""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from typing import Any

from loloha.errors import StateError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks
    fcntl = None  # type: ignore[assignment]

DAMAGED = "it is damaged"
"""Part of every error about a file beyond repair."""

LOCK = ".lock"
"""Suffix of the file beside a state."""

_TEMPORARY = re.compile(r"\.loloha-[0-9a-f]{16}")

LARGEST_STATE = 256 << 20
"""Bytes of a state: a larger one is neither read nor written."""


def resolved(path: str | os.PathLike[str]) -> str:
    """The file that a path means: absolute, ``~`` expanded, links followed."""
    return os.path.realpath(os.path.expanduser(path))


def write_private(path: str, content: bytes) -> None:
    """Replace a file that only its owner can read, durably."""
    _release(_write(path, content), os.getpid())


def read_private(path: str) -> bytes:
    """The content of a file."""
    try:
        with _open(path) as file:
            return _content(file, path)
    except OSError as error:
        raise _unreadable(path, error) from error


def read_json(path: str, content: bytes, advice: str) -> Any:
    """The JSON data of a file; errors name the file and say what to do."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise StateError(
            f"state must be JSON, the file {path!r} is not: check the path; if it was one, {advice}"
        ) from None


def sweep(path: str) -> None:
    """Delete leftovers of killed writers beside a file: they hold secrets."""
    folder = os.path.dirname(path)
    with suppress(OSError):
        for name in os.listdir(folder):
            if _TEMPORARY.fullmatch(name):
                _delete_if_left(os.path.join(folder, name))


class StateFile:
    """A private file with one opener at a time, across processes, threads, links and forks.

    Locked are a file beside it, which exists before the state does, and the state itself, which
    cannot be deleted unnoticed. Where the platform has no such locks (Windows), nothing is.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = resolved(path)
        self._process = os.getpid()
        self._state: FileIO | None = None
        self._beside: FileIO | None = None
        try:
            self._beside = FileIO(self.path + LOCK, "a", opener=_opened)
            _lock(self._beside)
            sweep(self.path)
        except OSError as error:
            self.close()
            raise StateError(
                f"state must be writable at {self.path!r}: {error.strerror}; check the folder"
            ) from error
        except BaseException:
            self.close()
            raise

    def read(self) -> bytes | None:
        """The content, durable before it is returned; None if there is no file."""
        self.must_be_ours()
        self._let_go()
        try:
            self._state = _open(self.path)
            _lock(self._state)
            if not _is(self.path, self._state) or os.fstat(self._state.fileno()).st_nlink > 1:
                raise StateError("state must be one file with one name; delete its other names")
            content = _content(self._state, self.path)
            # Its writer may have been killed before syncing.
            os.fsync(self._state.fileno())
            sync_folder(os.path.dirname(self.path))
        except FileNotFoundError:
            self._let_go()
            return None
        except OSError as error:
            self._let_go()
            raise _unreadable(self.path, error) from error
        except BaseException:
            self._let_go()
            raise
        return content

    def write(self, content: bytes) -> None:
        """Replace the file, durably; see `write_private`. After an error, `read` it again."""
        self.check()
        before = self._state
        self._state = _write(self.path, content, self.must_be_ours)
        if before is not None:
            _release(before, self._process)

    def delete(self) -> None:
        """Delete the file and all leftovers beside it; it need not exist."""
        self.must_be_ours()
        self._let_go()
        try:
            with suppress(FileNotFoundError):
                os.unlink(self.path)
            sync_folder(os.path.dirname(self.path))
        except OSError as error:
            raise StateError(
                f"state must be deletable at {self.path!r}: {error.strerror}; it is still there"
            ) from error
        sweep(self.path)

    def check(self) -> None:
        """Refuse to go on with a file that was deleted or replaced."""
        self.must_be_ours()
        if self._state is None:
            same = not os.path.lexists(self.path)
        else:
            same = _is(self.path, self._state)
        if not same:
            raise StateError(
                "state must be left alone while it is open, it was deleted or replaced; "
                "close it, and open it again"
            )

    def close(self) -> None:
        """Release the file; a fork leaves that to the process that opened it."""
        self._let_go()
        if self._beside is not None:
            _release(self._beside, self._process)
            self._beside = None

    def must_be_ours(self) -> None:
        """Refuse to go on once it was closed, its lock was deleted, or in a fork."""
        if self._beside is None:
            raise StateError("state must be open, it was closed; open it again")
        if os.getpid() != self._process:
            raise StateError("state must be used by the process that opened it; open it anew")
        if not _is(self.path + LOCK, self._beside):
            raise StateError(
                "state must keep its lock, its lock file was deleted; close it, and open it again"
            )

    def _let_go(self) -> None:
        if self._state is not None:
            _release(self._state, self._process)
            self._state = None


def _write(path: str, content: bytes, check: Callable[[], None] | None = None) -> FileIO:
    """Replace a file, durably; the new one, open and locked."""
    _must_fit(len(content), path)
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".loloha-{secrets.token_hex(8)}")
    try:
        try:
            file = FileIO(temporary, "x", opener=_opened)
            try:
                # A locked file is no leftover.
                _lock(file)
                rest = memoryview(content)
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
                if check is not None:
                    check()
                os.replace(temporary, path)
                sync_folder(folder)
            except BaseException:
                file.close()
                raise
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise StateError(
            f"state must be writable at {path!r}: {error.strerror}; try again when it is"
        ) from error
    return file


def _open(path: str) -> FileIO:
    """A regular file, open for reading."""
    file = FileIO(path, opener=_opened)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise StateError(f"state must be a regular file at {path!r}; check the path")
    return file


def _content(file: FileIO, path: str) -> bytes:
    """All of an open file, after a check of its size."""
    _must_fit(os.fstat(file.fileno()).st_size, path)
    return file.readall()


def _must_fit(size: int, path: str) -> None:
    if size > LARGEST_STATE:
        raise StateError(
            f"state must have at most {LARGEST_STATE >> 20} MiB at {path!r}, got {size >> 20}; "
            "check the path, or deliver what waits"
        )


def _opened(path: str, flags: int) -> int:
    # Opening a pipe in place of a file must not block.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)


def _is(path: str, file: FileIO) -> bool:
    """Whether a path names an open file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except OSError:
        return False


def _delete_if_left(path: str) -> None:
    with suppress(OSError, StateError), _open(path) as file:
        _lock(file)
        os.unlink(path)


def _lock(file: FileIO) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StateError(
            "state must be used by one process at a time, another uses it; wait until it ends"
        ) from None


def _release(file: FileIO, owner: int) -> None:
    """Close a file; a fork's copy shares its lock, which stays with the owner."""
    with suppress(OSError):
        try:
            if fcntl is not None and not file.closed and os.getpid() == owner:
                fcntl.flock(file, fcntl.LOCK_UN)
        finally:
            file.close()


def _unreadable(path: str, error: OSError) -> StateError:
    return StateError(f"state must be readable at {path!r}: {error.strerror}; check the path")


def sync_folder(folder: str) -> None:
    """Make a name durable where the platform lets a folder be synced."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
