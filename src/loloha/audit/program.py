"""A foreign command that speaks through pipes, and all that it starts: begun and ended as one."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

from loloha import checks
from loloha.errors import ParameterError

SHOWN_ERRORS = 1 << 16
"""Bytes of a program's standard error that are passed on; the rest is read and dropped."""

_JOIN_SECONDS = 5.0
# Ask this process to end, and would end it without a word to the program.
_ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def words_of(command: str) -> list[str]:
    """A program and its arguments, split as a shell does."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ParameterError(
            f"command must be words as a shell splits them, got {checks.shown(command)}; {error}"
        ) from None
    if not words:
        raise ParameterError(f"command must name a program, got {checks.shown(command)}; name one")
    return words


class Program:
    """A running command, in a session of its own where the platform has them (Windows has none)."""

    def __init__(self, words: Sequence[str], **pipes: Any) -> None:
        self._before: dict[int, Any] = {}
        self._catch()
        try:
            self.process: subprocess.Popen[Any] = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                **pipes,
            )
        except BaseException as error:
            self._uncatch()
            if not isinstance(error, (OSError, ValueError)):
                raise
            raise ParameterError(
                f"command must be a program that runs, got "
                f"{checks.shown(shlex.join(words))}; {error}"
            ) from None
        self._errors = threading.Thread(target=self._pass_on, daemon=True)
        self._errors.start()

    def kill(self) -> None:
        """End it and all that it started, at once."""
        if self.process.returncode is not None:
            # Waited for: its number may belong to somebody else by now.
            return
        if hasattr(os, "killpg"):
            with suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()

    def close(self, *readers: threading.Thread) -> None:
        """End it, wait for that and for who reads it, and close its pipes; twice is no more."""
        try:
            self.kill()
            self.process.wait()
            # What left the session may hold the pipes for ever.
            for reader in (*readers, self._errors):
                reader.join(_JOIN_SECONDS)
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()
        finally:
            self._uncatch()

    def _pass_on(self) -> None:
        """Show the beginning of its errors, and read the rest: it must not wait for us."""
        pipe: Any = self.process.stderr
        left = SHOWN_ERRORS
        with suppress(OSError, ValueError):
            while data := os.read(pipe.fileno(), 1 << 16):
                if left and sys.stderr is not None:
                    sys.stderr.write(data[:left].decode("utf-8", "replace"))
                    if len(data) >= left:
                        sys.stderr.write("\n(further errors of the command are not shown)\n")
                    sys.stderr.flush()
                left = max(0, left - len(data))

    def _catch(self) -> None:
        """Let a request to end unwind the stack, and so close this, unless somebody handles it.

        What is ignored, as a hang-up under nohup, stays so: the work goes on, and the program too.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _ENDINGS:
            if signal.getsignal(number) == signal.SIG_DFL:
                self._before[number] = signal.signal(number, _leave)

    def _uncatch(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
