"""Devices under audit: clients of this process, or a program that answers line by line."""

from __future__ import annotations

import itertools
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self
from typing import Protocol as Interface

from loloha import checks
from loloha.errors import AuditError, ParameterError
from loloha.protocols import Protocol
from loloha.report import Answer, Key

SHOWN_ERRORS = 1 << 16
"""Bytes of a program's standard error that are shown; the rest is read and dropped."""

_JOIN_SECONDS = 5.0
# Signals that would end this process and leave the program running.
_ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
History = list[tuple[int, int]]
"""(round, value) in the order in which a user is asked."""
Transcript = list[tuple[Key, Answer]]
# Lines sent ahead: fewer than a pipe holds, so that neither side blocks the other.
_LINES = 2048
_LONGEST = 1 << 24


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
            # Reap it first: otherwise its number may belong to another process by now.
            return
        if hasattr(os, "killpg"):
            with suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()

    def close(self, *readers: threading.Thread) -> None:
        """End it, wait for it and its readers, and close its pipes; idempotent."""
        try:
            self.kill()
            self.process.wait()
            # A process that left the session may hold the pipes for ever.
            for reader in (*readers, self._errors):
                reader.join(_JOIN_SECONDS)
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()
        finally:
            self._uncatch()

    def _pass_on(self) -> None:
        """Show the beginning of its errors and read the rest, so that it never blocks."""
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
        """Turn unhandled signals to end into exceptions, so that this is closed."""
        # Ignored signals stay ignored, as a hang-up under nohup: work and program go on.
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


class Device(Interface):
    """Anything that turns values into reports."""

    def run(self, histories: Iterable[History]) -> Iterator[Transcript]:
        """Answer for a new user each, in order."""
        ...


class ClientDevice:
    """Clients of this process."""

    def __init__(self, protocol: Protocol, make: Callable[[], Any] | None = None) -> None:
        self.make = protocol.client if make is None else make

    def run(self, histories: Iterable[History]) -> Iterator[Transcript]:
        """Answer for a new user each, in order."""
        for history in histories:
            client = self.make()
            reports = [client.report(value, round=t) for t, value in history]
            yield [(report.key, report.y) for report in reports]


class CommandDevice:
    """Runs a command within a ``with`` block, and never beyond it."""

    def __init__(self, protocol: Protocol, command: str, *, timeout: float = 10.0) -> None:
        self.protocol, self.timeout = protocol, timeout
        self.users = itertools.count()
        self.program = Program(words_of(command), bufsize=0)
        self.process = self.program.process
        self.lines: queue.Queue[bytes] = queue.Queue(_LINES * 2)
        self.stopped = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the program and all its child processes."""
        self.stopped.set()
        self.program.close(self.reader)

    def run(self, histories: Iterable[History]) -> Iterator[Transcript]:
        """Answer for a new user each, in order."""
        rest = iter(histories)
        while batch := self._batch(rest):
            asked = [
                b"%d %d %d\n" % (user, t, value) for user, history in batch for t, value in history
            ]
            answers: list[str] = []
            for start in range(0, len(asked), _LINES):
                part = asked[start : start + _LINES]
                self._write(b"".join(part))
                answers += [self._answer() for _ in part]
            place = iter(answers)
            for _, history in batch:
                yield [report_of(self.protocol, next(place)) for _ in history]

    def _batch(self, histories: Iterator[History]) -> list[tuple[int, History]]:
        batch, lines = [], 0
        for history in histories:
            batch.append((next(self.users), history))
            lines += len(history)
            if lines >= _LINES:
                break
        return batch

    def _write(self, data: bytes) -> None:
        pipe: Any = self.process.stdin
        try:
            pipe.write(data)
        except OSError:
            raise AuditError(self._ended()) from None

    def _read(self) -> None:
        """Queue its lines, with an empty one at its end."""
        pipe: Any = self.process.stdout
        rest, ends = b"", False
        while not (ends or self.stopped.is_set()):
            data = pipe.read(1 << 16)
            whole = (rest + data).split(b"\n")
            rest = whole.pop()
            ends = not data or len(rest) > _LONGEST
            for line in [*whole, b""] if ends else whole:
                while not self.stopped.is_set():
                    try:
                        self.lines.put(line + b"\n" if data or line else b"", timeout=0.1)
                        break
                    except queue.Full:
                        continue

    def _answer(self) -> str:
        try:
            line = self.lines.get(timeout=self.timeout)
        except queue.Empty:
            raise AuditError(
                f"command must answer within {self.timeout:g} seconds, got nothing; let it flush "
                "each line, or raise timeout"
            ) from None
        if not line:
            raise AuditError(self._ended())
        return line.decode("ascii", "replace")

    def _ended(self) -> str:
        return (
            "command must answer each line that it reads, it ended before the audit did; run it "
            "by hand with a line 'user round value'"
        )


def report_of(protocol: Protocol, line: str) -> tuple[Any, Any]:
    """Key and answer of a line ``key y``."""
    encoding = protocol.encoding
    try:
        key_text, answer_text = line.split()
        key: Any = None
        if key_text != "-":
            numbers = tuple(int(part) for part in key_text.split(","))
            key = encoding.key_of(numbers)
        y: Any = bytes.fromhex(answer_text) if encoding.packed else int(answer_text)
    except ValueError:
        key, y = None, None
    if y is None or not encoding.is_sent(key) or not encoding.is_answer(y):
        raise AuditError(
            "command must answer 'key y' in the protocol's ranges, got something else (not "
            "shown); see the documentation of loloha audit"
        )
    return key, y
