"""A private file, written whole or not at all, and used by one process at a time."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO

from loloha.errors import StateError


def write_private(path: Path, content: bytes) -> None:
    """Replace a file that only its owner can read, durably.

    Raises
    ------
    StateError
        If it cannot be written; what was there before is untouched.
    """
    target = path.absolute()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".loloha-")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(target.parent)
    except OSError as error:
        raise StateError(
            f"state must be writable at {str(path)!r}: {error.strerror}; nothing was changed"
        ) from error


class FileLock:
    """Holds ``PATH.lock`` for one process; released by the system if that dies.

    Where the system has no such locks, keeping processes apart is left to the application.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        self._file: IO[bytes] | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises
        ------
        StateError
            If another process has it.
        """
        try:
            import fcntl
        except ImportError:
            return
        try:
            file = self._path.open("ab")
        except OSError as error:
            raise StateError(
                f"state must be writable at {str(self._path)!r}: {error.strerror}; check the folder"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise StateError(
                "state must be used by one process at a time, another has it; wait for that"
            ) from None
        self._file = file

    def release(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _sync(folder: Path) -> None:
    """Make the rename durable where the platform lets a folder be synced."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
